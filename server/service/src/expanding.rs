//! Turning accepted uploads into messages: a frame of the spool file per transaction, with the place in
//! the file in the same transaction, so that a crash repeats nothing and loses nothing.

use domain::{BatchId, MessageStatus, Money, Timestamp};

use crate::bulk::{cost_of, measures};
use crate::error::{Broken, Error, OpenError, Result};
use crate::expiry::first_unexpired;
use crate::intake::play_money_max;
use crate::routing::Message;
use crate::spool::{Frame, FrameError};
use crate::store::batches::{self, Advance, UnexpandedBatch};
use crate::store::gate::Priority;
use crate::store::messages::{self, MessageTransfer, Subject};
use crate::store::queue::QueuedRow;
use crate::store::row::touched;
use crate::store::tally::Tally;
use crate::store::transfers::{RESERVED, REVENUE, TransferKind};
use crate::store::{Chore, WriteTx, queue, settlement};
use crate::wakes::Wake;
use crate::{SANDBOX_CARRIER, Service, whole_among_others};

impl Service {
    /// The next upload after this one of which some rows are no messages yet, by age.
    pub async fn next_unexpanded(&self, after: Option<BatchId>) -> Result<Option<BatchId>> {
        let mut conn = self.store().read().await?;
        let found = batches::next_unexpanded(&mut conn, after.map_or(0, |id| id.0)).await?;
        Ok(found.map(|batch| batch.id))
    }

    /// Turns the next rows of an upload into messages. Rows that can't be read any more are given back. False when there
    /// was nothing to do, or another process is at it.
    pub async fn expand(&self, id: BatchId) -> Result<bool> {
        let service = self.clone();
        whole_among_others(move || {
            let service = service.clone();
            async move { service.expand_some(id).await }
        })
        .await
    }

    async fn expand_some(&self, id: BatchId) -> Result<bool> {
        let upload = {
            let mut conn = self.store().read().await?;
            batches::still_unexpanded(&mut conn, id).await?
        };
        let Some(upload) = upload else {
            return Ok(false);
        };
        let step = if upload.first_message_id < first_unexpired(self.now()) {
            self.give_up(&upload, MessageStatus::Expired).await?
        } else {
            match self.frame(&upload).await? {
                Ok(frame) => self.expand_frame(&upload, frame).await?,
                Err(FrameError::Io(error)) => return Err(Broken::File(error).into()),
                Err(FrameError::Lost(why)) => {
                    let step = self.give_up(&upload, MessageStatus::Rejected).await?;
                    // Otherwise another process ended it since it was read.
                    if step == Step::Last {
                        let batch = upload.id.to_string();
                        tracing::error!(
                            batch,
                            why,
                            "the rest of an upload was lost and is given back"
                        );
                    }
                    step
                }
            }
        };
        if step == Step::Last {
            self.remove_spool(&upload.spool);
        }
        Ok(step != Step::Elsewhere)
    }

    async fn frame(
        &self,
        upload: &UnexpandedBatch,
    ) -> Result<std::result::Result<Frame, FrameError>> {
        let frame = self.spooled_frame(&upload.spool, upload.spool_offset);
        let left = upload.rows - upload.expanded_rows;
        Ok(frame.await?.and_then(|frame| {
            if frame.rows == 0 || frame.rows > left {
                let why = "the rows aren't those counted".to_owned();
                return Err(FrameError::Lost(why));
            }
            Ok(frame)
        }))
    }

    async fn expand_frame(&self, upload: &UnexpandedBatch, frame: Frame) -> Result<Step> {
        let batch = self.store().dialect().batch();
        let text = upload.body.as_deref().map(measures);
        let times = text.map_or(1, |(pages, _)| pages as u64);
        let cost = cost_of(
            frame.pages_local * times,
            frame.pages_international * times,
            upload.prices,
        )
        .ok_or(Error::Broken(Broken::MoneyOverflow))?;
        let step = Advance {
            offset: frame.end,
            rows: frame.rows,
            cost,
        };
        let chore = Chore::Expand(upload.id.0);
        let tx = self.store().begin_chore(chore, Priority::Bulk).await?;
        let Some(mut tx) = tx else {
            return Ok(Step::Elsewhere);
        };
        let now = self.now();
        // Somebody else may have gone on since it was read.
        let still = batches::still_unexpanded(&mut tx, upload.id).await?;
        if still.is_none_or(|still| still.spool_offset != upload.spool_offset)
            // Its time ran out while this waited: the next look gives it up.
            || upload.first_message_id < first_unexpired(now)
        {
            return Ok(Step::Elsewhere);
        }
        let nth = |n: i64| domain::ids::nth_id(upload.first_message_id, n);
        let (first, end) = (upload.expanded_rows, upload.expanded_rows + frame.rows);
        let rows = usize::try_from(frame.rows).unwrap_or(usize::MAX);
        let mixed = self.inner.router.network.only().is_none() && !upload.test;
        let queued = if mixed {
            self.routed(upload, &frame, now)?
        } else {
            Vec::new()
        };
        let stored = messages::expand(&mut tx, batch, upload, text, frame.json).await?;
        touched("messages", rows, stored)?;
        let (first_id, last_id) = (nth(first), nth(end - 1));
        if mixed {
            queue::insert(&mut tx, batch, &queued, true).await?;
        } else {
            // A test message never leaves the house.
            let only = self.inner.router.network.only().filter(|_| !upload.test);
            let carrier = only.unwrap_or(SANDBOX_CARRIER);
            let queued = queue::expand(
                &mut tx,
                (upload.id, upload.application_id),
                first_id,
                last_id,
                carrier,
                now,
            )
            .await?;
            touched("queue", rows, queued)?;
        }
        self.settle_reservation(&mut tx, upload, cost, now).await?;
        count(&mut tx.tally, first, end, upload);
        // Last, since results of the batch's messages wait for its row.
        tx.write_counts().await?;
        if !batches::advance(&mut tx, upload, &step, now).await? {
            return Ok(Step::Elsewhere);
        }
        tx.commit().await?;
        self.inner.wake(Wake::Queued);
        Ok(if end == upload.rows {
            Step::Last
        } else {
            Step::Some
        })
    }

