//! Counts of messages by status, kept beside the messages: for each day, and for each batch. Lists and
//! charts read them, where counting millions of rows would take seconds.

use std::collections::BTreeMap;

use super::query::{Connection, query};
use domain::records::{DayCounts, StatusCounts};
use domain::{MessageStatus, Timestamp};
use serde::Deserialize;

use super::dialect::Batch;
use super::row::{self, Ids, json, touched};
use super::{WriteTx, statements};
use crate::error::Result;

statements! {
    DAYS = "SELECT day, status, n FROM message_days \
            WHERE application_id = $1 AND test = $2 AND day >= $3 AND day <= $4 ORDER BY day";
}

/// An application's messages of one day: application, test, day.
type DayKey = (i64, i64, i64);

/// What a transaction changes in the counts. It is written just before the commit, in one order: many
/// transactions change the same counts, and each keeps the others waiting from then on.
#[derive(Default)]
pub(crate) struct Tally {
    days: BTreeMap<(DayKey, &'static str), i64>,
    batches: BTreeMap<i64, StatusCounts>,
    /// When a batch is done, if it is.
    now: Option<Timestamp>,
}

impl Tally {
    /// New messages, queued. Those of a batch are counted there since its acceptance.
    pub(crate) fn add_queued(&mut self, application_id: i64, test: bool, day: i64, n: i64) {
        let key = (application_id, i64::from(test), day);
        *self
            .days
            .entry((key, MessageStatus::Queued.as_str()))
            .or_default() += n;
    }

    /// A message that becomes something else.
    pub(crate) fn change(&mut self, message: &Standing, to: MessageStatus, now: Timestamp) {
        self.now = Some(now);
        let day = Timestamp::from_unix_ms(message.created_at).day();
        let key = (message.application_id, message.test, day);
        *self.days.entry((key, message.status.as_str())).or_default() -= 1;
        *self.days.entry((key, to.as_str())).or_default() += 1;
        if let Some(batch) = message.batch_id {
            let counts = self.batches.entry(batch).or_default();
            *counts.get_mut(message.status) -= 1;
            *counts.get_mut(to) += 1;
        }
    }

    /// Writes the changes.
    pub(crate) async fn write(self, tx: &mut WriteTx<'_>) -> Result<()> {
        let batch = tx.batch();
        if !self.days.is_empty() {
            let rows: Vec<_> = self
                .days
                .into_iter()
                .map(|(((application, test, day), status), n)| (application, test, day, status, n))
                .collect();
            query(batch.add_days).bind(json(&rows)?).execute(tx).await?;
        }
        if !self.batches.is_empty() {
            let rows: Vec<_> = self
                .batches
                .into_iter()
                .map(|(id, counts)| {
                    let moved = MessageStatus::ALL.map(|status| counts.get(status));
                    (id, moved)
                })
                .collect();
            let parameter = json(&rows)?;
            if let Some(lock) = batch.lock_batches {
                query(lock)
                    .bind(&parameter)
                    .bind(tx.named())
                    .fetch_one(tx)
                    .await?;
            }
            let done = query(batch.move_batches)
                .bind(parameter)
                .bind(self.now.map_or(0, Timestamp::unix_ms))
                .bind(tx.named())
                .execute(tx)
                .await?;
            touched("batches", rows.len(), done.rows_affected())?;
        }
        Ok(())
    }
}

/// A message that isn't final, as it stands before it is changed. The fields are in the order of
/// [`Batch::standing_messages`].
#[derive(Deserialize)]
pub(crate) struct Standing {
    pub(crate) id: i64,
    pub(crate) application_id: i64,
    pub(crate) test: i64,
    pub(crate) batch_id: Option<i64>,
    /// Unix milliseconds.
    pub(crate) created_at: i64,
    pub(crate) status: MessageStatus,
    /// Micro-units.
    pub(crate) cost: i64,
}

/// Those of these messages that aren't final.
pub(crate) async fn standing(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    ids: &[i64],
) -> Result<Vec<Standing>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let ids = Ids::new(ids)?;
    let row = query(batch.standing_messages)
        .bind(ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    row::found(&row, "messages")
}

/// An application's messages by day, the first day and the last one included.
pub(crate) async fn days(
    conn: &mut dyn Connection,
    application_id: i64,
    test: bool,
    first: i64,
    last: i64,
) -> Result<Vec<DayCounts>> {
    let rows = query(DAYS)
        .bind(application_id)
        .bind(i64::from(test))
        .bind(first)
        .bind(last)
        .fetch_all(conn)
        .await?;
    let mut days: BTreeMap<i64, StatusCounts> = BTreeMap::new();
    for row in &rows {
        let status = row::word(row, "message_days", "status", MessageStatus::parse)?;
        let counts = days.entry(row::int(row, "day")?).or_default();
        *counts.get_mut(status) += row::int(row, "n")?;
    }
    Ok(days
        .into_iter()
        .map(|(day, counts)| DayCounts { day, counts })
        .collect())
}
