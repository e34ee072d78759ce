//! Which answer belongs to which segment of which message.

use std::collections::{HashMap, VecDeque};

use ::smpp::Submit;
use service::{Claimed, Lease, SubmitOutcome, Submitted};

/// Submits whose answers are still taken when they come after all.
const LATE_MAX: usize = 10_000;

/// Messages whose submits aren't all answered.
#[derive(Default)]
pub(super) struct Pending {
    next_tag: u64,
    segments: HashMap<u64, (i64, u16)>,
    messages: HashMap<i64, Open>,
    /// Messages of which nothing was left to submit.
    done: Vec<Submitted>,
    /// Submits that weren't answered in time.
    late: HashMap<u64, (Submitted, u16)>,
    late_order: VecDeque<u64>,
}

struct Open {
    result: Submitted,
    missing: usize,
}

impl Pending {
    /// Adds a message; a tag for each part that is to be submitted.
    pub(super) fn add(
        &mut self,
        message: &Claimed,
        lease: Lease,
        parts: &[Submit],
    ) -> Vec<Option<u64>> {
        let total = u16::try_from(parts.len()).unwrap_or(u16::MAX);
        let id = message.id.0;
        let tags: Vec<_> = (1..=total)
            .map(|segment| {
                let open = !message.handed_over.contains(&segment);
                open.then(|| {
                    self.next_tag += 1;
                    self.segments.insert(self.next_tag, (id, segment));
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
            self.messages.insert(id, Open { result, missing });
        }
        tags
    }

    /// Messages of which nothing was left to submit.
    pub(super) fn take_done(&mut self) -> Vec<Submitted> {
        std::mem::take(&mut self.done)
    }

    /// Takes an answer; the message, when it was the last one that was missing.
    pub(super) fn answer(&mut self, tag: u64, outcome: SubmitOutcome) -> Option<Submitted> {
        let Some((id, segment)) = self.segments.remove(&tag) else {
            return self.late(tag, outcome);
        };
        let open = self.messages.get_mut(&id)?;
        if matches!(outcome, SubmitOutcome::Unknown { .. }) {
            let bare = Submitted {
                outcomes: Vec::new(),
                ..open.result.clone()
            };
            self.late.insert(tag, (bare, segment));
            self.late_order.push_back(tag);
            if self.late_order.len() > LATE_MAX
                && let Some(oldest) = self.late_order.pop_front()
            {
                self.late.remove(&oldest);
            }
        }
        open.result.outcomes.push((segment, outcome));
        open.missing -= 1;
        if open.missing > 0 {
            return None;
        }
        self.messages.remove(&id).map(|open| open.result)
    }

    /// An answer after its time.
    fn late(&mut self, tag: u64, outcome: SubmitOutcome) -> Option<Submitted> {
        let (mut result, segment) = self.late.remove(&tag)?;
        result.outcomes.push((segment, outcome));
        Some(result)
    }
}
