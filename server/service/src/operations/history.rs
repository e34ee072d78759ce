//! Old messages, dropped by day; the counts of days that are over; and with PostgreSQL the tables
//! of the days to come.

use std::time::Duration;

use domain::Timestamp;
use domain::ids::{self, id_of_day};

use crate::error::Result;
use crate::store::gate::Priority;
use crate::store::history::{self, Range};
use crate::store::{Chore, Store, installation, messages, tally};
use crate::{Service, run_detached, run_detached_within};

/// Days whose tables are made ahead of time: a process that can't make them for so long puts its
/// rows elsewhere.
const DAYS_AHEAD: i64 = 3;
/// Rows that one transaction deletes where a day has no table of its own.
const CHUNK: i64 = 2000;
/// A day may have millions of messages to add up.
const DROP_TIMEOUT: Duration = Duration::from_mins(20);
/// What is dropped at a time: other sweeps wait.
const CHUNKS_MAX: u32 = 500;

impl Service {
    /// Makes the tables of the days to come.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn make_days(&self) -> Result<()> {
        let service = self.clone();
        run_detached(async move { make_days(service.store(), service.now()).await }).await
    }

    /// Drops messages whose days are over, once they are final; their transfers stay.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn drop_history(&self) -> Result<()> {
        for _ in 0..CHUNKS_MAX {
            let service = self.clone();
            if !run_detached_within(DROP_TIMEOUT, async move { service.drop_some().await }).await? {
                break;
            }
        }
        Ok(())
    }

    /// False when there is nothing left to drop.
    async fn drop_some(&self) -> Result<bool> {
        let now = self.now();
        let store = self.store();
        let tx = store
            .begin_chore(Chore::DropHistory, Priority::Bulk)
            .await?;
        let Some(mut tx) = tx else { return Ok(false) };
        let kept_from = id_of_day(now.day() - self.limits().history_days);
        // Below the sweep's mark everything is final.
        let below = kept_from.min(installation::swept(&mut tx).await?.low);
        let low = installation::history_low(&mut tx).await?;
        let Some(first) = messages::first(&mut tx, low, below).await? else {
            return Ok(false);
        };
        let day = Timestamp::from_unix_ms(ids::id_unix_ms(first)).day();
        let whole_day = Range {
            from: first.min(id_of_day(day)),
            below: id_of_day(day + 1),
        };
        let table = store.dialect().day_table(&mut tx, day).await?;
        // The day's table goes when all that is in it may.
        let range = if table.is_some() {
            let kept = messages::first(&mut tx, below, whole_day.below).await?;
            if whole_day.below > kept_from || kept.is_some() {
                return Ok(false);
            }
            whole_day
        } else {
            let end = messages::nth_after(&mut tx, first, CHUNK).await?;
            Range {
                from: first,
                below: end.unwrap_or(i64::MAX).min(whole_day.below).min(below),
            }
        };
        store.dialect().take_time(&mut tx).await?;
        history::sum_up(&mut tx, day, range).await?;
        match table {
            Some(name) => store.dialect().drop_day(&mut tx, &name).await?,
            None => history::delete(&mut tx, range).await?,
        }
        store.dialect().forget_unusual(&mut tx, range).await?;
        installation::set_history_low(&mut tx, range.below).await?;
        tx.commit().await?;
        Ok(true)
    }

    /// Puts the parts of counts by day together, for days whose messages are all final.
    ///
    /// # Errors
    /// `Failed` or `Uncertain` when the database can't be written.
    pub async fn fold_days(&self) -> Result<()> {
        self.do_chore(Chore::FoldDays, Priority::Bulk, |tx, _| {
            Box::pin(async move {
                // Below the sweep's mark everything is final, and the mark's own day goes on.
                let low = installation::swept(tx).await?.low;
                let below = Timestamp::from_unix_ms(ids::id_unix_ms(low)).day();
                let Some(day) = tally::first_unfolded(tx, below).await? else {
                    return Ok(false);
                };
                tally::fold(tx, day).await?;
                Ok(true)
            })
        })
        .await
    }
}

/// Makes the tables of today and the days to come at a start, which doesn't fail without them: rows
/// of a day that has none find their place, and it is tried again.
pub(crate) async fn make_first_days(store: &Store, now: Timestamp) {
    if let Err(error) = make_days(store, now).await {
        tracing::warn!(detail = ?error, "the tables of the days to come can't be made yet");
    }
}

/// Makes the tables of today and the days to come, where days have tables.
pub(crate) async fn make_days(store: &Store, now: Timestamp) -> Result<()> {
    make_tables(store, now.day()..=now.day() + DAYS_AHEAD).await
}

/// Makes the tables of some days (since 1970-01-01 UTC), where days have tables.
pub(crate) async fn make_tables(store: &Store, days: impl IntoIterator<Item = i64>) -> Result<()> {
    for day in days {
        let tx = store
            .begin_chore(Chore::DropHistory, Priority::Bulk)
            .await?;
        let Some(mut tx) = tx else { return Ok(()) };
        if store.dialect().make_day(&mut tx, day).await? {
            tx.commit().await?;
        }
    }
    Ok(())
}
