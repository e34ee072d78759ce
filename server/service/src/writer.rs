//! The writer: takes what sends are waiting and stores them in one transaction.
//!
//! A commit costs an fsync, so that sends are stored together: as many as are waiting, with no delay
//! added when one comes alone. Each is answered after the commit. The request's future may be dropped
//! at any await; the work lives here and finishes or rolls back whole.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use domain::reason::Reason;
use domain::{KeyKind, Money, Prices, Reference, Timestamp, Transid};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::intake::{SendError, SendRequest, Sent, admit, play_money, rehearsed};
use crate::store::applications::KeyRow;
use crate::store::transfers::REVENUE;
use crate::store::{installation, messages, queue};
use crate::{Inner, SANDBOX_CARRIER, Service};

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
    sent: Sent,
    message: messages::NewMessage,
    /// Set for a live send: what its transfer states.
    charge: Option<(i64, Money)>,
}

/// How each send of a batch is answered, and what must be written for it.
struct Judged {
    answers: Vec<std::result::Result<Sent, Reason>>,
    accepted: Vec<Accepted>,
    changed: Vec<messages::ChargedApplication>,
}

impl Service {
    async fn store_batch(&self, jobs: Vec<Job>) {
        let (requests, answers): (Vec<_>, Vec<_>) = jobs
            .into_iter()
            .map(|job| (job.request, job.answer))
            .unzip();
        let outcomes = match self.commit_batch(&requests).await {
            Ok(outcomes) => outcomes,
            Err(failed) => {
                tracing::error!(error = %failed.error, detail = ?failed.error, "sends were not stored");
                self.outcomes_after_failure(failed, requests.len()).await
            }
        };
        if outcomes.iter().any(std::result::Result::is_ok) {
            self.inner.queued.notify_one();
        }
        for (answer, outcome) in answers.into_iter().zip(outcomes) {
            // A client that left needs no answer; its send is stored all the same.
            let _ = answer.send(outcome);
        }
    }

