//! Binds that fail or end, and the next attempt.

use std::time::Duration;

use smpp::{Backup, BindMode, FaultKind, Outcome, State, Submit, Tlv, UnknownCause};
use testing::smsc::{
    BIND_TRANSCEIVER, BIND_TRANSMITTER, ENQUIRE_LINK, ENQUIRE_LINK_RESP, GENERIC_NACK, SUBMIT_SM,
    Smsc, UNBIND, UNBIND_RESP, pdu, tlv,
};
use tokio::time::Instant;

use crate::client::{Client, LONG, accepted, long_submits, settings, submit};

#[tokio::test]
async fn the_bind_has_our_credentials_and_is_repeated_until_accepted() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.system_type = "VMS".to_owned();
    let client = Client::open(settings);
    for refusal in 0..3 {
        let mut peer = smsc.accept().await;
        let bind = peer.expect_bind().await;
        assert_eq!(bind.body, b"heliograph\0secret\0VMS\0\x34\0\0\0");
        if refusal == 0 {
            peer.answer(&bind, 0x0E, b"").await;
            let said = client.until_fault(FaultKind::BindPassword).await;
            assert!(said.contains("0x0000000e"), "{said}");
            assert_ne!(client.connection.status().state, State::Bound);
        } else {
            peer.write(&pdu(GENERIC_NACK, 3, bind.sequence, &[])).await;
        }
    }
    let _peer = smsc.bound().await;
    client.until_free().await;
    let status = client.connection.status();
    assert_eq!((status.state, status.binds), (State::Bound, 1));
}

#[tokio::test]
async fn a_setting_that_a_bind_cannot_carry_is_told_to_the_operator() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.system_id = "sixteen letters.".to_owned();
    let client = Client::open(settings);
    let said = client.until_fault(FaultKind::Setting).await;
    assert!(said.contains("system_id"), "{said}");
}

#[tokio::test]
async fn a_bind_has_the_address_range_and_a_submit_the_vendors_parameters() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.address_range = "^266".to_owned();
    settings.bind = BindMode::Transmitter;
    let client = Client::open(settings);
    let mut peer = smsc.accept().await;
    let bind = peer.expect_bind().await;
    assert_eq!(bind.command, BIND_TRANSMITTER);
    assert_eq!(bind.body, b"heliograph\0secret\0\0\x34\0\0^266\0");
    peer.answer(&bind, 0, b"smsc\0").await;
    client.until_free().await;
    let tlvs = vec![Tlv { tag: 0x1400, value: b"1001".to_vec() }];
    client.connection.submit(vec![Submit { tlvs, ..submit(1) }]);
    let sent = peer.expect(SUBMIT_SM).await;
    assert!(sent.body.ends_with(&tlv(0x1400, b"1001")), "{sent:X?}");
}

#[tokio::test]
async fn a_backup_is_bound_while_the_first_address_fails() {
    let (first, second) = (Smsc::start().await, Smsc::start().await);
    let mut settings = settings(&first);
    let address = second.address();
    settings.backup = Some(Backup { address, server_name: "localhost".to_owned() });
    let client = Client::open(settings);
    let mut peer = first.accept().await;
    let bind = peer.expect_bind().await;
    peer.answer(&bind, 0x08, b"").await;
    let at_backup = second.bound().await;
    client.until_free().await;
    let fault = client.connection.status().last_error.unwrap().fault;
    assert_eq!(fault.kind, FaultKind::BindSystemError);
    // The next bind is at the first address again.
    drop(at_backup);
    let _peer = first.bound().await;
    client.until_free().await;
    assert_eq!(client.connection.status().binds, 2);
}

/// SMPP allows 8 characters, but carriers have longer passwords.
#[tokio::test]
async fn a_long_password_is_sent_whole() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.password = "twelve-chars".to_owned();
    let _client = Client::open(settings);
    let bind = smsc.accept().await.expect_bind().await;
    assert_eq!(bind.command, BIND_TRANSCEIVER);
    assert_eq!(bind.body, b"heliograph\0twelve-chars\0\0\x34\0\0\0");
}

