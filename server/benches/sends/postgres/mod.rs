//! PostgreSQL in the place of SQLite, on the same cores; each part has a cluster of its own that syncs every commit to
//! the disk.

pub mod bulk;
pub mod claims;
pub mod cluster;
pub mod nodes;
pub mod pinned;
pub mod sends;
mod verbs;

use std::time::Duration;

/// Runs to its end what needs a runtime of several threads.
fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}

/// Times of claims: how many, the middle and the slow ones.
fn distribution(mut times: Vec<Duration>) -> (Duration, Duration, usize) {
    times.sort_unstable();
    let at = |part| crate::load::percentile(&times, part);
    (at(0.5), at(0.99), times.len())
}