    async fn commit_batch(
        &self,
        requests: &[SendRequest],
    ) -> std::result::Result<Vec<std::result::Result<Sent, SendError>>, FailedBatch> {
        let mut tx = self
            .store()
            .begin()
            .await
            .map_err(FailedBatch::before_commit)?;
        let judged = self
            .judge(&mut tx, requests)
            .await
            .map_err(FailedBatch::before_commit)?;
        self.write(&mut tx, &judged)
            .await
            .map_err(FailedBatch::before_commit)?;
        let answers: Vec<_> = judged
            .answers
            .into_iter()
            .map(|answer| answer.map_err(SendError::Refused))
            .collect();
        match tx.commit().await {
            Ok(()) => Ok(answers),
            Err(error) => {
                let (error, reason) = (error.into(), Reason::Internal);
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
        let Some(first) = answers.iter().find_map(|answer| answer.as_ref().ok()) else {
            return answers;
        };
        match self.is_stored(first.transid).await {
            Ok(true) => answers,
            Ok(false) => answers
                .into_iter()
                .map(|answer| answer.and(internal))
                .collect(),
            Err(error) => {
                tracing::error!(detail = ?error, "whether sends were stored can't be found out");
                vec![Err(SendError::Lost); count]
            }
        }
    }

    async fn is_stored(&self, transid: Transid) -> Result<bool> {
        let mut conn = self.store().read().await?;
        messages::exists(&mut conn, transid).await
    }

    /// Admits the sends in their order against the balances as they are in this transaction.
    async fn judge(
        &self,
        conn: &mut sqlx::AnyConnection,
        requests: &[SendRequest],
    ) -> Result<Judged> {
        let now = self.now();
        let prices = installation::prices(conn).await?;
        let references: Vec<Reference> = requests.iter().map(|r| r.key.reference()).collect();
        let batch = self.store().dialect().batch();
        let mut rows: HashMap<Reference, Purse> = messages::applications(conn, batch, &references)
            .await?
            .into_iter()
            .map(|(reference, row)| (reference, Purse::new(row, now)))
            .collect();
        let mut answers = Vec::with_capacity(requests.len());
        let mut accepted = Vec::with_capacity(requests.len());
        for request in requests {
            let verdict = match rows.get_mut(&request.key.reference()) {
                Some(purse) => self.admit_one(request, purse, prices, now),
                None => Err(Reason::ApiInvalid),
            };
            answers.push(
                verdict
                    .as_ref()
                    .map(|accepted| accepted.sent)
                    .map_err(|&reason| reason),
            );
            accepted.extend(verdict);
        }
        let changed = rows
            .into_values()
            .filter_map(|purse| purse.changed(now))
            .collect();
        Ok(Judged {
            answers,
            accepted,
            changed,
        })
    }

    fn admit_one(
        &self,
        request: &SendRequest,
        purse: &mut Purse,
        prices: Prices,
        now: Timestamp,
    ) -> std::result::Result<Accepted, Reason> {
        if !purse.row.holds(&request.key) {
            return Err(Reason::ApiInvalid);
        }
        let kind = request.key.kind();
        admit(&purse.row, kind)?;
        if let Some(reason) = rehearsed(&request.number, kind) {
            return Err(reason);
        }
        let pages = request.message.pages();
        let unit_price = prices.per_page(request.number.kind());
        let cost = prices
            .cost(request.number.kind(), pages)
            .ok_or(Reason::InsufficientFunds)?;
        let balance = purse.spend(kind, cost).ok_or(Reason::InsufficientFunds)?;
        let transid = Transid(self.inner.ids.next(now));
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
            unit_price,
            cost,
        };
        let charge = (kind == KeyKind::Live).then_some((purse.row.id, balance));
        Ok(Accepted {
            sent: Sent {
                transid,
                pages,
                cost,
                balance,
            },
            message,
            charge,
        })
    }

    async fn write(&self, conn: &mut sqlx::AnyConnection, judged: &Judged) -> Result<()> {
        if judged.accepted.is_empty() {
            return Ok(());
        }
        let batch = self.store().dialect().batch();
        let now = self.now();
        messages::charge_applications(conn, batch, &judged.changed).await?;
        messages::insert(conn, batch, judged.accepted.iter().map(|a| &a.message)).await?;
        let charges = judged.accepted.iter().filter_map(|accepted| {
            let (application_id, balance) = accepted.charge?;
            Some(messages::MessageTransfer {
                debit: application_id,
                credit: REVENUE,
                amount: accepted.sent.cost,
                kind: "charge",
                application_id,
                message: accepted.sent.transid,
                balance_after: balance,
            })
        });
        messages::insert_transfers(conn, batch, charges, now).await?;
        let queued = judged
            .accepted
            .iter()
            .map(|a| (a.message.id, a.message.application_id));
        queue::insert(conn, batch, queued, SANDBOX_CARRIER, now).await
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

/// An application's money while a batch is admitted.
struct Purse {
    row: KeyRow,
    balance: Money,
    play: Money,
}

impl Purse {
    fn new(row: KeyRow, now: Timestamp) -> Self {
        let play = play_money(row.test_balance, row.test_day, now);
        Self {
            balance: row.balance,
            play,
            row,
        }
    }

    /// What is left after spending, or `None` when there isn't enough.
    fn spend(&mut self, kind: KeyKind, cost: Money) -> Option<Money> {
        let money = match kind {
            KeyKind::Live => &mut self.balance,
            KeyKind::Test => &mut self.play,
        };
        let left = money
            .checked_sub(cost)
            .filter(|left| *left >= Money::ZERO)?;
        *money = left;
        Some(left)
    }

    fn changed(self, now: Timestamp) -> Option<messages::ChargedApplication> {
        let spent = self.balance != self.row.balance
            || self.play != play_money(self.row.test_balance, self.row.test_day, now);
        spent.then(|| messages::ChargedApplication {
            balance: self.balance,
            test_balance: self.play,
            test_day: now.day(),
            before: self.row,
        })
    }
}
