//! Metrics of commit groups.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::inbox::{InboxDepth, Input};
use store::error::Error;

/// The upper bounds of the histograms' buckets, in microseconds. A longer duration is in no bucket
/// and only in the total count.
const BOUNDS_US: [u64; 10] =
    [100, 250, 500, 1_000, 2_500, 5_000, 10_000, 50_000, 250_000, 1_000_000];

#[derive(Clone, Debug)]
pub struct Histogram {
    /// Upper bounds in seconds, each with the number of durations up to it.
    pub buckets: Vec<(f64, u64)>,
    pub count: u64,
    pub seconds: f64,
}

/// Metrics of commit groups since the start of the process.
#[derive(Clone, Debug)]
pub struct GroupFigures {
    /// The time from the beginning of a group's transaction or call to the end of its commit.
    pub group: Histogram,
    /// The duration of the commit, including its disk sync. If one call stored the group, the
    /// duration of that call.
    pub commit: Histogram,
    /// The number of sends, results, receipts and claims.
    pub inputs: [(&'static str, u64); 4],
    /// The number of retries after a conflict with another transaction.
    pub repeated: u64,
    /// The number of times that a group was halved to isolate a faulty input.
    pub halved: u64,
    pub inbox: InboxDepth,
    /// Bytes in SQLite's log that aren't in the database file yet. 0 on PostgreSQL.
    pub log_bytes: u64,
}

#[derive(Default)]
struct Durations {
    buckets: [AtomicU64; BOUNDS_US.len()],
    count: AtomicU64,
    nanos: AtomicU64,
}

impl Durations {
    fn add(&self, time: Duration) {
        let us = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        if let Some(bucket) = BOUNDS_US.iter().position(|bound| us <= *bound) {
            self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        }
        self.count.fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    fn read(&self) -> Histogram {
        let mut below = 0;
        let buckets = BOUNDS_US.iter().zip(&self.buckets).map(|(bound, count)| {
            below += count.load(Ordering::Relaxed);
            (Duration::from_micros(*bound).as_secs_f64(), below)
        });
        Histogram {
            buckets: buckets.collect(),
            count: self.count.load(Ordering::Relaxed),
            seconds: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)).as_secs_f64(),
        }
    }
}

/// The counters behind [`GroupFigures`].
#[derive(Default)]
pub(super) struct Figures {
    group: Durations,
    commit: Durations,
    inputs: [AtomicU64; 4],
    repeated: AtomicU64,
    halved: AtomicU64,
    log_bytes: AtomicU64,
    failures: Mutex<Failures>,
}

/// The groups that weren't stored.
#[derive(Default)]
struct Failures {
    logged_at: Option<Instant>,
    /// How many failed since then.
    unlogged: u64,
}

/// The shortest time between two log lines about groups that weren't stored. On a full disk, every
/// group fails, and the log may be on that disk, too.
const LOG_INTERVAL: Duration = Duration::from_secs(1);

const KINDS: [&str; 4] = ["send", "result", "receipt", "claim"];

impl Figures {
    pub(super) fn committed(&self, group: Duration, commit: Duration, log_bytes: u64) {
        self.group.add(group);
        self.commit.add(commit);
        self.log_bytes.store(log_bytes, Ordering::Relaxed);
    }

    /// Logs that a group wasn't stored, at most once a second.
    pub(super) fn failed(&self, inputs: usize, error: &Error) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        failures.unlogged += 1;
        if failures.logged_at.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
            return;
        }
        let groups = std::mem::take(&mut failures.unlogged);
        failures.logged_at = Some(Instant::now());
        drop(failures);
        tracing::error!(inputs, groups, detail = ?error, "a commit group was not stored");
    }

    /// Counts a group that one call stored. The call is also the commit.
    pub(super) fn called(&self, call: Duration) {
        self.group.add(call);
        self.commit.add(call);
    }

    pub(super) fn input(&self, input: &Input) {
        let (kind, count) = match input {
            Input::Send { .. } => (0, 1),
            Input::Results { results, .. } => (1, results.len()),
            Input::Receipts { receipts, .. } => (2, receipts.len()),
            Input::CarrierReceipts { receipts, .. } => (2, receipts.len()),
            Input::OptedOut(_) | Input::Check { .. } => return,
            Input::Claim { .. } => (3, 1),
        };
        self.inputs[kind].fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(super) fn repeated(&self) {
        self.repeated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn halved(&self) {
        self.halved.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn read(&self, inbox: InboxDepth) -> GroupFigures {
        let count = |kind: usize| self.inputs[kind].load(Ordering::Relaxed);
        GroupFigures {
            group: self.group.read(),
            commit: self.commit.read(),
            inputs: std::array::from_fn(|kind| (KINDS[kind], count(kind))),
            repeated: self.repeated.load(Ordering::Relaxed),
            halved: self.halved.load(Ordering::Relaxed),
            inbox,
            log_bytes: self.log_bytes.load(Ordering::Relaxed),
        }
    }
}
