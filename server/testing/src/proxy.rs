//! A network that is slow, silent or cut: a TCP proxy in front of a server.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

/// The most bytes that are on the way in one direction of a connection.
const CHUNK_BYTES: usize = 8 * 1024;

/// How a network works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    Fast,
    /// Everything arrives this much later, and at most 8 KiB in this time.
    Slow(Duration),
    /// Nothing arrives until the network works again.
    Silent,
    /// All connections end, and new ones end at once.
    Cut,
}

/// Listens on a port of its own until the process ends.
pub struct Proxy {
    /// Host and port.
    pub address: String,
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    network: Network,
    /// Both sides of each open connection.
    open: HashMap<usize, [TcpStream; 2]>,
    next: usize,
}

impl Proxy {
    /// Forwards connections to this host and port.
    pub fn start(target: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = State { network: Network::Fast, open: HashMap::new(), next: 0 };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let (accepting, target) = (Arc::clone(&shared), target.to_owned());
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                // The server may be down.
                if let Ok(server) = TcpStream::connect(&target) {
                    accepting.connect(client, server);
                }
            }
        });
        Self { address, shared }
    }

    pub fn set(&self, network: Network) {
        let mut state = self.shared.state.lock().unwrap();
        state.network = network;
        if network == Network::Cut {
            state.open.values().flatten().for_each(end);
        }
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn connect(self: &Arc<Self>, client: TcpStream, server: TcpStream) {
        let mut state = self.state.lock().unwrap();
        if state.network == Network::Cut {
            return;
        }
        let number = state.next;
        state.next += 1;
        for stream in [&client, &server] {
            stream.set_nodelay(true).unwrap();
        }
        state.open.insert(number, [client.try_clone().unwrap(), server.try_clone().unwrap()]);
        let back = (server.try_clone().unwrap(), client.try_clone().unwrap());
        for (from, to) in [(client, server), back] {
            let shared = Arc::clone(self);
            std::thread::spawn(move || {
                shared.forward(&from, &to);
                end(&from);
                end(&to);
                shared.state.lock().unwrap().open.remove(&number);
            });
        }
    }

    /// Forwards one direction until either side ends the connection.
    fn forward(&self, mut from: &TcpStream, mut to: &TcpStream) {
        let mut chunk = [0; CHUNK_BYTES];
        while let Ok(length @ 1..) = from.read(&mut chunk) {
            if let Network::Slow(time) = self.until_forwarding() {
                std::thread::sleep(time);
                self.until_forwarding();
            }
            if to.write_all(&chunk[..length]).is_err() {
                return;
            }
        }
    }

    fn until_forwarding(&self) -> Network {
        let state = self.state.lock().unwrap();
        let is_silent = |state: &mut State| state.network == Network::Silent;
        self.changed.wait_while(state, is_silent).unwrap().network
    }
}

fn end(stream: &TcpStream) {
    // Fails if it has ended already.
    let _ = stream.shutdown(Shutdown::Both);
}
