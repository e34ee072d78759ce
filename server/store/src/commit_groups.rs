//! The IDs of commit groups and of other transactions. If a commit gets no answer, the process
//! looks up the outcome by the transaction's ID.

use domain::Timestamp;
use domain::ids::Shard;

use super::query::{Conn, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    /// Inserts the ID of a transaction whose outcome is unknown. The insert waits for that
    /// transaction while it is in flight. Returns no row if the transaction has committed;
    /// otherwise it can't commit any more.
    const PREVENT: Sql = Sql::postgres(r"
        INSERT INTO commit_groups (shard, id, created_at)
        VALUES ($1, $2, CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS bigint))
        ON CONFLICT (id, shard) DO NOTHING RETURNING id");
    /// Stores a new ID for a transaction that isn't a commit group. Such a transaction has no
    /// answer. An empty text is stored instead, because null marks a transaction that didn't
    /// commit.
    const NOTE: Sql = Sql::postgres(r"
        INSERT INTO commit_groups (shard, id, created_at, answer)
        VALUES ($1, hashtextextended(gen_random_uuid()::text, 0),
            CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS bigint), '')
        RETURNING id");
    const ANSWER: Sql = Sql::postgres("SELECT answer FROM commit_groups WHERE shard = $1 AND id = $2");
    const FORGET: Sql = Sql::postgres_in_shard(r"
        DELETE FROM commit_groups
        WHERE shard = $3
          AND id IN (
              SELECT id FROM commit_groups WHERE shard = $3 AND created_at < $1
              ORDER BY created_at LIMIT $2)");
}

/// Returns the answer that was stored with this ID. Returns `None` if its transaction hasn't
/// committed and never will.
///
/// # Errors
/// If the database can't be reached, or the transaction is still in flight.
pub(crate) async fn answer_or_prevent(
    conn: Conn<'_>,
    shard: Shard,
    id: i64,
) -> Result<Option<String>> {
    if query(PREVENT, (shard.0, id)).finds(&mut *conn).await? {
        return Ok(None);
    }
    // The answer is null if an earlier call of this function inserted the row. Then the transaction
    // hasn't committed and never will.
    query(ANSWER, (shard.0, id)).fetch_one(conn, |row| row.get("answer")).await
}

/// Stores a new ID for the running transaction in a shard, and returns it. If the commit gets no
/// answer, the process looks up the outcome by this ID, as for a commit group.
pub(crate) async fn note_transaction(conn: Conn<'_>, shard: Shard) -> Result<i64> {
    query(NOTE, shard.0).fetch_one(conn, |row| row.get("id")).await
}

/// Deletes at most `limit` rows that were created before `before`, oldest first. Returns true if
/// there may be more.
pub async fn forget(conn: Conn<'_>, before: Timestamp, limit: i64) -> Result<bool> {
    let forgotten = query(FORGET, (before, limit)).execute(conn).await?;
    Ok(forgotten == limit.unsigned_abs())
}
