//! Pauses of batches by staff. Staff and the owner can pause a batch independently, and each ends
//! only their own pause.

use domain::decision;
use domain::{BatchId, EventStream, Reference, Timestamp};

use crate::Support;
use crate::mail::{self, texts};
use crate::transactions::work;
use crate::wakeups::Wakeup;
use store::applications::{self, ApplicationRow};
use store::audit::{self, Actor};
use store::error::{Error, Refusal, Result};
use store::{Tx, batches};

impl Support<'_> {
    /// Pauses a batch of an application for a reason that its owner reads, on the page of the batch
    /// and in a mail. Only [`Support::resume_batch`] ends the pause. Does nothing if staff have
    /// paused the batch already.
    ///
    /// # Errors
    /// `NoSuchApplication`, `NoSuchBatch`, `BatchEnded`, `ReasonMissing`, `ReasonInvalid`.
    pub async fn pause_batch(
        &self,
        actor: &Actor,
        reference: Reference,
        id: BatchId,
        reason: &str,
    ) -> Result<()> {
        let reason = decision::parse_reason(reason).map_err(Refusal::from)?;
        let actor = *actor;
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = found(tx, reference, id).await?;
                if !batches::pause_by_staff(tx, id, &reason, now).await? {
                    return Err(done_before(tx, id, "batch.pause").await?);
                }
                note(tx, &actor, "batch.pause", (&row, id, Some(&reason)), now).await?;
                let mail = texts::batch_paused(reference, id, &reason);
                mail::put(tx, &row, &mail, now).await
            }),
        )
        .await
    }

    /// Ends a pause by staff. If the owner has paused the batch too, it stays paused. Does nothing
    /// if staff haven't paused it.
    ///
    /// # Errors
    /// `NoSuchApplication`, `OwnApplication`, `NoSuchBatch`, `BatchEnded`.
    pub async fn resume_batch(
        &self,
        actor: &Actor,
        reference: Reference,
        id: BatchId,
    ) -> Result<()> {
        let (service, actor) = (self.0.clone(), *actor);
        self.in_transaction_of(
            reference,
            work!(|tx, now| {
                let row = found(tx, reference, id).await?;
                service.applications().refuse_own(&actor, &row)?;
                if !batches::resume_by_staff(tx, id, now).await? {
                    return Err(done_before(tx, id, "batch.resume").await?);
                }
                note(tx, &actor, "batch.resume", (&row, id, None), now).await?;
                let mail = texts::batch_resumed(reference, id);
                mail::put(tx, &row, &mail, now).await
            }),
        )
        .await?;
        self.inner.wake(Wakeup::BatchAccepted);
        Ok(())
    }
}

/// Returns the refusal of an action that is already done.
async fn done_before(tx: &mut Tx<'_>, id: BatchId, action: &'static str) -> Result<Error> {
    let decided = audit::last(tx, &id.to_string(), [action; 3]).await?;
    Ok(Refusal::NothingToDo { decided }.into())
}

/// Returns the application of a batch that can still be paused or resumed.
async fn found(tx: &mut Tx<'_>, reference: Reference, id: BatchId) -> Result<ApplicationRow> {
    let row = applications::by_reference(tx, reference).await?;
    let row = row.ok_or(Refusal::NoSuchApplication)?;
    let of = batches::application_of(tx, id).await?.filter(|(of, _)| *of == row.id);
    let (application_id, test) = of.ok_or(Refusal::NoSuchBatch)?;
    let stream = EventStream { application_id, test };
    let batch = batches::to_stop(tx, stream, id).await?.ok_or(Refusal::NoSuchBatch)?;
    if batch.is_done || batch.cancelled_at.is_some() {
        return Err(Refusal::BatchEnded.into());
    }
    Ok(row)
}

async fn note(
    tx: &mut Tx<'_>,
    actor: &Actor,
    action: &'static str,
    (application, id, reason): (&ApplicationRow, BatchId, Option<&str>),
    now: Timestamp,
) -> Result<()> {
    let subject = (application.record.reference, &*id.to_string());
    audit::insert_of(tx, now, actor, action, subject, reason).await
}
