//! Submits waiting for an answer, by sequence number.

use std::collections::{HashMap, VecDeque};

use tokio::time::Instant;

/// The highest sequence number (SMPP 3.4, 5.1.4).
const MAX_SEQUENCE: u32 = 0x7FFF_FFFF;
/// The maximum number of given-up submits per bind whose late answers are still reported. A caller
/// that stores something for each of them must have room for as many.
pub const LATE_ANSWERS_MAX: usize = 10_000;

/// The submits of one bind.
pub(crate) struct Window {
    last: u32,
    waiting: HashMap<u32, Waiting>,
    /// When the answers to written submits are due, in order. Entries remain after the submit is
    /// answered.
    due: VecDeque<(Instant, u32)>,
    /// Tags of submits that got no answer in time.
    late: HashMap<u32, u64>,
    late_order: VecDeque<u32>,
}

struct Waiting {
    tag: u64,
    /// When the answer is due. `None` until the socket has accepted the last byte.
    due: Option<Instant>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answered {
    /// A submit that was waiting for its answer.
    InTime(u64),
    /// A submit that was given up.
    Late(u64),
}

impl Window {
    /// `last` is the sequence number before the first one to assign.
    pub(crate) fn new(last: u32) -> Self {
        Self {
            last,
            waiting: HashMap::new(),
            due: VecDeque::new(),
            late: HashMap::new(),
            late_order: VecDeque::new(),
        }
    }

    /// Returns the next sequence number that isn't in use.
    pub(crate) fn next_sequence(&mut self) -> u32 {
        loop {
            self.last = if self.last >= MAX_SEQUENCE { 1 } else { self.last + 1 };
            if !self.waiting.contains_key(&self.last) && !self.late.contains_key(&self.last) {
                return self.last;
            }
        }
    }

    /// Adds a submit that is in the outbox.
    pub(crate) fn insert(&mut self, sequence: u32, tag: u64) {
        self.waiting.insert(sequence, Waiting { tag, due: None });
    }

    /// Records that the socket accepted the last byte of a submit, and when its answer is due.
    pub(crate) fn written(&mut self, sequence: u32, due: Instant) {
        if let Some(waiting) = self.waiting.get_mut(&sequence) {
            waiting.due = Some(due);
            self.due.push_back((due, sequence));
        }
    }

    /// Removes a submit that won't be written, and returns its tag.
    pub(crate) fn remove(&mut self, sequence: u32) -> Option<u64> {
        self.waiting.remove(&sequence).map(|waiting| waiting.tag)
    }

    /// Returns the submit that the peer answered, even if it was given up. Returns `None` if no
    /// submit has this sequence number. Also returns `None` for a submit that isn't written in
    /// full, because the peer can't have answered it.
    pub(crate) fn answered(&mut self, sequence: u32) -> Option<Answered> {
        if let Some(waiting) = self.waiting.get(&sequence) {
            waiting.due?;
            return self.remove(sequence).map(Answered::InTime);
        }
        self.late.remove(&sequence).map(Answered::Late)
    }

    /// Gives up the next submit whose answer is overdue. Returns its tag and when the answer was
    /// due.
    pub(crate) fn overdue(&mut self, now: Instant) -> Option<(u64, Instant)> {
        let (due, sequence) = self.first_due().filter(|(due, _)| *due <= now)?;
        Some((self.give_up(sequence)?, due))
    }

    /// Returns when the next answer is due.
    pub(crate) fn next_due(&mut self) -> Option<Instant> {
        self.first_due().map(|(due, _)| due)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Removes all submits. Returns their tags, and whether each was written.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (u64, bool)> {
        let waiting = self.waiting.drain();
        waiting.map(|(_, waiting)| (waiting.tag, waiting.due.is_some()))
    }

    /// Returns the submit whose answer is due first. Removes the entries of answered submits before
    /// it.
    fn first_due(&mut self) -> Option<(Instant, u32)> {
        while let Some((due, sequence)) = self.due.front().copied() {
            let waiting = self.waiting.get(&sequence);
            if waiting.is_some_and(|waiting| waiting.due == Some(due)) {
                return Some((due, sequence));
            }
            self.due.pop_front();
        }
        None
    }

    fn give_up(&mut self, sequence: u32) -> Option<u64> {
        let tag = self.remove(sequence)?;
        self.late.insert(sequence, tag);
        self.late_order.push_back(sequence);
        if self.late_order.len() > LATE_ANSWERS_MAX
            && let Some(oldest) = self.late_order.pop_front()
        {
            self.late.remove(&oldest);
        }
        Some(tag)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Through the public API, this would take two billion submits.
    #[tokio::test]
    async fn sequence_numbers_wrap_and_skip_those_in_use() {
        let mut window = Window::new(MAX_SEQUENCE - 2);
        for tag in [10, 11] {
            let sequence = window.next_sequence();
            window.insert(sequence, tag);
        }
        assert_eq!(window.next_sequence(), 1);
        window.insert(2, 12);
        window.insert(3, 13);
        let now = Instant::now();
        window.written(3, now);
        assert_eq!(window.overdue(now), Some((13, now)));
        assert_eq!(window.next_sequence(), 4);
        window.last = MAX_SEQUENCE - 2;
        assert_eq!(window.next_sequence(), 1);
        // Not written yet.
        assert_eq!(window.answered(MAX_SEQUENCE), None);
        window.written(MAX_SEQUENCE, now);
        assert_eq!(window.answered(MAX_SEQUENCE), Some(Answered::InTime(11)));
        assert_eq!(window.answered(MAX_SEQUENCE), None);
        assert_eq!(window.answered(3), Some(Answered::Late(13)));
        assert_eq!(window.answered(3), None);
    }
}
