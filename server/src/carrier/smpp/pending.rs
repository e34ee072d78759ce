//! Which answer belongs to which segment of which message.

use std::collections::{HashMap, VecDeque};

use ::smpp::Submit;
use service::{Claimed, Lease, SubmitOutcome, Submitted};

/// Submits whose answers are still taken when they come after all.
const LATE_MAX: usize = 10_000;

/// A message under a claim: it may be claimed again while an earlier try of it isn't over.
type Try = (i64, i64);

/// Messages whose submits aren't all answered.
#[derive(Default)]
pub(super) struct Pending {
    next_tag: u64,
    segments: HashMap<u64, (Try, u16)>,
    messages: HashMap<Try, Open>,
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
        let key = (message.id.0, lease.token);
        let tags: Vec<_> = (1..=total)
            .map(|segment| {
                let open = !message.handed_over.contains(&segment);
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
            self.messages.insert(key, Open { result, missing });
        }
        tags
    }

    /// Messages of which nothing was left to submit.
    pub(super) fn take_done(&mut self) -> Vec<Submitted> {
        std::mem::take(&mut self.done)
    }

    /// Takes an answer. When it was the last one that a message missed, the message goes into the
    /// results; so does one whose answer comes after its time.
    pub(super) fn answer(&mut self, tag: u64, outcome: SubmitOutcome, told: &mut Vec<Submitted>) {
        let Some((key, segment)) = self.segments.remove(&tag) else {
            self.late(tag, outcome, told);
            return;
        };
        let Some(open) = self.messages.get_mut(&key) else {
            return;
        };
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
        if open.missing == 0 {
            told.extend(self.messages.remove(&key).map(|open| open.result));
        }
    }

    /// An answer after its time. Where the message isn't told yet, it takes the place of the
    /// missing one.
    fn late(&mut self, tag: u64, outcome: SubmitOutcome, told: &mut Vec<Submitted>) {
        let Some((mut result, segment)) = self.late.remove(&tag) else {
            return;
        };
        let open = self.messages.get_mut(&(result.id.0, result.lease.token));
        let untold = open.map(|open| &mut open.result).or_else(|| {
            let same =
                |other: &&mut Submitted| (other.id, other.lease) == (result.id, result.lease);
            told.iter_mut().find(same)
        });
        let place = untold.and_then(|untold| {
            let mut outcomes = untold.outcomes.iter_mut();
            outcomes.find(|(number, _)| *number == segment)
        });
        if let Some(place) = place {
            place.1 = outcome;
        } else {
            result.outcomes.push((segment, outcome));
            told.push(result);
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::{MessageText, Number, Timestamp, Transid};
    use tokio::time::Instant;

    use super::*;

    fn message() -> Claimed {
        Claimed {
            id: Transid(7),
            application_id: 1,
            number: Number::parse("57000001").unwrap(),
            address: "26657000001".to_owned(),
            sender: "Heliograph".to_owned(),
            message: MessageText::parse("Hello".to_owned(), 1).unwrap(),
            handed_over: Vec::new(),
            expires_at: Timestamp::from_unix_ms(0),
        }
    }

    fn lease(token: i64) -> Lease {
        Lease {
            token,
            until: Timestamp::from_unix_ms(0),
            not_after: Instant::now().into_std(),
        }
    }

    fn parts(count: usize) -> Vec<Submit> {
        let submit = Submit {
            tag: 0,
            not_after: Instant::now(),
            service_type: String::new(),
            source: ::smpp::Address::default(),
            destination: ::smpp::Address::default(),
            esm_class: 0,
            validity_period: None,
            registered_delivery: 1,
            data_coding: 0,
            short_message: Vec::new(),
            sar_msg_ref_num: None,
            sar_total_segments: None,
            sar_segment_seqnum: None,
            message_payload: None,
            user_message_reference: None,
        };
        vec![submit; count]
    }

    fn lost() -> SubmitOutcome {
        SubmitOutcome::Unknown {
            error: "lost".to_owned(),
        }
    }

    fn taken() -> SubmitOutcome {
        SubmitOutcome::Accepted {
            carrier_message_id: Some("c".to_owned()),
        }
    }

    #[test]
    fn a_late_answer_to_a_part_doesnt_tell_the_message_before_its_other_parts() {
        let (mut pending, mut told) = (Pending::default(), Vec::new());
        let tags = pending.add(&message(), lease(1), &parts(2));
        let [first, second] = [0, 1].map(|place: usize| tags[place].unwrap());
        pending.answer(first, lost(), &mut told);
        pending.answer(first, taken(), &mut told);
        assert!(told.is_empty());
        pending.answer(second, SubmitOutcome::NotSent, &mut told);
        let outcomes = [(1, taken()), (2, SubmitOutcome::NotSent)];
        assert_eq!(told[0].outcomes, outcomes);
        assert_eq!(told.len(), 1);
    }

    #[test]
    fn a_late_answer_is_one_result_with_the_lost_one_it_follows() {
        let (mut pending, mut told) = (Pending::default(), Vec::new());
        let tag = pending.add(&message(), lease(1), &parts(1))[0].unwrap();
        pending.answer(tag, lost(), &mut told);
        pending.answer(tag, taken(), &mut told);
        assert_eq!(
            (told.len(), &told[0].outcomes[..]),
            (1, &[(1, taken())][..])
        );
        // And one of its own when that is told already.
        let tag = pending.add(&message(), lease(1), &parts(1))[0].unwrap();
        pending.answer(tag, lost(), &mut told);
        told.clear();
        pending.answer(tag, taken(), &mut told);
        assert_eq!(told[0].outcomes, [(1, taken())]);
    }

    #[test]
    fn two_tries_of_a_message_keep_their_answers_apart() {
        let (mut pending, mut told) = (Pending::default(), Vec::new());
        let old = pending.add(&message(), lease(1), &parts(1))[0].unwrap();
        let new = pending.add(&message(), lease(2), &parts(1))[0].unwrap();
        pending.answer(old, SubmitOutcome::NotSent, &mut told);
        pending.answer(new, taken(), &mut told);
        let tokens: Vec<_> = told.iter().map(|result| result.lease.token).collect();
        assert_eq!(tokens, [1, 2]);
        assert_eq!(told[1].outcomes, [(1, taken())]);
    }
}
