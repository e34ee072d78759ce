//! The writer: takes what sends are waiting and stores them in one transaction.
//!
//! A commit costs an fsync, so that sends are stored together: as many as are waiting, with no delay
//! added when one comes alone. Each is answered after the commit. The request's future may be dropped
//! at any await; the work lives here and finishes or rolls back whole. What else writes waits at the same
//! gate ([`crate::store::gate`]), behind sends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::reason::Reason;
use domain::{KeyKind, Money, Prices, Reference, Timestamp, Transid};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::error::{Broken, Error, Result};
use crate::idempotency::{Known, digest_of_send, kept_since, recall};
use crate::intake::{SendError, SendRequest, Sent, admit, applicable, rehearsed};
use crate::purse::Purse;
use crate::rates::Allowance;
use crate::routing::Message;
use crate::store::WriteTx;
use crate::store::gate::Priority;
use crate::store::idempotency::{KeptAnswer, KeptKey};
use crate::store::query::Connection;
use crate::store::tally::Tally;
use crate::store::transfers::{REVENUE, TransferKind};
use crate::store::{idempotency, installation, messages, queue};
use crate::wakes::Wake;
use crate::{Inner, SANDBOX_CARRIER, STATEMENTS_TIMEOUT, Service, TRIES};

/// Sends that may wait; the next one is answered "unavailable".
const WAITING_MAX: usize = 4096;
/// Sends of one transaction: larger ones gain little and keep other writers waiting.
const BATCH_MAX: usize = 512;

/// A send and where its answer goes.
pub(crate) struct Job {
    request: SendRequest,
    answer: oneshot::Sender<std::result::Result<Sent, SendError>>,
}

/// Hands sends to the writer's task.
pub(crate) struct Writer {
    jobs: Mutex<Option<mpsc::Sender<Job>>>,
    task: Mutex<Option<JoinHandle<()>>>,
}

impl Writer {
    pub(crate) fn new() -> (Self, mpsc::Receiver<Job>) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (
            Self {
                jobs: Mutex::new(Some(sender)),
                task: Mutex::new(None),
            },
            receiver,
        )
    }

    pub(crate) async fn send(&self, request: SendRequest) -> std::result::Result<Sent, SendError> {
        let unavailable = SendError::Refused(Reason::Unavailable);
        let (answer, answered) = oneshot::channel();
        {
            let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let jobs = jobs.as_ref().ok_or(unavailable)?;
            jobs.try_send(Job { request, answer })
                .map_err(|_| unavailable)?;
        }
        // Without an answer the writer is gone, and what became of the send is unknown here.
        answered.await.unwrap_or(Err(SendError::Lost))
    }

    /// Takes no more sends and waits until those that were taken are answered.
    pub(crate) async fn close(&self) {
        self.jobs
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let task = self
            .task
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(Err(error)) = match task {
            Some(task) => Some(task.await),
            None => None,
        } {
            tracing::error!(%error, "the writer failed");
        }
    }
}

/// Starts the writer's task. It ends when no [`Service`] is left, or when it is closed.
pub(crate) fn spawn(service: &Service, mut jobs: mpsc::Receiver<Job>) {
    let inner: Weak<Inner> = Arc::downgrade(&service.inner);
    let task = tokio::spawn(async move {
        let mut waiting = Vec::with_capacity(BATCH_MAX);
        while jobs.recv_many(&mut waiting, BATCH_MAX).await > 0 {
            let Some(inner) = inner.upgrade() else {
                return;
            };
            let (service, batch) = (Service { inner }, std::mem::take(&mut waiting));
            // A task of its own, so that a fault in one batch leaves its callers without an answer and
            // the next batch alone.
            if let Err(error) = tokio::spawn(async move { service.store_batch(batch).await }).await
            {
                tracing::error!(%error, "a batch of sends broke down");
            }
        }
    });
    *service
        .inner
        .writer
        .task
        .lock()
        .unwrap_or_else(PoisonError::into_inner) = Some(task);
}

/// What a send becomes when it is admitted.
struct Accepted {
    transid: Transid,
    reference: Reference,
    sent: Sent,
    message: messages::NewMessage,
    /// Set for a live send: what its transfer states.
    charge: Option<(i64, Money)>,
}

/// What a send comes to.
enum Verdict {
    /// Something is to be written for it.
    Accepted(Box<Accepted>),
    /// It is answered as it was before, or would be.
    Answered(Sent),
}

