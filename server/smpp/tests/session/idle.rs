//! A session that waits uses no processor time. A timer in the past would make it spin.

use std::time::Duration;

use smpp::{State, UNACKNOWLEDGED_LIMIT, status_code};
use testing::smsc::{DELIVER_SM, SUBMIT_SM, Smsc, UNBIND, pdu, receipt};
use tokio::time::Instant;

use crate::client::{Client, LONG, long_submits, settings, submit, submits};

/// Returns the processor time of this thread. The kernel counts it in nanoseconds. Session, SMSC
/// and test all run on this thread.
fn processor_time() -> Duration {
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(account.split(' ').next().unwrap().parse().unwrap())
}

/// Sleeps, and asserts that almost no processor time was used.
async fn rests(what: &str) {
    let before = processor_time();
    tokio::time::sleep(Duration::from_millis(300)).await;
    let used = processor_time().saturating_sub(before);
    assert!(used < Duration::from_millis(60), "{what}: {used:?}");
}

#[tokio::test]
async fn a_bound_connection_that_awaits_answers_uses_no_processor_time() {
    let smsc = Smsc::start().await;
    let (client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    rests("bound").await;
    client.connection.submit(submits(0..10));
    peer.submits(10).await;
    rests("the window full").await;
    let connection = client.connection.clone();
    let close = tokio::spawn(async move { connection.close().await });
    rests("closing").await;
    close.abort();
}

#[tokio::test]
async fn unbinding_uses_no_processor_time() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.timers.close = Duration::ZERO;
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    peer.expect(SUBMIT_SM).await;
    let connection = client.connection.clone();
    let close = tokio::spawn(async move { connection.close().await });
    peer.expect(UNBIND).await;
    rests("unbinding").await;
    close.abort();
}

#[tokio::test]
async fn a_bind_that_is_not_answered_uses_no_processor_time() {
    let smsc = Smsc::start().await;
    let _client = Client::open(settings(&smsc));
    let mut peer = smsc.accept().await;
    peer.expect_bind().await;
    rests("binding").await;
}

#[tokio::test]
async fn queued_submits_of_a_throttled_or_paced_connection_use_no_processor_time() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.rate = 1;
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    let first = peer.expect(SUBMIT_SM).await;
    client.connection.submit(vec![submit(2)]);
    rests("paced").await;
    peer.answer(&first, status_code::THROTTLED, b"").await;
    rests("throttled").await;
}

#[tokio::test]
async fn a_peer_that_takes_no_bytes_uses_no_processor_time_while_submits_run_out_of_time() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 400;
    let (client, _peer) = Client::bound(&smsc, settings).await;
    let mut submits = long_submits(400, 60_000);
    for submit in &mut submits {
        submit.not_after = Instant::now() + Duration::from_millis(500);
    }
    client.connection.submit(submits);
    client.until(|status| status.queued == 0).await;
    rests("stuck").await;
    assert!(client.connection.status().in_flight > 0);
}

#[tokio::test]
async fn a_peer_that_takes_no_bytes_uses_no_processor_time_while_more_is_queued() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 400;
    let (client, _peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(long_submits(400, 60_000));
    client.until_stuck().await;
    rests("stuck with a queue").await;
}

#[tokio::test]
async fn a_closing_connection_uses_no_processor_time_while_its_last_bytes_wait_for_the_socket() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 4000;
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    let mut submits = long_submits(4000, 6000);
    let not_after = Instant::now() + Duration::from_secs(3);
    for submit in &mut submits {
        submit.not_after = not_after;
    }
    client.connection.submit(submits);
    client.until_stuck().await;
    peer.write(&pdu(UNBIND, 0, 44, &[])).await;
    // The queued submits got NotSent, and no more are accepted.
    let status = client.until(|status| status.queued == 0).await;
    assert_ne!(status.state, State::Bound);
    assert!(status.in_flight > 0, "the link has ended");
    tokio::time::sleep_until(not_after).await;
    rests("parting").await;
}

#[tokio::test]
async fn deliveries_that_are_held_back_use_no_processor_time() {
    let smsc = Smsc::start().await;
    let (client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    let one = pdu(DELIVER_SM, 0, 3, &receipt("flood", "DELIVRD"));
    let flood = one.repeat(UNACKNOWLEDGED_LIMIT + 10);
    peer.write(&flood).await;
    client.until(|status| status.unacknowledged == UNACKNOWLEDGED_LIMIT).await;
    rests("held back").await;
    drop(peer);
    rests("held back and cut").await;
}

#[tokio::test]
async fn waiting_to_reconnect_uses_no_processor_time() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    (settings.timers.backoff_min, settings.timers.backoff_max) = (LONG, LONG);
    drop(smsc);
    let client = Client::open(settings);
    client.until(|status| status.last_error.is_some()).await;
    rests("waiting").await;
}
