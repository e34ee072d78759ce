//! A caller that leaves at any time leaves no transaction behind.

use std::pin::pin;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use service::{Actor, Entropy, SANDBOX_CARRIER};
use sqlx::{AnyConnection, Row as _};

use crate::database::Backend;
use crate::processes::peer;
use crate::world::{World, money, order, request};

/// Polls a future this many times, then drops it.
async fn leave_after(polls: u64, work: impl Future) {
    let (mut work, mut left) = (pin!(work), polls);
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        work.as_mut().poll(context).map(drop)
    })
    .await;
}

/// Waits until a count is 0. The limit is less than the 5 s after which the server itself ends open
/// transactions.
async fn until_none(conn: &mut AnyConnection, statement: &'static str) {
    let started = Instant::now();
    loop {
        let row = sqlx::query(statement).fetch_one(&mut *conn).await.unwrap();
        if row.get::<i64, _>(0) == 0 {
            return;
        }
        assert!(started.elapsed() < Duration::from_secs(3), "{statement}");
    }
}

const LEFT_OPEN: &str = "SELECT COUNT(*) FROM pg_stat_activity WHERE datname = current_database() \
                         AND state LIKE 'idle in transaction%'";

/// sqlx notes an open transaction only when it reads the answer to the BEGIN. A caller that leaves
/// before that returns a connection to the pool that sqlx considers clean.
#[tokio::test(flavor = "multi_thread")]
async fn a_begin_whose_caller_leaves_leaves_no_transaction_open() {
    let world = World::new(Backend::SHARED).await;
    let mut conn = world.database.connect().await;
    let customer = world.active("one@example.org", "100").await;
    let entropy = Entropy::seeded(4);
    for _ in 0..200 {
        // Leaves a ready connection in the pool. The next call then only checks it and begins a
        // transaction.
        world.service.ping().await.unwrap();
        leave_after(entropy.number() % 6, world.service.operations().check()).await;
        // Checked at once, because the next caller that begins a transaction there would end it.
        until_none(&mut conn, LEFT_OPEN).await;
    }
    // A caller with such a connection would see an old snapshot forever.
    for n in 1..=20 {
        world.send(&customer.live, "12345678").await.unwrap();
        let left = money("100").micros() - 50_000 * n;
        let looks = (0..16).map(|_| world.balance(&customer.live));
        assert!(join_all(looks).await.iter().all(|balance| balance.micros() == left));
    }
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_whose_caller_leaves_is_not_counted_as_under_way() {
    const UNDER_WAY: &str = "SELECT COUNT(*) FROM uploads";
    let world = World::new(Backend::SHARED).await;
    let mut conn = world.database.connect().await;
    let customer = world.active("one@example.org", "100").await;
    let (service, b) = (&world.service, peer(&world, 1).await);
    let entropy = Entropy::seeded(5);
    for _ in 0..150 {
        let live = Some(customer.live.expose());
        leave_after(entropy.number() % 12, service.messages().begin_bulk(live, None)).await;
        // All slots may be taken until those of the callers that left are released.
        if let Ok(ticket) = service.messages().begin_bulk(live, None).await {
            leave_after(entropy.number() % 12, ticket.end()).await;
        }
    }
    until_none(&mut conn, UNDER_WAY).await;
    let mut held = Vec::new();
    for _ in 0..service::UPLOADS_PER_APPLICATION {
        held.push(b.messages().begin_bulk(Some(customer.live.expose()), None).await.unwrap());
    }
    until_none(&mut conn, LEFT_OPEN).await;
}

/// Callers leave while other tasks do their work.
#[tokio::test(flavor = "multi_thread")]
async fn calls_whose_caller_leaves_are_done_whole_or_not_at_all() {
    let world = World::new(Backend::SHARED).await;
    let mut conn = world.database.connect().await;
    let customer = world.active("one@example.org", "100").await;
    let b = peer(&world, 1).await;
    let entropy = Entropy::seeded(6);
    for n in 0..300 {
        let service = if n % 2 == 0 { &world.service } else { &b };
        let polls = entropy.number() % 3;
        match entropy.number() % 4 {
            0 => {
                let order = request(&customer.live, "12345678", "hello");
                leave_after(polls, service.messages().send(order)).await;
            }
            1 => leave_after(polls, service.delivery().claim(SANDBOX_CARRIER, 3)).await,
            2 => leave_after(polls, service.delivery().expire()).await,
            _ => {
                let deposit = order(&n.to_string(), customer.reference.as_str(), "1");
                leave_after(polls, service.money().add_deposit(&Actor::CommandLine, &deposit))
                    .await;
            }
        }
    }
    b.close().await;
    until_none(&mut conn, LEFT_OPEN).await;
    let balance = world.balance(&customer.live).await;
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    assert!(sent.balance <= balance);
    world.assert_sound().await;
}
