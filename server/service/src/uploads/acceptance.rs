//! Accepts uploads. One transaction stores the batch and reserves its price.

use std::net::IpAddr;
use std::sync::Arc;

use domain::admission::{Admission, SendAttempt, admit};
use domain::ids::Shard;
use domain::ledger::{LedgerAccount, TransferKind};
use domain::limits::LimitedRows;
use domain::{
    AlarmKind, BatchId, EventStream, KeyKind, MessageText, Money, PagesByPrice, PricesInForce,
    Reason, RequestId, Schedule, TestClock, Timestamp, WarningCounts,
};
use serde::{Deserialize, Serialize};

use crate::admission::idempotency::{digest_of_bulk, earlier, kept_since, recall};
use crate::admission::{SendError, due};
use crate::applications::alarms::Noted;
use crate::delivery::opted_out::check_withdrawals;
use crate::money::funds::Funds;
use crate::transactions::work;
use crate::uploads::spool_store::Spool;
use crate::uploads::{RowCount, Spooled, UploadPermit};
use crate::wakeups::Wakeup;
use crate::{Messages, run_detached};
use store::applications::KeyRow;
use store::batches::{self, NewBatch};
use store::error::{Error, Fault, Result};
use store::gate::Priority;
use store::idempotency::{self, KeptAnswer, KeptKey};
use store::transfers::{self, MessageTransfer, Subject};
use store::{Tx, applications, row, test_clocks};

/// A request to accept an uploaded file.
#[derive(Clone, Debug)]
pub struct BatchRequest {
    /// The message to all numbers, in mode one to many.
    pub message: Option<MessageText>,
    pub requestid: Option<RequestId>,
    /// As in [`crate::SendRequest::schedule`].
    pub schedule: Schedule,
    /// Whether to only check the upload. If so, nothing is stored, charged or sent, and no
    /// idempotency key is read or kept.
    pub dry_run: bool,
}

/// An accepted upload. It is durable, and its whole price is reserved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AcceptedBatch {
    /// `None` for a dry run.
    pub batchid: Option<BatchId>,
    pub rows: u64,
    pub pages: u64,
    pub cost: Money,
    /// The number of phone numbers with each warning.
    pub warnings: WarningCounts,
    /// The number of rows whose recipients have opted out. Their messages are rejected and cost
    /// nothing.
    pub opted_out: u64,
    /// The rows that the application's limits refuse. Leaves out limits that depend on earlier
    /// messages. Their messages are rejected and cost nothing.
    #[serde(default)]
    pub limited: LimitedRows,
    /// When the messages are to be sent. `None` if they are due at once.
    pub send_at: Option<Timestamp>,
    /// Whether this is the answer to an earlier request with the same idempotency key.
    #[serde(skip)]
    pub replayed: bool,
}

/// An upload, with everything that the decision about it needs.
struct PendingUpload {
    key: domain::ApiKey,
    /// The client's address.
    address: Option<IpAddr>,
    kept_key: Option<KeptKey>,
    digest: String,
    request: BatchRequest,
    count: RowCount,
    /// The prices by which the pages were counted.
    prices: Arc<PricesInForce>,
    /// The spool's name. `None` if the request repeats one that was accepted before.
    spool: Option<String>,
}

/// The decision of a transaction about an upload.
enum BatchDecision {
    /// A new batch to commit.
    New(AcceptedBatch, BatchId),
    Answered(AcceptedBatch),
    /// The prefixes in the price list have changed, so the pages must be counted again.
    CountAgain(Arc<PricesInForce>),
}