/// How each send of a batch is answered, and what must be written for it.
#[derive(Default)]
struct Judged {
    answers: Vec<std::result::Result<Sent, Reason>>,
    accepted: Vec<Accepted>,
    changed: Vec<messages::ChargedApplication>,
    kept: Vec<(KeptKey, KeptAnswer)>,
}

/// What the sends of a batch are judged by.
struct Bench {
    now: Timestamp,
    prices: Prices,
    /// Requests that were taken out of the keys' limits, where processes count together.
    allowance: Option<Allowance>,
    purses: HashMap<Reference, Purse>,
    /// Answers kept for the batch's idempotency keys, those of the batch itself among them.
    kept: HashMap<KeptKey, KeptAnswer>,
}

impl Service {
    async fn store_batch(&self, jobs: Vec<Job>) {
        let (requests, answers): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .map(|job| (job.request, job.answer))
            .unzip();
        let outcomes = match self.try_batch(&requests).await {
            Ok(outcomes) => outcomes,
            Err(failed) => {
                tracing::error!(error = %failed.error, detail = ?failed.error, "sends were not stored");
                self.outcomes_after_failure(failed, requests.len()).await
            }
        };
        if outcomes.iter().any(std::result::Result::is_ok) {
            self.inner.wakes.wake(Wake::Queued);
        }
        for (answer, outcome) in answers.into_iter().zip(outcomes) {
            // A client that left needs no answer; its send is stored all the same.
            let _ = answer.send(outcome);
        }
    }

    /// Where another process was in the way nothing is stored, and the sends are judged again.
    async fn try_batch(
        &self,
        requests: &[SendRequest],
    ) -> std::result::Result<Vec<std::result::Result<Sent, SendError>>, FailedBatch> {
        for _ in 1..TRIES {
            match self.commit_batch(requests).await {
                Err(failed) if failed.error.is_conflict() => {
                    tracing::debug!(detail = ?failed.error, "another process was in the way; trying again");
                }
                done => return done,
            }
        }
        self.commit_batch(requests).await
    }

    async fn commit_batch(
        &self,
        requests: &[SendRequest],
    ) -> std::result::Result<Vec<std::result::Result<Sent, SendError>>, FailedBatch> {
        let mut tx = self
            .store()
            .begin_as(Priority::Interactive)
            .await
            .map_err(FailedBatch::before_commit)?;
        let writing = tokio::time::timeout(STATEMENTS_TIMEOUT, async {
            let judged = self.judge(&mut tx, requests).await?;
            self.write(&mut tx, &judged).await?;
            tx.write_counts().await?;
            Ok(judged)
        });
        let written = writing.await;
        let judged = written
            .unwrap_or(Err(Error::Broken(Broken::Database(
                sqlx::Error::PoolTimedOut,
            ))))
            .map_err(FailedBatch::before_commit)?;
        let answers: Vec<_> = judged
            .answers
            .into_iter()
            .map(|answer| answer.map_err(SendError::Refused))
            .collect();
        match tx.commit().await {
            Ok(()) => Ok(answers),
            Err(error) => {
                let reason = error.reason();
                Err(FailedBatch {
                    error,
                    reason,
                    commit: Some(answers),
                })
            }
        }
    }

    /// A failed commit may have happened all the same: a message of it that can be found says so.
    async fn outcomes_after_failure(
        &self,
        failed: FailedBatch,
        count: usize,
    ) -> Vec<std::result::Result<Sent, SendError>> {
        let internal = Err(SendError::Refused(failed.reason));
        let Some(answers) = failed.commit else {
            return vec![internal; count];
        };
        let unknown = failed.error.is_unknown();
        if self.store().has_failed() {
            return vec![Err(SendError::Lost); count];
        }
        // Without a new message there was nothing to commit.
        let new = answers.iter().filter_map(|answer| answer.ok());
        let Some(transid) = new
            .filter(|sent| !sent.replayed)
            .find_map(|sent| sent.transid)
        else {
            return answers;
        };
        match self.is_stored(transid).await {
            Ok(true) => answers,
            // It may be under way still.
            Ok(false) if unknown => vec![Err(SendError::Lost); count],
            Ok(false) => answers
                .into_iter()
                // Replays too: the answer they repeat may be one of this very batch.
                .map(|answer| answer.and(internal))
                .collect(),
            Err(error) => {
                tracing::error!(detail = ?error, "whether sends were stored can't be found out");
                vec![Err(SendError::Lost); count]
            }
        }
    }

    async fn is_stored(&self, transid: Transid) -> Result<bool> {
        let look = async || {
            let mut conn = self.store().read().await?;
            messages::exists(&mut conn, transid).await
        };
        self.store().insist(look).await
    }

