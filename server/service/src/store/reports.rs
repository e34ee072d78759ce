//! Reading messages for reports.

use domain::records::{MessageRecord, TimelineEntry};
use domain::{BatchId, Kind, MessageStatus, Money, Timestamp, Transid};
use serde::Deserialize;
use sqlx::AnyConnection;
use sqlx::any::AnyArguments;
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe};

use super::dialect::Batch;
use super::row;
use super::statements;
use crate::error::Result;

statements! {
    /// The id before which a scan of so many rows ends; from the index alone.
    SCAN_END = "SELECT id FROM messages \
                WHERE application_id = $1 AND test = $2 AND id >= $3 AND id < $4 \
                ORDER BY id DESC LIMIT 1 OFFSET $5";
    EVENTS = "SELECT status, at, detail FROM message_events \
              WHERE message_id = $1 AND application_id = $2 ORDER BY id";
}

/// A condition on messages.
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

    fn bind(self, query: Query<'_, Any, AnyArguments>) -> Query<'_, Any, AnyArguments> {
        match self {
            Self::Requestid(text) | Self::Number(text) => query.bind(text),
            Self::Batch(id) => query.bind(id.0),
            Self::Status(status) => query.bind(status.as_str()),
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

/// Where a scan of at most so many rows ends: the greatest id that it doesn't reach.
pub(crate) async fn scan_end(
    conn: &mut AnyConnection,
    selection: &Selection,
    rows: i64,
) -> Result<Option<i64>> {
    let row = sqlx::query(SCAN_END)
        .bind(selection.application_id)
        .bind(i64::from(selection.test))
        .bind(selection.from)
        .bind(selection.below)
        .bind(rows)
        .fetch_optional(conn)
        .await?;
    row.map(|row| row::int(&row, "id")).transpose()
}

pub(crate) async fn list(
    conn: &mut AnyConnection,
    batch: &Batch,
    selection: Selection,
) -> Result<Vec<MessageRow>> {
    let sql = list_sql(batch, &selection.conditions);
    let mut query = sqlx::query(AssertSqlSafe(sql))
        .bind(selection.application_id)
        .bind(i64::from(selection.test))
        .bind(selection.from)
        .bind(selection.below)
        .bind(selection.limit);
    for condition in selection.conditions {
        query = condition.bind(query);
    }
    let row = query.fetch_one(conn).await?;
    let found: Vec<Columns> = row::found(&row, "messages")?;
    Ok(found.into_iter().map(MessageRow::from).collect())
}

/// What happened to a message besides what its row says.
pub(crate) async fn events(
    conn: &mut AnyConnection,
    id: Transid,
    application_id: i64,
) -> Result<Vec<TimelineEntry>> {
    let rows = sqlx::query(EVENTS)
        .bind(id.0)
        .bind(application_id)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(TimelineEntry {
                status: row::word(row, "message_events", "status", MessageStatus::parse)?,
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
