//! TLS: the certificate and key for serving HTTPS, and the trusted authorities for outgoing
//! connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};

use crate::config_error::ConfigError;

/// The certificate chain and the private key, both in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

type Certificates = Vec<CertificateDer<'static>>;

/// The certificate chain and its key.
type Identity = (Certificates, PrivateKeyDer<'static>);

fn identity(files: &TlsFiles) -> Result<Identity, ConfigError> {
    let cert_failed = |error: &dyn std::fmt::Display| {
        ConfigError::new(format!("tls_cert {}: {error}", files.cert.display()))
    };
    let chain: Certificates = CertificateDer::pem_file_iter(&files.cert)
        .map_err(|error| cert_failed(&error))?
        .collect::<Result<_, _>>()
        .map_err(|error| cert_failed(&error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| ConfigError::new(format!("tls_key {}: {error}", files.key.display())))?;
    Ok((chain, key))
}

fn unfit(error: &dyn std::fmt::Display) -> ConfigError {
    ConfigError::new(format!("tls_cert and tls_key can't be used together: {error}"))
}

/// Reads both files and returns an acceptor for TLS 1.2 and 1.3.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ConfigError> {
    let (chain, key) = identity(files)?;
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unfit(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| unfit(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Checks that a client can present this certificate.
pub fn check_client(files: &TlsFiles) -> Result<(), ConfigError> {
    client_with(None, Some(files)).map(drop)
}

/// Returns the certificates in a PEM file, also as authorities. There must be at least one.
pub fn authorities(file: &Path) -> Result<(RootCertStore, Certificates), ConfigError> {
    let failed =
        |error: &dyn std::fmt::Display| ConfigError::new(format!("{}: {error}", file.display()));
    let certificates: Certificates = CertificateDer::pem_file_iter(file)
        .map_err(|error| failed(&error))?
        .collect::<Result<_, _>>()
        .map_err(|error| failed(&error))?;
    let mut roots = RootCertStore::empty();
    for certificate in &certificates {
        roots.add(certificate.clone()).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"no certificate"));
    }
    Ok((roots, certificates))
}

/// Returns the configuration for outgoing connections over TLS 1.2 or 1.3. It trusts the
/// certificates in the file and those that they signed, or the public authorities.
pub fn client(authorities_file: Option<&Path>) -> Result<ClientConfig, ConfigError> {
    client_with(authorities_file, None)
}

/// Returns the configuration as [`client`] does, with the certificate that we present.
pub fn client_with(
    authorities_file: Option<&Path>,
    presented: Option<&TlsFiles>,
) -> Result<ClientConfig, ConfigError> {
    let (roots, pinned) = match authorities_file {
        Some(file) => authorities(file)?,
        None => (public_authorities(), Vec::new()),
    };
    client_that_trusts(roots, pinned, presented)
}

/// Returns the configuration for connections to our own site, which may have a certificate of the
/// operator's authority. It trusts the machine's authorities too.
pub fn client_of_machine() -> Result<ClientConfig, ConfigError> {
    let mut roots = public_authorities();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    client_that_trusts(roots, Vec::new(), None)
}

fn public_authorities() -> RootCertStore {
    webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect()
}

fn client_that_trusts(
    roots: RootCertStore,
    pinned: Certificates,
    presented: Option<&TlsFiles>,
) -> Result<ClientConfig, ConfigError> {
    let config = smpp::client_that_trusts(roots, pinned);
    let config = config.map_err(|error| ConfigError::new(format!("TLS can't be used: {error}")))?;
    let Some(files) = presented else {
        return Ok(config.with_no_client_auth());
    };
    let (chain, key) = identity(files)?;
    config.with_client_auth_cert(chain, key).map_err(|error| unfit(&error))
}
