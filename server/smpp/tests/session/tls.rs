//! TLS with a certificate made for the run.

use std::io::Write;

use smpp::{ClientCertificate, FaultKind, Outcome, Settings, Tls, UnknownCause};
use testing::smsc::{SUBMIT_SM, Smsc};

use crate::client::{Client, accepted, settings, submit, submits};
use crate::cuts::cut_under_pressure;

fn with_tls(smsc: &Smsc, ca_file: Option<&tempfile::NamedTempFile>, name: &str) -> Settings {
    Settings {
        tls: Some(Tls {
            ca_file: ca_file.map(|file| file.path().to_owned()),
            server_name: name.to_owned(),
            client: None,
        }),
        ..settings(smsc)
    }
}

fn file(pem: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(pem.as_bytes()).unwrap();
    file
}

#[tokio::test]
async fn submits_go_over_tls() {
    let (smsc, pem) = Smsc::start_tls().await;
    let file = file(&pem);
    let (mut client, mut peer) =
        Client::bound(&smsc, with_tls(&smsc, Some(&file), "localhost")).await;
    client.connection.submit(submits(0..10));
    for submit in peer.submits(10).await {
        peer.accept(&submit, "x").await;
    }
    for (_, outcome) in client.answers(10).await {
        assert_eq!(outcome, accepted("x"));
    }
}

#[tokio::test]
async fn over_tls_a_submit_that_was_received_before_a_cut_is_unknown() {
    let (smsc, pem) = Smsc::start_tls().await;
    let file = file(&pem);
    let (mut client, mut peer) =
        Client::bound(&smsc, with_tls(&smsc, Some(&file), "localhost")).await;
    for round in 0..20 {
        client.connection.submit(vec![submit(round)]);
        peer.expect(SUBMIT_SM).await;
        drop(peer);
        let cause = UnknownCause::ConnectionLost;
        assert_eq!(client.answer().await, (round, Outcome::Unknown { cause }));
        peer = smsc.bound().await;
        client.until_free().await;
    }
}

#[tokio::test]
async fn over_tls_with_full_sockets_no_submit_that_was_received_whole_is_told_as_not_sent() {
    let (smsc, pem) = Smsc::start_tls().await;
    let file = file(&pem);
    cut_under_pressure(&smsc, with_tls(&smsc, Some(&file), "localhost")).await;
}

#[tokio::test]
async fn a_certificate_that_is_not_trusted_is_refused() {
    let (smsc, pem) = Smsc::start_tls_signed("localhost").await;
    let (right, other) = (file(&pem), file(&Smsc::start_tls().await.1));
    let empty = file("");
    let accepting = async {
        smsc.accept().await;
    };
    let refused = async {
        for (ca_file, name, expected) in [
            (Some(&right), "example.org", FaultKind::CertificateName),
            (Some(&other), "localhost", FaultKind::CertificateUntrusted),
            (Some(&empty), "localhost", FaultKind::TlsFile),
            (None, "localhost", FaultKind::CertificateUntrusted),
            (Some(&right), "no name", FaultKind::Setting),
        ] {
            let client = Client::open(with_tls(&smsc, ca_file, name));
            client.until_fault(expected).await;
        }
    };
    // Runs the SMSC's side of each handshake. No handshake may succeed.
    tokio::select! {
        () = accepting => panic!("a handshake succeeded"),
        () = refused => {}
    }
}

#[tokio::test]
async fn an_authority_vouches_for_the_name() {
    let (smsc, pem) = Smsc::start_tls_signed("localhost").await;
    Client::bound(&smsc, with_tls(&smsc, Some(&file(&pem)), "localhost")).await;
}

/// `openssl req -x509` makes such a certificate: it claims to be an authority, and has no name that
/// TLS knows.
#[tokio::test]
async fn a_self_signed_certificate_of_openssl_can_be_pinned() {
    let (smsc, pem) = Smsc::start_tls_openssl().await;
    Client::bound(&smsc, with_tls(&smsc, Some(&file(&pem)), "127.0.0.1")).await;

    // A second one that looks the same isn't trusted.
    let other = file(&Smsc::start_tls_openssl().await.1);
    let client = Client::open(with_tls(&smsc, Some(&other), "127.0.0.1"));
    tokio::select! {
        _ = smsc.accept() => panic!("a handshake succeeded"),
        _ = client.until_fault(FaultKind::CertificateUntrusted) => {}
    }
}

#[tokio::test]
async fn a_carrier_that_asks_for_a_certificate_gets_ours() {
    let (cert, key) = testing::smsc::client_certificate();
    let (smsc, pem) = Smsc::start_tls_for(&cert).await;
    let (ca, cert_file, key_file) = (file(&pem), file(&cert), file(&key));
    let mut settings = with_tls(&smsc, Some(&ca), "localhost");
    let without = Client::open(settings.clone());
    tokio::select! {
        _ = smsc.accept() => panic!("a handshake succeeded"),
        said = without.until_fault(FaultKind::TlsRefused) => {
            assert!(said.contains("tls_cert"), "{said}");
        }
    }
    drop(without);
    if let Some(tls) = &mut settings.tls {
        tls.client = Some(ClientCertificate {
            cert_file: cert_file.path().to_owned(),
            key_file: key_file.path().to_owned(),
        });
    }
    Client::bound(&smsc, settings).await;
}
