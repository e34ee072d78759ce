//! Handing messages to carriers: claim under a lease, record what became of it.

use domain::{MessageStatus, MessageText, Number, Timestamp, Transid};

use crate::error::Result;
use crate::settlement::settle;
use crate::store::gate::Priority;
use crate::store::installation;
use crate::store::messages::{self, Ending};
use crate::store::queue::{self, Event};
use crate::{Service, whole};

/// How long a claim holds. A submit takes far less; after a crash, others wait this long.
const LEASE_MS: i64 = 60_000;
/// One in so many of a claim's messages is of a batch, however many single ones wait.
const BATCHES_SHARE: i64 = 8;
/// Messages that one transaction lets go on: it takes a few milliseconds.
const RESUME_CHUNK: i64 = 1000;

/// A claim: results count while the row still carries this token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lease {
    pub token: i64,
    pub until: Timestamp,
}

/// A message to be submitted.
#[derive(Clone, Debug)]
pub struct Claimed {
    pub id: Transid,
    pub application_id: i64,
    pub number: Number,
    /// The accepted name; `None` when the application has none.
    pub sender: Option<String>,
    pub message: MessageText,
    /// Submits that were to be repeated so far.
    pub attempts: i64,
    /// When its time runs out: what is left of it is the validity that a carrier is given.
    pub expires_at: Timestamp,
}

/// What a carrier answered to a submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// Taken: the charge stays from now on.
    Accepted { carrier_message_id: String },
    /// Refused for good: the charge is released.
    Refused { error: String },
    /// Not now: to be tried again.
    Retry { error: String, after_ms: i64 },
}

/// A message and what became of its submit.
#[derive(Clone, Debug)]
pub struct Submitted {
    pub id: Transid,
    pub application_id: i64,
    pub outcome: SubmitOutcome,
}

/// A message that a carrier took and that isn't final.
#[derive(Clone, Debug)]
pub struct Outstanding {
    pub id: Transid,
    pub application_id: i64,
    pub number: Number,
    pub submitted_at: Timestamp,
}

/// How much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    pub waiting: i64,
    /// When the oldest of them was accepted.
    pub oldest: Option<Timestamp>,
}

impl Service {
    /// Claims due messages of a carrier. The claim is durable before they are returned.
    pub async fn claim(&self, carrier: &str, limit: i64) -> Result<(Lease, Vec<Claimed>)> {
        loop {
            let (service, carrier) = (self.clone(), carrier.to_owned());
            let found = whole(async move { service.claim_some(&carrier, limit).await }).await?;
            if let Some(found) = found {
                return Ok(found);
            }
        }
    }

    /// `None` when all that was due belongs to suspended applications and was put aside: there may be more.
    async fn claim_some(&self, carrier: &str, limit: i64) -> Result<Option<(Lease, Vec<Claimed>)>> {
        let now = self.now();
        // Any number but 0, which says "nobody".
        let token = (self.entropy().number() >> 1).cast_signed().max(1);
        let lease = Lease {
            token,
            until: now.plus_ms(LEASE_MS),
        };
        let batch = self.store().dialect().batch();
        let mut tx = self.store().begin_as(Priority::Results).await?;
        // Messages to one person go before those of a file, which are left a share all the same.
        let singles_max = limit - limit / BATCHES_SHARE;
        let due = queue::due(&mut tx, batch, carrier, now, singles_max, limit).await?;
        if due.is_empty() {
            return Ok(Some((lease, Vec::new())));
        }
        let (aside, due): (Vec<_>, Vec<_>) = due
            .into_iter()
            .partition(|(_, _, suspended)| *suspended == 1);
        if !aside.is_empty() {
            let aside: Vec<i64> = aside.into_iter().map(|(id, ..)| id).collect();
            queue::put_aside(&mut tx, batch, &aside).await?;
        }
        let ids: Vec<i64> = due.iter().map(|(id, ..)| *id).collect();
        queue::claim(&mut tx, batch, &ids, lease).await?;
        let claimed = queue::start(&mut tx, batch, &due, now).await?;
        tx.commit().await?;
        Ok((!claimed.is_empty()).then_some((lease, claimed)))
    }

    /// Lets messages go on that were put aside for a suspension which is over.
    pub async fn resume_put_aside(&self) -> Result<()> {
        let applications = {
            let mut conn = self.store().read().await?;
            queue::put_aside_without_cause(&mut conn).await?
        };
        for application_id in applications {
            while self.resume_some(application_id).await? == RESUME_CHUNK.unsigned_abs() {}
        }
        self.inner.queued.notify_one();
        Ok(())
    }

    async fn resume_some(&self, application_id: i64) -> Result<u64> {
        let service = self.clone();
        whole(async move {
            let mut tx = service.store().begin_as(Priority::Bulk).await?;
            let resumed = queue::resume(&mut tx, application_id, RESUME_CHUNK).await?;
            tx.commit().await?;
            Ok(resumed)
        })
        .await
    }

