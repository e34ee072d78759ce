//! Accepting an upload: the batch and the reservation of its price, in one transaction.

use domain::{BatchId, KeyKind, MessageText, Money, Prices, Reason, RequestId, Timestamp, message};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::idempotency::{Known, digest_of_bulk, kept_since, recall};
use crate::intake::{SendError, admit, applicable};
use crate::purse::Purse;
use crate::store::batches::{self, NewBatch};
use crate::store::gate::Priority;
use crate::store::idempotency::{self, KeptAnswer, KeptKey};
use crate::store::messages::{self, MessageTransfer, Subject};
use crate::store::transfers::{RESERVED, TransferKind};
use crate::store::{WriteTx, installation, row};
use crate::uploads::{BulkTicket, RowCount, Spooled};
use crate::wakes::Wake;
use crate::{Service, whole};

/// What is to be done with a file.
#[derive(Clone, Debug)]
pub struct BatchOrder {
    /// The message to every number, in one to many.
    pub message: Option<MessageText>,
    pub requestid: Option<RequestId>,
    /// Only to be judged: nothing is stored, charged or sent, and no idempotency key read or kept.
    pub dry_run: bool,
}

/// An accepted upload: durable, its whole price reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedBatch {
    /// `None` for a dry run.
    pub batchid: Option<BatchId>,
    pub rows: u64,
    /// Billing units of all rows.
    pub pages: u64,
    pub cost: Money,
    /// Rows that were probably meant to be local.
    pub looks_local: u64,
    /// Accepted and answered before, under the same idempotency key.
    #[serde(skip)]
    pub replayed: bool,
}

/// An upload and what decides about it.
struct Case {
    key: domain::ApiKey,
    kept_key: Option<KeptKey>,
    digest: String,
    order: BatchOrder,
    count: RowCount,
    spool: String,
}

/// What the transaction comes to.
enum Verdict {
    /// A batch to be committed.
    New(AcceptedBatch, BatchId),
    Answered(AcceptedBatch),
}

impl Service {
    /// Accepts an upload: all of it, or nothing. The rows become messages in the background.
    ///
    /// # Errors
    /// See [`SendError`].
    pub async fn accept_batch(
        &self,
        ticket: &BulkTicket,
        spooled: Spooled,
        order: BatchOrder,
    ) -> std::result::Result<AcceptedBatch, SendError> {
        let case = Case::new(ticket, &spooled, order);
        let service = self.clone();
        // Not the request's own task: a client that leaves now leaves no half of a batch.
        let accepting = whole(async move { Ok(service.commit_batch_of(case, spooled).await) });
        let accepted = accepting.await.unwrap_or_else(|error| {
            tracing::error!(detail = ?error, "accepting an upload broke down");
            Err(SendError::Lost)
        });
        ticket.end().await;
        accepted
    }

    async fn commit_batch_of(
        &self,
        case: Case,
        spooled: Spooled,
    ) -> std::result::Result<AcceptedBatch, SendError> {
        let refuse = |error: Error| {
            tracing::error!(detail = ?error, "an upload was not stored");
            SendError::Refused(error.reason())
        };
        let mut tx = self
            .store()
            .begin_as(Priority::Verb)
            .await
            .map_err(refuse)?;
        let verdict = self.judge_batch(&mut tx, &case).await.map_err(refuse)?;
        let (accepted, id) = match verdict.map_err(SendError::Refused)? {
            Verdict::New(accepted, id) => (accepted, id),
            Verdict::Answered(accepted) => return Ok(accepted),
        };
        if let Err(error) = tx.commit().await {
            tracing::error!(%error, "the commit of an upload failed");
            let found = if error.is_unknown() {
                Err(SendError::Lost)
            } else {
                self.look_up_batch(id, error.reason()).await
            };
            if found == Err(SendError::Lost) {
                // Whether the file is needed isn't known: the next start finds out.
                spooled.spool.keep();
                return Err(SendError::Lost);
            }
            found?;
        }
        spooled.spool.keep();
        self.inner.wake(Wake::BatchAccepted);
        Ok(accepted)
    }

