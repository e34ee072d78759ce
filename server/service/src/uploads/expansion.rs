//! Expansion: turns the rows of accepted uploads into messages. A transaction reads some chunks of
//! the spool. It stores their rows as messages, together with the offset of the next chunk.
//! Therefore a crash neither repeats nor loses rows.

use std::time::{Duration, Instant};

use domain::ids::Shard;
use domain::ledger::{LedgerAccount, TransferKind};
use domain::{
    BatchId, EventStream, MessageStatus, Money, PagesByPrice, PricesInForce, Timestamp, Transid,
};

use crate::delivery::expiry::{first_unexpired, have_expired};
use crate::delivery::opted_out::reject;
use crate::delivery::routing::Message;
use crate::money::releases::settle;
use crate::money::test_money::test_money_max;
use crate::uploads::limited::LimitedMessages;
use crate::uploads::spool_format::{Chunk, ChunkError};
use crate::uploads::spool_store::{ROWS_MAX, Spools};
use crate::wakeups::Wakeup;
use crate::{Messages, SANDBOX_CARRIER, run_detached_with_attempts};
use store::balances::{self, SettledApplication};
use store::batches::{self, Advance, UnexpandedBatch};
use store::error::{Error, Fault, OpenError, Result};
use store::gate::Priority;
use store::planted::is_planted;
use store::query::Conn;
use store::queue::{self, QueuedAs, QueuedRow};
use store::row::touched;
use store::transfers::{self, MessageTransfer, Subject, Transfer};
use store::{Chore, Tx, hold, messages, opt_outs};

/// The time after which a transaction takes no more chunks. On SQLite, the transaction ends sooner
/// if another one waits at the store's gate. On PostgreSQL, commit groups don't wait there, so only
/// this time and [`ROWS_MAX`] bound it. The time must stay far below half a second: if a row is
/// committed more than half a second after it is due, claims may overlook it
/// ([`crate::delivery::scan_starts`]).
const TIME_MAX: Duration = Duration::from_millis(100);

