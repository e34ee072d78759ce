//! The rate limit of submits.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::{Instant, sleep_until};

/// After a late wakeup, the pace catches up on at most this much time. So in any period, it permits
/// at most the submits that the rate allows in that period plus this time.
const CATCH_UP: Duration = Duration::from_millis(20);

/// Spaces submits evenly.
pub(crate) struct Pace {
    /// `None` if there is no limit.
    interval: Option<Duration>,
    next: Instant,
}

impl Pace {
    /// `rate` is per second; 0 means no limit.
    pub(crate) fn new(rate: u32, now: Instant) -> Self {
        let interval = (rate > 0).then(|| Duration::from_secs(1) / rate);
        Self { interval, next: now }
    }

    /// Returns whether a submit may be sent now, and counts it if so. `shared` must also permit it.
    pub(crate) fn let_out(&mut self, now: Instant, shared: Option<&SharedPace>) -> bool {
        if self.interval.is_some() && self.next > now {
            return false;
        }
        if !shared.is_none_or(|shared| shared.pace.lock().let_out(now, None)) {
            return false;
        }
        if let Some(interval) = self.interval {
            let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
            self.next = self.next.max(earliest) + interval;
        }
        true
    }

    /// Returns when the next submit may be sent.
    pub(crate) fn next(&self, shared: Option<&SharedPace>) -> Instant {
        shared.map_or(self.next, |shared| self.next.max(shared.pace.lock().next))
    }
}

/// A rate limit that several connections share, including those of other processes.
pub struct SharedPace {
    rate: u32,
    processes: AtomicU32,
    pace: Mutex<Pace>,
}

impl SharedPace {
    /// `rate` is per second; 0 means no limit.
    pub fn new(rate: u32) -> Self {
        let pace = Mutex::new(Pace::new(rate, Instant::now()));
        Self { rate, processes: AtomicU32::new(1), pace }
    }

    /// Sets how many processes share the rate. Each of them gets an equal part of it.
    pub fn share_with(&self, processes: u32) {
        let processes = processes.max(1);
        if self.processes.swap(processes, Ordering::Relaxed) != processes && self.rate > 0 {
            let interval = Duration::from_secs(processes.into()) / self.rate;
            self.pace.lock().interval = Some(interval);
        }
    }

    /// Waits until the next message may be sent, and counts it. Unused time isn't saved up. Returns
    /// false at once if the message couldn't be sent by `not_after`.
    pub async fn turn(&self, not_after: Instant) -> bool {
        let turn = {
            let mut pace = self.pace.lock();
            let turn = pace.next.max(Instant::now());
            if turn > not_after {
                return false;
            }
            pace.next = turn + pace.interval.unwrap_or_default();
            turn
        };
        sleep_until(turn).await;
        true
    }

    /// Returns how many messages this process may send within a period, or `None` if there is no
    /// limit.
    pub fn turns_within(&self, period: Duration) -> Option<usize> {
        let interval = self.pace.lock().interval?;
        let turns = period.as_nanos() / interval.as_nanos().max(1);
        Some(usize::try_from(turns).unwrap_or(usize::MAX))
    }

    /// Returns this process's part of the rate, rounded up; 0 means no limit.
    pub(crate) fn rate(&self) -> u32 {
        self.rate.div_ceil(self.processes.load(Ordering::Relaxed))
    }
}
