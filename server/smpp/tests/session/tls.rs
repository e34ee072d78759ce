//! TLS with a certificate made for the run.

use std::io::Write;

use smpp::{Outcome, Settings, Tls, UnknownCause};
use testing::smsc::{SUBMIT_SM, Smsc};

use crate::client::{Client, accepted, settings, submit, submits};
use crate::cuts::cut_under_pressure;

fn with_tls(smsc: &Smsc, ca_file: Option<&tempfile::NamedTempFile>, name: &str) -> Settings {
    Settings {
        tls: Some(Tls {
            ca_file: ca_file.map(|file| file.path().to_owned()),
            server_name: name.to_owned(),
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
    let (smsc, pem) = Smsc::start_tls().await;
    let (right, other) = (file(&pem), file(&Smsc::start_tls().await.1));
    let empty = file("");
    let accepting = async {
        smsc.accept().await;
    };
    let refused = async {
        for (ca_file, name, expected) in [
            (Some(&right), "example.org", "connect"),
            (Some(&other), "localhost", "connect"),
            (Some(&empty), "localhost", "CA file"),
            (None, "localhost", "connect"),
            (Some(&right), "no name", "connect"),
        ] {
            let client = Client::open(with_tls(&smsc, ca_file, name));
            let status = client.until(|status| status.last_error.is_some()).await;
            let error = status.last_error.unwrap();
            assert!(error.contains(expected), "{error}");
        }
    };
    // Runs the SMSC's side of each handshake. No handshake may succeed.
    tokio::select! {
        () = accepting => panic!("a handshake succeeded"),
        () = refused => {}
    }
}
