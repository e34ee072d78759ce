//! Certificate and key for serving HTTPS ourselves, and authorities for calling others.

use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::config::{ConfigError, TlsFiles};

/// Reads both files and makes what accepts TLS 1.2 and 1.3 connections.
pub fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, ConfigError> {
    let cert_failed = |error: &dyn std::fmt::Display| {
        ConfigError::new(format!("tls_cert {}: {error}", files.cert.display()))
    };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(&files.cert)
        .map_err(|error| cert_failed(&error))?
        .collect::<Result<_, _>>()
        .map_err(|error| cert_failed(&error))?;
    let key = PrivateKeyDer::from_pem_file(&files.key)
        .map_err(|error| ConfigError::new(format!("tls_key {}: {error}", files.key.display())))?;
    let failed = |error: &dyn std::fmt::Display| {
        ConfigError::new(format!(
            "tls_cert and tls_key can't be used together: {error}"
        ))
    };
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| failed(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// The authorities of a PEM file; at least one.
pub fn authorities(file: &Path) -> Result<RootCertStore, ConfigError> {
    let failed =
        |error: &dyn std::fmt::Display| ConfigError::new(format!("{}: {error}", file.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(file).map_err(|error| failed(&error))? {
        let certificate = certificate.map_err(|error| failed(&error))?;
        roots.add(certificate).map_err(|error| failed(&error))?;
    }
    if roots.is_empty() {
        return Err(failed(&"no certificate"));
    }
    Ok(roots)
}