impl Messages<'_> {
    /// Returns the first upload after `after` that still has rows to expand. Leaves out uploads
    /// that wait for their time or are paused. But if the rows of such an upload have expired, the
    /// upload is returned, so that it is given up.
    pub async fn next_unexpanded(&self, after: Option<BatchId>) -> Result<Option<BatchId>> {
        let (after, now) = (after.map_or(0, |id| id.0), self.now());
        let found = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            let least = first_unexpired(now);
            let found = batches::next_unexpanded(&mut conn, after, now, least).await?;
            Ok(found.map(|batch| batch.id))
        });
        Ok(found.await?.into_iter().flatten().min())
    }

    /// Returns the time until the next scheduled upload begins.
    pub async fn next_start(&self) -> Result<Option<Duration>> {
        let found = self.in_each_shard(|shard| async move {
            batches::next_start(&mut self.store().read_at(shard).await?).await
        });
        let at = found.await?.into_iter().flatten().min();
        let ms = at.map(|at| at.ms_since(self.now()).max(0).unsigned_abs());
        Ok(ms.map(Duration::from_millis))
    }

    /// Turns the next rows of an upload into messages. If the rows have expired or can't be read
    /// any more, releases their price instead. Returns false if there was nothing to do, or if
    /// another process expands the upload.
    pub async fn expand(&self, id: BatchId) -> Result<bool> {
        run_detached_with_attempts(self, move |service| async move {
            Box::pin(service.messages().expand_some(id)).await
        })
        .await
    }

    async fn expand_some(&self, id: BatchId) -> Result<bool> {
        let found = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            let Some(upload) = batches::still_unexpanded(&mut conn, id).await? else {
                return Ok(None);
            };
            let has_expired = has_expired(&mut conn, &upload, self.now()).await?;
            Ok(Some((shard, upload, has_expired)))
        });
        let found = found.await?.into_iter().flatten().next();
        let Some((shard, upload, has_expired)) = found else {
            return Ok(false);
        };
        let step = if has_expired {
            self.give_up(shard, &upload, MessageStatus::Expired).await?
        } else if upload.stopped {
            Step::Elsewhere
        } else if upload.waits_until.is_some() {
            self.start(shard, &upload).await?
        } else {
            let left = upload.rows - upload.expanded_rows;
            let chunk = self.chunk(shard, &upload.spool, upload.spool_offset, left);
            match chunk.await? {
                Ok(chunk) => self.expand_chunks(shard, &upload, chunk).await?,
                Err(ChunkError::Io(error)) => return Err(Fault::File(error).into()),
                Err(ChunkError::Lost(why)) => {
                    let step = self.give_up(shard, &upload, MessageStatus::Rejected).await?;
                    // If the step isn't `Last`, another process has ended the upload meanwhile.
                    // Then there is nothing to report.
                    if step == Step::Last {
                        let batch = upload.id.to_string();
                        tracing::error!(
                            batch,
                            why,
                            "the remaining rows of an upload were lost; their price is released"
                        );
                    }
                    step
                }
            }
        };
        if step == Step::Last {
            self.remove_spool(shard, &upload.spool);
        }
        Ok(step != Step::Elsewhere)
    }

    /// Begins a scheduled upload if its time has come. Its rows get IDs of this time.
    async fn start(&self, shard: Shard, upload: &UnexpandedBatch) -> Result<Step> {
        let now = self.now();
        if upload.waits_until.is_some_and(|at| at > now) {
            return Ok(Step::Elsewhere);
        }
        let mut tx = self.store().begin_at(shard, Priority::Bulk).await?;
        let ids = self.inner.ids.range(now, upload.rows, self.inner.node.slot());
        if !batches::start(&mut tx, upload, ids, now).await? {
            return Ok(Step::Elsewhere);
        }
        tx.commit().await?;
        Ok(Step::Some)
    }

    /// Reads the chunk at an offset. `left` is the number of rows that aren't messages yet.
    async fn chunk(
        &self,
        shard: Shard,
        spool: &str,
        offset: i64,
        left: i64,
    ) -> Result<std::result::Result<Chunk, ChunkError>> {
        let chunk = self.spooled_chunk(shard, spool, offset);
        Ok(chunk.await?.and_then(|chunk| {
            if chunk.rows == 0 || chunk.rows > left {
                let why = "a chunk has no rows, or more than the upload has left".to_owned();
                return Err(ChunkError::Lost(why));
            }
            Ok(chunk)
        }))
    }

    /// Stores chunks as messages in one transaction: the first chunk, and more chunks while no
    /// other transaction waits to write.
    async fn expand_chunks(
        &self,
        shard: Shard,
        upload: &UnexpandedBatch,
        first: Chunk,
    ) -> Result<Step> {
        let chore = Chore::Expand(upload.id);
        let store = self.store();
        let tx = store.begin_chore(chore, shard, Priority::Bulk).await?;
        let Some(mut tx) = tx else {
            return Ok(Step::Elsewhere);
        };
        tx.at(shard);
        // On PostgreSQL, this commit doesn't wait for the disk. If a crash undoes the commit, the
        // stored offset is undone, too, and the rows are expanded again. No message can have been
        // submitted by then: its claim is committed later, and that commit waits until both commits
        // are on disk.
        let dialect = self.store().dialect();
        dialect.commit_without_waiting(&mut tx).await?;
        let now = self.now();
        // Another process may have expanded rows meanwhile. Then the chunk isn't the next one.
        let still = batches::still_unexpanded(&mut tx, upload.id).await?;
        let still = still.filter(|still| still.spool_offset == upload.spool_offset);
        // The upload may have expired while this transaction waited. If so, the next call gives it
        // up.
        let upload = match still.filter(|still| !still.stopped) {
            Some(upload) if !has_expired(&mut tx, &upload, now).await? => upload,
            _ => {
                tx.commit().await?;
                return Ok(Step::Elsewhere);
            }
        };
        let prices = self.prices_of(&mut tx, &upload).await?;
        let mut step = Advance { offset: upload.spool_offset, rows: 0, cost: Money::ZERO };
        let begun = Instant::now();
        let mut next = Some(first);
        let mut limited = LimitedMessages::of(self.0, &mut tx, &upload).await?;
        while let Some(chunk) = next.take() {
            limited.check(&mut tx, upload.expanded_rows + step.rows, &chunk, now).await?;
            step = self.expand_chunk(&mut tx, (&upload, &prices), step, chunk, now).await?;
            let left = upload.rows - upload.expanded_rows - step.rows;
            let is_full = step.rows >= ROWS_MAX || begun.elapsed() > TIME_MAX;
            if left > 0 && !is_full && !self.store().does_somebody_wait() {
                // An error ends only this transaction. The next one starts with the same chunk, and
                // reports the error.
                let chunk = self.chunk(shard, &upload.spool, step.offset, left).await;
                next = chunk.ok().and_then(std::result::Result::ok);
            }
        }
        self.settle_reservation(&mut tx, &upload, step.cost, now).await?;
        // Messages of a held upload may have been submitted before the hold, so none is rejected
        // here. If they are submitted after the hold, the claim checks opt-outs again.
        if !hold::holds_batch(&mut tx, upload.id).await? {
            self.reject_opted_out(&mut tx, &upload, step.rows, now).await?;
            limited.reject(&mut tx, now).await?;
        }
        // Writing the counts and the batch's row locks that row, and results of the batch's
        // messages wait for this lock. Therefore they are written last.
        tx.write_counts().await?;
        if !batches::advance(&mut tx, &upload, &step, now).await? {
            return Ok(Step::Elsewhere);
        }
        tx.commit().await?;
        limited.watch();
        self.inner.wake(Wakeup::Queued);
        Ok(if upload.expanded_rows + step.rows == upload.rows { Step::Last } else { Step::Some })
    }

    /// Returns the prices at which an upload was accepted.
    async fn prices_of(&self, tx: &mut Tx<'_>, upload: &UnexpandedBatch) -> Result<PricesInForce> {
        let history = self.inner.prices.history(tx, upload.price_id).await?;
        let known = history.as_of(upload.price_id);
        let prices = known.at(known.time(upload.created_at));
        prices.ok_or(Error::Failed(Fault::Missing("prices")))
    }

    /// Stores the rows of a chunk as messages. Returns `step` with these rows added.
    async fn expand_chunk(
        &self,
        tx: &mut Tx<'_>,
        (upload, prices): (&UnexpandedBatch, &PricesInForce),
        step: Advance,
        chunk: Chunk,
        now: Timestamp,
    ) -> Result<Advance> {
        let shared = upload.shared_text();
        let times = shared.map_or(1, |text| text.pages.unsigned_abs());
        let mut pages = PagesByPrice::default();
        chunk.count_pages(prices, &mut pages)?;
        let cost = (pages.checked_times(times))
            .and_then(|pages| prices.cost_of_all(&pages))
            .and_then(|cost| cost.checked_add(step.cost))
            .ok_or(Error::Failed(Fault::MoneyOverflow))?;
        let first = upload.expanded_rows + step.rows;
        let queued = self.routed(upload, first, &chunk, now)?;
        touched("queue", queued.len(), chunk.rows.unsigned_abs())?;
        let offset = if is_planted("offset-not-stored") { step.offset } else { chunk.end };
        let step = Advance { offset, rows: step.rows + chunk.rows, cost };
        let stored = batches::expand(tx, (upload, prices), first, &chunk.json).await?;
        touched("messages", queued.len(), stored)?;
        let queued_as = QueuedAs { of_batch: true, deferred: upload.suspended };
        queue::insert(tx, &queued, queued_as).await?;
        Ok(step)
    }

    /// Returns a row of the queue for each row of a chunk, with the carrier of its message.
    fn routed(
        &self,
        upload: &UnexpandedBatch,
        first: i64,
        chunk: &Chunk,
        now: Timestamp,
    ) -> Result<Vec<QueuedRow>> {
        let router = &self.inner.router;
        let network = router.network();
        let only = if upload.test {
            // Test messages only go to the sandbox.
            Some(SANDBOX_CARRIER)
        } else {
            network.only()
        };
        let of_all = upload.body.as_deref().map(domain::message::segments);
        let by_route = |number: &str, kind, segments| {
            let facts = Message {
                number,
                kind,
                sender: upload.sender.as_deref(),
                application: Some(upload.reference),
                segments,
            };
            router.carrier(&facts, self.entropy().number(), &[])
        };
        let queued = |(carrier, slot)| QueuedRow {
            message_id: Transid(domain::ids::nth_id(upload.first_message_id, slot)),
            application_id: upload.application_id,
            carrier,
            due_at: now.unix_ms(),
            lease_token: 0,
            expires_at: upload.expires_at,
        };
        let slots = first..first + chunk.rows;
        // If all messages have the same carrier, the numbers needn't be read.
        if let Some(only) = only {
            return Ok(slots.map(|slot| queued((only.to_owned(), slot))).collect());
        }
        let facts = chunk.routing_facts(of_all)?.into_iter();
        let carriers = facts.map(|(number, kind, segments)| by_route(&number, kind, segments));
        Ok(carriers.zip(slots).map(queued).collect())
    }

    /// Moves the price of these rows from the reservation to revenue. If no carrier accepts
    /// one of the messages, its price is later released from revenue.
    async fn settle_reservation(
        &self,
        tx: &mut Tx<'_>,
        upload: &UnexpandedBatch,
        cost: Money,
        now: Timestamp,
    ) -> Result<()> {
        if upload.test || is_planted("rows-not-settled") {
            return Ok(());
        }
        let settled = Transfer {
            // This is the ID of the first of these messages. No other settlement can have it.
            id: domain::ids::nth_id(upload.first_message_id, upload.expanded_rows),
            debit: LedgerAccount::RESERVED,
            credit: LedgerAccount::REVENUE,
            amount: cost,
            kind: TransferKind::Settle,
            application: None,
            bank_id: None,
            batch_id: Some(upload.id),
        };
        transfers::insert(tx, &settled, now).await
    }

    /// Rejects messages among the next `rows` whose recipients have opted out. If a recipient opts
    /// out later, the claim rejects the message.
    async fn reject_opted_out(
        &self,
        tx: &mut Tx<'_>,
        upload: &UnexpandedBatch,
        rows: i64,
        now: Timestamp,
    ) -> Result<()> {
        let list = EventStream { application_id: upload.application_id, test: upload.test };
        if opt_outs::numbers(tx, list, "", 1).await?.is_empty()
            && opt_outs::erased(tx, list).await?.is_empty()
        {
            return Ok(());
        }
        let slots = upload.expanded_rows..upload.expanded_rows + rows;
        let id = |slot| Transid(domain::ids::nth_id(upload.first_message_id, slot));
        let ids: Vec<Transid> = slots.map(id).collect();
        let mut found = opt_outs::of_messages(tx, &ids, self.country_code()).await?;
        let erased = self.erased_numbers(tx, list).await?;
        if !erased.is_empty() {
            let numbers = messages::numbers(tx, &ids, self.country_code()).await?;
            let stopped = numbers.into_iter().filter(|(_, number)| erased.has_erased(number));
            found.extend(stopped.map(|(id, _)| id));
        }
        let rejected = reject(tx, &found, now).await?;
        settle(tx, &rejected, now).await
    }

    /// Gives up the remaining rows in a transaction of its own.
    async fn give_up(
        &self,
        shard: Shard,
        upload: &UnexpandedBatch,
        rest: MessageStatus,
    ) -> Result<Step> {
        let mut tx = self.store().begin_at(shard, Priority::Bulk).await?;
        if !release_rest(&mut tx, upload, rest, self.now()).await? {
            return Ok(Step::Elsewhere);
        }
        tx.commit().await?;
        Ok(Step::Last)
    }

    /// Removes spool files that no batch needs. Such files are left if the process crashes during
    /// an upload, or just after a batch was fully expanded.
    pub(crate) async fn sweep_spools(&self) -> std::result::Result<(), OpenError> {
        let Spools::Folder(folder) = &self.inner.spools else {
            return Ok(());
        };
        let needed = {
            let mut conn = self.store().read().await?;
            batches::spools(&mut conn).await?
        };
        // Perhaps the folder's volume just isn't mounted. So the process doesn't start, instead of
        // giving up all these batches.
        if !needed.is_empty() && !folder.exists() {
            return Err(OpenError::SpoolMissing(folder.path("")));
        }
        if !folder.own().map_err(OpenError::File)? {
            return Err(OpenError::Served(folder.path("").display().to_string()));
        }
        let names = folder.names().map_err(OpenError::File)?;
        for name in names.iter().filter(|name| !needed.contains(name)) {
            folder.remove(name);
        }
        Ok(())
    }
}