    /// Admits the sends in their order against the balances as they are in this transaction.
    async fn judge(&self, conn: &mut dyn Connection, requests: &[SendRequest]) -> Result<Judged> {
        let mut bench = self.bench(conn, requests).await?;
        let mut judged = Judged::default();
        for request in requests {
            let verdict = self.judge_one(request, &mut bench, &mut judged.kept)?;
            judged.answers.push(match verdict {
                Ok(Verdict::Accepted(accepted)) => {
                    let sent = accepted.sent;
                    judged.accepted.push(*accepted);
                    Ok(sent)
                }
                Ok(Verdict::Answered(sent)) => Ok(sent),
                Err(reason) => Err(reason),
            });
        }
        if let Some(allowance) = bench.allowance {
            self.give_back(conn, allowance, bench.now).await?;
        }
        let changed = bench.purses.into_values();
        judged.changed = changed
            .filter_map(|purse| purse.changed(bench.now))
            .collect();
        Ok(judged)
    }

    async fn bench(&self, conn: &mut dyn Connection, requests: &[SendRequest]) -> Result<Bench> {
        let now = self.now();
        let prices = installation::prices(conn).await?;
        let references: Vec<Reference> = requests.iter().map(|r| r.key.reference()).collect();
        let batch = self.store().dialect().batch();
        let purses: HashMap<Reference, Purse> = messages::applications(conn, batch, &references)
            .await?
            .into_iter()
            .map(|(reference, row)| (reference, Purse::new(row, now)))
            .collect();
        let keys: Vec<KeptKey> = requests
            .iter()
            .filter_map(|request| kept_key(request, purses.get(&request.key.reference())?))
            .collect();
        let kept = idempotency::find(conn, batch, &keys, kept_since(now)).await?;
        let counted = requests
            .iter()
            .filter(|request| {
                let purse = purses.get(&request.key.reference());
                purse.is_some_and(|purse| purse.row.holds(&request.key))
            })
            .map(|request| (request.key.reference(), request.key.kind()));
        let allowance = self.take_for(conn, counted, now).await?;
        Ok(Bench {
            now,
            allowance,
            prices,
            purses,
            kept: kept.into_iter().collect(),
        })
    }

    /// The contract's order: 504, 505, idempotency, then whether the application may send at all.
    fn judge_one(
        &self,
        request: &SendRequest,
        bench: &mut Bench,
        kept: &mut Vec<(KeptKey, KeptAnswer)>,
    ) -> Result<std::result::Result<Verdict, Reason>> {
        let purse = bench.purses.get_mut(&request.key.reference());
        let Some(purse) = purse.filter(|purse| purse.row.holds(&request.key)) else {
            return Ok(Err(Reason::ApiInvalid));
        };
        if let Err(reason) = applicable(&purse.row) {
            return Ok(Err(reason));
        }
        let Some(key) = kept_key(request, purse) else {
            return Ok(self.admit_one(
                request,
                purse,
                &mut bench.allowance,
                bench.prices,
                bench.now,
            ));
        };
        let requestid = request.requestid.as_ref();
        let digest = digest_of_send(&request.number, &request.message, requestid);
        if let Some(known) = bench.kept.get(&key) {
            return Ok(match recall::<Sent>(known, &digest) {
                Ok(Known::Same(sent)) => Ok(Verdict::Answered(Sent {
                    replayed: true,
                    ..sent
                })),
                Ok(Known::Another) => Err(Reason::IdempotencyMismatch),
                // The others of the batch have nothing to do with it.
                Err(error) => {
                    tracing::error!(detail = ?error, "a kept answer can't be read");
                    Err(Reason::Internal)
                }
            });
        }
        let allowance = &mut bench.allowance;
        let verdict = self.admit_one(request, purse, allowance, bench.prices, bench.now);
        if let Ok(Verdict::Accepted(accepted)) = &verdict {
            let answer = crate::store::row::json(&accepted.sent)?;
            let answer = KeptAnswer { digest, answer };
            bench.kept.insert(key.clone(), answer.clone());
            kept.push((key, answer));
        }
        Ok(verdict)
    }

