//! The rate of submits.

use std::time::Duration;

use tokio::time::Instant;

/// How far the pace may catch up after a late wake. In any span of time no more leaves than the
/// rate times that span and this.
const CATCH_UP: Duration = Duration::from_millis(20);

/// Lets submits out evenly.
pub(crate) struct Pace {
    /// `None` without a limit.
    interval: Option<Duration>,
    next: Instant,
}

impl Pace {
    /// `rate` per second; 0 is no limit.
    pub(crate) fn new(rate: u32, now: Instant) -> Self {
        let interval = (rate > 0).then(|| Duration::from_secs(1) / rate);
        Self {
            interval,
            next: now,
        }
    }

    /// Whether a submit may leave now; counts it if so.
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

    /// When the next submit may leave.
    pub(crate) fn next(&self) -> Instant {
        self.next
    }
}
