//! Reading messages for reports.

use super::query::{Connection, Query, query, query_of};
use domain::records::{MessageRecord, TimelineEntry};
use domain::{BatchId, Kind, MessageStatus, Money, Timestamp, Transid};
use serde::Deserialize;

use super::dialect::Batch;
use super::row;
use super::statements;
use crate::error::Result;

statements! {
    /// The id before which a scan of so many rows ends; from the index alone.
    SCAN_END = "SELECT id FROM messages \
                WHERE application_id = $1 AND test = $2 AND id >= $3 AND id < $4 \
                ORDER BY id DESC LIMIT 1 OFFSET $5";
    COUNT = "SELECT COUNT(*) AS n FROM messages WHERE application_id = $1 AND test = $2 AND id >= $3 AND id < $4";
    EVENTS = "SELECT status, at, detail FROM message_events \
              WHERE message_id = $1 AND application_id = $2 ORDER BY id";
}

/// A condition on messages.
#[derive(Clone)]
pub(crate) enum Condition {
    Requestid(String),
    Batch(BatchId),
    Number(String),
    Status(MessageStatus),
}

impl Condition {
    const fn sql(&self) -> &'static str {
        match self {
            Self::Requestid(_) => "requestid = ",
            Self::Batch(_) => "batch_id = ",
            Self::Number(_) => "number = ",
            Self::Status(_) => "status = ",
        }
    }

    fn bind(self, query: Query) -> Query {
        match self {
            Self::Requestid(text) | Self::Number(text) => query.bind(text),
            Self::Batch(id) => query.bind(id.0),
            Self::Status(status) => query.bind(status.code()),
        }
    }
}

/// Which messages of one application and key kind, newest first.
pub(crate) struct Selection {
    pub(crate) application_id: i64,
    pub(crate) test: bool,
    /// Ids from this one on.
    pub(crate) from: i64,
    /// Ids below this one.
    pub(crate) below: i64,
    pub(crate) conditions: Vec<Condition>,
    pub(crate) limit: i64,
}

/// A message as it is stored.
pub(crate) struct MessageRow {
    pub(crate) application_id: i64,
    pub(crate) record: MessageRecord,
    pub(crate) unit_price: Money,
    pub(crate) released: Money,
    pub(crate) carrier: Option<String>,
    pub(crate) sending_at: Option<Timestamp>,
}

/// The columns of a message in the order of [`Batch::listed_messages`].
#[derive(Deserialize)]
struct Columns {
    id: i64,
    application_id: i64,
    test: i64,
    number: String,
    kind: Kind,
    sender: Option<String>,
    body: String,
    requestid: Option<String>,
    batch_id: Option<i64>,
    #[serde(deserialize_with = "row::status_in_json")]
    status: MessageStatus,
    pages: i64,
    segments: i64,
    unit_price: i64,
    cost: i64,
    released: i64,
    error: Option<String>,
    carrier: Option<String>,
    created_at: i64,
    sending_at: Option<i64>,
    submitted_at: Option<i64>,
    final_at: Option<i64>,
}

impl From<Columns> for MessageRow {
    fn from(columns: Columns) -> Self {
        let moment = Timestamp::from_unix_ms;
        Self {
            application_id: columns.application_id,
            unit_price: Money::from_micros(columns.unit_price),
            released: Money::from_micros(columns.released),
            carrier: columns.carrier,
            sending_at: columns.sending_at.map(moment),
            record: MessageRecord {
                transid: Transid(columns.id),
                requestid: columns.requestid,
                batchid: columns.batch_id.map(BatchId),
                number: columns.number,
                kind: columns.kind,
                sender: columns.sender,
                message: columns.body,
                status: columns.status,
                pages: columns.pages,
                segments: columns.segments,
                cost: Money::from_micros(columns.cost),
                error: columns.error,
                created_at: moment(columns.created_at),
                submitted_at: columns.submitted_at.map(moment),
                final_at: columns.final_at.map(moment),
                test: columns.test == 1,
            },
        }
    }
}

/// The statement for such conditions: of fixed parts alone, each value a parameter.
fn list_sql(batch: &Batch, conditions: &[Condition]) -> String {
    use std::fmt::Write as _;
    let mut sql = format!(
        "{} FROM (SELECT * FROM messages WHERE application_id = $1 AND test = $2 AND id >= $3 AND id < $4",
        batch.listed_messages
    );
    for (place, condition) in conditions.iter().enumerate() {
        // Writing to a String can't fail.
        let _ = write!(sql, " AND {}${}", condition.sql(), place + 6);
    }
    sql.push_str(" ORDER BY id DESC LIMIT $5) m");
    sql
}

