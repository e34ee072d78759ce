//! The processes that serve the database.

use domain::Timestamp;

use super::query::{Conn, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const COUNT: Sql = Sql::same("SELECT COUNT(*) AS n FROM nodes");
    /// The slot that has been unused the longest. Its process may have ended without freeing it.
    const FREE: Sql = Sql::same(r"
        SELECT slot FROM nodes WHERE seen_at < $1 ORDER BY seen_at LIMIT 1");
    const TAKE: Sql = Sql::same(r"
        INSERT INTO nodes (slot, token, name, started_at, seen_at)
        VALUES ($1, $2, $3, $4, $4)
        ON CONFLICT (slot) DO UPDATE SET token = $2, name = $3, started_at = $4, seen_at = $4");
    const RENEW: Sql = Sql::same("UPDATE nodes SET seen_at = $3 WHERE slot = $1 AND token = $2");
    const END: Sql = Sql::same(r"
        UPDATE nodes SET token = 0, seen_at = $3 WHERE slot = $1 AND token = $2");
    const LOST: Sql = Sql::same(r"
        SELECT slot, token, name FROM nodes WHERE token <> 0 AND seen_at < $1");
    const SEEN: Sql = Sql::same(r"
        SELECT slot FROM nodes WHERE token <> 0 AND seen_at >= $1 LIMIT 1");
    const COUNT_SEEN: Sql = Sql::same(r"
        SELECT COUNT(*) AS n FROM nodes WHERE token <> 0 AND seen_at >= $1");
    const LAST_END: Sql = Sql::same(r"
        SELECT COALESCE(MAX(seen_at), 0) AS at FROM nodes WHERE token = 0");
    const FORGET_CONNECTIONS: Sql = Sql::same(r"
        DELETE FROM connections WHERE node IN (SELECT slot FROM nodes WHERE token = 0)");
    const FORGET_RELOADS: Sql = Sql::same(r"
        DELETE FROM refused_reloads WHERE node IN (SELECT slot FROM nodes WHERE token = 0)");
}

/// A process that serves the database, or has served it.
pub struct NodeRow {
    pub slot: i64,
    pub token: i64,
    pub name: String,
}

/// Returns how many slots have ever been taken. Slots are numbered from 0 and reused.
pub async fn count(conn: Conn<'_>) -> Result<i64> {
    query(COUNT, ()).fetch_one(conn, |row| row.get("n")).await
}

/// Returns a slot that no process has used since this time.
pub async fn free(conn: Conn<'_>, since: Timestamp) -> Result<Option<i64>> {
    query(FREE, since).fetch_optional(conn, |row| row.get("slot")).await
}

pub async fn take(conn: Conn<'_>, node: &NodeRow, now: Timestamp) -> Result<()> {
    query(TAKE, (node.slot, node.token, &node.name, now)).execute(conn).await.map(drop)
}

/// Renews the row of a process. Returns false if its slot now belongs to another process or to
/// none.
pub async fn renew(conn: Conn<'_>, slot: i64, token: i64, now: Timestamp) -> Result<bool> {
    Ok(query(RENEW, (slot, token, now)).execute(conn).await? == 1)
}

/// Frees a slot. Returns false if the process had already lost it.
pub async fn end(conn: Conn<'_>, slot: i64, token: i64, now: Timestamp) -> Result<bool> {
    Ok(query(END, (slot, token, now)).execute(conn).await? == 1)
}

/// Returns the processes that have a slot but haven't been seen since this time.
pub async fn lost(conn: Conn<'_>, since: Timestamp) -> Result<Vec<NodeRow>> {
    query(LOST, since)
        .fetch_all(conn, |row| {
            Ok(NodeRow { slot: row.get("slot")?, token: row.get("token")?, name: row.get("name")? })
        })
        .await
}

/// Returns whether any process with a slot has been seen since this time.
pub async fn was_any_seen(conn: Conn<'_>, since: Timestamp) -> Result<bool> {
    query(SEEN, since).finds(conn).await
}

/// Returns the number of processes with a slot that have been seen since this time.
pub async fn count_seen(conn: Conn<'_>, since: Timestamp) -> Result<usize> {
    let count: i64 = query(COUNT_SEEN, since).fetch_one(conn, |row| row.get("n")).await?;
    Ok(usize::try_from(count).unwrap_or(0))
}

/// Returns when a process last ended, in Unix milliseconds. 0 if no process has ended.
pub async fn last_end(conn: Conn<'_>) -> Result<i64> {
    query(LAST_END, ()).fetch_one(conn, |row| row.get("at")).await
}

/// Deletes the connections of processes that have ended, and their refused reloads.
pub async fn forget_connections(conn: Conn<'_>) -> Result<()> {
    query(FORGET_CONNECTIONS, ()).execute(&mut *conn).await?;
    query(FORGET_RELOADS, ()).execute(conn).await.map(drop)
}
