//! Waits before reconnects: exponential with full jitter, so that many connections that were cut
//! together don't come back together.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The waits of one link.
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    bound: Duration,
    random: StdRng,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self {
            min,
            max,
            bound: min.min(max),
            random: StdRng::seed_from_u64(seed),
        }
    }

    /// The next wait.
    pub(crate) fn next(&mut self) -> Duration {
        let wait = self.bound.mul_f64(self.random.random());
        self.bound = (self.bound * 2).min(self.max);
        wait
    }

    /// A bind held: the next wait is short again.
    pub(crate) fn reset(&mut self) {
        self.bound = self.min.min(self.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_start_over() {
        let (min, max) = (Duration::from_millis(100), Duration::from_secs(1));
        let mut backoff = Backoff::new(min, max, 7);
        for bound in [100, 200, 400, 800, 1000, 1000] {
            assert!(backoff.next() <= Duration::from_millis(bound));
        }
        backoff.reset();
        assert!(backoff.next() <= min);
    }

    #[test]
    fn waits_of_two_seeds_differ() {
        let wait = |seed| Backoff::new(Duration::from_secs(1), Duration::from_secs(9), seed).next();
        assert_ne!(wait(1), wait(2));
    }
}