#[tokio::test]
async fn a_bind_that_is_never_answered_is_given_up() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.answer = Duration::from_millis(300);
    let _client = Client::open(settings);
    let mut silent = smsc.accept().await;
    silent.expect_bind().await;
    let _peer = smsc.bound().await;
}

#[tokio::test]
async fn a_peer_that_listens_later_is_connected_to() {
    let smsc = Smsc::start().await;
    let settings = settings(&smsc);
    let address = settings.address.clone();
    drop(smsc);
    let client = Client::open(settings);
    client.until_fault(FaultKind::NobodyListens).await;
    let smsc = Smsc::start_at(&address).await;
    let _peer = smsc.bound().await;
    client.until_free().await;
}

#[tokio::test]
async fn a_failed_bind_is_followed_by_a_pause() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.backoff_min = Duration::from_hours(1);
    settings.timers.backoff_max = Duration::from_hours(1);
    let client = Client::open(settings);
    drop(smsc.bound().await);
    client.until(|status| status.state == State::Waiting).await;
    assert_eq!(client.connection.free(), 0);
    // A close doesn't wait for the backoff.
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_peer_that_only_refuses_is_bound_less_and_less_often() {
    const BINDS: u32 = 8;
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.backoff_min = Duration::from_millis(30);
    settings.timers.backoff_max = Duration::from_hours(1);
    let longest_first = settings.timers.backoff_min;
    let mut client = Client::open(settings);
    let began = Instant::now();
    for _ in 0..BINDS {
        let mut peer = smsc.bound().await;
        client.until_free().await;
        client.connection.submit(vec![submit(1)]);
        let sent = peer.expect(SUBMIT_SM).await;
        peer.answer(&sent, 0x0B, b"").await;
        let outcome = Outcome::Refused { status: 0x0B, message_id: None };
        assert_eq!(client.answer().await, (1, outcome));
    }
    // Longer than if each backoff were the first one.
    let elapsed = began.elapsed();
    assert!(elapsed > longest_first * BINDS, "{elapsed:?}");
}

#[tokio::test]
async fn a_peer_that_answers_no_submits_is_bound_again() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.answer = Duration::from_millis(300);
    settings.timers.enquire_link = Duration::from_millis(20);
    (settings.timers.backoff_min, settings.timers.backoff_max) = (LONG, LONG);
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    let first = loop {
        let pdu = peer.read().await.unwrap();
        match pdu.command {
            SUBMIT_SM => break pdu,
            _ => peer.answer(&pdu, 0, b"").await,
        }
    };
    // An answer earlier on this bind doesn't count.
    peer.accept(&first, "x").await;
    assert_eq!(client.answer().await, (1, accepted("x")));
    client.connection.submit(vec![submit(2)]);
    let mut asked = 0;
    while let Some(asked_for) = peer.read().await {
        if asked_for.command == ENQUIRE_LINK {
            let answer = pdu(ENQUIRE_LINK_RESP, 0, asked_for.sequence, &[]);
            peer.try_write(&answer).await;
            asked += 1;
            assert!(asked < 500, "it is still bound");
            // Written later than submit 2, so not overdue at the same time.
            if asked == 3 {
                client.connection.submit(vec![submit(3)]);
            }
        }
    }
    let unknown = |cause| Outcome::Unknown { cause };
    let answers = client.answers(2).await;
    let expected =
        [(2, unknown(UnknownCause::NoAnswer)), (3, unknown(UnknownCause::ConnectionLost))];
    assert_eq!(answers, expected);
    client.until_fault(FaultKind::SubmitsUnanswered).await;
}

#[tokio::test]
async fn an_unbind_is_answered_and_bound_again() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    peer.expect(SUBMIT_SM).await;
    peer.write(&pdu(UNBIND, 0, 44, &[])).await;
    assert_eq!(peer.expect(UNBIND_RESP).await.sequence, 44);
    peer.closed().await;
    let cause = UnknownCause::ConnectionLost;
    assert_eq!(client.answer().await, (1, Outcome::Unknown { cause }));
    let _peer = smsc.bound().await;
    client.until_free().await;
    assert_eq!(client.connection.status().binds, 2);
}

