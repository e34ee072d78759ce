//! Cancelling messages and batches, and pausing batches. Messages that are held after a restore
//! can't be cancelled, because a carrier may have them.

pub(crate) mod batches;
mod following;
mod pauses_by_staff;
mod scheduled;

use domain::{BatchId, MessageStatus, Money, Reference, Timestamp, Transid};
use serde::{Deserialize, Serialize};

use crate::admission::KeyAccess;
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use crate::delivery::opted_out::{check_withdrawals, withdraw};
use crate::money::releases::settle;
use crate::{Messages, Service, run_detached_with_attempts};
use store::audit::{self, Actor};
use store::error::{Error, Fault, Refusal, Result};
use store::gate::Priority;
use store::messages::{self, Ended};
use store::planted::is_planted;
use store::timeline::{self, NewEntry};
use store::{Tx, hold};

/// What to cancel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelTarget {
    Message(Transid),
    Batch(BatchId),
}

/// Who cancels, pauses or resumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopAuthor {
    /// A program, with an API key.
    Program,
    /// The owner's account, in the portal. The audit log records it.
    Owner(i64),
}

/// The outcome of a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cancelled {
    /// The number of cancelled messages.
    pub messages: i64,
    /// The amount that is released for these messages.
    pub released: Money,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(skip)]
    pub replayed: bool,
}

impl Messages<'_> {
    /// Cancels a message, or all messages of a batch, unless a carrier has them or may have them.
    ///
    /// # Errors
    /// `NoSuchMessage`, `NoSuchBatch`, `NotCancellable`, `TooManyWithdrawn`, `IdempotencyMismatch`.
    pub async fn cancel(
        &self,
        access: &KeyAccess,
        target: CancelTarget,
        author: StopAuthor,
        key: Option<&IdempotencyKey>,
    ) -> Result<Cancelled> {
        let once = key.map(|key| Once::new(access.stream(), key, target.digest()));
        match target {
            CancelTarget::Message(id) => self.cancel_message(*access, id, author, once).await,
            CancelTarget::Batch(id) => self.cancel_batch(*access, id, author, once).await,
        }
    }

    async fn cancel_message(
        &self,
        access: KeyAccess,
        id: Transid,
        author: StopAuthor,
        once: Option<Once>,
    ) -> Result<Cancelled> {
        let shard = self.shard_of(access.reference).await?;
        run_detached_with_attempts(self, move |service| {
            let once = once.clone();
            async move {
                let mut tx = service.store().begin_at(shard, Priority::Verb).await?;
                let now = service.now();
                if let Some(answered) = answered(once.as_ref(), &mut tx, now).await? {
                    return Ok(answered);
                }
                let found = messages::locate(&mut tx, id).await?.filter(|found| {
                    let stream = access.stream();
                    (found.application_id, found.test) == (stream.application_id, stream.test)
                });
                found.ok_or(Refusal::NoSuchMessage)?;
                if hold::holds(&mut tx, id).await? {
                    return Err(Refusal::NotCancellable.into());
                }
                check_withdrawals(&service, &mut tx, access.stream(), now).await?;
                let ended = cancel_each(&service, &mut tx, &[id], author, now).await?;
                if ended.is_empty() {
                    return Err(Refusal::NotCancellable.into());
                }
                let subject = (access.reference, &*id.to_string());
                author.note(&mut tx, "message.cancel", subject, now).await?;
                let cancelled = total(&ended)?;
                if let Some(once) = once {
                    once.keep(&mut tx, &cancelled, now).await?;
                }
                tx.commit().await?;
                Ok(cancelled)
            }
        })
        .await
    }
}

/// Cancels messages and releases their prices. Leaves out messages that a carrier has or may have.
async fn cancel_all(tx: &mut Tx<'_>, ids: &[Transid], now: Timestamp) -> Result<Vec<Ended>> {
    let ended = withdraw(tx, ids, (MessageStatus::Cancelled, None), now).await?;
    if !is_planted("cancelled-not-released") {
        settle(tx, &ended, now).await?;
    }
    Ok(ended)
}

/// Like [`cancel_all`], for messages that weren't cancelled with their batch. Their timelines say
/// who cancelled them.
async fn cancel_each(
    service: &Service,
    tx: &mut Tx<'_>,
    ids: &[Transid],
    author: StopAuthor,
    now: Timestamp,
) -> Result<Vec<Ended>> {
    let ended = cancel_all(tx, ids, now).await?;
    let entries = ended.iter().map(|ended| NewEntry {
        id: ended.id,
        application_id: ended.application_id,
        status: MessageStatus::Cancelled,
        detail: Some(format!("cancelled {}", author.words())),
    });
    let entries: Vec<_> = entries.collect();
    timeline::insert(tx, &entries, now, || service.next_id(now)).await?;
    Ok(ended)
}

fn total(ended: &[Ended]) -> Result<Cancelled> {
    let mut released = Money::ZERO;
    for ended in ended {
        released =
            released.checked_add(ended.released).ok_or(Error::Failed(Fault::MoneyOverflow))?;
    }
    let messages = i64::try_from(ended.len()).unwrap_or(i64::MAX);
    Ok(Cancelled { messages, released, replayed: false })
}

/// Returns the answer to an earlier request with the same idempotency key.
async fn answered(
    once: Option<&Once>,
    tx: &mut Tx<'_>,
    now: Timestamp,
) -> Result<Option<Cancelled>> {
    let Some(once) = once else {
        return Ok(None);
    };
    let answered = once.answered::<Cancelled>(tx, now).await?;
    Ok(answered.map(|answered| Cancelled { replayed: true, ..answered }))
}

impl CancelTarget {
    fn digest(self) -> Digest {
        let mut digest = Digest::new("cancel");
        digest.text(&match self {
            Self::Message(id) => id.to_string(),
            Self::Batch(id) => id.to_string(),
        });
        digest
    }
}

impl StopAuthor {
    /// Returns the text that follows the action in timelines and in the audit log.
    const fn words(self) -> &'static str {
        match self {
            Self::Program => "with the API key",
            Self::Owner(_) => "in the portal",
        }
    }

    /// Notes what a person did in the audit log.
    async fn note(
        self,
        tx: &mut Tx<'_>,
        action: &'static str,
        (application, subject): (Reference, &str),
        now: Timestamp,
    ) -> Result<()> {
        match self {
            Self::Program => Ok(()),
            Self::Owner(id) => {
                let (actor, subject) = (Actor::Account(id), (application, subject));
                audit::insert_of(tx, now, &actor, action, subject, None).await
            }
        }
    }
}
