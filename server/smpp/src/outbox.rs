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
mod tests {
    use std::time::Duration;

    use super::*;

    /// A response, then submits of 3, 4 and 5 octets, then a response.
    fn filled(now: Instant) -> Outbox {
        let mut outbox = Outbox::default();
        outbox.append(|out| out.extend_from_slice(b"r"));
        for (sequence, text) in [(1, "aaa"), (2, "bbbb"), (3, "ccccc")] {
            let not_after = now + Duration::from_secs(sequence.into());
            outbox.append_submit(sequence, not_after, |out| {
                out.extend_from_slice(text.as_bytes());
            });
        }
        outbox.append(|out| out.extend_from_slice(b"R"));
        outbox
    }

    /// A test through the public API couldn't see how many bytes the socket accepted.
    #[test]
    fn a_submit_is_written_with_its_last_byte() {
        let mut outbox = filled(Instant::now());
        let mut written = Vec::new();
        for taken in 1..=14 {
            outbox.took(1);
            while let Some(sequence) = outbox.next_written() {
                written.push((taken, sequence));
            }
        }
        assert_eq!(written, [(4, 1), (8, 2), (13, 3)]);
        assert_eq!(outbox.len(), 0);
    }

    #[test]
    fn only_submits_that_are_not_begun_are_removed() {
        let now = Instant::now();
        let rests: [(&[u32], &[u8]); 15] = [
            (&[1, 2, 3], b"rR"),
            (&[1, 2, 3], b"R"),
            (&[2, 3], b"aaR"),
            (&[2, 3], b"aR"),
            (&[2, 3], b"R"),
            (&[3], b"bbbR"),
            (&[3], b"bbR"),
            (&[3], b"bR"),
            (&[3], b"R"),
            (&[], b"ccccR"),
            (&[], b"cccR"),
            (&[], b"ccR"),
            (&[], b"cR"),
            (&[], b"R"),
            (&[], b""),
        ];
        for (taken, (removed, rest)) in rests.into_iter().enumerate() {
            let mut outbox = filled(now);
            outbox.took(taken);
            assert_eq!(outbox.remove(|_| true), removed, "{taken}");
            assert_eq!(outbox.bytes, rest, "{taken}");
            assert_eq!(outbox.not_after(), None);
            // A submit that was begun still counts as written with its own last byte.
            outbox.took(rest.len());
            let written = std::iter::from_fn(|| outbox.next_written());
            assert_eq!(written.count(), 3 - removed.len(), "{taken}");
        }
    }

    #[test]
    fn removing_a_submit_moves_the_later_ones_up() {
        let now = Instant::now();
        let mut outbox = filled(now);
        let second = now + Duration::from_secs(2);
        assert_eq!(outbox.remove(|not_after| not_after == second), [2]);
        assert_eq!(outbox.bytes, &b"raaacccccR"[..]);
        assert_eq!(outbox.not_after(), Some(now + Duration::from_secs(1)));
        outbox.took(8);
        assert_eq!(outbox.next_written(), Some(1));
        assert_eq!(outbox.next_written(), None);
        outbox.took(1);
        assert_eq!(outbox.next_written(), Some(3));
    }

    #[test]
    fn one_submit_is_offered_at_a_time_with_the_bytes_before_it() {
        let now = Instant::now();
        let mut outbox = filled(now);
        let mut offered = Vec::new();
        while outbox.len() > 0 {
            offered.push(outbox.offer().to_vec());
            // The socket accepts all but one octet of an offer, and that octet with the next write.
            outbox.took(outbox.offer().len().saturating_sub(1).max(1));
        }
        let expected: [&[u8]; 7] = [b"raaa", b"a", b"bbbb", b"b", b"ccccc", b"c", b"R"];
        assert_eq!(offered, expected);
    }

    #[test]
    fn a_submit_that_is_begun_is_not_overdue() {
        let now = Instant::now();
        let (first, late) = (now + Duration::from_secs(1), now + Duration::from_secs(9));
        let mut outbox = filled(now);
        assert!(!outbox.is_overdue(first) && outbox.is_overdue(late));
        outbox.took(2);
        assert!(!outbox.is_overdue(late));
        outbox.took(2);
        assert!(outbox.is_overdue(late));
        outbox.took(outbox.len());
        assert!(!outbox.is_overdue(late));
    }

    #[test]
    fn after_abandoning_only_written_submits_are_known() {
        let mut outbox = filled(Instant::now());
        outbox.took(9);
        outbox.abandon();
        assert_eq!(outbox.len(), 0);
        assert_eq!(outbox.next_written(), Some(1));
        assert_eq!(outbox.next_written(), Some(2));
        assert_eq!(outbox.next_written(), None);
    }
}
