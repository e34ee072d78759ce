//! The rate limit of submits.

use std::time::Duration;

use tokio::time::Instant;

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

    /// Returns whether a submit may be sent now, and counts it if so.
    pub(crate) fn let_out(&mut self, now: Instant) -> bool {
        let Some(interval) = self.interval else {
            return true;
        };
        if self.next > now {
            return false;
        }
        let earliest = now.checked_sub(CATCH_UP).unwrap_or(now);
        self.next = self.next.max(earliest) + interval;
        true
    }

    /// Returns when the next submit may be sent.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }
}
