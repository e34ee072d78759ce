//! Counts of inbound messages, for operators.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::Service;
use crate::wakeups::Wakeup;

/// The outcome of storing messages.
#[derive(Default)]
pub(super) struct Assigned {
    /// The number of messages that applications got.
    pub(super) messages: usize,
    /// The number of messages that nobody got.
    pub(super) unassigned: usize,
    /// The number of replies that are in the queue.
    pub(super) replies: usize,
}

/// The counts of this process since its start.
#[derive(Default)]
pub(crate) struct InboundCounts {
    stored: AtomicU64,
    unassigned: AtomicU64,
    pub(super) repeated: AtomicU64,
    replies: AtomicU64,
}

impl Service {
    /// Returns this process's counts, each with its name: inbound messages that it stored for
    /// applications, kept without an application, or recognized as repetitions, and replies that it
    /// queued.
    pub fn inbound_counts(&self) -> [(&'static str, u64); 4] {
        let InboundCounts { stored, unassigned, repeated, replies } = &self.inner.inbound_counts;
        let counts = [
            ("stored", stored),
            ("unassigned", unassigned),
            ("repeated", repeated),
            ("replied", replies),
        ];
        counts.map(|(name, count)| (name, count.load(Ordering::Relaxed)))
    }

    /// Counts what became of messages after the commit, and wakes the connections to carriers if
    /// there are replies to submit.
    pub(super) fn committed(&self, assigned: &Assigned) {
        let counts = &self.inner.inbound_counts;
        for (counter, count) in [
            (&counts.stored, assigned.messages),
            (&counts.unassigned, assigned.unassigned),
            (&counts.replies, assigned.replies),
        ] {
            counter.fetch_add(count as u64, Ordering::Relaxed);
        }
        if assigned.replies > 0 {
            self.inner.wake(Wakeup::Queued);
        }
    }
}
