//! The entries of messages' timelines that the messages' own rows don't record.

use domain::records::TimelineEntry;
use domain::{ApplicationId, MessageStatus, Timestamp, Transid};

use super::query::{Connection, query};
use super::row;
use super::sql::{Sql, in_shard, statements};
use crate::error::Result;

statements! {
    const LIST: Sql = in_shard!(
        r"
        SELECT status, at, detail
        FROM message_timeline WHERE message_id = $1 AND application_id = $2" => " AND shard = $3",
        " ORDER BY id",
    );
    /// `$1` is `[[message ID, application ID, status, detail, ID]]`. SQLite numbers the rows
    /// itself.
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO message_timeline (message_id, application_id, status, detail, at)
            VALUES (?1, ?2, ?3, ?4, ?6)",
        postgres: r"
            INSERT INTO message_timeline (message_id, application_id, status, detail, id, at, shard)
            SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
                   value ->> 3, (value ->> 4)::bigint, $2, at.shard
            FROM jsonb_array_elements($1::text::jsonb)
            CROSS JOIN (SELECT shard FROM applications WHERE shard = $3 LIMIT 1) AS at",
        ..Sql::IN_SHARD
    };
    /// Like [`INSERT`], unless the message has an entry with this detail already.
    const INSERT_ONCE: Sql = Sql {
        sqlite: r"
            INSERT INTO message_timeline (message_id, application_id, status, detail, at)
            SELECT ?1, ?2, ?3, ?4, ?6
            WHERE NOT EXISTS (
                SELECT 1 FROM message_timeline t WHERE t.message_id = ?1 AND t.detail = ?4)",
        postgres: r"
            INSERT INTO message_timeline (message_id, application_id, status, detail, id, at, shard)
            SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
                   value ->> 3, (value ->> 4)::bigint, $2, at.shard
            FROM jsonb_array_elements($1::text::jsonb)
            CROSS JOIN (SELECT shard FROM applications WHERE shard = $3 LIMIT 1) AS at
            WHERE NOT EXISTS (
                SELECT 1 FROM message_timeline t
                WHERE t.message_id = (value ->> 0)::bigint AND t.detail = value ->> 3
                  AND t.shard = $3)",
        ..Sql::IN_SHARD
    };
}

/// An entry of a message's timeline that the message's own row doesn't record.
pub struct NewEntry {
    pub id: Transid,
    pub application_id: ApplicationId,
    pub status: MessageStatus,
    pub detail: Option<String>,
}

/// Stores entries in this order. `next_id` generates an ID for each.
pub async fn insert(
    conn: &mut dyn Connection,
    entries: &[NewEntry],
    now: Timestamp,
    next_id: impl Fn() -> i64,
) -> Result<()> {
    write(conn, INSERT, entries, now, next_id).await
}

/// Stores entries of messages that don't have an entry with the same detail yet.
pub async fn insert_once(
    conn: &mut dyn Connection,
    entries: &[NewEntry],
    now: Timestamp,
    next_id: impl Fn() -> i64,
) -> Result<()> {
    write(conn, INSERT_ONCE, entries, now, next_id).await
}

async fn write(
    conn: &mut dyn Connection,
    statement: Sql,
    entries: &[NewEntry],
    now: Timestamp,
    next_id: impl Fn() -> i64,
) -> Result<()> {
    let rows = entries.iter().map(|e| {
        let status = e.status.code();
        (e.id, e.application_id, status, &e.detail, next_id())
    });
    query(statement, now).execute_each(conn, rows).await.map(drop)
}

/// Returns the entries of a message, oldest first.
pub async fn list(
    conn: &mut dyn Connection,
    id: Transid,
    application_id: ApplicationId,
) -> Result<Vec<TimelineEntry>> {
    query(LIST, (id.0, application_id))
        .fetch_all(conn, |row| {
            Ok(TimelineEntry {
                status: row::status(row, "message_timeline")?,
                at: row.get("at")?,
                detail: row.get("detail")?,
            })
        })
        .await
}
