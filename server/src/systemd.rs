//! Notifies systemd when the server is ready and when it stops, for units with `Type=notify`.

use std::io;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names systemd's socket. Other supervisors don't set it.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The server's state.
#[derive(Clone, Copy, Debug)]
pub enum Notice {
    Ready,
    Stopping,
}

/// Sends the server's state to systemd, if systemd started the server. A failure is only logged:
/// systemd then acts as if the server hung.
pub fn notify(notice: Notice) {
    let Some(socket) = std::env::var_os(SOCKET) else {
        return;
    };
    let state: &[u8] = match notice {
        Notice::Ready => b"READY=1",
        Notice::Stopping => b"STOPPING=1",
    };
    if let Err(error) = send(socket.as_bytes(), state) {
        tracing::warn!(%error, "the server's state can't be sent to systemd");
    }
}

fn send(socket: &[u8], state: &[u8]) -> io::Result<()> {
    let address = match socket.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(socket))?,
    };
    UnixDatagram::unbound()?.send_to_addr(state, &address).map(drop)
}
