//! Reading messages for reports.

use domain::records::{MessageRecord, TimelineEntry};
use domain::{BatchId, Kind, MessageStatus, Money, Timestamp, Transid};
use sqlx::AnyConnection;
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe};

use super::row;
use super::statements;
use crate::error::Result;

const COLUMNS: &str = "SELECT id, application_id, test, number, kind, sender, body, requestid, \
    batch_id, status, pages, segments, unit_price, cost, released, error, carrier, created_at, \
    sending_at, submitted_at, final_at FROM messages";

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

fn message(row: &AnyRow) -> Result<MessageRow> {
    let moment =
        |column| Ok::<_, crate::Error>(row::opt_int(row, column)?.map(Timestamp::from_unix_ms));
    Ok(MessageRow {
        application_id: row::int(row, "application_id")?,
        unit_price: Money::from_micros(row::int(row, "unit_price")?),
        released: Money::from_micros(row::int(row, "released")?),
        carrier: row::opt_text(row, "carrier")?,
        sending_at: moment("sending_at")?,
        record: MessageRecord {
            transid: Transid(row::int(row, "id")?),
            requestid: row::opt_text(row, "requestid")?,
            batchid: row::opt_int(row, "batch_id")?.map(BatchId),
            number: row::text(row, "number")?,
            kind: row::word(row, "messages", "kind", Kind::parse)?,
            sender: row::opt_text(row, "sender")?,
            message: row::text(row, "body")?,
            status: row::word(row, "messages", "status", MessageStatus::parse)?,
            pages: row::int(row, "pages")?,
            segments: row::int(row, "segments")?,
            cost: Money::from_micros(row::int(row, "cost")?),
            error: row::opt_text(row, "error")?,
            created_at: Timestamp::from_unix_ms(row::int(row, "created_at")?),
            submitted_at: moment("submitted_at")?,
            final_at: moment("final_at")?,
            test: row::int(row, "test")? == 1,
        },
    })
}

/// The statement for such conditions: of fixed parts alone, each value a parameter.
fn list_sql(conditions: &[Condition]) -> String {
    use std::fmt::Write as _;
    let mut sql =
        format!("{COLUMNS} WHERE application_id = $1 AND test = $2 AND id >= $3 AND id < $4");
    for (place, condition) in conditions.iter().enumerate() {
        // Writing to a String can't fail.
        let _ = write!(sql, " AND {}${}", condition.sql(), place + 6);
    }
    sql.push_str(" ORDER BY id DESC LIMIT $5");
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
    selection: Selection,
) -> Result<Vec<MessageRow>> {
    let sql = list_sql(&selection.conditions);
    let mut query = sqlx::query(AssertSqlSafe(sql))
        .bind(selection.application_id)
        .bind(i64::from(selection.test))
        .bind(selection.from)
        .bind(selection.below)
        .bind(selection.limit);
    for condition in selection.conditions {
        query = condition.bind(query);
    }
    query.fetch_all(conn).await?.iter().map(message).collect()
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
pub(crate) fn every_list_sql() -> Vec<String> {
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
            list_sql(&conditions)
        })
        .collect()
}
