//! Connections that are cut in the middle of a PDU.

use std::collections::HashSet;

use smpp::{Outcome, Settings, UnknownCause};
use testing::smsc::{
    SUBMIT_SM, SUBMIT_SM_RESP, Smsc, c_string, deliver, pdu, short_message, split,
};

use crate::client::{Client, accepted, long_submits, settings, submit};

const LOST: Outcome = Outcome::Unknown { cause: UnknownCause::ConnectionLost };

#[tokio::test]
async fn a_connection_cut_after_any_byte_of_a_submit_loses_no_outcome() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(0)]);
    let whole = 16 + peer.expect(SUBMIT_SM).await.body.len();
    drop(peer);
    assert_eq!(client.answer().await, (0, LOST));
    for cut in 0..=whole {
        let mut peer = smsc.bound().await;
        client.until_free().await;
        client.connection.submit(vec![submit(1)]);
        peer.read_exact(cut).await;
        drop(peer);
        // The socket accepted the whole submit at once, so we can't know whether it arrived.
        assert_eq!(client.answer().await, (1, LOST), "{cut}");
    }
    let mut peer = smsc.bound().await;
    client.until_free().await;
    client.connection.submit(vec![submit(2)]);
    let last = peer.expect(SUBMIT_SM).await;
    peer.accept(&last, "x").await;
    assert_eq!(client.answer().await, (2, accepted("x")));
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn a_connection_cut_after_any_byte_of_an_answer_loses_no_outcome() {
    let smsc = Smsc::start().await;
    let mut client = Client::open(settings(&smsc));
    let whole = pdu(SUBMIT_SM_RESP, 0, 2, b"id-1\0").len();
    for cut in 0..=whole {
        let mut peer = smsc.bound().await;
        client.until_free().await;
        client.connection.submit(vec![submit(1)]);
        let submit = peer.expect(SUBMIT_SM).await;
        let answer = pdu(SUBMIT_SM_RESP, 0, submit.sequence, b"id-1\0");
        peer.write(&answer[..cut]).await;
        drop(peer);
        let expected = if cut == whole { accepted("id-1") } else { LOST };
        assert_eq!(client.answer().await, (1, expected), "{cut}");
    }
}

#[tokio::test]
async fn no_submit_that_was_received_whole_is_told_as_not_sent() {
    let smsc = Smsc::start().await;
    cut_under_pressure(&smsc, settings(&smsc)).await;
}

/// Sends more than the sockets' buffers hold, so that the cut leaves written, partly written and
/// unwritten submits. Only then does the session report both NotSent and Unknown.
pub async fn cut_under_pressure(smsc: &Smsc, settings: Settings) {
    for most in [1_000, 70_000, 1_000_000, 5_000_000] {
        let settings = Settings { window: 400, ..settings.clone() };
        let (mut client, mut peer) = Client::bound(smsc, settings).await;
        client.connection.submit(long_submits(400, 60_000));
        let mut read = Vec::new();
        while read.len() < most {
            read.extend(peer.read_some(most - read.len()).await);
        }
        drop(peer);
        let mut received = HashSet::new();
        let mut at = 0;
        while let Some((pdu, length)) = split(&read[at..]) {
            received.insert(String::from_utf8(short_message(&pdu.body)).unwrap());
            at += length;
        }
        let answers = client.answers(400).await;
        let tags: HashSet<u64> = answers.iter().map(|(tag, _)| *tag).collect();
        assert_eq!(tags.len(), 400);
        for (tag, outcome) in &answers {
            if received.contains(&tag.to_string()) {
                assert_eq!(*outcome, LOST, "{tag}");
            }
        }
        let not_sent = answers.iter().filter(|(_, outcome)| *outcome == Outcome::NotSent);
        assert!(not_sent.count() > 0, "the buffers took all of it");
    }
}

#[tokio::test]
async fn pdus_that_arrive_byte_by_byte_are_read() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    let delivery = pdu(5, 0, 9, &deliver(0, 0, b"hello", &[]));
    let answer = pdu(SUBMIT_SM_RESP, 0, sent.sequence, &c_string("id"));
    for byte in [delivery, answer].concat() {
        peer.write(&[byte]).await;
        // Usually lets the other side read just this byte.
        tokio::task::yield_now().await;
    }
    assert_eq!(client.delivery().await.text, b"hello");
    assert_eq!(client.answer().await, (1, accepted("id")));
}
