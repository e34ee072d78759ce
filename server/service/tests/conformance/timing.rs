//! Measures whether response times reveal that an email has an account. Compares the medians of
//! alternating attempts with a known and an unknown email. Also measures look-ups among many
//! receipts.

use std::time::{Duration, Instant};

use service::ReceiptFilter;
use sqlx::{AssertSqlSafe, Executor as _};

use crate::database::Backend;
use crate::network::network;
use crate::world::{HOUR_MS, World};

const ATTEMPTS: usize = 2_000;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Returns the medians for a known and an unknown email.
async fn medians(world: &World, ask: impl AsyncFn(&World, &str)) -> (Duration, Duration) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for turn in 0..ATTEMPTS {
        let mut both = [("known@example.org", &mut known), ("stranger@example.org", &mut unknown)];
        // Alternates which email comes first.
        both.rotate_left(turn % 2);
        for (email, times) in both {
            // Lets the limits forget all earlier attempts.
            world.pass(HOUR_MS);
            let asked = Instant::now();
            ask(world, email).await;
            times.push(asked.elapsed());
        }
    }
    (median(known), median(unknown))
}

/// Run by `make soak`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "takes minutes, and only a release build gives meaningful times"]
async fn known_and_unknown_emails_take_the_same_time() {
    let world = World::new(Backend::Sqlite).await;
    world.account("known@example.org").await;
    let (known, unknown) = medians(&world, async |world, email| {
        world.service.accounts().request_reset(email, "192.0.2.1").await.unwrap();
    })
    .await;
    print("reset link", known, unknown, Duration::from_micros(100));
    let (known, unknown) = medians(&world, async |world, email| {
        let accounts = world.service.accounts();
        let tried = accounts.sign_in(email, "not the password", "192.0.2.1");
        tried.await.unwrap_err();
    })
    .await;
    print("sign-in", known, unknown, known / 100);
}

/// Only prints the result. Times depend on the machine's other work, so they are never asserted.
#[expect(clippy::print_stdout, reason = "it prints what it measures")]
fn print(what: &str, known: Duration, unknown: Duration, most: Duration) {
    let apart = known.abs_diff(unknown);
    let verdict = if apart <= most { "met" } else { "MISSED" };
    println!("{what}: known {known:?}, unknown {unknown:?}; {apart:?} ≤ {most:?} {verdict}");
}

/// Run by `make soak`, on both databases.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "stores two million receipts, and only a release build gives meaningful times"]
async fn look_ups_among_a_million_receipts_take_milliseconds() {
    for backend in [Backend::Sqlite, Backend::Postgres] {
        measure_receipts(backend).await;
    }
}

async fn measure_receipts(backend: Backend) {
    let world = World::with(backend, network(&[("acme", 1, None)])).await;
    let mut conn = world.database.connect().await;
    let numbers = world.database.numbers(1_000_000);
    let now = world.now().unix_ms();
    // IDs begin with the time of arrival.
    let first = domain::ids::compose_id(now - 3_600_000, 0);
    let raw = format!(
        "INSERT INTO raw_receipts (id, carrier, kind, written_id, number, state, raw) \
         SELECT {first} + i, 'acme', 'final', 'id-' || i, '26657' || i, 'DELIVRD', \
             'id:' || i || ' sub:001 dlvrd:001 submit date:2601010000 done date:2601010000 \
             stat:DELIVRD err:000 text:' FROM {numbers}"
    );
    let unmatched = format!(
        "INSERT INTO unmatched_receipts (receipt, carrier, carrier_message_id, status, \
             received_at, form, text_id, state, number, sender) \
         SELECT {first} + i, 'acme', 'id-' || i, {}, {now}, 'text', 'id-' || i, 'DELIVRD', \
             '26657' || i, 'Heliograph' FROM {numbers}",
        domain::MessageStatus::Delivered.code()
    );
    for insert in [raw, unmatched] {
        conn.execute(AssertSqlSafe(insert)).await.unwrap();
    }
    let delivery = world.service.delivery();
    for (what, filter, found) in [
        ("the newest", ReceiptFilter::All, 50),
        ("the newest unmatched ones", ReceiptFilter::Unmatched, 50),
        ("by ID", ReceiptFilter::Id("id-500000".to_owned()), 1),
        ("by number", ReceiptFilter::Number("26657500000".to_owned()), 1),
        ("by an unknown number", ReceiptFilter::Number("1".to_owned()), 0),
    ] {
        let mut times = Vec::new();
        for _ in 0..50 {
            let asked = Instant::now();
            let receipts = delivery.carrier_receipts("acme", &filter).await.unwrap().receipts;
            times.push(asked.elapsed());
            assert_eq!(receipts.len(), found, "{what}");
        }
        print_most(&format!("{backend:?}: {what}"), &times, Duration::from_millis(10));
    }
}

/// Only prints the result, like [`print`].
#[expect(clippy::print_stdout, reason = "it prints what it measures")]
fn print_most(what: &str, times: &[Duration], most: Duration) {
    let longest = times.iter().copied().max().unwrap_or_default();
    let verdict = if longest <= most { "met" } else { "MISSED" };
    println!("{what}: {:?}, at most {longest:?} ≤ {most:?} {verdict}", median(times.to_vec()));
}
