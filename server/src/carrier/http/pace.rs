//! The rate limit of requests.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// Spaces requests evenly.
pub(super) struct Pace {
    /// The time between two requests. `None` if there is no limit.
    interval: Option<Duration>,
    next: Mutex<Instant>,
}

impl Pace {
    /// `rate` is in requests per second; 0 means no limit.
    pub(super) fn new(rate: u32) -> Self {
        Self {
            interval: Duration::from_secs(1).checked_div(rate),
            next: Mutex::new(Instant::now()),
        }
    }

    /// Waits until the next request may be sent. Unused time isn't saved up.
    pub(super) async fn turn(&self) {
        if let Some(interval) = self.interval {
            sleep_until(self.take(interval)).await;
        }
    }

    fn take(&self, interval: Duration) -> Instant {
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let turn = (*next).max(Instant::now());
        *next = turn + interval;
        turn
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn turns_are_spread_and_not_saved_up() {
        let pace = Pace::new(10);
        let start = Instant::now();
        let mut turns = Vec::new();
        for _ in 0..3 {
            pace.turn().await;
            turns.push(start.elapsed().as_millis());
        }
        tokio::time::advance(Duration::from_secs(5)).await;
        for _ in 0..3 {
            pace.turn().await;
            turns.push(start.elapsed().as_millis());
        }
        assert_eq!(turns, [0, 100, 200, 5_200, 5_300, 5_400]);
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_is_no_limit() {
        let pace = Pace::new(0);
        let start = Instant::now();
        for _ in 0..1_000 {
            pace.turn().await;
        }
        assert_eq!(start.elapsed(), Duration::ZERO);
    }
}
