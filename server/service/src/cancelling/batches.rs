//! Cancelling, pausing and resuming batches. One commit stops all claims and the expansion of a
//! batch. Its rows follow ([`super::following`]).

use domain::ids::Shard;
use domain::records::BatchRecord;
use domain::{BatchId, EventStream, MessageStatus, Money, Timestamp};

use super::{Cancelled, StopAuthor};
use crate::admission::KeyAccess;
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use crate::delivery::opted_out::check_withdrawals;
use crate::uploads::expansion::release_rest;
use crate::wakeups::Wakeup;
use crate::{Messages, Service, run_detached_with_attempts};
use store::batches::{self, StoppableBatch, UnexpandedBatch};
use store::error::{Error, Fault, Refusal, Result};
use store::gate::Priority;
use store::{Tx, applications, hold, queue};

/// What to do with a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BatchChange {
    /// No more rows are submitted until the batch is resumed.
    Pause,
    Resume,
}

/// A batch after a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedBatch {
    pub batch: BatchRecord,
    /// Whether an earlier request with the same idempotency key made the change.
    pub replayed: bool,
}

impl Messages<'_> {
    /// Pauses or resumes a batch. Does nothing if it is paused, or isn't paused, already.
    ///
    /// # Errors
    /// `NoSuchBatch`, `BatchEnded`, `IdempotencyMismatch`.
    pub async fn change_batch(
        &self,
        access: &KeyAccess,
        id: BatchId,
        change: BatchChange,
        author: StopAuthor,
        key: Option<&IdempotencyKey>,
    ) -> Result<ChangedBatch> {
        let (access, stream) = (*access, access.stream());
        let once = key.map(|key| Once::new(stream, key, change.digest(id)));
        let shard = self.shard_of(access.reference).await?;
        let changed = run_detached_with_attempts(self, move |service| {
            let once = once.clone();
            async move {
                let mut tx = service.store().begin_at(shard, Priority::Verb).await?;
                let now = service.now();
                let kept = match &once {
                    Some(once) => once.answered::<()>(&mut tx, now).await?,
                    None => None,
                };
                if kept.is_none() {
                    change.make(&mut tx, access, id, author, now).await?;
                    if let Some(once) = once {
                        once.keep(&mut tx, &(), now).await?;
                    }
                }
                let batch = batches::one(&mut tx, stream.application_id, stream.test, id).await?;
                let batch = batch.ok_or(Refusal::NoSuchBatch)?;
                tx.commit().await?;
                Ok(ChangedBatch { batch, replayed: kept.is_some() })
            }
        });
        let changed = changed.await?;
        self.inner.wake(Wakeup::BatchAccepted);
        Ok(changed)
    }

    /// Returns how many messages of a batch its cancellation would stop at most, and what they
    /// cost.
    ///
    /// # Errors
    /// `NoSuchBatch`.
    pub async fn stoppable(&self, access: &KeyAccess, id: BatchId) -> Result<(i64, Money)> {
        let mut conn = self.read_of(access.reference).await?;
        let batch = batches::to_stop(&mut conn, access.stream(), id).await?;
        let batch = batch.ok_or(Refusal::NoSuchBatch)?;
        if hold::holds_batch(&mut conn, id).await? {
            return Ok((0, Money::ZERO));
        }
        let queued = queue::cost_of_batch(&mut conn, batch.ids).await?;
        let unexpanded = batches::still_unexpanded(&mut conn, id).await?;
        with_rest(queued, unexpanded.as_ref())
    }

    pub(super) async fn cancel_batch(
        &self,
        access: KeyAccess,
        id: BatchId,
        author: StopAuthor,
        once: Option<Once>,
    ) -> Result<Cancelled> {
        let shard = self.shard_of(access.reference).await?;
        let stream = access.stream();
        let again = once.clone();
        let stopped = run_detached_with_attempts(self, move |service| {
            let once = again.clone();
            async move { stop(&service, shard, (access, id), author, once).await }
        });
        let cancelled = match stopped.await? {
            Stopped::Answered(cancelled) => cancelled,
            Stopped::Now => self.count_cancelled(shard, stream, id, once).await?,
        };
        self.inner.wake(Wakeup::BatchAccepted);
        self.inner.wake(Wakeup::Queued);
        Ok(cancelled)
    }

    /// Counts the rows that a cancellation stopped, and stores the counts. Releases the price of
    /// the rows that aren't messages, which are cancelled at once. Nothing adds such rows any more,
    /// so they are counted without a transaction that would hold up others.
    pub(super) async fn count_cancelled(
        &self,
        shard: Shard,
        stream: EventStream,
        id: BatchId,
        once: Option<Once>,
    ) -> Result<Cancelled> {
        run_detached_with_attempts(self, move |service| {
            let once = once.clone();
            async move {
                let mut conn = service.store().read_at(shard).await?;
                let batch = batches::to_stop(&mut conn, stream, id).await?;
                let batch = batch.ok_or(Refusal::NoSuchBatch)?;
                let queued = queue::cost_of_batch(&mut conn, batch.ids).await?;
                drop(conn);
                let mut tx = service.store().begin_at(shard, Priority::Verb).await?;
                let now = service.now();
                let unexpanded = batches::still_unexpanded(&mut tx, id).await?;
                let counted = match batches::to_stop(&mut tx, stream, id).await? {
                    Some(StoppableBatch { cancelled: Some(counted), .. }) => counted,
                    _ => count(&mut tx, id, queued, unexpanded.as_ref(), now).await?,
                };
                let (messages, released) = counted;
                let cancelled = Cancelled { messages, released, replayed: false };
                if let Some(once) = once {
                    once.keep(&mut tx, &Some(cancelled), now).await?;
                }
                tx.commit().await?;
                if let Some(upload) = unexpanded {
                    service.messages().remove_spool(shard, &upload.spool);
                }
                Ok(cancelled)
            }
        })
        .await
    }
}

