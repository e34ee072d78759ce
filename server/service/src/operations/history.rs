//! The upkeep of stored messages. Drops old ones by day or week, and removes numbers and texts from
//! those that stay. Folds the counts of past days and quarter hours. With PostgreSQL, creates the
//! tables of the coming days.

use std::time::Duration;

use domain::Timestamp;
use domain::ids::{self, Shard, id_of_day};

use crate::delivery::expiry::final_below;
use crate::transactions::work;
use crate::{Operations, run_detached, run_detached_within};
use store::error::Result;
use store::gate::Priority;
use store::history::{self, MessageTables, Range, Redaction};
use store::{Chore, Store, Tx, batches, inbound, installation, messages, quarters, tally};

/// The number of days for which tables are created in advance. Rows of a day without tables go into
/// the default partition.
const DAYS_AHEAD: i64 = 3;
/// The number of rows that one transaction deletes if their day has no table.
const CHUNK: i64 = 2000;
/// The timeout of a transaction. A table may have millions of messages to add up.
const DROP_TIMEOUT: Duration = Duration::from_mins(20);
/// The most tables or chunks that one run drops, because other sweeps wait meanwhile.
const CHUNKS_MAX: u32 = 500;
/// The number of days that messages of test keys are kept.
pub(crate) const TEST_HISTORY_DAYS: i64 = 7;

