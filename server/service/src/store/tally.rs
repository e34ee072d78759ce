//! Counts of messages by status, kept beside the messages: for each day, and for each batch. Lists and
//! charts read them, where counting millions of rows would take seconds.

use std::collections::BTreeMap;

use domain::records::{DayCounts, StatusCounts};
use domain::{MessageStatus, Timestamp};
use sqlx::AnyConnection;

use super::dialect::Batch;
use super::row::{self, json, touched};
use super::statements;
use crate::error::Result;

statements! {
    DAYS = "SELECT day, status, n FROM message_days \
            WHERE application_id = $1 AND test = $2 AND day >= $3 AND day <= $4 ORDER BY day";
}

/// An application's messages of one day: application, test, day.
type DayKey = (i64, i64, i64);

/// What changes in the counts.
#[derive(Default)]
pub(crate) struct Tally {
    days: BTreeMap<(DayKey, &'static str), i64>,
    batches: BTreeMap<i64, StatusCounts>,
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

    fn move_some(&mut self, group: &Group, to: MessageStatus) {
        let Group { from, n, .. } = *group;
        *self.days.entry((group.day, from.as_str())).or_default() -= n;
        *self.days.entry((group.day, to.as_str())).or_default() += n;
        if let Some(batch) = group.batch_id {
            let counts = self.batches.entry(batch).or_default();
            *counts.get_mut(from) -= n;
            *counts.get_mut(to) += n;
        }
    }

    /// Writes the changes.
    pub(crate) async fn write(
        self,
        conn: &mut AnyConnection,
        batch: &Batch,
        now: Timestamp,
    ) -> Result<()> {
        if !self.days.is_empty() {
            let rows: Vec<_> = self
                .days
                .into_iter()
                .map(|(((application, test, day), status), n)| (application, test, day, status, n))
                .collect();
            sqlx::query(batch.add_days)
                .bind(json(&rows)?)
                .execute(&mut *conn)
                .await?;
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
            let done = sqlx::query(batch.move_batches)
                .bind(json(&rows)?)
                .bind(now.unix_ms())
                .execute(conn)
                .await?;
            touched("batches", rows.len(), done.rows_affected())?;
        }
        Ok(())
    }
}

/// Messages that change in the same way.
struct Group {
    day: DayKey,
    batch_id: Option<i64>,
    from: MessageStatus,
    n: i64,
}

/// Counts what is about to change: messages and what each becomes. Those that can't become it any more
/// stay as they are and aren't counted; the statement that changes them must leave the same ones alone.
pub(crate) async fn count_changes(
    conn: &mut AnyConnection,
    batch: &Batch,
    changes: impl Iterator<Item = (i64, MessageStatus)>,
    now: Timestamp,
) -> Result<()> {
    let changes: Vec<_> = changes.map(|(id, to)| (id, to.as_str())).collect();
    if changes.is_empty() {
        return Ok(());
    }
    let rows = sqlx::query(batch.group_changes)
        .bind(json(&changes)?)
        .fetch_all(&mut *conn)
        .await?;
    let mut tally = Tally::default();
    for row in &rows {
        let to = row::word(row, "messages", "becomes", MessageStatus::parse)?;
        let group = Group {
            day: (
                row::int(row, "application_id")?,
                row::int(row, "test")?,
                row::int(row, "day")?,
            ),
            batch_id: row::opt_int(row, "batch_id")?,
            from: row::word(row, "messages", "status", MessageStatus::parse)?,
            n: row::int(row, "n")?,
        };
        if group.from.may_become(to) {
            tally.move_some(&group, to);
        }
    }
    tally.write(conn, batch, now).await
}

/// An application's messages by day, the first day and the last one included.
pub(crate) async fn days(
    conn: &mut AnyConnection,
    application_id: i64,
    test: bool,
    first: i64,
    last: i64,
) -> Result<Vec<DayCounts>> {
    let rows = sqlx::query(DAYS)
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
