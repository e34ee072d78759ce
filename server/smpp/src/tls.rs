//! Which certificates a connection trusts, and which one it presents.

use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::client::{WantsClientCert, WebPkiServerVerifier};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    ClientConfig, ConfigBuilder, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

use crate::Tls;

/// Trusts a certificate that an authority has signed for the server's name. Also trusts each pinned
/// certificate, whatever its name. Most self-signed certificates of carriers come from `openssl req
/// -x509`. They claim to be authorities and have no name, so they can only be compared.
#[derive(Debug)]
struct Verifier {
    authorities: Arc<WebPkiServerVerifier>,
    pinned: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        presented: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if self.pinned.iter().any(|pinned| pinned == presented) {
            return Ok(ServerCertVerified::assertion());
        }
        let authorities = &self.authorities;
        authorities.verify_server_cert(presented, intermediates, name, ocsp_response, now)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.authorities.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.authorities.supported_verify_schemes()
    }
}

/// Returns the configuration of a connection. Reads the files of the settings.
pub(crate) async fn client_config(tls: &Tls) -> io::Result<ClientConfig> {
    let pinned = match &tls.ca_file {
        Some(file) => certificates(file).await?,
        None => Vec::new(),
    };
    let mut roots = RootCertStore::empty();
    if let Some(file) = &tls.ca_file {
        for certificate in &pinned {
            roots.add(certificate.clone()).map_err(|error| named(file, error))?;
        }
    } else {
        roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    let config = client_that_trusts(roots, pinned)?;
    let Some(client) = &tls.client else {
        return Ok(config.with_no_client_auth());
    };
    let chain = certificates(&client.cert_file).await?;
    let pem = read(&client.key_file).await?;
    let key =
        PrivateKeyDer::from_pem_slice(&pem).map_err(|error| named(&client.key_file, error))?;
    config.with_client_auth_cert(chain, key).map_err(|error| named(&client.key_file, error))
}

/// Returns the configuration of a client that trusts certificates of these authorities, and the
/// `pinned` ones whatever their names. The caller still has to set the client's own certificate.
pub fn client_that_trusts(
    authorities: RootCertStore,
    pinned: Vec<CertificateDer<'static>>,
) -> io::Result<ConfigBuilder<ClientConfig, WantsClientCert>> {
    let provider = Arc::new(ring::default_provider());
    let authorities =
        WebPkiServerVerifier::builder_with_provider(Arc::new(authorities), Arc::clone(&provider))
            .build()
            .map_err(io::Error::other)?;
    Ok(ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        // This verifier verifies every certificate. The method's name warns of verifiers that
        // verify nothing.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { authorities, pinned })))
}

/// Returns the certificates in a PEM file. There must be at least one.
async fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let pem = read(file).await?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&pem).collect();
    let certificates = certificates.map_err(|error| named(file, error))?;
    if certificates.is_empty() {
        return Err(named(file, "no certificate in it"));
    }
    Ok(certificates)
}

async fn read(file: &Path) -> io::Result<Vec<u8>> {
    tokio::fs::read(file).await.map_err(|error| named(file, error))
}

fn named(file: &Path, error: impl std::fmt::Display) -> io::Error {
    io::Error::other(format!("{}: {error}", file.display()))
}
