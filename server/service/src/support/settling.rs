//! Decisions of staff about messages whose outcome was unknown, based on what the carrier reported.

use domain::support::SegmentRecord;
use domain::{DeliveryError, MessageStatus, Submission, Timestamp, Transid};

use crate::money::releases::settle;
use crate::transactions::work;
use crate::wakeups::Wakeup;
use crate::{MESSAGE_LIFETIME_MS, Support};
use store::audit::{self, Actor};
use store::error::{Refusal, Result};
use store::messages::{self, Ending};
use store::queue::{self, QueuedAs, QueuedRow, Requeued};
use store::segments::{self, SegmentEnding};
use store::timeline::{self, NewEntry};
use store::{Tx, applications};

/// The maximum number of submits of a segment.
const SUBMITS_MAX: i64 = 2;

/// The outcome of a message, according to its carrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    Delivered,
    /// The carrier had the message, so its charge stays.
    Failed,
    /// The carrier never had the message, so its charge is released.
    NeverSent,
}

impl Settlement {
    const fn status(self) -> MessageStatus {
        match self {
            Self::Delivered => MessageStatus::Delivered,
            Self::Failed => MessageStatus::Failed,
            Self::NeverSent => MessageStatus::Rejected,
        }
    }

    /// Returns final statuses for the segments that have none yet.
    fn of_segments(self, id: Transid, segments: &[SegmentRecord]) -> Vec<SegmentEnding<'static>> {
        let open = segments.iter().filter(|segment| !segment.status.is_final());
        let ending = |segment: &SegmentRecord| SegmentEnding {
            message_id: id,
            segment: u16::try_from(segment.segment).unwrap_or(0),
            status: self.status(),
            error: (self != Self::Delivered).then_some(DeliveryError::NoAnswer.as_str()),
        };
        open.map(ending).collect()
    }

    fn ending(self, id: Transid) -> Ending {
        let error = (self != Self::Delivered).then(|| DeliveryError::NoAnswer.as_str().to_owned());
        Ending {
            id,
            status: self.status(),
            error,
            release: self == Self::NeverSent,
            taken: self != Self::NeverSent,
        }
    }
}

impl Support<'_> {
    /// Makes a message whose outcome is unknown final.
    ///
    /// # Errors
    /// `NoSuchMessage`, `BeingSubmitted`, `StillOpen`. `OutcomeKnown`, also for
    /// [`Settlement::Delivered`] if a segment wasn't delivered. `TakenByCarrier` for
    /// [`Settlement::NeverSent`] if the carrier accepted a segment.
    pub async fn settle_message(
        &self,
        actor: &Actor,
        transid: Transid,
        settlement: Settlement,
    ) -> Result<()> {
        let found = self.locate(transid).await?;
        let (shard, location) = found.ok_or(Refusal::NoSuchMessage)?;
        let (service, actor) = (self.0.clone(), *actor);
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            must_be_unknown(tx, transid).await?;
            let segments = segments::of_message(tx, transid).await?;
            if segments.iter().any(is_taken) && settlement == Settlement::NeverSent {
                return Err(Refusal::TakenByCarrier.into());
            }
            let is_lost = |segment: &SegmentRecord| {
                segment.status.is_final() && segment.status != MessageStatus::Delivered
            };
            if segments.iter().any(is_lost) && settlement == Settlement::Delivered {
                return Err(Refusal::OutcomeKnown.into());
            }
            if settlement == Settlement::NeverSent {
                segments::drop_all(tx, &[transid]).await?;
            } else {
                segments::finish(tx, &settlement.of_segments(transid, &segments)).await?;
            }
            let ended = messages::finish(tx, &[settlement.ending(transid)], now).await?;
            settle(tx, &ended, now).await?;
            let entry = NewEntry {
                id: transid,
                application_id: location.application_id,
                status: settlement.status(),
                detail: Some("Support settled it after asking the carrier.".to_owned()),
            };
            timeline::insert(tx, &[entry], now, || service.next_id(now)).await?;
            let (action, status) = ("message.settle", settlement.status().as_str());
            let owner = applications::owner(tx, location.application_id).await?;
            let subject = (owner.reference, &*transid.to_string());
            audit::insert_of(tx, now, &actor, action, subject, Some(status)).await
        }))
        .await
    }

    /// Submits a message whose outcome is unknown once more, to the same carrier. Submits only
    /// segments that the carrier didn't accept, and no segment a third time.
    ///
    /// # Errors
    /// `NoSuchMessage`, `OutcomeKnown`, `StillOpen`, `BeingSubmitted`, `SubmittedTwice`.
    pub async fn requeue_message(&self, actor: &Actor, transid: Transid) -> Result<()> {
        let found = self.locate(transid).await?;
        let (shard, location) = found.ok_or(Refusal::NoSuchMessage)?;
        let actor = *actor;
        self.in_transaction(work!(|tx, now| {
            tx.at(shard);
            let send_at = must_be_unknown(tx, transid).await?;
            let segments = segments::of_message(tx, transid).await?;
            let mut open = segments.iter().filter(|segment| !is_taken(segment));
            let again = open.find(|segment| segment.submits < SUBMITS_MAX);
            let carrier = again.ok_or(Refusal::SubmittedTwice)?.carrier.clone();
            let row = QueuedRow {
                message_id: transid,
                application_id: location.application_id,
                carrier,
                due_at: now.unix_ms(),
                lease_token: 0,
                expires_at: send_at.map(|at| at.plus_ms(MESSAGE_LIFETIME_MS)),
            };
            queue::insert(tx, &[row], QueuedAs::default()).await?;
            let requeued = Requeued {
                id: transid,
                due_at: now.unix_ms(),
                attempts: 0,
                submission: Submission::Repeated,
                carrier: None,
                refused_by: String::new(),
            };
            queue::requeue(tx, &[requeued]).await?;
            let owner = applications::owner(tx, location.application_id).await?;
            let subject = (owner.reference, &*transid.to_string());
            audit::insert_of(tx, now, &actor, "message.requeue", subject, None).await
        }))
        .await?;
        self.inner.wake(Wakeup::Queued);
        Ok(())
    }
}

/// Whether the carrier accepted a segment, with or without an ID for it.
fn is_taken(segment: &SegmentRecord) -> bool {
    segment.carrier_id.is_some() || segment.status != MessageStatus::Unknown
}

/// Refuses a message whose status isn't unknown, or that is being submitted. Takes any other message
/// out of the queue, where it may wait to be submitted once more. Returns the time that it was
/// scheduled for.
async fn must_be_unknown(tx: &mut Tx<'_>, transid: Transid) -> Result<Option<Timestamp>> {
    messages::lock(tx, &[transid]).await?;
    let send_at = match messages::due(tx, transid).await? {
        None => return Err(Refusal::NoSuchMessage.into()),
        Some((MessageStatus::Unknown, send_at)) => send_at,
        Some((status, _)) if !status.is_final() => return Err(Refusal::StillOpen.into()),
        Some(_) => return Err(Refusal::OutcomeKnown.into()),
    };
    queue::drop_unclaimed(tx, &[transid], true).await?;
    if queue::queued(tx, &[transid]).await?.is_empty() {
        Ok(send_at)
    } else {
        Err(Refusal::BeingSubmitted.into())
    }
}
