//! Whether the time of an answer tells that an email has an account: medians of attempts with a
//! known and with an unknown one, in turns.

use std::time::{Duration, Instant};

use crate::database::Backend;
use crate::world::{HOUR_MS, World};

const ATTEMPTS: usize = 2_000;

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// The medians for a known and for an unknown email.
async fn medians(world: &World, ask: impl AsyncFn(&World, &str)) -> (Duration, Duration) {
    let (mut known, mut unknown) = (Vec::new(), Vec::new());
    for turn in 0..ATTEMPTS {
        let mut both = [
            ("known@example.org", &mut known),
            ("stranger@example.org", &mut unknown),
        ];
        // Neither is always the second.
        both.rotate_left(turn % 2);
        for (email, times) in both {
            // Nothing of before counts any more.
            world.pass(HOUR_MS);
            let asked = Instant::now();
            ask(world, email).await;
            times.push(asked.elapsed());
        }
    }
    (median(known), median(unknown))
}

/// `make soak` runs it.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "measures for minutes, and means something in release alone"]
async fn known_and_unknown_emails_take_the_same_time() {
    let world = World::new(Backend::Sqlite).await;
    world.account("known@example.org").await;
    let (known, unknown) = medians(&world, async |world, email| {
        world
            .service
            .request_reset(email, "192.0.2.1")
            .await
            .unwrap();
    })
    .await;
    print("reset link", known, unknown, Duration::from_micros(100));
    let (known, unknown) = medians(&world, async |world, email| {
        let tried = world
            .service
            .sign_in(email, "not the password", "192.0.2.1");
        tried.await.unwrap_err();
    })
    .await;
    print("sign-in", known, unknown, known / 100);
}

/// A time depends on what else the machine does, and is never asserted.
#[expect(clippy::print_stdout, reason = "it prints what it measures")]
fn print(what: &str, known: Duration, unknown: Duration, most: Duration) {
    let apart = known.abs_diff(unknown);
    let verdict = if apart <= most { "met" } else { "MISSED" };
    println!("{what}: known {known:?}, unknown {unknown:?}; {apart:?} ≤ {most:?} {verdict}");
}
