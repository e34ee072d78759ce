//! The bytes waiting to be written to a socket, and how many bytes the socket has accepted.

use std::collections::VecDeque;

use bytes::{Buf, BytesMut};
use tokio::time::Instant;

/// The bytes for one socket. Offsets count all bytes since the socket was opened, so that the
/// outbox knows when the socket accepts the last byte of each submit.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: BytesMut,
    /// The number of bytes that the socket has accepted.
    taken: u64,
    /// Submits that the socket hasn't accepted in full, in order.
    submits: VecDeque<Pending>,
    /// Submits that the socket accepted in full and that `next_written` hasn't returned yet.
    written: VecDeque<u32>,
}

struct Pending {
    sequence: u32,
    start: u64,
    end: u64,
    not_after: Instant,
}

/// Converts an offset, counted from the first pending byte, to an index. The number of pending
/// bytes always fits into a `usize`.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

impl Outbox {
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends a PDU that isn't a submit. `put` writes its bytes.
    pub(crate) fn append(&mut self, put: impl FnOnce(&mut BytesMut)) {
        put(&mut self.bytes);
    }

    /// Appends a submit. `put` writes its bytes.
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

    /// Returns the bytes to write next, up to the end of the first submit. The socket checks that
    /// submit's deadline before each write. So even if the process is suspended between the check
    /// and the write, at most one late submit is sent.
    pub(crate) fn offer(&self) -> &[u8] {
        let first = self.submits.front();
        let end = first.map(|first| index(first.end - self.taken));
        &self.bytes[..end.unwrap_or(self.bytes.len())]
    }

    /// Returns whether the next write would begin a submit whose deadline has passed.
    pub(crate) fn is_overdue(&self, now: Instant) -> bool {
        let first = self.submits.front();
        first.is_some_and(|first| first.start >= self.taken && first.not_after < now)
    }

    /// Returns whether the pending bytes need more than one write.
    pub(crate) fn takes_several(&self) -> bool {
        self.submits.len() > 1
    }

    /// Records that the socket accepted `count` bytes.
    pub(crate) fn took(&mut self, count: usize) {
        self.bytes.advance(count);
        self.taken += count as u64;
        while let Some(first) = self.submits.front()
            && first.end <= self.taken
        {
            self.written.push_back(first.sequence);
            self.submits.pop_front();
        }
    }

    /// Returns the next submit whose last byte the socket accepted.
    pub(crate) fn next_written(&mut self) -> Option<u32> {
        self.written.pop_front()
    }

    /// Removes the submits that aren't begun and whose deadline satisfies `drop`. Returns their
    /// sequence numbers.
    pub(crate) fn remove(&mut self, drop: impl Fn(Instant) -> bool) -> Vec<u32> {
        let (taken, bytes) = (self.taken, &self.bytes);
        let (mut removed, mut kept) = (Vec::new(), BytesMut::new());
        // The offset up to which bytes are copied or skipped, and the number of skipped bytes.
        let (mut copied, mut skipped) = (taken, 0);
        self.submits.retain_mut(|submit| {
            if submit.start < taken || !drop(submit.not_after) {
                submit.start -= skipped;
                submit.end -= skipped;
                return true;
            }
            kept.extend_from_slice(&bytes[index(copied - taken)..index(submit.start - taken)]);
            copied = submit.end;
            skipped += submit.end - submit.start;
            removed.push(submit.sequence);
            false
        });
        if !removed.is_empty() {
            kept.extend_from_slice(&bytes[index(copied - taken)..]);
            self.bytes = kept;
        }
        removed
    }

    /// Drops the unwritten bytes. `next_written` still returns the submits that the socket accepted
    /// in full.
    pub(crate) fn abandon(&mut self) {
        self.bytes.clear();
        self.submits.clear();
    }

    /// Returns the deadline of the submit that is partly written, if there is one.
    pub(crate) fn begun_not_after(&self) -> Option<Instant> {
        let first = self.submits.front()?;
        (first.start < self.taken).then_some(first.not_after)
    }

    /// Returns the earliest deadline of the submits that can still be removed.
    pub(crate) fn not_after(&self) -> Option<Instant> {
        let whole = self.submits.iter().filter(|submit| submit.start >= self.taken);
        whole.map(|submit| submit.not_after).min()
    }
}

#[cfg(test)]
mod tests;
