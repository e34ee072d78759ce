//! What operators read when a connection fails: what is wrong, the peer's number and the next step.

use std::time::Duration;

use smpp::{FaultKind, Settings, State, Tls};
use testing::smsc::{GENERIC_NACK, Smsc, pdu};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::client::{Client, settings, settings_at};

fn with_tls(settings: Settings) -> Settings {
    let tls = Tls { ca_file: None, server_name: "localhost".to_owned(), client: None };
    Settings { tls: Some(tls), ..settings }
}

#[tokio::test]
async fn a_refused_bind_is_named_with_its_number_and_the_next_step() {
    for (status, kind, named, next_step) in [
        (0x0E, FaultKind::BindPassword, "ESME_RINVPASWD 0x0000000e", "Check \"password\""),
        (0x0F, FaultKind::BindSystemId, "ESME_RINVSYSID 0x0000000f", "Check \"system_id\""),
        (0x04, FaultKind::BindType, "ESME_RINVBNDSTS 0x00000004", "Set \"bind\""),
        (0x03, FaultKind::BindType, "ESME_RINVCMDID 0x00000003", "Set \"bind\""),
        (0x05, FaultKind::BindAlready, "ESME_RALYBND 0x00000005", "Lower \"connections\""),
        (0x08, FaultKind::BindSystemError, "ESME_RSYSERR 0x00000008", "Wait"),
        (0x58, FaultKind::BindThrottled, "ESME_RTHROTTLED 0x00000058", "Wait"),
        (0x14, FaultKind::BindThrottled, "ESME_RMSGQFUL 0x00000014", "Wait"),
        (0x53, FaultKind::BindParameter, "ESME_RINVSYSTYP 0x00000053", "system_type"),
        (0x0D, FaultKind::BindRefused, "ESME_RBINDFAIL 0x0000000d", "Ask the carrier"),
        (0x417, FaultKind::BindRefused, "the carrier's own error 0x00000417", "Ask the carrier"),
        (0x999, FaultKind::BindRefused, "0x00000999", "Ask the carrier"),
    ] {
        let smsc = Smsc::start().await;
        let client = Client::open(settings(&smsc));
        let mut peer = smsc.accept().await;
        let bind = peer.expect_bind().await;
        peer.answer(&bind, status, b"").await;
        let said = client.until_fault(kind).await;
        for part in ["bind_transceiver", named, next_step] {
            assert!(said.contains(part), "{status}: {said}");
        }
    }
}

#[tokio::test]
async fn a_bind_that_is_refused_by_generic_nack_says_so() {
    // A peer that can't decode the bind doesn't know its sequence number.
    for known in [true, false] {
        let smsc = Smsc::start().await;
        let client = Client::open(settings(&smsc));
        let mut peer = smsc.accept().await;
        let bind = peer.expect_bind().await;
        let sequence = if known { bind.sequence } else { 0 };
        peer.write(&pdu(GENERIC_NACK, 3, sequence, &[])).await;
        let said = client.until_fault(FaultKind::BindNack).await;
        assert!(said.contains("generic_nack") && said.contains("ESME_RINVCMDID"), "{said}");
    }
}

#[tokio::test]
async fn a_generic_nack_with_a_clear_number_has_the_next_step_of_the_number() {
    let smsc = Smsc::start().await;
    let client = Client::open(settings(&smsc));
    let mut peer = smsc.accept().await;
    let bind = peer.expect_bind().await;
    peer.write(&pdu(GENERIC_NACK, 5, bind.sequence, &[])).await;
    let said = client.until_fault(FaultKind::BindAlready).await;
    assert!(said.contains("generic_nack") && said.contains("Lower \"connections\""), "{said}");
}

/// Takes 1 s: most peers answer sooner.
#[tokio::test]
async fn a_bind_that_waits_for_its_answer_says_so_before_it_is_given_up() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.answer = Duration::from_mins(1);
    let client = Client::open(settings);
    let mut silent = smsc.accept().await;
    let bind = silent.expect_bind().await;
    let said = client.until_fault(FaultKind::BindUnanswered).await;
    assert!(said.contains("connected; no answer to the bind for 1 s"), "{said}");
    assert_eq!(client.connection.status().state, State::Connecting);
    silent.answer(&bind, 0, b"smsc\0").await;
    let status = client.until(|status| status.state == State::Bound).await;
    assert_eq!(status.last_error, None);
}

