//! Refusals that concern every submit of the account.

use std::time::Duration;

use smpp::Outcome;
use testing::smsc::{SUBMIT_SM, Smsc};
use tokio::time::Instant;

use crate::client::{Client, NO_CREDIT, accepted, settings, submit, submits};

const HELD: Outcome = Outcome::Refused { status: NO_CREDIT, message_id: None };

#[tokio::test]
async fn after_such_a_refusal_one_submit_at_a_time_is_accepted_until_one_succeeds() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let bound_since = client.connection.status().since;
    client.connection.submit(submits(0..10));
    for sent in peer.submits(10).await {
        peer.answer(&sent, NO_CREDIT, b"").await;
    }
    let expected: Vec<_> = (0..10).map(|tag| (tag, HELD)).collect();
    assert_eq!(client.answers(10).await, expected);
    let status = client.connection.status();
    assert!(status.held && status.held_until.is_some(), "{status:?}");
    // The hold began with the refusals, not with the bind and not with the last refusal.
    let held_since = status.since;
    assert!(held_since > bound_since);
    assert_eq!(client.connection.free(), 0);

    // Each probe that is refused doubles the pause: 50 ms, 100 ms, 200 ms, 200 ms.
    let began = Instant::now();
    for tag in 10..13 {
        client.until_free().await;
        assert_eq!(client.connection.free(), 1);
        client.connection.submit(vec![submit(tag)]);
        let probe = peer.expect(SUBMIT_SM).await;
        assert_eq!(client.connection.free(), 0);
        peer.answer(&probe, NO_CREDIT, b"").await;
        assert_eq!(client.answer().await, (tag, HELD));
    }
    client.until_free().await;
    assert_eq!(client.connection.status().since, held_since);
    assert!(began.elapsed() >= Duration::from_millis(500), "{:?}", began.elapsed());

    client.connection.submit(vec![submit(13)]);
    let probe = peer.expect(SUBMIT_SM).await;
    peer.accept(&probe, "on").await;
    assert_eq!(client.answer().await, (13, accepted("on")));
    let status = client.connection.status();
    assert!(!status.held && status.since > held_since, "{status:?}");
    assert_eq!(client.connection.free(), 10);
}

/// The peer answers the first submit before the rest is written.
#[tokio::test]
async fn submits_that_are_not_written_yet_are_given_back() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.rate = 1;
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(submits(0..2));
    let first = peer.expect(SUBMIT_SM).await;
    peer.answer(&first, NO_CREDIT, b"").await;
    assert_eq!(client.answers(2).await, [(0, HELD), (1, Outcome::NotSent)]);
}

#[tokio::test]
async fn a_reconnect_does_not_end_it() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    peer.answer(&sent, NO_CREDIT, b"").await;
    assert_eq!(client.answer().await, (1, HELD));
    drop(peer);
    let _peer = smsc.bound().await;
    client.until_free().await;
    assert!(client.connection.status().held);
    assert_eq!(client.connection.free(), 1);
}
