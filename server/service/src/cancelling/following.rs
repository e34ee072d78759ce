//! The rows of cancelled and of resumed batches. They follow the commit that cancelled or resumed
//! their batch, some per transaction, so that sends don't wait for them.

use std::time::{Duration, Instant};

use domain::ids::Shard;
use domain::{MessageStatus, Timestamp, Transid};

use crate::delivery::opted_out::withdraw;
use crate::money::releases::settle;
use crate::wakeups::Wakeup;
use crate::{Messages, run_detached_with_attempts};
use store::batches::{self, StoppableBatch};
use store::error::Result;
use store::gate::Priority;
use store::{Chore, Tx, queue};

/// The maximum number of resumed rows that one transaction changes, which takes some milliseconds.
const CHUNK: i64 = 500;
/// The number of rows after which the transaction checks whether another one waits for it. They
/// take about three milliseconds. With fewer rows, most of the time goes into commits, and into the
/// sends in between. With more, sends wait longer.
const PART: i64 = 200;
/// How long a transaction cancels rows while nobody waits for it. Work that arrives meanwhile also
/// waits for the commit, which takes longer the more rows there are.
const TIME_MAX: Duration = Duration::from_millis(5);
/// How long a run goes on with a batch before it looks for others.
const RUN_TIME: Duration = Duration::from_millis(500);
/// How long the job searches for rows of a resumed batch. A claim that began before the batch was
/// resumed may still defer some.
const RESUMED_MS: i64 = 60_000;
/// How long the request that cancelled a batch may take to count its rows. After that it has
/// failed.
const COUNTED_AFTER_MS: i64 = 10_000;

impl Messages<'_> {
    /// Cancels rows of cancelled batches, and puts rows of resumed batches into the queue again.
    /// Returns false if there was nothing to do.
    pub async fn follow_stops(&self) -> Result<bool> {
        let followed = self.in_each_shard(|shard| async move {
            let followed = batches::followed(&mut self.store().read_at(shard).await?).await?;
            let mut is_changed = false;
            for batch in followed {
                is_changed |= self.follow(shard, batch).await?;
            }
            Ok(is_changed)
        });
        Ok(followed.await?.into_iter().any(|is_changed| is_changed))
    }

    async fn follow(&self, shard: Shard, batch: StoppableBatch) -> Result<bool> {
        if batch.is_cancelling && batch.cancelled.is_none() {
            let now = self.now();
            let is_late = |at| now.ms_since(at) > COUNTED_AFTER_MS;
            if !batch.cancelled_at.is_some_and(is_late) {
                return Ok(false);
            }
            self.count_cancelled(shard, batch.stream, batch.id, None).await?;
            return Ok(true);
        }
        let begun = Instant::now();
        let (mut from, mut is_changed) = (batch.ids.0, false);
        while begun.elapsed() < RUN_TIME {
            let ids = (from, batch.ids.1);
            let step = run_detached_with_attempts(self, move |service| async move {
                service.messages().follow_chunk(shard, batch, ids).await
            });
            let Some(last) = step.await? else { break };
            (from, is_changed) = (last.0 + 1, true);
        }
        if is_changed && !batch.is_cancelling {
            self.inner.wake(Wakeup::Queued);
        }
        Ok(is_changed)
    }

    /// Changes the next rows of a batch. Returns the last of them, or `None` if there were none.
    async fn follow_chunk(
        &self,
        shard: Shard,
        batch: StoppableBatch,
        ids: (i64, i64),
    ) -> Result<Option<Transid>> {
        let chore = Chore::Expand(batch.id);
        let tx = self.store().begin_chore(chore, shard, Priority::Bulk).await?;
        let Some(mut tx) = tx else { return Ok(None) };
        tx.at(shard);
        let now = self.now();
        let last = if batch.is_cancelling {
            self.cancel_rows(&mut tx, ids, now).await?
        } else {
            let resumed = queue::resume_batch(&mut tx, ids, CHUNK, now).await?;
            (resumed > 0).then_some(Transid(ids.0 - 1))
        };
        if last.is_none() && ids.0 == batch.ids.0 {
            if batch.is_cancelling {
                batches::set_cancelled(&mut tx, batch.id).await?;
            } else {
                batches::set_resumed(&mut tx, batch.id, now.plus_ms(-RESUMED_MS)).await?;
            }
        }
        tx.commit().await?;
        Ok(last)
    }

    /// Cancels rows of a batch until somebody waits to write. Returns the last of them.
    async fn cancel_rows(
        &self,
        tx: &mut Tx<'_>,
        (mut from, last): (i64, i64),
        now: Timestamp,
    ) -> Result<Option<Transid>> {
        let (begun, mut latest) = (Instant::now(), None);
        while begun.elapsed() < TIME_MAX {
            let ids = queue::of_batch(tx, (from, last), PART).await?;
            let Some(id) = ids.last() else { break };
            (latest, from) = (Some(*id), id.0 + 1);
            let ended = withdraw(tx, &ids, (MessageStatus::Cancelled, None), now).await?;
            settle(tx, &ended, now).await?;
            if self.store().does_somebody_wait() {
                break;
            }
        }
        Ok(latest)
    }
}
