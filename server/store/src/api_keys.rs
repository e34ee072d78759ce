//! Details of API keys for their owners: the last four, when a key was made, its last use and its
//! calls. Neither keys nor their hashes are stored here.

use domain::records::KeyRecord;
use domain::{KeyKind, Reference, Timestamp};

use super::query::{Connection, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const MADE: Sql = Sql::same(r"
        INSERT INTO api_keys (reference, kind, last_four, made_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (reference, kind) DO UPDATE
        SET last_four = excluded.last_four, made_at = excluded.made_at, used_at = NULL, used_from = NULL");
    /// If two transactions replace a key, the second one reads what the first one wrote.
    const LAST_FOUR: Sql = Sql {
        sqlite: "SELECT last_four FROM api_keys WHERE reference = $1 AND kind = $2",
        postgres: "SELECT last_four FROM api_keys WHERE reference = $1 AND kind = $2 FOR UPDATE",
        ..Sql::ANYWHERE
    };
    const FORGET_CALLS: Sql = Sql::same(r"
        DELETE FROM api_key_calls WHERE reference = $1 AND kind = $2");
    /// Updates no row if the key was replaced after `$3`, or if another process has stored a later
    /// use.
    const USED: Sql = Sql::same(r"
        UPDATE api_keys SET used_at = $3, used_from = $4
        WHERE reference = $1 AND kind = $2 AND made_at <= $3
          AND (used_at IS NULL OR used_at < $3)");
    const COUNT: Sql = Sql::same(r"
        INSERT INTO api_key_calls (reference, kind, hour, calls)
        SELECT reference, kind, CAST($3 AS BIGINT), CAST($4 AS BIGINT)
        FROM api_keys WHERE reference = $1 AND kind = $2 AND made_at <= $5
        ON CONFLICT (reference, kind, hour)
        DO UPDATE SET calls = api_key_calls.calls + excluded.calls");
    const SWEEP: Sql = Sql::same("DELETE FROM api_key_calls WHERE hour < $1");
    const FORGET: Sql = Sql::same("DELETE FROM api_keys WHERE reference = $1");
    const FORGET_ALL_CALLS: Sql = Sql::same("DELETE FROM api_key_calls WHERE reference = $1");
    const OF_APPLICATION: Sql = Sql::same(r"
        SELECT k.kind, k.last_four, k.made_at, k.used_at, k.used_from,
               (SELECT CAST(COALESCE(SUM(c.calls), 0) AS BIGINT)
                FROM api_key_calls c
                WHERE c.reference = k.reference AND c.kind = k.kind AND c.hour >= $2) AS calls
        FROM api_keys k
        WHERE k.reference = $1 ORDER BY k.kind");
}

/// A key and its application.
pub type KeyName = (Reference, KeyKind);

/// Stores the last four of a new key. Resets the last use and the counts of calls.
pub async fn made(
    conn: &mut dyn Connection,
    (reference, kind): KeyName,
    last_four: &str,
    now: Timestamp,
) -> Result<()> {
    let key = || (reference.as_str(), kind.as_str());
    query(FORGET_CALLS, key()).execute(&mut *conn).await?;
    query(MADE, (reference.as_str(), kind.as_str(), last_four, now)).execute(conn).await.map(drop)
}

/// Returns the last four of a key, or `None` if they aren't known. Locks the row, so that nobody
/// else replaces the key until this transaction ends.
pub async fn last_four(
    conn: &mut dyn Connection,
    (reference, kind): KeyName,
) -> Result<Option<String>> {
    query(LAST_FOUR, (reference.as_str(), kind.as_str()))
        .fetch_optional(conn, |row| row.get("last_four"))
        .await
}

/// Stores when a key was last used, and the client's address if it is known.
pub async fn used(
    conn: &mut dyn Connection,
    (reference, kind): KeyName,
    at: Timestamp,
    from: Option<&str>,
) -> Result<()> {
    query(USED, (reference.as_str(), kind.as_str(), at, from)).execute(conn).await.map(drop)
}

/// Adds to the count of a key's calls in an hour. `hour` counts hours since 1970-01-01 UTC. `at` is
/// the time of the last call. Does nothing if the key was made after `at`.
pub async fn count(
    conn: &mut dyn Connection,
    (reference, kind): KeyName,
    hour: i64,
    calls: i64,
    at: Timestamp,
) -> Result<()> {
    query(COUNT, (reference.as_str(), kind.as_str(), hour, calls, at)).execute(conn).await.map(drop)
}

/// Deletes the counts of all hours before this one.
pub async fn sweep(conn: &mut dyn Connection, before_hour: i64) -> Result<()> {
    query(SWEEP, before_hour).execute(conn).await.map(drop)
}

/// Deletes the rows of an application's keys and their counts of calls.
pub async fn forget(conn: &mut dyn Connection, reference: Reference) -> Result<()> {
    for statement in [FORGET, FORGET_ALL_CALLS] {
        query(statement, reference.as_str()).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Returns the keys of an application. Calls are counted from `from_hour` on.
pub async fn of_application(
    conn: &mut dyn Connection,
    reference: Reference,
    from_hour: i64,
) -> Result<Vec<KeyRecord>> {
    let read = |row: &Row<'_>| {
        Ok(KeyRecord {
            kind: super::row::word(row, "api_keys", "kind", KeyKind::parse)?,
            last_four: row.get("last_four")?,
            made_at: row.get("made_at")?,
            used_at: row.get("used_at")?,
            used_from: row.get("used_from")?,
            calls: row.get("calls")?,
        })
    };
    query(OF_APPLICATION, (reference.as_str(), from_hour)).fetch_all(conn, read).await
}
