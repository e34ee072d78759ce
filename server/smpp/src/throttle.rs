//! Pauses that the peer asks for by answering that we are too fast.

use std::time::Duration;

use tokio::time::Instant;

use crate::status_code;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

/// The length of the next pause.
pub(crate) struct Throttle {
    next: Duration,
    until: Option<Instant>,
}

impl Throttle {
    pub(crate) fn new() -> Self {
        Self {
            next: FIRST,
            until: None,
        }
    }

    /// Whether a status asks for a slower pace.
    pub(crate) fn is_throttling(status: u32) -> bool {
        matches!(status, status_code::THROTTLED | status_code::QUEUE_FULL)
    }

    /// Notes that the peer asked for a slower pace. A whole window of such answers is one pause.
    pub(crate) fn throttled(&mut self, now: Instant) {
        if self.until(now).is_none() {
            self.until = Some(now + self.next);
            self.next = (self.next * 2).min(LONGEST);
        }
    }

    /// The peer took one: the next pause is short again.
    pub(crate) fn accepted(&mut self) {
        self.next = FIRST;
    }

    /// When the pause ends, if there is one.
    pub(crate) fn until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| *until > now)
    }
}