impl Messages<'_> {
    /// Accepts an upload, completely or not at all. The rows become messages in the background.
    pub async fn accept_batch(
        &self,
        permit: &UploadPermit,
        spooled: Spooled,
        request: BatchRequest,
    ) -> std::result::Result<AcceptedBatch, SendError> {
        let pending = PendingUpload::new(permit, &spooled, request);
        let service = self.0.clone();
        // Runs outside the request's task. A client that disconnects now must not leave half a
        // batch.
        let accepting = run_detached(async move {
            let messages = service.messages();
            Ok(Box::pin(messages.commit_batch_of(pending, spooled)).await)
        });
        let accepted = accepting.await.unwrap_or_else(|error| {
            tracing::error!(detail = ?error, "accepting an upload failed");
            Err(SendError::Lost)
        });
        permit.end().await;
        accepted
    }

    async fn commit_batch_of(
        &self,
        mut pending: PendingUpload,
        spooled: Spooled,
    ) -> std::result::Result<AcceptedBatch, SendError> {
        let refuse = |error: Error| {
            tracing::error!(detail = ?error, "an upload was not stored");
            SendError::Refused(error.reason())
        };
        let shard = self.shard_of(pending.key.reference()).await.map_err(refuse)?;
        let (tx, accepted, id) = loop {
            let mut tx = self.store().begin_at(shard, Priority::Verb).await.map_err(refuse)?;
            let decision = self.decide_batch(&mut tx, &pending).await.map_err(refuse)?;
            match decision.map_err(SendError::Refused)? {
                BatchDecision::New(accepted, id) => break (tx, accepted, id),
                BatchDecision::Answered(accepted) => return Ok(accepted),
                BatchDecision::CountAgain(prices) => {
                    // Lets other transactions write while the file is read.
                    drop(tx);
                    let counting = self.count_again(shard, &mut pending, prices);
                    counting.await.map_err(refuse)?;
                }
            }
        };
        // The spool is kept before the commit, so that a stored batch has its rows even if this
        // task ends early. The rows of a spool without a batch are removed later.
        let spool = spooled.spool.map(Spool::keep);
        if let Err(error) = tx.commit().await {
            tracing::error!(detail = ?error, "the commit of an upload failed");
            let found = if error.may_be_under_way() {
                Err(SendError::Lost)
            } else {
                self.look_up_batch(shard, id, error.reason()).await
            };
            if let (Err(SendError::Refused(_)), Some(spool)) = (&found, spool) {
                self.remove_spool(shard, &spool);
            }
            found?;
        }
        if pending.key.kind() == KeyKind::Test
            && accepted.send_at.is_some()
            && let Err(error) = self.correct_batch(&pending, id).await
        {
            tracing::error!(detail = ?error, "a test batch may be sent late, because its clock was \
                moved meanwhile");
        }
        self.note_international(&pending);
        self.inner.wake(Wakeup::BatchAccepted);
        Ok(accepted)
    }

    /// Corrects the time of a scheduled test batch by the clock of its application.
    async fn correct_batch(&self, pending: &PendingUpload, id: BatchId) -> Result<()> {
        self.in_transaction_of(
            pending.key.reference(),
            work!(|tx, now| {
                let Some((of, _)) = batches::application_of(tx, id).await? else {
                    return Ok(());
                };
                let offset_ms = test_clocks::of(tx, of).await?.offset_ms();
                test_clocks::correct_batch(tx, (of, id), offset_ms, now).await
            }),
        )
        .await
    }

    /// Notes that a stored upload has an international number.
    fn note_international(&self, pending: &PendingUpload) {
        if let Some(number) = &pending.count.international
            && pending.key.kind() == KeyKind::Live
        {
            let carrier_number = number.for_carrier(self.country_code());
            let noted = || Noted::of_number(number.masked(), &carrier_number, pending.address);
            let (reference, day) = (pending.key.reference(), self.now().day());
            self.inner.alarms.note_international(reference, day, noted);
        }
    }

    /// Looks for a batch whose commit failed, because it may be stored anyway.
    async fn look_up_batch(
        &self,
        shard: Shard,
        id: BatchId,
        reason: Reason,
    ) -> std::result::Result<(), SendError> {
        if self.store().has_failed() {
            return Err(SendError::Lost);
        }
        let look = async || {
            let mut conn = self.store().read_at(shard).await?;
            batches::exists(&mut conn, id).await
        };
        match self.store().insist(look).await {
            Ok(true) => Ok(()),
            Ok(false) => Err(SendError::Refused(reason)),
            Err(error) => {
                tracing::error!(detail = ?error, "can't find out whether an upload was stored");
                Err(SendError::Lost)
            }
        }
    }

    /// Counts the pages of an upload again from its spool, by other prices.
    async fn count_again(
        &self,
        shard: Shard,
        pending: &mut PendingUpload,
        prices: Arc<PricesInForce>,
    ) -> Result<()> {
        let (mut pages, mut rows, mut offset) = (PagesByPrice::default(), 0, 0);
        if let Some(spool) = &pending.spool {
            while rows < pending.count.rows {
                let chunk = self.spooled_chunk(shard, spool, offset).await?;
                let chunk = chunk.map_err(|error| Fault::File(error.into()))?;
                chunk.count_pages(&prices, &mut pages)?;
                rows += chunk.rows.unsigned_abs();
                offset = chunk.end;
            }
        }
        pending.count.pages = pages;
        pending.prices = prices;
        Ok(())
    }

    async fn decide_batch(
        &self,
        tx: &mut Tx<'_>,
        pending: &PendingUpload,
    ) -> Result<std::result::Result<BatchDecision, Reason>> {
        let now = self.now();
        let (price_id, prices) = self.inner.prices.read(tx, now).await?;
        let found = applications::keys_by_references(tx, &[pending.key.reference()]).await?;
        let row = found.into_iter().next().map(|(_, row)| row);
        let row = row.filter(|row| row.holds(&pending.key));
        let keys = pending.kept_key.as_slice();
        let kept = idempotency::find(tx, keys, kept_since(now)).await?.pop();
        let kept = kept.map(|(_, kept)| kept);
        let kind = pending.key.kind();
        let admission = admit(&SendAttempt {
            application: row.as_ref().map(KeyRow::sending),
            key: kind,
            // Checked before the body was read.
            refused_origin: None,
            earlier: earlier(kept.as_ref(), &pending.digest),
            reserved_outcome: pending.count.reserved_outcome,
            is_opted_out: false,
            limited: None,
        });
        let row = match (admission, row, kept) {
            (Err(reason), ..) => return Ok(Err(reason)),
            (Ok(Admission::Repeated), _, Some(kept)) => {
                let accepted = AcceptedBatch { replayed: true, ..recall(&kept)? };
                return Ok(Ok(BatchDecision::Answered(accepted)));
            }
            (Ok(_), Some(row), _) => row,
            (Ok(_), None, _) => return Ok(Err(Reason::ApiInvalid)),
        };
        // If the test clock is moved meanwhile, `correct_batch` corrects the time after the commit.
        let clock = match kind {
            KeyKind::Test => test_clocks::of(tx, row.id).await?,
            KeyKind::Live => TestClock::default(),
        };
        let real = |at: Timestamp| at.plus_ms(-clock.offset_ms());
        let now_there = now.plus_ms(clock.offset_ms());
        let Some(due) = due(pending.request.schedule, row.limits(), now_there) else {
            return Ok(Err(Reason::InvalidParameter));
        };
        if !prices.has_prefixes_of(&pending.prices) {
            return Ok(Ok(BatchDecision::CountAgain(prices)));
        }
        if !self.take_one((pending.key.reference(), kind)).await? {
            return Ok(Err(Reason::RateLimited));
        }
        let whose = EventStream { application_id: row.id, test: kind == KeyKind::Test };
        match check_withdrawals(self.0, tx, whose, now).await {
            Err(error) if error.refusal().is_some() => return Ok(Err(Reason::RateLimited)),
            checked => checked?,
        }
        let mut funds = self.funds(row, now);
        let messages = i64::try_from(pending.count.rows).unwrap_or(i64::MAX);
        if !funds.may_send(kind, messages) {
            return Ok(Err(Reason::RateLimited));
        }
        let answer = pending.priced(&prices);
        if answer.as_ref().is_some_and(|answer| !funds.may_spend(kind, answer.cost)) {
            return Ok(Err(Reason::SpendCapReached));
        }
        let affordable = |priced: &AcceptedBatch| funds.left(kind, priced.cost).is_some();
        let Some(mut accepted) = answer.filter(affordable) else {
            return Ok(Err(Reason::InsufficientFunds));
        };
        accepted.send_at = due.send_at;
        if pending.request.dry_run {
            return Ok(Ok(BatchDecision::Answered(accepted)));
        }
        // The stored answer expired while the file arrived, so the rows weren't spooled. The
        // client's next attempt spools them.
        let Some(spool) = &pending.spool else {
            return Ok(Err(Reason::Unavailable));
        };
        let id = BatchId(self.next_id(now));
        accepted.batchid = Some(id);
        let new = NewBatch {
            send_at: due.send_at,
            waits_until: due.send_at.map(real),
            expires_at: due.expires_at.map(real),
            ..self.new_batch(id, (pending, spool), &accepted, &funds, (price_id, &prices), now)
        };
        funds.spend(kind, accepted.cost, messages);
        if kind == KeyKind::Live && funds.is_nearly_spent() {
            let noted = Noted { count: 1, address: pending.address, ..Noted::default() };
            self.inner.alarms.note(pending.key.reference(), AlarmKind::SpendPerDay, noted);
        }
        self.reserve(tx, &new, funds, now).await?;
        if let Some(key) = &pending.kept_key {
            let (digest, answer) = (pending.digest.clone(), row::json(&accepted)?);
            let kept = [(key.clone(), KeptAnswer { digest, answer })];
            idempotency::keep(tx, &kept, now).await?;
        }
        Ok(Ok(BatchDecision::New(accepted, id)))
    }

    fn new_batch(
        &self,
        id: BatchId,
        (pending, spool): (&PendingUpload, &str),
        accepted: &AcceptedBatch,
        funds: &Funds,
        (price_id, prices): (i64, &PricesInForce),
        now: Timestamp,
    ) -> NewBatch {
        let rows = pending.count.rows.cast_signed();
        let (first_message_id, last_message_id) =
            self.inner.ids.range(now, rows, self.inner.node.slot());
        let text = |id: &RequestId| id.as_str().to_owned();
        NewBatch {
            id,
            application_id: funds.row.id,
            test: pending.key.kind() == KeyKind::Test,
            sender: funds.row.sender_name.clone(),
            requestid: pending.request.requestid.as_ref().map(text),
            body: pending.request.message.as_ref().map(|m| m.as_str().to_owned()),
            rows,
            pages: accepted.pages.cast_signed(),
            cost: accepted.cost,
            prices: prices.base(),
            price_id,
            first_message_id,
            last_message_id,
            spool: spool.to_owned(),
            send_at: None,
            waits_until: None,
            expires_at: None,
        }
    }

    /// Stores the batch and moves its price out of the balance.
    async fn reserve(
        &self,
        tx: &mut Tx<'_>,
        new: &NewBatch,
        funds: Funds,
        now: Timestamp,
    ) -> Result<()> {
        let balance = funds.of(KeyKind::Live);
        let changed: Vec<_> = funds.changed(now).into_iter().collect();
        applications::charge(tx, &changed).await?;
        batches::insert(tx, new, now).await?;
        let charge = (!new.test).then_some(MessageTransfer {
            debit: new.application_id.into(),
            credit: LedgerAccount::RESERVED,
            amount: new.cost,
            kind: TransferKind::Charge,
            subject: Subject::Batch(new.id),
            application: Some((new.application_id, balance)),
        });
        transfers::insert_of_messages(tx, charge.as_slice(), now).await
    }
}