    fn admit_one(
        &self,
        request: &SendRequest,
        purse: &mut Purse,
        allowance: &mut Option<Allowance>,
        prices: Prices,
        now: Timestamp,
    ) -> std::result::Result<Verdict, Reason> {
        let kind = request.key.kind();
        admit(&purse.row, kind)?;
        if let Some(reason) = rehearsed(&request.number, kind) {
            return Err(reason);
        }
        let key = (request.key.reference(), kind);
        let allowed = match allowance {
            Some(allowance) => allowance.take(key),
            None => self.inner.rates.take(key.0, key.1, now),
        };
        if !allowed {
            return Err(Reason::RateLimited);
        }
        let pages = request.message.pages();
        let cost = prices
            .cost(request.number.kind(), pages)
            .ok_or(Reason::InsufficientFunds)?;
        let mut sent = Sent {
            transid: None,
            pages,
            cost,
            balance: purse.of(kind),
            replayed: false,
        };
        if request.dry_run {
            let left = purse.left(kind, cost);
            return left
                .map(|_| Verdict::Answered(sent))
                .ok_or(Reason::InsufficientFunds);
        }
        sent.balance = purse.spend(kind, cost).ok_or(Reason::InsufficientFunds)?;
        let transid = Transid(self.inner.ids.next(now, self.inner.node.slot()));
        sent.transid = Some(transid);
        let message = messages::NewMessage {
            id: transid,
            application_id: purse.row.id,
            test: kind == KeyKind::Test,
            number: request.number.digits().to_owned(),
            kind: request.number.kind(),
            sender: purse.row.sender_name.clone(),
            body: request.message.as_str().to_owned(),
            requestid: request.requestid.as_ref().map(|id| id.as_str().to_owned()),
            pages,
            segments: request.message.segments(),
            unit_price: prices.per_page(request.number.kind()),
            cost,
        };
        let charge = (kind == KeyKind::Live).then_some((purse.row.id, sent.balance));
        Ok(Verdict::Accepted(Box::new(Accepted {
            transid,
            reference: request.key.reference(),
            sent,
            message,
            charge,
        })))
    }

    async fn write(&self, conn: &mut WriteTx<'_>, judged: &Judged) -> Result<()> {
        if judged.accepted.is_empty() {
            return Ok(());
        }
        let batch = self.store().dialect().batch();
        // Not before it was let in: who claims relies on rows not being much older than their commit.
        let now = self.now();
        messages::charge_applications(conn, batch, &judged.changed).await?;
        messages::insert(conn, batch, judged.accepted.iter().map(|a| &a.message)).await?;
        let charges = judged.accepted.iter().filter_map(|accepted| {
            let (application_id, balance) = accepted.charge?;
            Some(messages::MessageTransfer {
                debit: application_id,
                credit: REVENUE,
                amount: accepted.sent.cost,
                kind: TransferKind::Charge,
                subject: messages::Subject::Message(accepted.transid),
                application: Some((application_id, balance)),
            })
        });
        messages::insert_transfers(conn, batch, charges, now).await?;
        idempotency::keep(conn, batch, &judged.kept, now).await?;
        let queued: Vec<_> = judged
            .accepted
            .iter()
            .map(|a| (a.transid.0, a.message.application_id, self.carrier_for(a)))
            .collect();
        queue::insert(conn, batch, &queued, false, now).await?;
        count(&mut conn.tally, judged);
        Ok(())
    }

    /// A test message never leaves the house.
    fn carrier_for(&self, accepted: &Accepted) -> String {
        let message = &accepted.message;
        if message.test {
            return SANDBOX_CARRIER.to_owned();
        }
        let facts = Message {
            number: &message.number,
            kind: message.kind,
            sender: message.sender.as_deref(),
            application: accepted.reference,
        };
        let router = &self.inner.router;
        router.carrier(&facts, self.entropy().number(), &[])
    }
}

/// What an answer to this request is kept under, if it is to be kept.
fn kept_key(request: &SendRequest, purse: &Purse) -> Option<KeptKey> {
    let key = request.idempotency.as_ref().filter(|_| !request.dry_run)?;
    let test = i64::from(request.key.kind() == KeyKind::Test);
    Some((purse.row.id, test, key.as_str().to_owned()))
}

fn count(tally: &mut Tally, judged: &Judged) {
    for Accepted { message, .. } in &judged.accepted {
        let day = Timestamp::from_unix_ms(domain::ids::id_unix_ms(message.id.0)).day();
        tally.add_queued(message.application_id, message.test, day, 1);
    }
}

/// A batch that was not stored, or perhaps was.
struct FailedBatch {
    error: Error,
    /// What the callers are told when nothing was stored.
    reason: Reason,
    /// The answers, when it was the commit that failed.
    commit: Option<Vec<std::result::Result<Sent, SendError>>>,
}

impl FailedBatch {
    fn before_commit(error: impl Into<Error>) -> Self {
        let error = error.into();
        Self {
            reason: error.reason(),
            error,
            commit: None,
        }
    }
}
