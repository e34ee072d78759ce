//! The latest calls of each application, which its owner can see, and the hashes of replaced keys.

use domain::records::ApiCallRecord;
use domain::{KeyKind, Reason, Reference, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::{Error, Fault, Result};

statements! {
    /// Locks the row of the application's live key. Other transactions that store calls of the
    /// application or close its account wait for this one. Returns no row if the account is closed.
    const HOLD: Sql = Sql::same(
        "SELECT kind FROM api_keys WHERE reference = $1 AND kind = 'live'{ FOR UPDATE}");
    const INSERT: Sql = Sql::same(r"
        INSERT INTO api_calls (at, kind, call, client, recipient, reason, detail, reference)
        {values int text text text text text text common}");
    const KEEP_LAST: Sql = Sql::same(r"
        DELETE FROM api_calls WHERE reference = $1 AND id NOT IN (
            SELECT id FROM api_calls WHERE reference = $1 ORDER BY at DESC, id DESC LIMIT $2)");
    /// Reads the first rows only. They were stored in about the order in which the calls came.
    const FORGET_OLD: Sql = Sql::same(r"
        DELETE FROM api_calls WHERE id IN (
            SELECT id FROM (SELECT id, at FROM api_calls ORDER BY id LIMIT $2) o WHERE at < $1)");
    const OF_APPLICATION: Sql = Sql::same(r"
        SELECT at, kind, call, client, recipient, reason, detail FROM api_calls
        WHERE reference = $1 ORDER BY at DESC, id DESC LIMIT $2");
    const FORGET: Sql = Sql::same("DELETE FROM api_calls WHERE reference = $1");
    const REPLACED: Sql = Sql::same(r"
        INSERT INTO replaced_keys (hash, reference, replaced_at) VALUES ($1, $2, $3)");
    const FORGET_REPLACED: Sql = Sql::same("DELETE FROM replaced_keys WHERE reference = $1");
    const SWEEP_REPLACED: Sql = Sql::same("DELETE FROM replaced_keys WHERE replaced_at < $1");
    const WAS_REPLACED: Sql = Sql::same(r"
        SELECT reference FROM replaced_keys WHERE hash = $1 AND replaced_at >= $2");
}

/// Stores calls of an application and deletes all but its last `kept` calls. Does nothing if the
/// account is closed.
pub async fn insert(
    conn: Conn<'_>,
    reference: Reference,
    calls: &[ApiCallRecord],
    kept: usize,
) -> Result<()> {
    if !query(HOLD, reference.as_str()).finds(&mut *conn).await? {
        return Ok(());
    }
    let rows = calls.iter().map(|call| {
        (
            call.at,
            call.kind.as_str(),
            call.call.as_str(),
            call.from.as_deref(),
            call.recipient.as_deref(),
            call.reason.map(Reason::as_str),
            call.detail.as_deref(),
        )
    });
    query(INSERT, reference.as_str()).execute_each(&mut *conn, rows).await?;
    query(KEEP_LAST, (reference.as_str(), kept)).execute(conn).await.map(drop)
}

/// Returns the last calls of an application, newest first.
pub async fn of_application(
    conn: Conn<'_>,
    reference: Reference,
    limit: usize,
) -> Result<Vec<ApiCallRecord>> {
    query(OF_APPLICATION, (reference.as_str(), limit)).fetch_all(conn, record).await
}

fn record(row: &Row<'_>) -> Result<ApiCallRecord> {
    let reason: Option<String> = row.get("reason")?;
    let reason = reason.map(|word| {
        Reason::parse(&word).ok_or_else(|| {
            Error::Failed(Fault::Corrupt {
                table: "api_calls",
                column: "reason".into(),
                value: word,
            })
        })
    });
    from_row!(row => ApiCallRecord {
        at,
        kind: row::word(row, "api_calls", "kind", KeyKind::parse)?,
        call, from: row.get("client")?, recipient, reason: reason.transpose()?, detail,
    })
}

/// Deletes calls that came before a time, at most `limit`, oldest first.
pub async fn forget_old(conn: Conn<'_>, before: Timestamp, limit: i64) -> Result<()> {
    query(FORGET_OLD, (before, limit)).execute(conn).await.map(drop)
}

/// Deletes the calls and the replaced keys of an application. The caller must have deleted the row
/// that [`HOLD`] locks, so that no more calls are stored.
pub async fn forget(conn: Conn<'_>, reference: Reference) -> Result<()> {
    for statement in [FORGET, FORGET_REPLACED] {
        query(statement, reference.as_str()).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Stores the hash of a key that was replaced at `now`. Deletes the hashes of keys that were
/// replaced before `before`.
pub async fn replaced(
    conn: Conn<'_>,
    reference: Reference,
    hash: &str,
    now: Timestamp,
    before: Timestamp,
) -> Result<()> {
    query(SWEEP_REPLACED, before).execute(&mut *conn).await?;
    query(REPLACED, (hash, reference.as_str(), now)).execute(conn).await.map(drop)
}

/// Returns whether a key with this hash was replaced at or after `since`.
pub async fn was_replaced(conn: Conn<'_>, hash: &str, since: Timestamp) -> Result<bool> {
    query(WAS_REPLACED, (hash, since)).finds(conn).await
}