#[tokio::test]
async fn no_submit_is_begun_after_the_peers_unbind() {
    const COUNT: usize = 4000;
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = COUNT;
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(long_submits(4000, 6000));
    let queued = client.until_stuck().await;
    peer.write(&pdu(UNBIND, 0, 44, &[])).await;
    let mut received = 0;
    while peer.read().await.unwrap().command != UNBIND_RESP {
        received += 1;
    }
    peer.closed().await;
    let answers = client.answers(COUNT).await;
    let not_sent = answers.iter().filter(|(_, outcome)| *outcome == Outcome::NotSent).count();
    assert_eq!(received + not_sent, COUNT);
    // Submits that were waiting for the socket also got NotSent.
    assert!(not_sent > queued);
}

#[tokio::test]
async fn an_idle_link_is_kept_while_it_answers_enquire_link() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.enquire_link = Duration::from_millis(10);
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    let mut last = 0;
    for _ in 0..5 {
        let asked = peer.expect(ENQUIRE_LINK).await;
        assert!(asked.sequence > last);
        last = asked.sequence;
        peer.answer(&asked, 0, b"").await;
    }
    peer.write(&pdu(ENQUIRE_LINK, 0, 1_000_000, &[])).await;
    while peer.read().await.unwrap().command != ENQUIRE_LINK_RESP {}
    assert_eq!(client.connection.status().binds, 1);
}

#[tokio::test]
async fn a_link_that_does_not_answer_enquire_link_is_dropped_and_bound_again() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.enquire_link = Duration::from_millis(20);
    settings.timers.answer = Duration::from_millis(300);
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    peer.expect(ENQUIRE_LINK).await;
    let _again = smsc.bound().await;
    client.until_fault(FaultKind::Silent).await;
}

#[tokio::test]
async fn a_submit_that_the_peer_does_not_take_in_time_is_not_written_later() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 400;
    let (mut client, _slow) = Client::bound(&smsc, settings).await;
    let mut submits = long_submits(400, 60_000);
    for submit in &mut submits {
        submit.not_after = Instant::now() + Duration::from_millis(300);
    }
    client.connection.submit(submits);
    // Long before the link ends because the peer accepts no bytes.
    let said = client.until_fault(FaultKind::NotReading).await;
    assert!(said.contains("too slowly"), "{said}");
    let answers = client.answers(400).await;
    let is_unknown = |(_, outcome): &(u64, Outcome)| matches!(outcome, Outcome::Unknown { .. });
    let (written, rest) = answers.split_at(answers.partition_point(is_unknown));
    assert!(!written.is_empty() && !rest.is_empty());
    assert!(rest.iter().all(|(_, outcome)| *outcome == Outcome::NotSent));
}

#[tokio::test]
async fn a_link_whose_peer_takes_no_bytes_is_dropped() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 400;
    settings.timers.answer = Duration::from_millis(300);
    let (mut client, mut stuck) = Client::bound(&smsc, settings).await;
    client.connection.submit(long_submits(400, 60_000));
    // The peer sends PDUs, but reads nothing.
    let talk = tokio::spawn(async move {
        loop {
            stuck.try_write(&pdu(0x8000_0099, 0, 1, &[])).await;
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    let mut not_sent = 0;
    for (tag, outcome) in client.answers(400).await {
        match outcome {
            Outcome::NotSent => not_sent += 1,
            Outcome::Unknown { .. } => {}
            other => panic!("{tag}: {other:?}"),
        }
    }
    assert!(not_sent > 0, "the buffers took all of it");
    talk.abort();
    let mut peer = smsc.bound().await;
    client.until_free().await;
    client.connection.submit(vec![submit(1000)]);
    let sent = peer.expect(SUBMIT_SM).await;
    peer.accept(&sent, "on").await;
    assert_eq!(client.answer().await, (1000, accepted("on")));
}
