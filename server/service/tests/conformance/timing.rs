//! Measures whether response times reveal that an email has an account. Compares the medians of
//! alternating attempts with a known and an unknown email.

use std::time::{Duration, Instant};

use crate::database::Backend;
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