/// Returns whether the rows of an upload have expired, so that they don't become messages. While
/// the upload is held, its rows never count as expired. They may have been submitted before the
/// hold, so they must become messages, because only messages can be reconciled.
async fn has_expired(conn: Conn<'_>, upload: &UnexpandedBatch, now: Timestamp) -> Result<bool> {
    Ok(have_expired(upload.expires_at, upload.first_message_id, now)
        && !hold::holds_batch(conn, upload.id).await?)
}

/// Gives up the remaining rows of an upload. They don't become messages, and their price is
/// released. Returns false if another process changed the upload first.
pub(crate) async fn release_rest(
    tx: &mut Tx<'_>,
    upload: &UnexpandedBatch,
    rest: MessageStatus,
    now: Timestamp,
) -> Result<bool> {
    let left = upload.cost.checked_sub(upload.expanded_cost);
    let amount = left.ok_or(Error::Failed(Fault::MoneyOverflow))?;
    let id = upload.application_id;
    let found = balances::of(tx, &[id]).await?;
    if !batches::give_up(tx, upload, rest, now).await? {
        return Ok(false);
    }
    let before = found.first().map_or(Money::ZERO, |found| found.balance);
    let (back, test_money) =
        if upload.test { (Money::ZERO, amount) } else { (amount, Money::ZERO) };
    let balance = before.checked_add(back).ok_or(Error::Failed(Fault::MoneyOverflow))?;
    let settled = SettledApplication { id, before, balance, test_money };
    balances::settle(tx, &[settled], test_money_max()).await?;
    let release = (back > Money::ZERO).then_some(MessageTransfer {
        debit: LedgerAccount::RESERVED,
        credit: id.into(),
        amount: back,
        kind: TransferKind::Release,
        subject: Subject::Batch(upload.id),
        application: Some((id, balance)),
    });
    transfers::insert_of_messages(tx, release.as_slice(), now).await?;
    Ok(true)
}

/// The result of expanding an upload's next rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// More rows are left.
    Some,
    /// These were the last rows.
    Last,
    /// Nothing was stored, because another process expands or has changed the upload, or because
    /// the upload expired just now.
    Elsewhere,
}