/// The ranges of ids to look in, newest first, each reaching back further than the one before: where messages are in
/// tables by day, a look at all of them at once would open every one.
fn ranges(batch: &Batch, from: i64, below: i64, now: Timestamp) -> Vec<(i64, i64)> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    /// The first range; each is four times the one before.
    const FIRST_DAYS: i64 = 2;
    const DAYS_MAX: i64 = 64;
    if !batch.by_day || from >= below {
        return vec![(from, below)];
    }
    // Ids of uploads are a little ahead of the clock, and clocks may have been.
    let newest = domain::ids::compose_id(now.unix_ms() + DAY_MS, 0).clamp(from, below);
    let mut ranges = vec![(newest, below)];
    let (mut end, mut days) = (newest, FIRST_DAYS);
    while end > from {
        let reach = domain::ids::compose_id(domain::ids::id_unix_ms(end) - days * DAY_MS, 0);
        ranges.push((reach.max(from), end));
        (end, days) = (reach, (days * 4).min(DAYS_MAX));
    }
    ranges.retain(|(from, below)| from < below);
    ranges
}

/// Where a scan of at most so many rows ends: the greatest id that it doesn't reach.
pub(crate) async fn scan_end(
    conn: &mut dyn Connection,
    batch: &Batch,
    selection: &Selection,
    rows: i64,
    now: Timestamp,
) -> Result<Option<i64>> {
    let mut left = rows;
    for (from, below) in ranges(batch, selection.from, selection.below, now) {
        let row = query(SCAN_END)
            .bind(selection.application_id)
            .bind(i64::from(selection.test))
            .bind(from)
            .bind(below)
            .bind(left)
            .fetch_optional(&mut *conn)
            .await?;
        if let Some(row) = row {
            return row::int(&row, "id").map(Some);
        }
        if batch.by_day {
            left = (left - count(conn, selection, from, below).await?).max(0);
        }
    }
    Ok(None)
}

async fn count(
    conn: &mut dyn Connection,
    selection: &Selection,
    from: i64,
    below: i64,
) -> Result<i64> {
    let row = query(COUNT)
        .bind(selection.application_id)
        .bind(i64::from(selection.test))
        .bind(from)
        .bind(below)
        .fetch_one(conn)
        .await?;
    row::int(&row, "n")
}

pub(crate) async fn list(
    conn: &mut dyn Connection,
    batch: &Batch,
    selection: Selection,
    now: Timestamp,
) -> Result<Vec<MessageRow>> {
    let sql = list_sql(batch, &selection.conditions);
    let mut rows = Vec::new();
    for (from, below) in ranges(batch, selection.from, selection.below, now) {
        let left = selection.limit - i64::try_from(rows.len()).unwrap_or(selection.limit);
        if left <= 0 {
            break;
        }
        let mut query = query_of(sql.clone())
            .bind(selection.application_id)
            .bind(i64::from(selection.test))
            .bind(from)
            .bind(below)
            .bind(left);
        for condition in selection.conditions.iter().cloned() {
            query = condition.bind(query);
        }
        let row = query.fetch_one(&mut *conn).await?;
        let found: Vec<Columns> = row::found(&row, "messages")?;
        rows.extend(found.into_iter().map(MessageRow::from));
    }
    Ok(rows)
}

/// What happened to a message besides what its row says.
pub(crate) async fn events(
    conn: &mut dyn Connection,
    id: Transid,
    application_id: i64,
) -> Result<Vec<TimelineEntry>> {
    let rows = query(EVENTS)
        .bind(id.0)
        .bind(application_id)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(TimelineEntry {
                status: row::status(row, "message_events")?,
                at: Timestamp::from_unix_ms(row::int(row, "at")?),
                detail: row::opt_text(row, "detail")?,
            })
        })
        .collect()
}

/// Every statement that [`list`] can build.
#[cfg(test)]
pub(crate) fn every_list_sql(batch: &Batch) -> Vec<String> {
    let all = || {
        [
            Condition::Requestid(String::new()),
            Condition::Batch(BatchId(0)),
            Condition::Number(String::new()),
            Condition::Status(MessageStatus::Queued),
        ]
    };
    (0..16)
        .map(|chosen: u32| {
            let conditions: Vec<_> = all()
                .into_iter()
                .enumerate()
                .filter(|(place, _)| chosen >> place & 1 == 1)
                .map(|(_, condition)| condition)
                .collect();
            list_sql(batch, &conditions)
        })
        .collect()
}
