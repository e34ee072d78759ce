//! After a submit gets no answer, the session sends one submit at a time until one is answered.

use std::time::Duration;

use smpp::{Outcome, UnknownCause};
use testing::smsc::{SUBMIT_SM, Smsc, short_message};

use crate::client::{Client, accepted, settings, submit, submits};

/// The answers with an unknown outcome for these tags.
fn unknown(tags: std::ops::Range<u64>, cause: UnknownCause) -> Vec<(u64, Outcome)> {
    tags.map(|tag| (tag, Outcome::Unknown { cause })).collect()
}

#[tokio::test]
async fn a_peer_that_answers_no_submit_gets_one_at_each_bind() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.answer = Duration::from_millis(300);
    settings.window = 5;
    let (mut client, mut silent) = Client::bound(&smsc, settings).await;
    assert_eq!(client.connection.free(), 5);
    client.connection.submit(submits(0..5));
    silent.submits(5).await;
    let lost = unknown(0..5, UnknownCause::NoAnswer);
    assert_eq!(client.answers(5).await, lost);

    for tag in [10, 20] {
        let mut silent = smsc.bound().await;
        client.until_free().await;
        assert!(client.connection.status().probing);
        assert_eq!(client.connection.free(), 1);
        client.connection.submit(submits(tag..tag + 3));
        let not_sent = [(tag + 1, Outcome::NotSent), (tag + 2, Outcome::NotSent)];
        assert_eq!(client.answers(2).await, not_sent);
        let probe = silent.expect(SUBMIT_SM).await;
        assert_eq!(short_message(&probe.body), tag.to_string().as_bytes());
        assert_eq!(client.connection.free(), 0);
        silent.closed().await;
        let lost = unknown(tag..tag + 1, UnknownCause::NoAnswer);
        assert_eq!(client.answers(1).await, lost);
    }

    let mut peer = smsc.bound().await;
    client.until_free().await;
    client.connection.submit(vec![submit(30)]);
    let probe = peer.expect(SUBMIT_SM).await;
    peer.accept(&probe, "on").await;
    assert_eq!(client.answer().await, (30, accepted("on")));
    assert!(!client.connection.status().probing);
    assert_eq!(client.connection.free(), 5);
}

#[tokio::test]
async fn a_peer_that_answers_nothing_gets_no_more_submits_until_it_answers_one() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.silent = Some(Duration::from_millis(200));
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(submits(0..2));
    let sent = peer.submits(2).await;
    client.until(|status| status.silent).await;
    let status = client.connection.status();
    assert!(status.unanswered_since.unwrap().elapsed() >= Duration::from_millis(200));
    assert!(!status.probing && client.connection.free() == 0);
    client.connection.submit(vec![submit(2)]);
    assert_eq!(client.answer().await, (2, Outcome::NotSent));

    peer.accept(&sent[0], "late").await;
    assert_eq!(client.answer().await, (0, accepted("late")));
    assert_eq!(client.connection.free(), 9);
    peer.accept(&sent[1], "too").await;
    assert_eq!(client.answer().await, (1, accepted("too")));
    let status = client.connection.status();
    assert_eq!((status.unanswered_since, status.silent, status.answered), (None, false, 2));
}

#[tokio::test]
async fn after_a_lost_connection_with_submits_one_is_sent_and_a_refusal_ends_that() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(submits(0..2));
    peer.submits(2).await;
    drop(peer);
    let lost = unknown(0..2, UnknownCause::ConnectionLost);
    assert_eq!(client.answers(2).await, lost);

    let mut peer = smsc.bound().await;
    client.until_free().await;
    assert_eq!(client.connection.free(), 1);
    client.connection.submit(vec![submit(2)]);
    let probe = peer.expect(SUBMIT_SM).await;
    peer.answer(&probe, 0x0B, b"").await;
    let refused = Outcome::Refused { status: 0x0B, message_id: None };
    assert_eq!(client.answer().await, (2, refused));
    assert_eq!(client.connection.free(), 10);
}

#[tokio::test]
async fn after_a_lost_connection_without_submits_the_window_is_full_size() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    peer.accept(&sent, "x").await;
    assert_eq!(client.answer().await, (1, accepted("x")));
    drop(peer);
    client.until(|status| status.last_error.is_some()).await;
    let _peer = smsc.bound().await;
    client.until_free().await;
    assert_eq!(client.connection.free(), 10);
}
