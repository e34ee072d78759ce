//! The socket, plain or with TLS.

use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;

use crate::{Backup, Fault, FaultKind, Settings, tls};

/// A connected socket.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Sets whether several writes follow. If so, the kernel waits until packets are full.
    /// Otherwise it sends all bytes immediately.
    fn gather(&self, _several: bool) {}
}

impl Stream for TcpStream {
    fn gather(&self, several: bool) {
        // If the socket is broken, the next write reports the error.
        let _ = self.set_nodelay(!several);
    }
}

impl Stream for TlsStream<TcpStream> {
    fn gather(&self, several: bool) {
        self.get_ref().0.gather(several);
    }
}

/// An `enquire_link` with the sequence number 1.
const ENQUIRE_LINK: [u8; 16] = [0, 0, 0, 16, 0, 0, 0, 0x15, 0, 0, 0, 0, 0, 0, 0, 1];
/// How long a probe without TLS waits for a TLS alert. A carrier without TLS may send nothing
/// before a bind.
const TLS_ALERT_TIMEOUT: Duration = Duration::from_secs(1);

/// Connects to the address in the settings or to the backup, with TLS if the settings have it. Then
/// closes the connection without a bind. Without TLS, first sends an `enquire_link`, which a
/// carrier that expects TLS answers with an alert.
///
/// # Errors
/// Returns why there is no connection, or that the carrier expects TLS.
pub async fn probe(settings: &Settings, backup: Option<&Backup>) -> Result<(), Fault> {
    let mut stream = connect(settings, backup, |_| ()).await?;
    if settings.tls.is_some() {
        return Ok(());
    }
    let mut answer = [0; 2];
    let asking = async {
        stream.write_all(&ENQUIRE_LINK).await?;
        stream.read_exact(&mut answer).await
    };
    let answered = timeout(TLS_ALERT_TIMEOUT, asking).await;
    if matches!(answered, Ok(Ok(_))) && matches!(answer, [0x15 | 0x16, 3]) {
        return Err(Fault::new(FaultKind::TlsExpected, "a TLS record instead of a response"));
    }
    Ok(())
}

/// Connects to the address in the settings or to the backup within the time limit. Before each
/// step, calls `begin` with the fault to report if that step takes too long.
pub(crate) async fn connect(
    settings: &Settings,
    backup: Option<&Backup>,
    begin: impl Fn(FaultKind),
) -> Result<Box<dyn Stream>, Fault> {
    let until = Instant::now() + settings.timers.connect;
    let late = |kind| {
        begin(kind);
        move |_| Fault::new(kind, "no answer in time")
    };
    let address = backup.map_or(&settings.address, |backup| &backup.address);
    let too_late = late(FaultKind::NameUnknown);
    let addresses: Vec<_> = timeout_at(until, lookup_host(address))
        .await
        .map_err(too_late)?
        .map_err(|error| Fault::new(FaultKind::NameUnknown, error.to_string()))?
        .collect();
    let too_late = late(FaultKind::ConnectTimeout);
    let socket = timeout_at(until, TcpStream::connect(&addresses[..]))
        .await
        .map_err(too_late)?
        .map_err(|error| Fault::connect(&error))?;
    // The writer calls `gather` when more bytes follow. At all other times, waiting for more bytes
    // would only delay the pending ones.
    socket.set_nodelay(true).map_err(|error| Fault::connect(&error))?;
    let Some(tls) = &settings.tls else {
        return Ok(Box::new(socket));
    };
    let name = backup.map_or(&tls.server_name, |backup| &backup.server_name);
    let name = ServerName::try_from(name.clone())
        .map_err(|error| Fault::new(FaultKind::Setting, error.to_string()))?;
    let config = tls::client_config(tls).await;
    let config = config.map_err(|error| Fault::new(FaultKind::TlsFile, error.to_string()))?;
    let connector = TlsConnector::from(Arc::new(config));
    let too_late = late(FaultKind::TlsNotSpoken);
    let stream = timeout_at(until, connector.connect(name, socket))
        .await
        .map_err(too_late)?
        .map_err(|error| Fault::handshake(&error))?;
    Ok(Box::new(stream))
}