    /// A failed commit may have happened all the same.
    async fn look_up_batch(
        &self,
        id: BatchId,
        reason: Reason,
    ) -> std::result::Result<(), SendError> {
        if self.store().has_failed() {
            return Err(SendError::Lost);
        }
        let look = async || {
            let mut conn = self.store().read().await?;
            batches::exists(&mut conn, id).await
        };
        match self.store().insist(look).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(SendError::Refused(reason)),
            Err(error) => {
                tracing::error!(detail = ?error, "whether an upload was stored can't be found out");
                Err(SendError::Lost)
            }
        }
    }

    /// The contract's order: 504, 505, idempotency, 503, 502, sender name, protections, 501.
    async fn judge_batch(
        &self,
        tx: &mut WriteTx<'_>,
        case: &Case,
    ) -> Result<std::result::Result<Verdict, Reason>> {
        let now = self.now();
        let batch = self.store().dialect().batch();
        let prices = installation::prices(tx).await?;
        let found = messages::applications(tx, batch, &[case.key.reference()]).await?;
        let row = found.into_iter().next().map(|(_, row)| row);
        let Some(row) = row.filter(|row| row.holds(&case.key)) else {
            return Ok(Err(Reason::ApiInvalid));
        };
        if let Err(reason) = applicable(&row) {
            return Ok(Err(reason));
        }
        let keys = case.kept_key.as_slice();
        if let Some((_, kept)) = idempotency::find(tx, batch, keys, kept_since(now))
            .await?
            .pop()
        {
            return Ok(match recall::<AcceptedBatch>(&kept, &case.digest)? {
                Known::Same(accepted) => Ok(Verdict::Answered(AcceptedBatch {
                    replayed: true,
                    ..accepted
                })),
                Known::Another => Err(Reason::IdempotencyMismatch),
            });
        }
        let kind = case.key.kind();
        if let Err(reason) = admit(&row, kind) {
            return Ok(Err(reason));
        }
        if let Some(reason) = case.count.rehearsed {
            return Ok(Err(reason));
        }
        if !self.take_one((case.key.reference(), kind)).await? {
            return Ok(Err(Reason::RateLimited));
        }
        let mut purse = Purse::new(row, now);
        let Some(bill) =
            Bill::of(case, prices).filter(|bill| purse.left(kind, bill.cost).is_some())
        else {
            return Ok(Err(Reason::InsufficientFunds));
        };
        let mut accepted = bill.accepted(case);
        if case.order.dry_run {
            return Ok(Ok(Verdict::Answered(accepted)));
        }
        let id = BatchId(self.inner.ids.next(now, self.inner.node.slot()));
        accepted.batchid = Some(id);
        let new = self.new_batch(id, case, &bill, &purse, prices, now);
        purse.spend(kind, bill.cost);
        self.reserve(tx, &new, purse, now).await?;
        if let Some(key) = &case.kept_key {
            let (digest, answer) = (case.digest.clone(), row::json(&accepted)?);
            let kept = [(key.clone(), KeptAnswer { digest, answer })];
            idempotency::keep(tx, batch, &kept, now).await?;
        }
        Ok(Ok(Verdict::New(accepted, id)))
    }

    fn new_batch(
        &self,
        id: BatchId,
        case: &Case,
        bill: &Bill,
        purse: &Purse,
        prices: Prices,
        now: Timestamp,
    ) -> NewBatch {
        let rows = case.count.rows.cast_signed();
        let (first_message_id, last_message_id) =
            self.inner.ids.range(now, rows, self.inner.node.slot());
        let text = |id: &RequestId| id.as_str().to_owned();
        NewBatch {
            id,
            application_id: purse.row.id,
            test: case.key.kind() == KeyKind::Test,
            sender: purse.row.sender_name.clone(),
            requestid: case.order.requestid.as_ref().map(text),
            body: case.order.message.as_ref().map(|m| m.as_str().to_owned()),
            rows,
            pages: bill.pages.cast_signed(),
            cost: bill.cost,
            prices,
            first_message_id,
            last_message_id,
            spool: case.spool.clone(),
        }
    }

    /// Writes the batch and moves its price out of the balance.
    async fn reserve(
        &self,
        tx: &mut WriteTx<'_>,
        new: &NewBatch,
        purse: Purse,
        now: Timestamp,
    ) -> Result<()> {
        let batch = self.store().dialect().batch();
        let balance = purse.of(KeyKind::Live);
        let changed: Vec<_> = purse.changed(now).into_iter().collect();
        messages::charge_applications(tx, batch, &changed).await?;
        batches::insert(tx, new, now).await?;
        let charge = (!new.test).then_some(MessageTransfer {
            debit: new.application_id,
            credit: RESERVED,
            amount: new.cost,
            kind: TransferKind::Charge,
            subject: Subject::Batch(new.id),
            application: Some((new.application_id, balance)),
        });
        messages::insert_transfers(tx, batch, charge.as_slice(), now).await
    }
}

impl Case {
    fn new(ticket: &BulkTicket, spooled: &Spooled, order: BatchOrder) -> Self {
        let access = ticket.access.access;
        let key = ticket.idempotency.as_ref().filter(|_| !order.dry_run);
        let kept_key = key.map(|key| {
            let test = i64::from(access.kind == KeyKind::Test);
            (access.application_id, test, key.as_str().to_owned())
        });
        let file = spooled.digest.as_deref().unwrap_or_default();
        let (message, requestid) = (order.message.as_ref(), order.requestid.as_ref());
        Self {
            key: ticket.key.clone(),
            kept_key,
            digest: digest_of_bulk(mode_name(spooled.mode), file, message, requestid),
            count: spooled.count,
            spool: spooled.spool.name.clone(),
            order,
        }
    }
}

const fn mode_name(mode: domain::BulkMode) -> &'static str {
    match mode {
        domain::BulkMode::OneToOne => "one to one",
        domain::BulkMode::OneToMany => "one to many",
    }
}

/// What a file costs.
struct Bill {
    pages: u64,
    cost: Money,
}

impl Bill {
    /// `None` when it is more than can be held.
    fn of(case: &Case, prices: Prices) -> Option<Self> {
        // In one to many each row was counted as one page.
        let times = case.order.message.as_ref().map_or(1, |m| m.pages() as u64);
        let local = case.count.pages_local.checked_mul(times)?;
        let international = case.count.pages_international.checked_mul(times)?;
        Some(Self {
            pages: local.checked_add(international)?,
            cost: cost_of(local, international, prices)?,
        })
    }

    fn accepted(&self, case: &Case) -> AcceptedBatch {
        AcceptedBatch {
            batchid: None,
            rows: case.count.rows,
            pages: self.pages,
            cost: self.cost,
            looks_local: case.count.looks_local,
            replayed: false,
        }
    }
}

/// The price of so many pages; `None` when it is more than can be held.
pub(crate) fn cost_of(local: u64, international: u64, prices: Prices) -> Option<Money> {
    let local = prices.local.checked_times(usize::try_from(local).ok()?)?;
    let international = usize::try_from(international).ok()?;
    local.checked_add(prices.international.checked_times(international)?)
}

/// Pages and segments of a text that all rows share.
pub(crate) fn measures(text: &str) -> (usize, usize) {
    (message::pages(text), message::segments(text))
}
