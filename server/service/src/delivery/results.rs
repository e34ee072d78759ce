//! Results: the responses of carriers to submits. Records them and their consequences for the
//! messages.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use domain::{ApplicationId, MessageStatus, Submission, Timestamp, Transid};

use crate::delivery::Submitted;
use crate::delivery::opted_out::requeue;
use crate::delivery::outcomes::{Again, Count, MessageOutcome, SubmitOutcome};
use crate::{Delivery, Service};
use store::Tx;
use store::claims::{self, Held};
use store::error::Result;
use store::messages::{self, Ended, Ending};
use store::queue::{self, Requeued};
use store::segments::{self, NewSegment, Segment};
use store::submits::{self, Begun, Taken};
use store::timeline::{self, NewEntry};

/// The text in a message's timeline after the carrier throttled it.
const THROTTLED: &str = "the carrier asked to slow down";

/// The effects of recording a carrier's results.
pub(crate) struct Recorded {
    /// The stored messages of which the carrier accepted every segment.
    pub(crate) taken: Vec<Transid>,
    /// For each message that went back into the queue: its carrier, and how soon it may be claimed.
    pub(crate) again: Vec<(String, Duration)>,
    /// The messages that became final.
    pub(crate) ended: Vec<Ended>,
    /// The statuses of the receipts that had waited for these answers.
    pub(crate) matched: Vec<MessageStatus>,
}

impl Delivery<'_> {
    /// Records the results of submits. Returns the stored messages of which the carrier accepted
    /// every segment. If the lease was lost, the carrier message IDs are stored. The answers also
    /// settle the message if nothing will be submitted any more. Otherwise the next claim decides.
    pub async fn record_submitted(
        &self,
        carrier: &str,
        mut results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        if results.is_empty() {
            return Ok(Vec::new());
        }
        for (_, outcome) in results.iter_mut().flat_map(|result| &mut result.outcomes) {
            outcome.make_storable();
        }
        let counts = self.inner.figures.answers(carrier, &results);
        let taken = self.record_at_shards(carrier, results).await?;
        self.inner.figures.add(carrier, &counts);
        Ok(taken)
    }

    /// Writes a carrier's results in a commit group. The caller still has to settle the charges
    /// that they release.
    pub(crate) async fn write_results(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        results: &[&Submitted],
    ) -> Result<Recorded> {
        let now = self.now();
        let mut plan = self.plan(tx, carrier, results, now).await?;
        let again = plan.again.iter().map(|row| {
            let after_ms = (row.due_at - now.unix_ms()).max(0).unsigned_abs();
            let to = row.carrier.as_deref().unwrap_or(carrier);
            (to.to_owned(), Duration::from_millis(after_ms))
        });
        let again = again.collect();
        let late = std::mem::take(&mut plan.late_results);
        let (taken, mut ended, matched) = plan.write(self, tx, carrier, now).await?;
        ended.extend(self.settle_late(tx, carrier, &late, now).await?);
        Ok(Recorded { taken, again, ended, matched })
    }

    /// Decides what must be written for the results.
    async fn plan<'r>(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        results: &[&'r Submitted],
        now: Timestamp,
    ) -> Result<Plan<'r>> {
        let ids: Vec<Transid> = results.iter().map(|r| r.id).collect();
        messages::lock(tx, &ids).await?;
        let leases: Vec<_> = results.iter().map(|result| result.lease.of(result.id)).collect();
        let held = claims::held(tx, &leases).await?;
        let begun: Vec<Transid> =
            held.values().filter(|h| h.submission != Submission::None).map(|h| h.id).collect();
        let mut stored: HashMap<Transid, Vec<Segment>> = HashMap::new();
        for segment in segments::of(tx, &begun).await? {
            stored.entry(segment.message_id).or_default().push(segment);
        }
        let network = self.inner.router.network();
        let noted = !network.is_sandbox(carrier);
        // A carrier that receives whole messages doesn't say into how many segments it splits them.
        let counted = noted && !network.takes_whole(carrier);
        let mut plan = Plan { counted, ..Plan::default() };
        let mut seen = HashSet::new();
        for &result in results {
            // A second result for a message comes too late: the first one ends the claim.
            match held.get(&result.id).filter(|_| seen.insert(result.id)) {
                Some(held) => {
                    let stored = stored.get(&result.id).map_or(&[][..], Vec::as_slice);
                    plan.add(result, held, stored, noted, now);
                }
                None if noted => {
                    plan.late.extend(rows(result));
                    plan.late_results.push(result);
                }
                None => {}
            }
        }
        self.offer_elsewhere(tx, carrier, &mut plan, now).await?;
        Ok(plan)
    }

    /// Moves messages that a carrier didn't accept to another carrier, if a route leads to one.
    async fn offer_elsewhere(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        plan: &mut Plan<'_>,
        now: Timestamp,
    ) -> Result<()> {
        let usable = self.inner.router.is_usable(carrier);
        let refused: HashSet<Transid> = plan.refused.iter().map(|(_, ending)| ending.id).collect();
        let waiting = plan.again.iter().filter(|row| row.may_move(usable, now));
        let ids: Vec<Transid> = waiting.map(|row| row.id).chain(refused.clone()).collect();
        // There is no other carrier.
        if ids.is_empty() || self.inner.router.network().only().is_some() {
            return Ok(());
        }
        let ways: HashMap<Transid, String> = queue::routed(tx, &ids)
            .await?
            .iter()
            .filter_map(|row| {
                let id = row.message_id;
                Some((id, self.other_way(row, carrier, refused.contains(&id))?))
            })
            .collect();
        for row in plan.again.iter_mut().filter(|row| row.may_move(usable, now)) {
            if let Some(way) = ways.get(&row.id) {
                row.carrier = Some(way.clone());
            }
        }
        let (elsewhere, refused): (Vec<_>, Vec<_>) = std::mem::take(&mut plan.refused)
            .into_iter()
            .partition(|(_, ending)| ways.contains_key(&ending.id));
        plan.refused = refused;
        for (application_id, Ending { id, error, .. }) in elsewhere {
            let error = error.unwrap_or_default();
            plan.timeline.push(NewEntry {
                id,
                application_id,
                status: MessageStatus::Sending,
                detail: Some(format!("refused by {carrier}: {error}")),
            });
            plan.leaving.retain(|leaving| *leaving != id);
            plan.again.push(Requeued {
                id,
                due_at: now.unix_ms(),
                attempts: 0,
                submission: Submission::None,
                carrier: ways.get(&id).cloned(),
                refused_by: format!(" {carrier}"),
            });
        }
        Ok(())
    }
}

