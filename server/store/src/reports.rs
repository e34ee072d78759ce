//! Queries over messages for reports.

mod paths;
#[cfg(test)]
pub(crate) mod tests;

pub use paths::{Condition, Path};

use domain::records::MessageRecord;
use domain::{ApplicationId, BatchId, Kind, MessageStatus, Money, Timestamp, Transid};
use serde::Deserialize;

use super::query::{Argument, Conn, Query, Row, query, query_in_shard};
use super::row;
use super::sql::{Dialect, Sql, statements};
use crate::error::Result;

statements! {
    /// Counts at most `$1` rows, and reads only an index.
    const QUEUED: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n
        FROM (SELECT message_id FROM queue{ WHERE shard = $shard} LIMIT $1) q");
}

/// A selection of messages of one application and one kind of key, listed newest first.
pub struct Selection {
    pub application_id: ApplicationId,
    pub test: bool,
    pub span: Span,
    /// Conditions that few messages meet come first.
    pub conditions: Vec<Condition>,
    pub limit: i64,
}

/// A range of IDs, from `from` up to but not including `below`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub from: i64,
    pub below: i64,
}

pub struct MessageRow {
    pub application_id: ApplicationId,
    pub record: MessageRecord,
    pub unit_price: Money,
    pub carrier: Option<String>,
    pub sending_at: Option<Timestamp>,
}

/// The columns of a message, in the order of `LISTED`. Every list statement starts with these.
#[derive(Deserialize)]
struct Columns {
    id: i64,
    application_id: ApplicationId,
    test: i64,
    number: String,
    kind: Kind,
    sender: Option<String>,
    body: String,
    requestid: Option<String>,
    batch_id: Option<i64>,
    #[serde(deserialize_with = "row::status_from_number")]
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
    send_at: Option<i64>,
}

impl From<Columns> for MessageRow {
    fn from(columns: Columns) -> Self {
        let time = Timestamp::from_unix_ms;
        Self {
            application_id: columns.application_id,
            unit_price: Money::from_micros(columns.unit_price),
            carrier: columns.carrier,
            sending_at: columns.sending_at.map(time),
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
                released: Money::from_micros(columns.released),
                error: columns.error,
                created_at: time(columns.created_at),
                send_at: columns.send_at.map(time),
                submitted_at: columns.submitted_at.map(time),
                final_at: columns.final_at.map(time),
                test: columns.test == 1,
            },
        }
    }
}

/// Splits a range of IDs into spans to search one after the other, newest first. Each span is
/// longer than the one before. On PostgreSQL, a search over all IDs at once would open the
/// partition of every day.
pub fn spans(dialect: Dialect, whole: Span) -> Vec<Span> {
    const DAY_MS: i64 = 24 * 60 * 60 * 1000;
    /// The number of days in the first span. Each further span is four times as long.
    const FIRST_DAYS: i64 = 2;
    const DAYS_MAX: i64 = 64;
    if !dialect.is_by_day() || whole.from >= whole.below {
        return vec![whole];
    }
    let (mut spans, mut below, mut days) = (Vec::new(), whole.below, FIRST_DAYS);
    while below > whole.from {
        let reach = domain::ids::compose_id(domain::ids::id_unix_ms(below) - days * DAY_MS, 0);
        let from = reach.max(whole.from);
        spans.push(Span { from, below });
        (below, days) = (from, (days * 4).min(DAYS_MAX));
    }
    spans
}

/// Returns the newest messages of a span, at most `limit`.
pub async fn list(
    conn: Conn<'_>,
    selection: &Selection,
    path: Path,
    span: Span,
    limit: i64,
) -> Result<Vec<MessageRow>> {
    let sql = path.list(conn.dialect(), &selection.conditions);
    let query = begin(sql, selection, span, limit);
    let query = query.bind(selection.conditions.iter().map(Condition::value));
    let read = |row: &Row<'_>| row::found(row, "messages");
    let found: Vec<Columns> = query.fetch_one(conn, read).await?;
    Ok(found.into_iter().map(MessageRow::from).collect())
}

/// Returns the scheduled messages of a key that are due after a time and an ID, and that have at
/// least the ID `least`. Returns at most `limit`, the next due first.
pub async fn scheduled(
    conn: Conn<'_>,
    (application_id, test): (ApplicationId, bool),
    (after, after_id): (Timestamp, Transid),
    least: i64,
    limit: i64,
) -> Result<Vec<MessageRow>> {
    let sql = paths::list_scheduled(conn.dialect());
    let listing = query_in_shard(sql, (application_id, test, after, after_id.0, least, limit));
    let read = |row: &Row<'_>| row::found(row, "messages");
    let found: Vec<Columns> = listing.fetch_one(conn, read).await?;
    Ok(found.into_iter().map(MessageRow::from).collect())
}

/// Returns the messages with these IDs, in any order.
pub async fn by_ids(conn: Conn<'_>, ids: &[Transid]) -> Result<Vec<MessageRow>> {
    let (Some(least), Some(greatest)) = (ids.iter().min(), ids.iter().max()) else {
        return Ok(Vec::new());
    };
    let dialect = conn.dialect();
    let bounds = [Argument::from(*least), Argument::from(*greatest)];
    let bounds = bounds.into_iter().filter(|_| dialect.is_shared());
    let reading = query_in_shard(paths::list_by_id(dialect), row::numbers(ids)?).bind(bounds);
    let read = |row: &Row<'_>| row::found(row, "messages");
    let found: Vec<Columns> = reading.fetch_one(conn, read).await?;
    Ok(found.into_iter().map(MessageRow::from).collect())
}

/// The result of a count along a path.
pub struct Counted {
    pub n: i64,
    /// The least ID of the counted messages, if there are any.
    pub least: Option<i64>,
}

/// Counts the messages of a span along a path, at most `limit`. Applies only the condition that the
/// path is for.
pub async fn count(
    conn: Conn<'_>,
    selection: &Selection,
    path: Path,
    span: Span,
    limit: i64,
) -> Result<Counted> {
    let leading = selection.conditions.iter().find(|condition| condition.path() == Some(path));
    let sql = path.count(conn.dialect(), leading);
    let query = begin(sql, selection, span, limit);
    let query = query.bind(leading.map(Condition::value));
    let read = |row: &Row<'_>| Ok(Counted { n: row.get("n")?, least: row.get("id")? });
    query.fetch_one(conn, read).await
}

fn begin<'a>(sql: String, selection: &Selection, span: Span, limit: i64) -> Query<'a> {
    let (application_id, test) = (selection.application_id, selection.test);
    query_in_shard(sql, (application_id, test, span.from, span.below, limit))
}

/// Counts the messages that no carrier has accepted yet, at most `limit`.
pub async fn queued(conn: Conn<'_>, limit: i64) -> Result<i64> {
    query(QUEUED, limit).fetch_one(conn, |row| row.get("n")).await
}
