//! The socket, plain or with TLS.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::{Settings, Tls};

/// A connected socket.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {
    /// Sets whether several writes follow. If so, the kernel waits until packets are full. If not,
    /// it sends all bytes immediately.
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

/// Connects. The caller sets the timeout.
pub(crate) async fn connect(settings: &Settings) -> io::Result<Box<dyn Stream>> {
    let socket = TcpStream::connect(&settings.address).await?;
    // The writer calls `gather` when more bytes follow. At all other times, waiting for more bytes
    // would only delay the pending ones.
    socket.set_nodelay(true)?;
    let Some(tls) = &settings.tls else {
        return Ok(Box::new(socket));
    };
    let name = ServerName::try_from(tls.server_name.clone()).map_err(io::Error::other)?;
    let connector = TlsConnector::from(Arc::new(client_config(tls).await?));
    Ok(Box::new(connector.connect(name, socket).await?))
}

async fn client_config(tls: &Tls) -> io::Result<ClientConfig> {
    let roots = match &tls.ca_file {
        Some(file) => authorities(file)
            .await
            .map_err(|error| io::Error::other(format!("CA file {}: {error}", file.display())))?,
        None => webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect(),
    };
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?;
    Ok(config.with_root_certificates(roots).with_no_client_auth())
}

async fn authorities(file: &Path) -> io::Result<RootCertStore> {
    let pem = tokio::fs::read(file).await?;
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        let certificate = certificate.map_err(io::Error::other)?;
        roots.add(certificate).map_err(io::Error::other)?;
    }
    if roots.is_empty() {
        return Err(io::Error::other("no certificate in it"));
    }
    Ok(roots)
}
