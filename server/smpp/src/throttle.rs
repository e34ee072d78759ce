//! Pauses after the peer refused submits.

use std::time::Duration;

use tokio::time::Instant;

/// The first and the longest pause after the peer asked us to slow down.
const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// How the connection reacts to the status of a refused submit, besides reporting it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reaction {
    /// The refusal is only about this submit.
    None,
    /// The peer asks us to slow down. The connection pauses briefly.
    Throttle,
    /// The peer refuses all submits, not just this one. The connection answers the queued submits
    /// with [`crate::Outcome::NotSent`] and pauses. Then it accepts one submit at a time until the
    /// peer accepts one.
    Hold,
}

/// The current pause, and the length of the next one.
pub(crate) struct Throttle {
    first: Duration,
    longest: Duration,
    next: Duration,
    until: Option<Instant>,
}

impl Throttle {
    pub(crate) fn new() -> Self {
        Self::between(FIRST, LONGEST)
    }

    pub(crate) fn between(first: Duration, longest: Duration) -> Self {
        Self { first, longest, next: first, until: None }
    }

    /// Records a refusal. A whole window of refusals causes one pause.
    pub(crate) fn refused(&mut self, now: Instant) {
        if self.until(now).is_none() {
            self.until = Some(now + self.next);
            self.next = (self.next * 2).min(self.longest);
        }
    }

    /// Records that the peer accepted a submit, so that the next pause is short again.
    pub(crate) fn accepted(&mut self) {
        self.next = self.first;
    }

    /// Returns when the current pause ends, if there is one.
    pub(crate) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}