    /// When the next message of a carrier will be due; `None` when none waits.
    pub async fn next_due(&self, carrier: &str) -> Result<Option<Timestamp>> {
        let mut conn = self.store().read().await?;
        queue::next_due(&mut conn, carrier, self.now()).await
    }

    pub async fn queue_state(&self) -> Result<QueueState> {
        let mut conn = self.store().read().await?;
        queue::state(&mut conn).await
    }

    /// Records what became of submits; the messages that are stored as taken. Where the lease was lost,
    /// nothing is changed: whoever claimed the message next decides.
    pub async fn record_submitted(
        &self,
        carrier: &str,
        lease: &Lease,
        results: Vec<Submitted>,
    ) -> Result<Vec<Transid>> {
        let (service, carrier, lease) = (self.clone(), carrier.to_owned(), *lease);
        whole(async move {
            let now = service.now();
            let batch = service.store().dialect().batch();
            let sorted = Sorted::new(results, now);
            let mut tx = service.store().begin_as(Priority::Results).await?;
            let held = queue::dequeue(&mut tx, batch, &sorted.leaving, lease.token).await?;
            let holds = |id: i64| held.contains(&id);
            let taken: Vec<_> = sorted
                .taken
                .into_iter()
                .filter(|(id, _)| holds(*id))
                .collect();
            queue::submitted(&mut tx, batch, &taken, &carrier, now).await?;
            let refused: Vec<_> = sorted
                .refused
                .into_iter()
                .filter(|e| holds(e.id.0))
                .collect();
            let ended = messages::finish(&mut tx, batch, &refused, now).await?;
            settle(&mut tx, batch, &ended, now).await?;
            let waiting = queue::requeue(&mut tx, batch, &sorted.again, lease.token, true).await?;
            let mut events = sorted.events;
            events.retain(|event| waiting.contains(&event.id.0));
            queue::insert_events(&mut tx, batch, &events, now).await?;
            tx.commit().await?;
            Ok(taken.into_iter().map(|(id, _)| Transid(id)).collect())
        })
        .await
    }

    /// Puts claimed messages back that were not submitted, for a clean stop.
    pub async fn put_back(&self, lease: &Lease, ids: &[Transid]) -> Result<()> {
        let (service, lease) = (self.clone(), *lease);
        let ids: Vec<i64> = ids.iter().map(|id| id.0).collect();
        whole(async move {
            let now = service.now().unix_ms();
            let batch = service.store().dialect().batch();
            let rows: Vec<_> = ids.into_iter().map(|id| (id, now)).collect();
            let mut tx = service.store().begin_as(Priority::Results).await?;
            queue::requeue(&mut tx, batch, &rows, lease.token, false).await?;
            Ok(tx.commit().await?)
        })
        .await
    }

    /// Messages that a carrier took before this moment and that aren't final, by id, after the given one.
    pub async fn outstanding(
        &self,
        carrier: &str,
        submitted_before: Timestamp,
        after: Option<Transid>,
        limit: i64,
    ) -> Result<Vec<Outstanding>> {
        let mut conn = self.store().read().await?;
        let after = match after {
            Some(id) => id.0,
            // Everything below is final.
            None => installation::swept(&mut conn).await?.low - 1,
        };
        queue::outstanding(&mut conn, after, carrier, submitted_before, limit).await
    }

    /// Ends every lease, at a start when nobody else can dispatch; how many there were.
    pub async fn recover_leases(&self) -> Result<u64> {
        let service = self.clone();
        whole(async move {
            let mut tx = service.store().begin_as(Priority::Results).await?;
            let recovered = queue::recover(&mut tx, service.now()).await?;
            tx.commit().await?;
            Ok(recovered)
        })
        .await
    }
}

/// Results by what must be written for them.
struct Sorted {
    leaving: Vec<i64>,
    taken: Vec<(i64, String)>,
    refused: Vec<Ending>,
    again: Vec<(i64, i64)>,
    events: Vec<Event>,
}

impl Sorted {
    fn new(results: Vec<Submitted>, now: Timestamp) -> Self {
        let mut sorted = Self {
            leaving: Vec::new(),
            taken: Vec::new(),
            refused: Vec::new(),
            again: Vec::new(),
            events: Vec::new(),
        };
        for Submitted {
            id,
            application_id,
            outcome,
        } in results
        {
            match outcome {
                SubmitOutcome::Accepted { carrier_message_id } => {
                    sorted.leaving.push(id.0);
                    sorted.taken.push((id.0, carrier_message_id));
                }
                SubmitOutcome::Refused { error } => {
                    sorted.leaving.push(id.0);
                    let status = MessageStatus::Rejected;
                    sorted.refused.push(Ending {
                        id,
                        status,
                        error: Some(error),
                        release: true,
                    });
                }
                SubmitOutcome::Retry { error, after_ms } => {
                    sorted.again.push((id.0, now.plus_ms(after_ms).unix_ms()));
                    let (status, detail) = (MessageStatus::Sending, Some(error));
                    sorted.events.push(Event {
                        id,
                        application_id,
                        status,
                        detail,
                    });
                }
            }
        }
        sorted
    }
}
