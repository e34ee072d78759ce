//! History: dropping old messages by day or week, folding the counts of days and quarter hours that
//! are over, and with PostgreSQL making the tables of the days to come.

use std::time::Duration;

use domain::Timestamp;
use domain::ids::{self, Shard, id_of_day};

use crate::error::Result;
use crate::store::gate::Priority;
use crate::store::history::{self, MessageTables, Range};
use crate::store::{Chore, Store, WriteTx, installation, messages, quarters, tally};
use crate::{Service, run_detached, run_detached_within};

/// For how many days tables are made ahead: the rows of a day without tables go into the default
/// partition.
const DAYS_AHEAD: i64 = 3;
/// How many rows one transaction deletes where a day has no tables.
const CHUNK: i64 = 2000;
/// How long one transaction may take: a table may have millions of messages to add up.
const DROP_TIMEOUT: Duration = Duration::from_mins(20);
/// How many tables or chunks one run drops at most: other sweeps wait meanwhile.
const CHUNKS_MAX: u32 = 500;

impl Service {
    /// Makes the tables of the days to come.
    pub async fn make_days(&self) -> Result<()> {
        let service = self.clone();
        run_detached(async move {
            let tables = service.limits().message_tables;
            make_days(service.store(), service.now(), tables).await
        })
        .await
    }

    /// Drops messages of days that are no longer kept, once they are final; their transfers stay.
    /// Those of a week's table are dropped once this holds for all of them.
    pub async fn drop_history(&self) -> Result<()> {
        for _ in 0..CHUNKS_MAX {
            let service = self.clone();
            if !run_detached_within(DROP_TIMEOUT, async move { service.drop_some().await }).await? {
                break;
            }
        }
        Ok(())
    }

    /// Drops a table or a chunk; false when nothing is left to drop.
    async fn drop_some(&self) -> Result<bool> {
        let now = self.now();
        let store = self.store();
        let tx = store
            .begin_chore(Chore::DropHistory, Shard::FIRST, Priority::Bulk)
            .await?;
        let Some(mut tx) = tx else { return Ok(false) };
        let kept_from = id_of_day(now.day() - self.limits().history_days);
        // Every message below the sweep's mark is final.
        let below = kept_from.min(installation::swept(&mut tx).await?.low);
        let low = installation::history_low(&mut tx).await?;
        let shards: Vec<Shard> = self.shards().collect();
        let Some(first) = first(&mut tx, &shards, low, below).await? else {
            return Ok(false);
        };
        let day = Timestamp::from_unix_ms(ids::id_unix_ms(first)).day();
        let table = store.dialect().day_table(&mut tx, day).await?;
        // A table is dropped when all messages in it may be dropped.
        let range = if let Some(table) = &table {
            let kept = self::first(&mut tx, &shards, below, table.range.below).await?;
            if table.range.below > kept_from || kept.is_some() {
                return Ok(false);
            }
            table.range
        } else {
            let mut end = id_of_day(day + 1).min(below);
            for shard in &shards {
                tx.at(*shard);
                let of_shard = messages::nth_after(&mut tx, first, CHUNK).await?;
                end = end.min(of_shard.unwrap_or(i64::MAX));
            }
            Range {
                from: first,
                below: end,
            }
        };
        store.dialect().take_time(&mut tx).await?;
        for shard in shards {
            tx.at(shard);
            history::sum_up(&mut tx, range).await?;
            if table.is_none() {
                history::delete(&mut tx, range).await?;
            }
            history::forget_shared_texts(&mut tx, range).await?;
            store.dialect().forget_unusual(&mut tx, range).await?;
        }
        if let Some(table) = table {
            store.dialect().drop_tables(&mut tx, &table).await?;
        }
        installation::set_history_low(&mut tx, range.below).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Drops messages of test keys of days that are no longer kept, with their counts and batches.
    pub async fn drop_tests(&self) -> Result<()> {
        let days = self.limits().test_history_days;
        // The chore that folds counts must not add up what is deleted meanwhile.
        self.do_chore(Chore::FoldDays, Priority::Bulk, move |tx, now| {
            Box::pin(async move {
                let below = now.day() - days;
                installation::raise_test_low(tx, id_of_day(below)).await?;
                // Every message below the sweep's mark is final.
                let low = installation::swept(tx).await?.low;
                history::delete_tests(tx, below, low, CHUNK).await
            })
        })
        .await
    }

    /// Folds the parts of counts by day and by quarter hour, where all messages are final.
    pub async fn fold_days(&self) -> Result<()> {
        self.do_chore(Chore::FoldDays, Priority::Bulk, |tx, _| {
            Box::pin(async move {
                // Every message below the sweep's mark is final, but the mark's own day isn't over.
                let low = installation::swept(tx).await?.low;
                let low = Timestamp::from_unix_ms(ids::id_unix_ms(low));
                if let Some(day) = tally::first_unfolded(tx, low.day()).await? {
                    tally::fold(tx, day).await?;
                    return Ok(true);
                }
                let Some(quarter) = quarters::first_unfolded(tx, low.quarter()).await? else {
                    return Ok(false);
                };
                quarters::fold(tx, quarter).await?;
                Ok(true)
            })
        })
        .await
    }
}

/// The first message in a range of ids, of all shards: a table, which has the messages of all
/// shards, is dropped at once.
async fn first(
    tx: &mut WriteTx<'_>,
    shards: &[Shard],
    from: i64,
    below: i64,
) -> Result<Option<i64>> {
    let mut first: Option<i64> = None;
    for shard in shards {
        tx.at(*shard);
        let of_shard = messages::first(tx, from, below).await?;
        first = first.into_iter().chain(of_shard).min();
    }
    Ok(first)
}

/// Makes the tables of today and the days to come at a start. The start doesn't fail without them:
/// the rows of a day without tables have a place, and making the tables is tried again.
pub(crate) async fn make_first_days(store: &Store, now: Timestamp, tables: MessageTables) {
    if let Err(error) = make_days(store, now, tables).await {
        tracing::warn!(detail = ?error, "the tables of the days to come can't be made yet");
    }
}

/// Makes the tables of today and the days to come, where days have tables.
async fn make_days(store: &Store, now: Timestamp, tables: MessageTables) -> Result<()> {
    make_tables(store, now.day()..=now.day() + DAYS_AHEAD, tables).await
}

/// Makes the tables of some days (since 1970-01-01 UTC), where days have tables. One process at a
/// time does so: those with another setting find the day in the table that is there.
pub(crate) async fn make_tables(
    store: &Store,
    days: impl IntoIterator<Item = i64>,
    tables: MessageTables,
) -> Result<()> {
    for day in days {
        let tx = store
            .begin_chore(Chore::DropHistory, Shard::FIRST, Priority::Bulk)
            .await?;
        let Some(mut tx) = tx else { return Ok(()) };
        store.dialect().make_day(&mut tx, day, tables).await?;
        // Also where nothing was made: a rollback might end only after the next day was passed
        // over, because the chore is still locked.
        tx.commit().await?;
    }
    Ok(())
}
