//! HTTPS without a proxy.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::Arc;

use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use crate::client::form;
use crate::harness::{Place, TestServer};

/// Returns a place with a certificate for `localhost`, and the certificate.
fn place_with_certificate() -> (Place, CertificateDer<'static>) {
    let place = Place::new();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(place.path().join("cert.pem"), made.cert.pem()).unwrap();
    std::fs::write(place.path().join("key.pem"), made.signing_key.serialize_pem()).unwrap();
    let certificate = made.cert.der().clone();
    (place, certificate)
}

/// A client that trusts only one certificate.
struct Secure<'a> {
    server: &'a TestServer,
    config: Arc<ClientConfig>,
}

impl<'a> Secure<'a> {
    fn new(server: &'a TestServer, certificate: CertificateDer<'static>) -> Self {
        let mut roots = RootCertStore::empty();
        roots.add(certificate).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Self { server, config: Arc::new(config) }
    }

    /// Returns the whole response to a request, on a connection of its own.
    fn answer(&self, request: &str) -> String {
        let name = ServerName::try_from("localhost").unwrap();
        let client = ClientConnection::new(Arc::clone(&self.config), name).unwrap();
        let socket = TcpStream::connect(self.server.address()).unwrap();
        let mut stream = StreamOwned::new(client, socket);
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

fn demo_with_tls() -> (TestServer, CertificateDer<'static>) {
    let (place, certificate) = place_with_certificate();
    let environment = [("HELIOGRAPH_TLS_CERT", "cert.pem"), ("HELIOGRAPH_TLS_KEY", "key.pem")];
    let server = TestServer::start(place, &["--demo"], &environment);
    (server, certificate)
}

#[test]
fn the_api_speaks_tls() {
    let (server, certificate) = demo_with_tls();
    assert!(server.ready["url"].as_str().unwrap().starts_with("https://"));

    let secure = Secure::new(&server, certificate);
    let key = server.key();
    let request =
        format!("GET /sms/balance/{key} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    let answer = secure.answer(&request);
    assert!(answer.starts_with("HTTP/1.1 200 OK"), "{answer}");
    assert!(answer.contains("\"balance\":10,"), "{answer}");

    // Plain HTTP doesn't work on the same port.
    let mut plain = server.connect();
    plain.write(request.as_bytes());
    assert!(plain.read().is_none());
}

#[test]
fn every_answer_asks_for_https_from_then_on() {
    let (server, certificate) = demo_with_tls();
    let secure = Secure::new(&server, certificate);
    let targets = [
        "/",
        "/login",
        "/favicon.svg",
        "/no/such/page",
        "/fn/no-such-function",
        "/sms/balance/x",
        "/sms/no/such/call",
        "/carriers/nobody/secret",
    ];
    let requests = targets
        .map(|target| format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"));
    let unreadable = "GET / HTTP/1.1\r\nHost a\r\n\r\n".to_owned();
    for request in requests.into_iter().chain([unreadable]) {
        let answer = secure.answer(&request).to_lowercase();
        for header in [
            "strict-transport-security: max-age=31536000; includesubdomains",
            "x-content-type-options: nosniff",
        ] {
            let count = answer.matches(&format!("\r\n{header}\r\n")).count();
            assert_eq!(count, 1, "{request}: {answer}");
        }
    }
    // The header is missing if HTTPS isn't used.
    let plain = TestServer::empty().get("/");
    assert_eq!(plain.header("strict-transport-security"), None);
    assert_eq!(plain.header("x-content-type-options"), Some("nosniff"));
}

#[test]
fn with_tls_the_cookie_is_this_hosts_alone() {
    let (server, certificate) = demo_with_tls();
    let customer = &server.ready["customer"];
    let body = form(&[
        ("email", customer["email"].as_str().unwrap()),
        ("password", customer["password"].as_str().unwrap()),
    ]);
    let length = body.len();
    let answer = Secure::new(&server, certificate).answer(&format!(
        "POST /fn/sign-in HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n{body}"
    ));
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.starts_with("__Host-heliograph="), "{cookie}");
    for attribute in ["; Secure", "; HttpOnly", "; Path=/", "; SameSite=Lax"] {
        assert!(cookie.contains(attribute), "{cookie}");
    }
    assert!(!cookie.contains("Domain"), "{cookie}");
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
