//! Rate limit and throttling. Bounds are one-sided: a busy machine may be slower, never faster.

use std::sync::Arc;
use std::time::Duration;

use smpp::{Outcome, SharedPace, status_code};
use testing::smsc::{Peer, SUBMIT_SM, Smsc};
use tokio::time::Instant;

use crate::client::{Client, accepted, settings, submit, submits};

#[tokio::test]
async fn submits_keep_to_the_rate() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    (settings.window, settings.rate) = (1000, 200);
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    // As many as the rate allows in 200 ms.
    assert_eq!(client.connection.free(), 40);
    let began = Instant::now();
    let arrived = tokio::spawn(async move {
        peer.submits(100).await;
        began.elapsed()
    });
    let mut next = 0;
    while next < 100 {
        client.until_free().await;
        let count = (client.connection.free() as u64).min(100 - next);
        client.connection.submit(submits(next..next + count));
        next += count;
    }
    // 99 intervals of 5 ms, minus the 20 ms that the pace may catch up.
    let elapsed = arrived.await.unwrap();
    assert!(elapsed >= Duration::from_millis(475), "{elapsed:?}");
}

#[tokio::test]
async fn connections_that_share_a_rate_keep_to_it_together() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 50;
    settings.shared_pace = Some(Arc::new(SharedPace::new(250)));
    let (one, mut first) = Client::bound(&smsc, settings.clone()).await;
    let (two, mut second) = Client::bound(&smsc, settings).await;
    let began = Instant::now();
    one.connection.submit(submits(0..50));
    two.connection.submit(submits(50..100));
    tokio::join!(first.submits(50), second.submits(50));
    // 99 intervals of 4 ms, minus the 20 ms that the pace may catch up.
    let elapsed = began.elapsed();
    assert!(elapsed >= Duration::from_millis(376), "{elapsed:?}");
}

/// Other processes get their part of the rate, so this one gets a quarter.
#[tokio::test]
async fn a_shared_rate_is_divided_among_processes() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.window = 50;
    let pace = Arc::new(SharedPace::new(400));
    settings.shared_pace = Some(Arc::clone(&pace));
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    assert_eq!(client.connection.free(), 50);
    pace.share_with(4);
    assert_eq!(client.connection.free(), 20);
    let began = Instant::now();
    client.connection.submit(submits(0..20));
    peer.submits(20).await;
    // 19 intervals of 10 ms, minus the 20 ms that the pace may catch up.
    let elapsed = began.elapsed();
    assert!(elapsed >= Duration::from_millis(170), "{elapsed:?}");
    pace.share_with(1);
    assert_eq!(client.connection.free(), 30);
}

#[tokio::test]
async fn a_rate_of_one_a_second_sends_the_first_submit_at_once() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.rate = 1;
    let (client, mut peer) = Client::bound(&smsc, settings).await;
    assert_eq!(client.connection.free(), 1);
    client.connection.submit(vec![submit(1)]);
    peer.expect(SUBMIT_SM).await;
}

/// Refuses a whole window with `status`. Returns how long the session then pauses.
async fn storm(client: &mut Client, peer: &mut Peer, status: u32) -> Duration {
    client.connection.submit(submits(0..10));
    let began = Instant::now();
    for submit in peer.submits(10).await {
        peer.answer(&submit, status, b"").await;
    }
    for (_, outcome) in client.answers(10).await {
        assert_eq!(outcome, Outcome::Refused { status, message_id: None });
    }
    client.until_free().await;
    began.elapsed()
}

#[tokio::test]
async fn each_throttling_doubles_the_pause_until_a_submit_is_accepted() {
    let smsc = Smsc::start().await;
    let (mut client, mut peer) = Client::bound(&smsc, settings(&smsc)).await;
    for (status, at_least) in [
        (status_code::THROTTLED, 100),
        (status_code::QUEUE_FULL, 200),
        (status_code::THROTTLED, 400),
        (status_code::THROTTLED, 800),
    ] {
        let pause = storm(&mut client, &mut peer, status).await;
        assert!(pause >= Duration::from_millis(at_least), "{pause:?}");
    }
    assert_eq!(client.connection.status().throttled, 40);
    client.connection.submit(vec![submit(1)]);
    let sent = peer.expect(SUBMIT_SM).await;
    peer.accept(&sent, "x").await;
    assert_eq!(client.answer().await, (1, accepted("x")));
    // Without the accepted submit, the pause would be 1.6 s.
    let pause = storm(&mut client, &mut peer, status_code::THROTTLED).await;
    assert!(pause < Duration::from_millis(1600), "{pause:?}");
}

#[tokio::test]
async fn a_submit_that_runs_out_of_time_while_queued_is_not_sent() {
    let smsc = Smsc::start().await;
    let mut settings = settings(&smsc);
    settings.rate = 1;
    let (mut client, mut peer) = Client::bound(&smsc, settings).await;
    client.connection.submit(vec![submit(1)]);
    let first = peer.expect(SUBMIT_SM).await;
    // The rate allows this submit only after a second.
    let mut second = submit(2);
    second.not_after = Instant::now() + Duration::from_millis(50);
    client.connection.submit(vec![second]);
    assert_eq!(client.connection.free(), 0);
    assert_eq!(client.answer().await, (2, Outcome::NotSent));
    peer.accept(&first, "x").await;
    assert_eq!(client.answer().await, (1, accepted("x")));
}
