//! The end of a connection.

use std::time::Duration;

use smpp::{Event, Outcome, State, UNACKNOWLEDGED_LIMIT, UnknownCause};
use testing::smsc::{
    DELIVER_SM, ENQUIRE_LINK, ENQUIRE_LINK_RESP, SUBMIT_SM, SUBMIT_SM_RESP, Smsc, UNBIND, pdu,
    receipt,
};

use crate::client::{Client, accepted, long_submits, settings, submit};

#[tokio::test]
async fn close_waits_for_answers_and_unbinds() {
    let smsc = Smsc::start().await;
    let (client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    let connection = client.connection.clone();
    let close = tokio::spawn(client.close());
    while connection.free() > 0 {
        tokio::task::yield_now().await;
    }
    peer.accept(&sent, "x").await;
    let unbind = peer.expect(UNBIND).await;
    peer.answer(&unbind, 0, b"").await;
    peer.closed().await;
    let outcome = accepted("x");
    assert_eq!(close.await.unwrap(), [Event::Answer { tag: 1, outcome }]);
    assert_eq!(connection.status().state, State::Closed);
}

#[tokio::test]
async fn a_delivery_after_the_unbind_is_not_acknowledged() {
    let smsc = Smsc::start().await;
    let (client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let close = tokio::spawn(client.close());
    let unbind = peer.expect(UNBIND).await;
    let delivery = pdu(DELIVER_SM, 0, 7, &receipt("x", "DELIVRD"));
    let question = pdu(ENQUIRE_LINK, 0, 8, &[]);
    peer.write(&[delivery, question].concat()).await;
    assert_eq!(peer.expect(ENQUIRE_LINK_RESP).await.sequence, 8);
    peer.answer(&unbind, 0, b"").await;
    assert!(close.await.unwrap().is_empty());
}

#[tokio::test]
async fn close_waits_no_longer_than_its_time_limit_for_answers() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.close = Duration::from_millis(50);
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    peer.expect(SUBMIT_SM).await;
    let close = tokio::spawn(client.close());
    let unbind = peer.expect(UNBIND).await;
    peer.answer(&unbind, 0, b"").await;
    let outcome = Outcome::Unknown { cause: UnknownCause::Closed };
    assert_eq!(close.await.unwrap(), [Event::Answer { tag: 1, outcome }]);
}

#[tokio::test]
async fn close_reads_an_answer_that_comes_behind_held_back_deliveries() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.close = Duration::from_millis(50);
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    let one = pdu(DELIVER_SM, 0, 3, &receipt("flood", "DELIVRD"));
    peer.write(&one.repeat(UNACKNOWLEDGED_LIMIT - 1)).await;
    for _ in 1..UNACKNOWLEDGED_LIMIT {
        client.delivery().await;
    }
    // Sent together, so that the session has already received the answer when it stops reading.
    let answer = pdu(SUBMIT_SM_RESP, 0, sent.sequence, b"behind\0");
    peer.write(&[one, answer].concat()).await;
    client.delivery().await;
    let outcome = accepted("behind");
    assert_eq!(client.close().await, [Event::Answer { tag: 1, outcome }]);
}

#[tokio::test]
async fn close_tells_queued_submits_as_not_sent_at_once() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.rate = 1;
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    let first = peer.expect(SUBMIT_SM).await;
    client.connection.submit(vec![submit(2)]);
    assert_eq!(client.connection.status().queued, 1);
    let connection = client.connection.clone();
    let close = tokio::spawn(async move { connection.close().await });
    assert_eq!(client.answer().await, (2, Outcome::NotSent));
    peer.accept(&first, "x").await;
    assert_eq!(client.answer().await, (1, accepted("x")));
    let unbind = peer.expect(UNBIND).await;
    peer.answer(&unbind, 0, b"").await;
    close.await.unwrap();
}

#[tokio::test]
async fn close_returns_unwritten_submits_and_awaits_the_rest() {
    const COUNT: usize = 4000;
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = COUNT;
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(long_submits(4000, 6000));
    let before = client.until_stuck().await;
    let connection = client.connection.clone();
    let close = tokio::spawn(async move { connection.close().await });
    // More than were queued, because the submits that were waiting for the socket are also
    // returned.
    let mut not_sent = client.answers(before + 1).await;
    let mut received = 0;
    loop {
        let pdu = peer.read().await.unwrap();
        peer.answer(&pdu, 0, b"x\0").await;
        if pdu.command == UNBIND {
            break;
        }
        received += 1;
    }
    close.await.unwrap();
    let mut answered = 0;
    while let Some(Event::Answer { tag, outcome }) = client.event().await {
        match outcome {
            Outcome::NotSent => not_sent.push((tag, outcome)),
            outcome => {
                assert_eq!(outcome, accepted("x"));
                answered += 1;
            }
        }
    }
    assert_eq!((answered, received + not_sent.len()), (received, COUNT));
    assert!(not_sent.iter().all(|(_, outcome)| *outcome == Outcome::NotSent));
}

#[tokio::test]
async fn a_closed_connection_sends_no_submit() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let serving = tokio::spawn(async move { peer.serve().await });
    client.connection.close().await;
    assert_eq!(client.event().await, None);
    client.connection.submit(vec![submit(1)]);
    assert_eq!(client.answer().await, (1, Outcome::NotSent));
    assert_eq!(client.event().await, None);
    client.connection.close().await;
    assert_eq!(serving.await.unwrap(), 0);
}

#[tokio::test]
async fn close_before_the_bind_returns_at_once() {
    let smsc = Smsc::start().await;
    // Closes one connection while its bind is unanswered, and another one before anything happens.
    let client = Client::open(settings(&smsc));
    let mut silent = smsc.accept().await;
    silent.expect_bind().await;
    assert!(client.close().await.is_empty());
    let client = Client::open(settings(&smsc));
    assert!(client.close().await.is_empty());
}

#[tokio::test]
async fn dropping_the_events_closes_the_connection() {
    let smsc = Smsc::start().await;
    let (client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    drop(client);
    peer.expect(UNBIND).await;
}
