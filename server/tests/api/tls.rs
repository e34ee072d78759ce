//! HTTPS without a proxy.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::harness::{Place, TestServer};

/// A place with a certificate for `localhost`, and the certificate.
fn place_with_certificate() -> (Place, CertificateDer<'static>) {
    let place = Place::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(place.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(
        place.path().join("key.pem"),
        made.signing_key.serialize_pem(),
    )
    .unwrap();
    let certificate = made.cert.der().clone();
    (place, certificate)
}

#[test]
fn the_api_speaks_tls() {
    let (place, certificate) = place_with_certificate();
    let environment = [
        ("HELIOGRAPH_TLS_CERT", "cert.pem"),
        ("HELIOGRAPH_TLS_KEY", "key.pem"),
    ];
    let server = TestServer::start(place, &["--demo"], &environment);
    assert!(
        server.ready["url"]
            .as_str()
            .unwrap()
            .starts_with("https://")
    );

    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(server.address()).unwrap();
    let mut stream = StreamOwned::new(client, socket);
    let key = server.key();
    let request =
        format!("GET /sms/balance/{key} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\"balance\":10,"), "{answer}");

    // Plain HTTP on the same port is no way in.
    let mut plain = server.connect();
    plain.write(request.as_bytes());
    assert!(plain.read().is_none());
}

#[test]
fn a_public_address_is_fine_with_tls_and_bad_files_are_named() {
    let (place, _) = place_with_certificate();
    std::fs::write(place.path().join("bad.pem"), "no certificate").unwrap();
    for (cert, key, named) in [
        ("bad.pem", "key.pem", "tls_cert"),
        ("missing.pem", "key.pem", "missing.pem"),
        ("cert.pem", "bad.pem", "tls_key"),
        ("cert.pem", "missing.pem", "missing.pem"),
    ] {
        let output = place
            .command(&["serve"])
            .env("HELIOGRAPH_ADDR", "0.0.0.0:0")
            .env("HELIOGRAPH_ALLOW_SANDBOX", "true")
            .env("HELIOGRAPH_TLS_CERT", cert)
            .env("HELIOGRAPH_TLS_KEY", key)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(1));
        let words = String::from_utf8(output.stderr).unwrap();
        assert!(words.contains(named), "{cert} {key}: {words}");
    }
}