/// The outcome of the commit that stops a batch.
enum Stopped {
    Answered(Cancelled),
    /// The rows still have to be counted.
    Now,
}

async fn stop(
    service: &Service,
    shard: Shard,
    (access, id): (KeyAccess, BatchId),
    author: StopAuthor,
    once: Option<Once>,
) -> Result<Stopped> {
    let stream = access.stream();
    let mut tx = service.store().begin_at(shard, Priority::Verb).await?;
    let now = service.now();
    // `None` if the process died before it had counted the rows.
    let kept = match &once {
        Some(once) => once.answered::<Option<Cancelled>>(&mut tx, now).await?,
        None => None,
    };
    if let Some(Some(cancelled)) = kept {
        return Ok(Stopped::Answered(Cancelled { replayed: true, ..cancelled }));
    }
    let is_own = kept.is_some();
    let batch = batches::to_stop(&mut tx, stream, id).await?.ok_or(Refusal::NoSuchBatch)?;
    match batch {
        StoppableBatch { is_cancelling, cancelled: Some((messages, released)), .. }
            if is_cancelling || is_own =>
        {
            let cancelled = Cancelled { messages, released, replayed: is_own };
            if let Some(once) = once {
                once.keep(&mut tx, &Some(cancelled), now).await?;
                tx.commit().await?;
            }
            return Ok(Stopped::Answered(cancelled));
        }
        StoppableBatch { is_cancelling: true, .. } => return Ok(Stopped::Now),
        StoppableBatch { cancelled_at: Some(_), .. } | StoppableBatch { is_done: true, .. } => {
            return Err(Refusal::NotCancellable.into());
        }
        _ => {}
    }
    if hold::holds_batch(&mut tx, id).await? {
        return Err(Refusal::NotCancellable.into());
    }
    check_withdrawals(service, &mut tx, stream, now).await?;
    // On PostgreSQL, results lock rows of the queue before they lock the batch. So this changes the
    // rows of the queue first, then the batch, and last the rows that were claimed in the meantime.
    queue::exempt(&mut tx, batch.ids).await?;
    if !batches::cancel(&mut tx, id, author.words(), now).await? {
        return Err(Refusal::NotCancellable.into());
    }
    // Another process may have started a scheduled batch meanwhile, with other IDs.
    let batch = batches::to_stop(&mut tx, stream, id).await?.ok_or(Refusal::NoSuchBatch)?;
    queue::exempt(&mut tx, batch.ids).await?;
    let is_expanding = batches::still_unexpanded(&mut tx, id).await?.is_some();
    if !is_expanding && queue::of_batch(&mut tx, batch.ids, 1).await?.is_empty() {
        return Err(Refusal::NotCancellable.into());
    }
    let subject = (access.reference, &*id.to_string());
    author.note(&mut tx, "batch.cancel", subject, now).await?;
    if let Some(once) = once {
        once.keep(&mut tx, &None::<Cancelled>, now).await?;
    }
    tx.commit().await?;
    Ok(Stopped::Now)
}

/// Stores how many rows a cancellation stopped, and what they cost. Cancels the rows that aren't
/// messages.
async fn count(
    tx: &mut Tx<'_>,
    id: BatchId,
    queued: (i64, Money),
    unexpanded: Option<&UnexpandedBatch>,
    now: Timestamp,
) -> Result<(i64, Money)> {
    let counted = with_rest(queued, unexpanded)?;
    if let Some(upload) = unexpanded {
        if !release_rest(tx, upload, MessageStatus::Cancelled, now).await? {
            return Err(Error::Failed(Fault::Missing("batches")));
        }
        // Those in the queue are counted when they are cancelled.
        let rest = upload.rows - upload.expanded_rows;
        applications::add_withdrawn(tx, upload.stream(), rest, now.day()).await?;
    }
    if batches::count_cancelled(tx, id, counted).await? && queued.0 == 0 {
        batches::set_cancelled(tx, id).await?;
    }
    Ok(counted)
}

/// Adds the rows that aren't messages yet to those in the queue.
fn with_rest(
    (rows, cost): (i64, Money),
    unexpanded: Option<&UnexpandedBatch>,
) -> Result<(i64, Money)> {
    let Some(upload) = unexpanded else {
        return Ok((rows, cost));
    };
    let left = upload.cost.checked_sub(upload.expanded_cost);
    let cost = left.and_then(|left| left.checked_add(cost));
    let cost = cost.ok_or(Error::Failed(Fault::MoneyOverflow))?;
    Ok((rows + upload.rows - upload.expanded_rows, cost))
}

impl BatchChange {
    fn digest(self, id: BatchId) -> Digest {
        let mut digest = Digest::new(match self {
            Self::Pause => "pause",
            Self::Resume => "resume",
        });
        digest.text(&id.to_string());
        digest
    }

    async fn make(
        self,
        tx: &mut Tx<'_>,
        access: KeyAccess,
        id: BatchId,
        author: StopAuthor,
        now: Timestamp,
    ) -> Result<()> {
        let batch = batches::to_stop(tx, access.stream(), id).await?.ok_or(Refusal::NoSuchBatch)?;
        if batch.is_done || batch.cancelled_at.is_some() {
            return Err(Refusal::BatchEnded.into());
        }
        let (is_changed, action) = match self {
            Self::Pause => (batches::pause(tx, id, author.words(), now).await?, "batch.pause"),
            Self::Resume => (batches::resume(tx, id, now).await?, "batch.resume"),
        };
        if is_changed {
            let subject = (access.reference, &*id.to_string());
            author.note(tx, action, subject, now).await?;
        }
        Ok(())
    }
}
