//! Finds the message and the segment that an answer belongs to.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use super::super::later;
use ::smpp::{LATE_ANSWERS_MAX, Submit};
use domain::Transid;
use service::{Claimed, Lease, SubmitOutcome, Submitted};

/// The ID of a message and the token of its lease. A message may be claimed again while submits of
/// an earlier claim are unanswered.
type ClaimKey = (i64, i64);

/// Messages with unanswered submits.
#[derive(Default)]
pub(super) struct Pending {
    next_tag: u64,
    segments: HashMap<u64, (ClaimKey, u16)>,
    messages: HashMap<ClaimKey, Open>,
    /// Messages that need no submit now: all their segments are submitted already, or their
    /// sender's rate makes them wait.
    done: Vec<Submitted>,
    /// Messages with a new carrier message ID that still miss other answers.
    identified: Vec<ClaimKey>,
    /// Submits that weren't answered in time, by tag. A lower tag was submitted earlier.
    late: BTreeMap<u64, Late>,
}

struct Open {
    result: Submitted,
    /// The number in the carrier's format.
    address: String,
    sender: String,
    missing: usize,
    /// The number of outcomes whose carrier message IDs were taken early.
    early: usize,
}

struct Late {
    /// Without outcomes.
    result: Submitted,
    segment: u16,
    address: String,
}

impl Pending {
    /// Adds a message. Returns a tag for each part that still needs a submit, and `None` for the
    /// other parts.
    pub(super) fn add(
        &mut self,
        message: &Claimed,
        lease: Lease,
        parts: &[Submit],
    ) -> Vec<Option<u64>> {
        let total = u16::try_from(parts.len()).unwrap_or(u16::MAX);
        let key = (message.id.0, lease.token);
        let tags: Vec<_> = (1..=total)
            .map(|segment| {
                let open = !message.submitted_segments.contains(&segment);
                open.then(|| {
                    self.next_tag += 1;
                    self.segments.insert(self.next_tag, (key, segment));
                    self.next_tag
                })
            })
            .collect();
        let missing = tags.iter().flatten().count();
        let result = Submitted {
            id: message.id,
            application_id: message.application_id,
            lease,
            segments: total,
            outcomes: Vec::with_capacity(missing),
        };
        if missing == 0 {
            self.done.push(result);
        } else {
            let (address, sender) = (message.address.clone(), message.sender.clone());
            self.messages.insert(key, Open { result, address, sender, missing, early: 0 });
        }
        tags
    }

    /// Puts a message with this many parts back into the queue. It is submitted after this time.
    pub(super) fn put_back(
        &mut self,
        message: &Claimed,
        lease: Lease,
        parts: usize,
        after: Duration,
    ) {
        let segments = u16::try_from(parts).unwrap_or(u16::MAX);
        let left = (1..=segments).filter(|n| !message.submitted_segments.contains(n));
        self.done.push(Submitted {
            id: message.id,
            application_id: message.application_id,
            lease,
            segments,
            outcomes: left.map(|n| (n, later(after))).collect(),
        });
    }

    /// Returns the sender of an unanswered submit.
    pub(super) fn sender(&self, tag: u64) -> Option<&str> {
        let (key, _) = self.segments.get(&tag)?;
        Some(&self.messages.get(key)?.sender)
    }

    /// Returns the message of a submit without an answer, or without one in time, and the message's
    /// number in the carrier's format.
    pub(super) fn recipient(&self, tag: u64) -> Option<(Transid, &str)> {
        let open = self.segments.get(&tag).and_then(|(key, _)| self.messages.get(key));
        let open = open.map(|open| (open.result.id, &*open.address));
        open.or_else(|| self.late.get(&tag).map(|late| (late.result.id, &*late.address)))
    }

    /// Returns the highest tag so far.
    pub(super) const fn last_tag(&self) -> u64 {
        self.next_tag
    }

    /// Takes the messages that need no submit now.
    pub(super) fn take_done(&mut self) -> Vec<Submitted> {
        std::mem::take(&mut self.done)
    }

    /// Handles an answer. Puts the message into the results if this is its last missing answer, or
    /// if the message was already reported.
    pub(super) fn answer(
        &mut self,
        tag: u64,
        outcome: SubmitOutcome,
        results: &mut Vec<Submitted>,
    ) {
        let Some((key, segment)) = self.segments.remove(&tag) else {
            self.late(tag, outcome, results);
            return;
        };
        let Some(open) = self.messages.get_mut(&key) else {
            return;
        };
        if matches!(outcome, SubmitOutcome::Unknown { .. }) {
            let result = Submitted { outcomes: Vec::new(), ..open.result.clone() };
            self.late.insert(tag, Late { result, segment, address: open.address.clone() });
            if self.late.len() > LATE_ANSWERS_MAX {
                self.late.pop_first();
            }
        }
        let has_id = carrier_message_id(&outcome).is_some();
        open.result.outcomes.push((segment, outcome));
        open.missing -= 1;
        if open.missing == 0 {
            results.extend(self.messages.remove(&key).map(|open| open.result));
        } else if has_id {
            self.identified.push(key);
        }
    }

    /// Takes the new carrier message IDs of messages that still miss other answers. The messages
    /// are reported completely later.
    pub(super) fn take_early(&mut self) -> Vec<Submitted> {
        let mut early = Vec::new();
        for key in std::mem::take(&mut self.identified) {
            let Some(open) = self.messages.get_mut(&key) else {
                continue;
            };
            let new = open.result.outcomes[open.early..].iter();
            let new = new.filter(|(_, outcome)| carrier_message_id(outcome).is_some());
            let outcomes: Vec<_> = new.cloned().collect();
            open.early = open.result.outcomes.len();
            if !outcomes.is_empty() {
                early.push(Submitted { outcomes, ..open.result.clone() });
            }
        }
        early
    }

    /// Handles an answer that came too late. If the message isn't reported yet, the answer replaces
    /// the outcome `Unknown`.
    fn late(&mut self, tag: u64, outcome: SubmitOutcome, results: &mut Vec<Submitted>) {
        let Some(Late { mut result, segment, .. }) = self.late.remove(&tag) else {
            return;
        };
        let open = self.messages.get_mut(&(result.id.0, result.lease.token));
        let unreported = open.map(|open| &mut open.result).or_else(|| {
            let same =
                |other: &&mut Submitted| (other.id, other.lease) == (result.id, result.lease);
            results.iter_mut().find(same)
        });
        let entry = unreported.and_then(|unreported| {
            let mut outcomes = unreported.outcomes.iter_mut();
            outcomes.find(|(number, _)| *number == segment)
        });
        if let Some(entry) = entry {
            entry.1 = outcome;
        } else {
            result.outcomes.push((segment, outcome));
            results.push(result);
        }
    }
}

fn carrier_message_id(outcome: &SubmitOutcome) -> Option<&str> {
    match outcome {
        SubmitOutcome::Accepted { carrier_message_id } => carrier_message_id.as_deref(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
