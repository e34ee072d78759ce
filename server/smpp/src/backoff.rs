//! Backoff between attempts to bind. It is exponential with jitter, so that many connections that
//! were cut at the same time don't reconnect at the same time.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttemptOutcome {
    /// The bind failed, the peer accepted and delivered nothing on it, or the peer stopped
    /// answering submits.
    Failed,
    /// The peer accepted or delivered something, but the bind was short.
    Worked,
    /// The bind lasted at least as long as the longest backoff.
    Held,
}

/// The backoff of one link.
pub(crate) struct Backoff {
    min: Duration,
    max: Duration,
    bound: Duration,
    random: StdRng,
}

impl Backoff {
    pub(crate) fn new(min: Duration, max: Duration, seed: u64) -> Self {
        Self { min, max, bound: min / 2, random: StdRng::seed_from_u64(seed) }
    }

    /// Returns the time until the next attempt. The time is never 0, so that we don't flood a peer
    /// that drops each bind, even if the peer accepts a PDU on each. An attempt that worked halves
    /// the upper bound.
    pub(crate) fn next(&mut self, attempt: AttemptOutcome) -> Duration {
        let bound = match attempt {
            AttemptOutcome::Failed => self.bound * 2,
            AttemptOutcome::Worked => self.bound / 2,
            AttemptOutcome::Held => self.min,
        };
        self.bound = bound.max(self.min).min(self.max);
        let wait = self.bound.mul_f64(self.random.random());
        wait.max(self.min / 4).min(self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: Duration = Duration::from_millis(100);
    const MAX: Duration = Duration::from_secs(1);

    /// Returns the longest of 1000 backoffs, each drawn after these attempts.
    fn longest(attempts: &[AttemptOutcome]) -> Duration {
        let last = |seed| {
            let mut backoff = Backoff::new(MIN, MAX, seed);
            let waits = attempts.iter().map(|attempt| backoff.next(*attempt));
            waits.last().unwrap_or_default()
        };
        let waits: Vec<_> = (0..1000).map(last).collect();
        assert!(waits.iter().all(|wait| *wait >= MIN / 4));
        waits.into_iter().max().unwrap_or_default()
    }

    /// Asserts that the longest of 1000 backoffs is at most `bound` milliseconds and within a tenth
    /// of it.
    fn assert_bound(attempts: &[AttemptOutcome], bound: u64) {
        let (longest, bound) = (longest(attempts), Duration::from_millis(bound));
        assert!(longest <= bound && longest > bound.mul_f64(0.9), "{longest:?}, {bound:?}");
    }

    #[test]
    fn the_backoff_doubles_up_to_its_bound_and_starts_over() {
        for (count, bound) in [(1, 100), (2, 200), (3, 400), (4, 800), (5, 1000), (6, 1000)] {
            assert_bound(&vec![AttemptOutcome::Failed; count], bound);
        }
        let held = [[AttemptOutcome::Failed; 5].as_slice(), &[AttemptOutcome::Held]].concat();
        assert_bound(&held, 100);
    }

    #[test]
    fn a_short_bind_that_worked_lowers_the_backoff_by_steps() {
        assert_bound(&[AttemptOutcome::Worked; 3], 100);
        let (failed, worked) = ([AttemptOutcome::Failed; 4], [AttemptOutcome::Worked; 4]);
        for (count, bound) in [(1, 400), (2, 200), (3, 100), (4, 100)] {
            assert_bound(&[failed.as_slice(), &worked[..count]].concat(), bound);
        }
    }

    #[test]
    fn two_seeds_give_different_backoffs() {
        let wait = |seed| {
            let (min, max) = (Duration::from_secs(1), Duration::from_secs(9));
            Backoff::new(min, max, seed).next(AttemptOutcome::Failed)
        };
        assert_ne!(wait(1), wait(2));
    }
}
