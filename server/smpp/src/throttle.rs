//! Pauses that the peer asks for by answering that we are too fast.

use std::time::Duration;

use tokio::time::Instant;

use crate::status_code;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// The current pause, and the length of the next one.
pub(crate) struct Throttle {
    next: Duration,
    until: Option<Instant>,
}

impl Throttle {
    pub(crate) fn new() -> Self {
        Self { next: FIRST, until: None }
    }

    /// Returns whether a status asks us to slow down.
    pub(crate) fn is_throttling(status: u32) -> bool {
        matches!(status, status_code::THROTTLED | status_code::QUEUE_FULL)
    }

    /// Records that the peer asked us to slow down. A whole window of such answers causes one
    /// pause.
    pub(crate) fn throttled(&mut self, now: Instant) {
        if self.until(now).is_none() {
            self.until = Some(now + self.next);
            self.next = (self.next * 2).min(LONGEST);
        }
    }

    /// Records that the peer accepted a submit, so that the next pause is short again.
    pub(crate) fn accepted(&mut self) {
        self.next = FIRST;
    }

    /// Returns when the current pause ends, if there is one.
    pub(crate) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}