impl Operations<'_> {
    /// Creates the tables of the coming days.
    pub async fn make_days(&self) -> Result<()> {
        let service = self.0.clone();
        run_detached(async move {
            let tables = service.limits().message_tables;
            make_days(service.store(), service.now(), tables).await
        })
        .await
    }

    /// Drops the final messages of days that are no longer kept. Their transfers stay. A week's
    /// table is dropped once all of its messages are final and none of its days is kept.
    pub async fn drop_history(&self) -> Result<()> {
        for _ in 0..CHUNKS_MAX {
            let service = self.0.clone();
            if !run_detached_within(
                DROP_TIMEOUT,
                async move { service.operations().drop_some().await },
            )
            .await?
            {
                break;
            }
        }
        Ok(())
    }

    /// Drops a table or a chunk. Returns false if there is nothing left to drop.
    async fn drop_some(&self) -> Result<bool> {
        let now = self.now();
        let store = self.store();
        let tx = store.begin_chore(Chore::DropHistory, Shard::FIRST, Priority::Bulk).await?;
        let Some(mut tx) = tx else { return Ok(false) };
        let kept_from = id_of_day(now.day() - self.limits().history_days);
        let shards: Vec<Shard> = self.shards().collect();
        let below = kept_from.min(all_final_below(&mut tx, &shards, now).await?);
        let low = installation::history_low(&mut tx).await?;
        let Some(first) = first(&mut tx, &shards, low, below).await? else {
            tx.commit().await?;
            return Ok(false);
        };
        let day = Timestamp::from_unix_ms(ids::id_unix_ms(first)).day();
        let table = store.dialect().day_table(&mut tx, day).await?;
        // A table is dropped only when all messages in it may be dropped.
        let range = if let Some(table) = &table {
            let kept = self::first(&mut tx, &shards, below, table.range.below).await?;
            if table.range.below > kept_from || kept.is_some() {
                tx.commit().await?;
                return Ok(false);
            }
            table.range
        } else {
            let end = id_of_day(day + 1).min(below);
            chunk(&mut tx, &shards, Range { from: first, below: end }).await?
        };
        store.dialect().take_time(&mut tx).await?;
        for shard in shards {
            tx.at(shard);
            history::sum_up(&mut tx, range).await?;
            if table.is_none() {
                history::delete(&mut tx, range).await?;
            }
            store.dialect().forget_unusual(&mut tx, range).await?;
        }
        if let Some(table) = table {
            store.dialect().drop_tables(&mut tx, &table).await?;
        }
        installation::set_history_low(&mut tx, range.below).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Masks numbers that are older than the setting `mask_numbers_days`: those of final messages,
    /// of inbound messages and of verifications.
    pub async fn mask_numbers(&self) -> Result<()> {
        self.redact(Redaction::Numbers).await
    }

    /// Erases texts that are older than the setting `text_days`: those of final messages and of
    /// inbound messages. Also erases the shared texts of batches whose messages were dropped.
    pub async fn erase_texts(&self) -> Result<()> {
        self.redact(Redaction::Texts).await?;
        self.do_chore(
            Chore::DropHistory,
            Priority::Bulk,
            work!(|tx, _| {
                let erased = installation::redacted_low(tx, Redaction::Texts).await?;
                let below = erased.max(installation::history_low(tx).await?);
                history::erase_shared_texts(tx, below, CHUNK).await
            }),
        )
        .await
    }

    async fn redact(&self, redaction: Redaction) -> Result<()> {
        for _ in 0..CHUNKS_MAX {
            let service = self.0.clone();
            let redacting =
                run_detached(async move { service.operations().redact_some(redaction).await });
            if !redacting.await? {
                break;
            }
        }
        Ok(())
    }

    /// Masks the numbers or erases the texts of some messages. Returns false if none are left.
    async fn redact_some(&self, redaction: Redaction) -> Result<bool> {
        let days = match redaction {
            Redaction::Numbers => self.limits().mask_numbers_days,
            Redaction::Texts => self.limits().text_days,
        };
        if days == 0 {
            return Ok(false);
        }
        // Runs as the chore that drops history, so that nothing drops the messages meanwhile.
        let chore = Chore::DropHistory;
        let tx = self.store().begin_chore(chore, Shard::FIRST, Priority::Bulk).await?;
        let Some(mut tx) = tx else { return Ok(false) };
        let shards: Vec<Shard> = self.shards().collect();
        let day = id_of_day(self.now().day() - days);
        let below = swept_below(&mut tx, &shards, day).await?;
        let from = installation::redacted_low(&mut tx, redaction).await?;
        if from > day {
            // The mark is too high: the clock was fast and has been corrected, or the setting was
            // raised. Without this, rows that are stored below the mark later would never be
            // redacted.
            installation::set_redacted_low(&mut tx, redaction, day).await?;
        }
        if from >= below {
            tx.commit().await?;
            return Ok(false);
        }
        let range = redacted_chunk(&mut tx, &shards, Range { from, below }).await?;
        for shard in shards {
            tx.at(shard);
            history::redact(&mut tx, redaction, range).await?;
        }
        installation::set_redacted_low(&mut tx, redaction, range.below).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Drops the messages of test keys of days that are no longer kept, with their counts and
    /// batches.
    pub async fn drop_tests(&self) -> Result<()> {
        // Runs as the chore that folds counts, so that no process folds the counts that this one
        // deletes.
        self.do_chore(
            Chore::FoldDays,
            Priority::Bulk,
            work!(|tx, now| {
                let below = now.day() - TEST_HISTORY_DAYS;
                installation::raise_test_low(tx, id_of_day(below)).await?;
                history::delete_tests(tx, below, CHUNK).await
            }),
        )
        .await
    }

    /// Folds the counts of each past day and quarter hour into one row per status, because each
    /// process adds to its own rows. By then all messages are final, except those that were
    /// scheduled for later. Each of these adds rows again, which the next run folds.
    pub async fn fold_days(&self) -> Result<()> {
        self.in_each_shard(|shard| self.fold_in(shard)).await.map(drop)
    }

    async fn fold_in(&self, shard: Shard) -> Result<()> {
        let (days, quarters) = {
            let mut conn = self.store().read_at(shard).await?;
            // Later messages of the mark's day may not be final.
            let low = installation::swept(&mut conn).await?.low;
            let low = Timestamp::from_unix_ms(ids::id_unix_ms(low));
            let days = tally::unfolded(&mut conn, low.day()).await?;
            (days, quarters::unfolded(&mut conn, low.quarter()).await?)
        };
        let (chore, priority) = (Chore::FoldDays, Priority::Bulk);
        for day in days {
            self.do_chore_at(
                shard,
                chore,
                priority,
                work!(|tx, _| {
                    tally::fold(tx, day).await?;
                    Ok(false)
                }),
            )
            .await?;
        }
        for quarter in quarters {
            self.do_chore_at(
                shard,
                chore,
                priority,
                work!(|tx, _| {
                    quarters::fold(tx, quarter).await?;
                    Ok(false)
                }),
            )
            .await?;
        }
        Ok(())
    }
}

/// Returns the first message in a range of IDs, over all shards. A table has the messages of all
/// shards and is dropped as a whole.
async fn first(tx: &mut Tx<'_>, shards: &[Shard], from: i64, below: i64) -> Result<Option<i64>> {
    let mut first: Option<i64> = None;
    for shard in shards {
        tx.at(*shard);
        let of_shard = messages::first(tx, from, below).await?;
        first = first.into_iter().chain(of_shard).min();
    }
    Ok(first)
}

/// Returns the ID below which all messages are final, in all shards.
async fn all_final_below(tx: &mut Tx<'_>, shards: &[Shard], now: Timestamp) -> Result<i64> {
    let mut below = i64::MAX;
    for shard in shards {
        tx.at(*shard);
        below = below.min(final_below(tx, now).await?);
    }
    Ok(below)
}

/// Returns the start of a range, with at most [`CHUNK`] messages of each shard.
async fn chunk(tx: &mut Tx<'_>, shards: &[Shard], range: Range) -> Result<Range> {
    let mut below = range.below;
    for shard in shards {
        tx.at(*shard);
        let of_shard = messages::nth_after(tx, range.from, CHUNK).await?;
        below = below.min(of_shard.unwrap_or(i64::MAX));
    }
    Ok(Range { below, ..range })
}

/// Returns an ID, at most `below`, below which all messages are final, except those that were
/// scheduled for a later time than that in the ID. The sweep's mark is such an ID. But the mark
/// never passes the newest message, so on its own it would hold back inbound messages, for example.
async fn swept_below(tx: &mut Tx<'_>, shards: &[Shard], below: i64) -> Result<i64> {
    let low = installation::swept(tx).await?.low;
    let mut swept = below;
    if low < below {
        let times = [low, below].map(|id| Timestamp::from_unix_ms(ids::id_unix_ms(id)));
        for shard in shards {
            tx.at(*shard);
            let first = messages::first(tx, low, below).await?;
            let open = messages::least_scheduled(tx, times[0], times[1]).await?.map(|_| low);
            // Rows of an upload have IDs before they are messages.
            let unexpanded = batches::least_unexpanded(tx).await?;
            swept = [first, open, unexpanded].into_iter().flatten().fold(swept, i64::min);
        }
    }
    Ok(swept)
}

/// Like [`chunk`], also with at most [`CHUNK`] inbound messages and messages that were scheduled
/// for a time in the range. Messages for the same millisecond stay together.
async fn redacted_chunk(tx: &mut Tx<'_>, shards: &[Shard], range: Range) -> Result<Range> {
    let mut range = chunk(tx, shards, range).await?;
    let first = Timestamp::from_unix_ms(ids::id_unix_ms(range.from));
    for shard in shards {
        tx.at(*shard);
        let scheduled = messages::nth_scheduled(tx, first, CHUNK).await?;
        let scheduled = scheduled.map(|at| at.max(first.plus_ms(1)));
        let scheduled = scheduled.map(|at| ids::compose_id(at.unix_ms(), 0));
        let inbound = inbound::nth_after(tx, range.from, CHUNK).await?;
        range.below = [scheduled, inbound].into_iter().flatten().fold(range.below, i64::min);
    }
    Ok(range)
}

/// Creates the tables of today and the coming days when a process starts. If that fails, the start
/// continues, because rows of a day without tables go into the default partition, and creating the
/// tables is retried.
pub(crate) async fn make_first_days(store: &Store, now: Timestamp, tables: MessageTables) {
    if let Err(error) = make_days(store, now, tables).await {
        tracing::warn!(detail = ?error, "can't create the tables of the coming days yet");
    }
}

/// Creates the tables of today and the coming days, if messages are in tables by day or week.
async fn make_days(store: &Store, now: Timestamp, tables: MessageTables) -> Result<()> {
    make_tables(store, now.day()..=now.day() + DAYS_AHEAD, tables).await
}

/// Creates the tables of some days (since 1970-01-01 UTC), if messages are in tables by day or
/// week. Only one process at a time does so. Existing tables stay, even if a process with another
/// `message_tables` setting created them.
pub(crate) async fn make_tables(
    store: &Store,
    days: impl IntoIterator<Item = i64>,
    tables: MessageTables,
) -> Result<()> {
    for day in days {
        let tx = store.begin_chore(Chore::DropHistory, Shard::FIRST, Priority::Bulk).await?;
        let Some(mut tx) = tx else { return Ok(()) };
        store.dialect().make_day(&mut tx, day, tables).await?;
        tx.commit().await?;
    }
    Ok(())
}
