//! The ids of groups and other transactions, by which the outcome of one that wasn't answered is
//! asked for.

use domain::Timestamp;
use domain::ids::Shard;

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    /// Waits until the group with this id is stored or can't be stored any more; no row if it is.
    const PREVENT: Sql = Sql::postgres(r"
        INSERT INTO commit_groups (shard, id, created_at)
        VALUES ($1, $2, CAST(EXTRACT(EPOCH FROM statement_timestamp()) * 1000 AS bigint))
        ON CONFLICT (id, shard) DO NOTHING RETURNING id");
    /// Stores a new id for a transaction that isn't a group's and has no answer to give.
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

/// The answer that is stored with this id; `None` if nothing is, and never will be.
///
/// # Errors
/// When the database can't be asked, or what has the id is still under way.
pub(super) async fn answer_or_prevent(
    conn: &mut dyn Connection,
    shard: Shard,
    id: i64,
) -> Result<Option<String>> {
    if query(PREVENT, (shard.0, id)).finds(&mut *conn).await? {
        return Ok(None);
    }
    // A row without an answer was inserted by an earlier question: what has this id wasn't stored,
    // and can't be stored any more.
    query(ANSWER, (shard.0, id))
        .fetch_one(conn, |row| row.get("answer"))
        .await
}

/// Stores an id for a transaction in a shard, by which its outcome can be asked like a group's.
pub(super) async fn note_transaction(conn: &mut dyn Connection, shard: Shard) -> Result<i64> {
    query(NOTE, shard.0)
        .fetch_one(conn, |row| row.get("id"))
        .await
}

/// Forgets what was stored before this time, the oldest first; true when there is more.
pub(crate) async fn forget(
    conn: &mut dyn Connection,
    before: Timestamp,
    limit: i64,
) -> Result<bool> {
    let forgotten = query(FORGET, (before, limit)).execute(conn).await?;
    Ok(forgotten == limit.unsigned_abs())
}
