//! The number and size of stored test messages of accounts that never had a deposit.

use super::query::{Conn, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    /// Counts at most `$1` messages. A text that the rows of a batch share isn't counted.
    const KEPT: Sql = Sql {
        sqlite: r"
            SELECT COUNT(*) AS n, COALESCE(SUM(LENGTH(CAST(body AS BLOB))), 0) AS bytes
            FROM (
                SELECT m.body
                FROM applications a
                CROSS JOIN messages m INDEXED BY messages_by_application
                  ON m.application_id = a.id AND m.test = 1
                WHERE a.paid_at IS NULL LIMIT $1) k",
        postgres: r"
            SELECT COUNT(*) AS n, CAST(COALESCE(SUM(OCTET_LENGTH(body)), 0) AS BIGINT) AS bytes
            FROM (
                SELECT m.body
                FROM applications a
                JOIN messages m ON m.application_id = a.id AND m.test = 1 AND m.shard = $2
                WHERE a.paid_at IS NULL AND a.shard = $2 LIMIT $1) k",
        ..Sql::IN_SHARD
    };
}

/// Returns how many such messages are stored, and how many bytes their texts have. Counts at most
/// `limit` messages.
pub async fn kept(conn: Conn<'_>, limit: i64) -> Result<(i64, i64)> {
    query(KEPT, limit).fetch_one(conn, |row| Ok((row.get("n")?, row.get("bytes")?))).await
}