impl PendingUpload {
    fn new(permit: &UploadPermit, spooled: &Spooled, request: BatchRequest) -> Self {
        let access = permit.access.access;
        let key = permit.idempotency.as_ref().filter(|_| !request.dry_run);
        let kept_key = key.map(|key| KeptKey {
            application_id: access.application_id,
            test: access.kind == KeyKind::Test,
            key: key.as_str().to_owned(),
        });
        let file = spooled.digest.as_deref().unwrap_or_default();
        let (message, requestid) = (request.message.as_ref(), request.requestid.as_ref());
        Self {
            key: permit.key.clone(),
            address: permit.address,
            kept_key,
            digest: digest_of_bulk(
                mode_name(spooled.mode),
                file,
                message,
                requestid,
                request.schedule,
            ),
            count: spooled.count.clone(),
            prices: Arc::clone(&spooled.prices),
            spool: spooled.spool.as_ref().map(|spool| spool.name.clone()),
            request: BatchRequest {
                message: request.message.map(|message| permit.limits.written(message)),
                ..request
            },
        }
    }

    /// Returns the answer to the client if the upload is accepted. Returns `None` if the pages or
    /// the price overflow.
    fn priced(&self, prices: &PricesInForce) -> Option<AcceptedBatch> {
        // In mode one to many, each row was counted as one page.
        let shared = self.request.message.as_ref();
        let times = shared.map_or(1, |message| message.pages() as u64);
        let pages = self.count.pages.checked_times(times)?;
        Some(AcceptedBatch {
            batchid: None,
            rows: self.count.rows,
            pages: pages.total()?,
            cost: prices.cost_of_all(&pages)?,
            warnings: self.count.warnings,
            opted_out: self.count.opted_out,
            limited: self.count.limited,
            send_at: None,
            replayed: false,
        })
    }
}

const fn mode_name(mode: domain::BulkMode) -> &'static str {
    match mode {
        domain::BulkMode::OneToOne => "one to one",
        domain::BulkMode::OneToMany => "one to many",
    }
}
