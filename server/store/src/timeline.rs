//! The entries of messages' timelines that the messages' own rows don't record.

use domain::records::TimelineEntry;
use domain::{ApplicationId, MessageStatus, Timestamp, Transid};

use super::query::{Conn, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const LIST: Sql = Sql::in_shard(r"
        SELECT status, at, detail
        FROM message_timeline WHERE message_id = $1 AND application_id = $2{ AND shard = $shard}
        ORDER BY id");
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
    /// Finds the messages that have an entry with this detail.
    const NOTED: Sql = Sql {
        sqlite: r"
            SELECT message_id FROM message_timeline WHERE message_id = ?1 AND detail = ?2",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(message_id)), '[]')::text AS found
            FROM message_timeline WHERE message_id = ANY ({ids}) AND detail = $2 AND shard = $3",
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
    conn: Conn<'_>,
    entries: &[NewEntry],
    now: Timestamp,
    next_id: impl Fn() -> i64,
) -> Result<()> {
    let rows = entries.iter().map(|e| {
        let status = e.status.code();
        (e.id, e.application_id, status, &e.detail, next_id())
    });
    let inserting = query(INSERT, now);
    inserting.execute_each(conn, rows).await.map(drop)
}

/// Returns the messages among `ids` that have an entry with this detail.
pub async fn noted(conn: Conn<'_>, ids: &[Transid], detail: &str) -> Result<Vec<Transid>> {
    let finding = query(NOTED, detail);
    let finding = finding.find_each(conn, ids.iter().copied(), "message_timeline");
    let found: Vec<(i64,)> = finding.await?;
    Ok(found.into_iter().map(|(id,)| Transid(id)).collect())
}

/// Returns the entries of a message, oldest first.
pub async fn list(
    conn: Conn<'_>,
    id: Transid,
    application_id: ApplicationId,
) -> Result<Vec<TimelineEntry>> {
    query(LIST, (id.0, application_id))
        .fetch_all(conn, |row| {
            from_row!(row => TimelineEntry {
                status: row::status(row, "message_timeline")?,
                at, detail,
            })
        })
        .await
}
