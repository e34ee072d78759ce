//! Answers that come after a submit was given up. They settle messages that are still open, unless
//! a message is in the queue again: then its next claim decides.

use std::collections::HashSet;

use domain::{ApplicationId, MessageStatus, Timestamp, Transid};

use crate::Delivery;
use crate::delivery::outcomes::SubmitOutcome;
use crate::delivery::{Submitted, by_shard};
use store::error::Result;
use store::gate::Priority;
use store::messages::{self, Ended, Ending};
use store::submits::{self, Taken};
use store::timeline::{self, NewEntry};
use store::{Tx, queue, segments};

/// The changes by late answers of a carrier.
#[derive(Default)]
struct Settled {
    accepted: Vec<(Transid, u16)>,
    /// Messages of which the carrier accepted every segment.
    taken: Vec<Taken>,
    /// Messages that are final now.
    endings: Vec<Ending>,
    /// Messages of which the carrier refused every segment. Their stored segments are deleted.
    refused: Vec<Transid>,
    timeline: Vec<NewEntry>,
}

impl Delivery<'_> {
    /// Settles messages by answers that came after the submit was given up. The caller still has to
    /// settle the charges that they release.
    pub(super) async fn settle_late(
        &self,
        tx: &mut Tx<'_>,
        carrier: &str,
        late: &[&Submitted],
        now: Timestamp,
    ) -> Result<Vec<Ended>> {
        if late.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<Transid> = late.iter().map(|result| result.id).collect();
        let queued: HashSet<Transid> = queue::queued(tx, &ids).await?.into_iter().collect();
        let counted = !self.inner.router.network().takes_whole(carrier);
        let mut settled = Settled::default();
        for result in late.iter().filter(|result| !queued.contains(&result.id)) {
            if messages::status(tx, result.id).await? == Some(MessageStatus::Unknown) {
                let stored = segments::of(tx, &[result.id]).await?;
                settled.add(result, &stored, counted);
            }
        }
        segments::settle(tx, &settled.accepted).await?;
        submits::submitted(tx, &settled.taken, carrier, now).await?;
        segments::drop_all(tx, &settled.refused).await?;
        timeline::insert(tx, &settled.timeline, now, || self.next_id(now)).await?;
        messages::finish(tx, &settled.endings, now).await
    }

    /// Stores the carrier message IDs of segments whose messages have other segments without an
    /// answer. So a process that dies before the other answers come doesn't lose these IDs.
    pub async fn record_early_ids(&self, carrier: &str, results: Vec<Submitted>) -> Result<()> {
        for (shard, mut results) in by_shard::by_shard(results, |result| result.lease.shard) {
            for (_, outcome) in results.iter_mut().flat_map(|result| &mut result.outcomes) {
                outcome.make_storable();
            }
            let carrier = carrier.to_owned();
            crate::run_detached_with_attempts(self, move |service| {
                let (carrier, results) = (carrier.clone(), results.clone());
                async move {
                    let now = service.now();
                    let mut tx = service.store().begin_at(shard, Priority::Results).await?;
                    let ids: Vec<Transid> = results.iter().map(|result| result.id).collect();
                    messages::lock(&mut tx, &ids).await?;
                    let rows: Vec<_> = results.iter().flat_map(super::results::rows).collect();
                    segments::set_ids(&mut tx, &rows, &carrier, now).await?;
                    let ids = rows.iter().filter_map(|row| row.carrier_message_id.as_deref());
                    let ids: Vec<&str> = ids.collect();
                    let delivery = service.delivery();
                    let matching = delivery.match_unmatched(&mut tx, &carrier, &ids, now);
                    let matched = matching.await?;
                    tx.commit().await?;
                    service.inner.figures.add_matched(&carrier, matched);
                    Ok(())
                }
            })
            .await?;
        }
        Ok(())
    }
}

impl Settled {
    fn add(&mut self, result: &Submitted, stored: &[segments::Segment], counted: bool) {
        let (id, application_id, total) =
            (result.id, result.application_id, usize::from(result.segments));
        let accepted: Vec<u16> = result
            .outcomes
            .iter()
            .filter(|(_, outcome)| matches!(outcome, SubmitOutcome::Accepted { .. }))
            .map(|(number, _)| *number)
            .collect();
        // If a segment was submitted twice, the other submit may have reached the carrier.
        let is_only_submit = |number: u16| {
            let mut segments = stored.iter().filter(|segment| segment.segment == number);
            segments.any(|segment| !segment.is_taken() && segment.submits == 1)
        };
        let refused: Vec<&String> = result
            .outcomes
            .iter()
            .filter_map(|(number, outcome)| match outcome {
                SubmitOutcome::Refused { error } | SubmitOutcome::Rejected { error }
                    if is_only_submit(*number) =>
                {
                    Some(error)
                }
                _ => None,
            })
            .collect();
        let taken = stored
            .iter()
            .filter(|segment| segment.is_taken() || accepted.contains(&segment.segment));
        let taken = taken.count();
        self.accepted.extend(accepted.iter().map(|number| (id, *number)));
        let ending = |status, error: &str, release| Ending {
            id,
            status,
            error: Some(error.to_owned()),
            release,
            taken: !release,
        };
        match refused.first() {
            None if accepted.is_empty() => {}
            None => {
                self.note(id, application_id, "accepted it");
                if taken == total && stored.len() == total {
                    let segments = counted.then_some(result.segments);
                    self.taken.push(Taken { id, segments });
                }
            }
            Some(error) => {
                self.note(id, application_id, &format!("refused it: {error}"));
                // The message can't arrive complete.
                if taken > 0 {
                    self.endings.push(ending(MessageStatus::Failed, error, false));
                } else if refused.len() == total && stored.len() == total {
                    self.endings.push(ending(MessageStatus::Rejected, error, true));
                    self.refused.push(id);
                }
            }
        }
    }

    fn note(&mut self, id: Transid, application_id: ApplicationId, what: &str) {
        self.timeline.push(NewEntry {
            id,
            application_id,
            status: MessageStatus::Unknown,
            detail: Some(format!("the carrier answered late and {what}")),
        });
    }
}