    /// The rows of the queue, each with its carrier.
    fn routed(
        &self,
        upload: &UnexpandedBatch,
        frame: &Frame,
        now: Timestamp,
    ) -> Result<Vec<QueuedRow>> {
        let rows = frame.numbers()?.into_iter().zip(upload.expanded_rows..);
        Ok(rows
            .map(|((number, kind), place)| {
                let facts = Message {
                    number: &number,
                    kind,
                    sender: upload.sender.as_deref(),
                    application: upload.reference,
                };
                let random = self.entropy().number();
                QueuedRow {
                    message_id: domain::ids::nth_id(upload.first_message_id, place),
                    application_id: upload.application_id,
                    carrier: self.inner.router.carrier(&facts, random, &[]),
                    due_at: now.unix_ms(),
                    lease_token: 0,
                }
            })
            .collect())
    }

    /// What was reserved for these rows is earned now; a message that no carrier takes is given back later.
    async fn settle_reservation(
        &self,
        tx: &mut WriteTx<'_>,
        upload: &UnexpandedBatch,
        cost: Money,
        now: Timestamp,
    ) -> Result<()> {
        let settled = (!upload.test).then_some(MessageTransfer {
            debit: RESERVED,
            credit: REVENUE,
            amount: cost,
            kind: TransferKind::Settle,
            subject: Subject::Batch(upload.id),
            application: None,
        });
        let batch = self.store().dialect().batch();
        messages::insert_transfers(tx, batch, settled.as_slice(), now).await
    }

    /// The rows that are left become no messages: their price goes back.
    async fn give_up(&self, upload: &UnexpandedBatch, rest: MessageStatus) -> Result<Step> {
        let now = self.now();
        let batch = self.store().dialect().batch();
        let amount = upload
            .cost
            .checked_sub(upload.expanded_cost)
            .ok_or(Error::Broken(Broken::MoneyOverflow))?;
        let mut tx = self.store().begin_as(Priority::Bulk).await?;
        let id = upload.application_id;
        let found = settlement::balances(&mut tx, batch, &[id]).await?;
        if !batches::give_up(&mut tx, upload, rest, now).await? {
            return Ok(Step::Elsewhere);
        }
        let before = found.first().map_or(Money::ZERO, |(_, balance)| *balance);
        let (back, play) = if upload.test {
            (Money::ZERO, amount)
        } else {
            (amount, Money::ZERO)
        };
        let balance = before
            .checked_add(back)
            .ok_or(Error::Broken(Broken::MoneyOverflow))?;
        let row = (id, before.micros(), balance.micros(), play.micros());
        settlement::write_balances(&mut tx, batch, &[row], play_money_max()).await?;
        let release = (back > Money::ZERO).then_some(MessageTransfer {
            debit: RESERVED,
            credit: id,
            amount: back,
            kind: TransferKind::Release,
            subject: Subject::Batch(upload.id),
            application: Some((id, balance)),
        });
        messages::insert_transfers(&mut tx, batch, release.as_slice(), now).await?;
        tx.commit().await?;
        Ok(Step::Last)
    }

    /// Removes spool files that no batch needs: of uploads that a crash cut off, and of batches that were
    /// expanded just before one.
    pub(crate) async fn sweep_spools(&self) -> std::result::Result<(), OpenError> {
        if self.is_shared() {
            return Ok(());
        }
        let needed = {
            let mut conn = self.store().read().await?;
            batches::spools(&mut conn).await?
        };
        let spool = &self.inner.spool;
        // A volume that isn't mounted must not look like files that are lost.
        if !needed.is_empty() && !spool.exists() {
            return Err(OpenError::SpoolMissing(spool.path("")));
        }
        if !spool.own().map_err(OpenError::File)? {
            return Err(OpenError::Served(spool.path("").display().to_string()));
        }
        let names = spool.names().map_err(OpenError::File)?;
        for name in names.iter().filter(|name| !needed.contains(name)) {
            self.inner.spool.remove(name);
        }
        Ok(())
    }
}

/// What became of an upload's next rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// There are more.
    Some,
    /// These were the last ones.
    Last,
    /// Another process took them.
    Elsewhere,
}

/// The new messages, by the day that their ids carry.
fn count(tally: &mut Tally, first: i64, end: i64, upload: &UnexpandedBatch) {
    for n in first..end {
        let id = domain::ids::nth_id(upload.first_message_id, n);
        let day = Timestamp::from_unix_ms(domain::ids::id_unix_ms(id)).day();
        let queued = MessageStatus::Queued;
        tally.add_new(upload.application_id, upload.test, day, queued, 1);
    }
}
