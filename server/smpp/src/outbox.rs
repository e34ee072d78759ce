//! What waits to be written, and how much of it the socket took.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};
use tokio::time::Instant;

/// Bytes for one socket. Offsets count all bytes since it was opened, so that the moment the last
/// byte of a submit left is exact.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: BytesMut,
    /// How many bytes the socket took.
    taken: u64,
    /// Submits not wholly taken, in order.
    submits: VecDeque<Pending>,
}

struct Pending {
    sequence: u32,
    start: u64,
    end: u64,
    not_after: Instant,
}

impl Outbox {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends by `put` what isn't a submit.
    pub(crate) fn append(&mut self, put: impl FnOnce(&mut BytesMut)) {
        put(&mut self.bytes);
    }

    /// Appends a submit by `put`.
    pub(crate) fn append_submit(
        &mut self,
        sequence: u32,
        not_after: Instant,
        put: impl FnOnce(&mut BytesMut),
    ) {
        let start = self.taken + self.bytes.len() as u64;
        put(&mut self.bytes);
        self.submits.push_back(Pending {
            sequence,
            start,
            end: self.taken + self.bytes.len() as u64,
            not_after,
        });
    }

    /// What to offer the socket next.
    pub(crate) fn offer(&self) -> &[u8] {
        &self.bytes
    }

    /// The socket took `count` bytes.
    pub(crate) fn took(&mut self, count: usize) {
        self.bytes.advance(count);
        self.taken += count as u64;
    }

    /// The next submit of which the socket took the last byte.
    pub(crate) fn next_written(&mut self) -> Option<u32> {
        let written = self.submits.front()?.end <= self.taken;
        written.then(|| self.submits.pop_front().map(|submit| submit.sequence))?
    }

    /// Takes out the submits of which no byte was taken and for which `drop` says so.
    pub(crate) fn remove(&mut self, drop: impl Fn(Instant) -> bool) -> Vec<u32> {
        let doomed = |submit: &Pending, taken| submit.start >= taken && drop(submit.not_after);
        if !self.submits.iter().any(|submit| doomed(submit, self.taken)) {
            return Vec::new();
        }
        let mut kept = Self {
            taken: self.taken,
            ..Self::default()
        };
        let mut removed = Vec::new();
        for submit in std::mem::take(&mut self.submits) {
            // What stands before it: other PDUs, or its own part that is left.
            let before = submit.start.saturating_sub(self.taken);
            let between = usize::try_from(before).unwrap_or(0);
            kept.bytes.extend_from_slice(&self.bytes[..between]);
            self.took(between);
            let left = usize::try_from(submit.end - self.taken).unwrap_or(0);
            if doomed(&submit, kept.taken) {
                removed.push(submit.sequence);
            } else {
                let start = submit.start.min(kept.taken + kept.bytes.len() as u64);
                kept.bytes.extend_from_slice(&self.bytes[..left]);
                kept.submits.push_back(Pending {
                    start,
                    end: kept.taken + kept.bytes.len() as u64,
                    ..submit
                });
            }
            self.took(left);
        }
        kept.bytes.extend_from_slice(&self.bytes);
        *self = kept;
        removed
    }

    /// When the first submit here runs out.
    pub(crate) fn not_after(&self) -> Option<Instant> {
        self.submits.iter().map(|submit| submit.not_after).min()
    }
}