/// Results, sorted by what must be written for them.
#[derive(Default)]
struct Plan<'r> {
    leaving: Vec<Transid>,
    /// Messages of which the carrier accepted every segment.
    taken: Vec<Taken>,
    begun: Vec<Begun>,
    /// Messages that were refused after some of their segments were accepted, or that no other
    /// carrier may be offered.
    failed: Vec<Ending>,
    /// Messages that were refused before any of their segments was accepted.
    refused: Vec<(ApplicationId, Ending)>,
    again: Vec<Requeued>,
    timeline: Vec<NewEntry>,
    segments: Vec<NewSegment>,
    /// Segments whose carrier message IDs came after the claim had ended.
    late: Vec<NewSegment>,
    /// Results that came after the claim had ended.
    late_results: Vec<&'r Submitted>,
    /// Entries for messages that the carrier throttled.
    throttled: Vec<NewEntry>,
    /// Whether the carrier receives each segment separately.
    counted: bool,
}

impl Plan<'_> {
    fn add(
        &mut self,
        result: &Submitted,
        held: &Held,
        stored: &[Segment],
        noted: bool,
        now: Timestamp,
    ) {
        let id = result.id;
        let count = Count::new(&result.outcomes, stored, held.attempts);
        let (taken, unknown) = (count.taken > 0, count.unknown > 0);
        if noted {
            self.segments.extend(rows(result));
        }
        let outcome = count.outcome(held);
        if (taken || unknown) && outcome != MessageOutcome::Submitted {
            self.begun.push(Begun { id, unknown, taken });
        }
        if !matches!(outcome, MessageOutcome::Again(_)) {
            self.leaving.push(id);
        }
        let ending = |status, error, release| Ending {
            id,
            status,
            error: Some(error),
            release,
            taken: !release,
        };
        match outcome {
            MessageOutcome::Submitted => {
                self.taken.push(Taken { id, segments: self.counted.then_some(result.segments) });
            }
            MessageOutcome::Failed { error } => {
                self.failed.push(ending(MessageStatus::Failed, error, false));
            }
            MessageOutcome::Refused { error } => {
                let ending = ending(MessageStatus::Rejected, error, true);
                self.refused.push((result.application_id, ending));
            }
            MessageOutcome::Rejected { error } => {
                self.failed.push(ending(MessageStatus::Rejected, error, true));
            }
            MessageOutcome::Unknown { error } => {
                if let Some(error) = error {
                    self.note(result, MessageStatus::Unknown, error);
                }
            }
            MessageOutcome::Again(again) => self.again(result, again, unknown, now),
        }
    }

    fn again(&mut self, result: &Submitted, again: Again, unknown: bool, now: Timestamp) {
        if let Some(error) = again.error {
            let status = if unknown { MessageStatus::Unknown } else { MessageStatus::Sending };
            self.note(result, status, error);
        }
        if again.throttled {
            self.throttled.push(NewEntry {
                id: result.id,
                application_id: result.application_id,
                status: MessageStatus::Sending,
                detail: Some(THROTTLED.to_owned()),
            });
        }
        self.again.push(Requeued {
            id: result.id,
            due_at: now.plus_ms(again.after_ms).unix_ms(),
            attempts: i64::from(again.attempted),
            submission: again.submission,
            carrier: None,
            refused_by: String::new(),
        });
    }

    fn note(&mut self, result: &Submitted, status: MessageStatus, detail: String) {
        self.timeline.push(NewEntry {
            id: result.id,
            application_id: result.application_id,
            status,
            detail: Some(detail),
        });
    }

    async fn write(
        mut self,
        service: &Service,
        tx: &mut Tx<'_>,
        carrier: &str,
        now: Timestamp,
    ) -> Result<(Vec<Transid>, Vec<Ended>, Vec<MessageStatus>)> {
        queue::drop_all(tx, &self.leaving).await?;
        submits::submitted(tx, &self.taken, carrier, now).await?;
        submits::begin(tx, &self.begun, carrier, now).await?;
        let refused = self.refused.into_iter().map(|(_, ending)| ending);
        let endings: Vec<_> = self.failed.into_iter().chain(refused).collect();
        let mut ended = messages::finish(tx, &endings, now).await?;
        ended.extend(requeue(tx, &self.again, now).await?);
        timeline::insert(tx, &self.timeline, now, || service.next_id(now)).await?;
        // A message that the carrier throttles again and again gets no further entry.
        let ids: Vec<Transid> = self.throttled.iter().map(|entry| entry.id).collect();
        let noted = timeline::noted(tx, &ids, THROTTLED).await?;
        self.throttled.retain(|entry| !noted.contains(&entry.id));
        timeline::insert(tx, &self.throttled, now, || service.next_id(now)).await?;
        segments::insert(tx, &self.segments, carrier, now).await?;
        segments::set_ids(tx, &self.late, carrier, now).await?;
        let answered = self.segments.iter().chain(&self.late);
        let message_ids: Vec<&str> =
            answered.filter_map(|row| row.carrier_message_id.as_deref()).collect();
        let matched = service.delivery().match_unmatched(tx, carrier, &message_ids, now).await?;
        let taken = self.taken.into_iter().map(|taken| taken.id);
        Ok((taken.collect(), ended, matched))
    }
}

/// Returns the segments of a message that were submitted, or may have been.
pub(super) fn rows(result: &Submitted) -> impl Iterator<Item = NewSegment> {
    result.outcomes.iter().filter_map(|(number, outcome)| {
        let (id, status) = match outcome {
            SubmitOutcome::Accepted { carrier_message_id } => {
                (carrier_message_id.clone(), MessageStatus::Submitted)
            }
            SubmitOutcome::Unknown { .. } => (None, MessageStatus::Unknown),
            _ => return None,
        };
        Some(NewSegment {
            message_id: result.id,
            segment: *number,
            segments: result.segments,
            application_id: result.application_id,
            carrier_message_id: id,
            status,
        })
    })
}