/// The attempts to bind don't begin the outage anew.
#[tokio::test]
async fn an_outage_lasts_since_the_connection_was_lost() {
    let smsc = Smsc::start().await;
    let (client, peer) = Client::bound(&smsc, settings(&smsc)).await;
    drop(peer);
    client.until_fault(FaultKind::Closed).await;
    let lost = client.connection.status();
    assert_ne!(lost.state, State::Bound);
    for _ in 0..3 {
        let mut peer = smsc.accept().await;
        let bind = peer.expect_bind().await;
        peer.answer(&bind, 0x0E, b"").await;
        client.until_fault(FaultKind::BindPassword).await;
        let status = client.connection.status();
        assert_eq!((status.since, status.lost), (lost.since, 1));
    }
    let _peer = smsc.bound().await;
    let bound = client.until(|status| status.state == State::Bound).await;
    assert!(bound.since > lost.since);
}

#[tokio::test]
async fn a_bind_that_is_not_answered_or_cut_off_is_named() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.answer = Duration::from_millis(200);
    let client = Client::open(settings);
    let mut silent = smsc.accept().await;
    silent.expect_bind().await;
    client.until_fault(FaultKind::BindUnanswered).await;
    let mut leaving = smsc.accept().await;
    leaving.expect_bind().await;
    drop(leaving);
    client.until_fault(FaultKind::BindClosed).await;
}

#[tokio::test]
async fn an_address_without_a_name_or_a_listener_is_named() {
    let client = Client::open(settings_at("nowhere.invalid:2775".to_owned()));
    client.until_fault(FaultKind::NameUnknown).await;
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let client = Client::open(settings_at(free.to_string()));
    client.until_fault(FaultKind::NobodyListens).await;
}

/// The listener's queue is full, so the system drops our connects.
#[tokio::test]
async fn an_address_that_does_not_answer_is_named() {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let _listener = socket.listen(1).unwrap();
    let connects = (0..4).map(|_| tokio::spawn(tokio::net::TcpStream::connect(address)));
    let _waiting: Vec<_> = connects.collect();
    let mut settings = settings_at(address.to_string());
    settings.timers.connect = Duration::from_millis(300);
    let client = Client::open(settings);
    client.until_fault(FaultKind::ConnectTimeout).await;
}

#[tokio::test]
async fn tls_on_one_side_only_is_named() {
    // The peer doesn't speak TLS, and answers with SMPP, or not at all, or closes.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let client = Client::open(with_tls(settings_at(address)));
    let (mut socket, _) = listener.accept().await.unwrap();
    socket.write_all(&pdu(GENERIC_NACK, 2, 0, &[])).await.unwrap();
    client.until_fault(FaultKind::TlsNotSpoken).await;
    drop(client);

    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let mut settings = with_tls(settings_at(address));
    settings.timers.connect = Duration::from_millis(300);
    let client = Client::open(settings);
    client.until_fault(FaultKind::TlsNotSpoken).await;
    drop(client);

    // Only the peer speaks TLS. It answers our bind with an alert.
    let (smsc, _) = Smsc::start_tls().await;
    let client = Client::open(crate::client::settings(&smsc));
    tokio::select! {
        _ = smsc.accept() => panic!("a handshake succeeded"),
        said = client.until_fault(FaultKind::TlsExpected) => {
            assert!(said.contains("Set tls = true"), "{said}");
        }
    }
}

#[tokio::test]
async fn the_error_has_the_time_of_its_last_occurrence() {
    let smsc = Smsc::start().await;
    let client = Client::open(settings(&smsc));
    let mut times = Vec::new();
    for binds in 1..=2 {
        drop(smsc.bound().await);
        let ended = |status: &smpp::Status| {
            let at = status.last_error.as_ref().map(|error| error.at);
            status.binds == binds && at.is_some() && at != times.last().copied()
        };
        times.push(client.until(ended).await.last_error.unwrap().at);
    }
    assert!(times[0] < times[1]);
}
