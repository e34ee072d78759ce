//! Details of API keys for their owners: the last four, when a key was made, its last use, its
//! calls and its clients. Neither keys nor their hashes are stored here.

use domain::records::{KeyClientRecord, KeyRecord};
use domain::{KeyKind, Reference, Timestamp};

use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const MADE: Sql = Sql::same(r"
        INSERT INTO api_keys (reference, kind, last_four, made_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (reference, kind) DO UPDATE
        SET last_four = excluded.last_four, made_at = excluded.made_at, used_at = NULL, used_from = NULL");
    /// If two transactions replace a key at once, the lock makes the second one read the result of
    /// the first.
    const LAST_FOUR: Sql = Sql::same(
        "SELECT last_four FROM api_keys WHERE reference = $1 AND kind = $2{ FOR UPDATE}");
    const FORGET_CALLS: Sql = Sql::same(r"
        DELETE FROM api_key_calls WHERE reference = $1 AND kind = $2");
    const FORGET_CLIENTS: Sql = Sql::same(r"
        DELETE FROM api_key_clients WHERE reference = $1 AND kind = $2");
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
    /// Inserts no row if the key was replaced after `$7`, or if the day has `$8` clients already
    /// and this is another one.
    const COUNT_CLIENT: Sql = Sql::same(r"
        INSERT INTO api_key_clients (reference, kind, day, client, calls, first_at, last_at)
        SELECT k.reference, k.kind, CAST($3 AS BIGINT), CAST($4 AS TEXT), CAST($5 AS BIGINT),
               CAST($6 AS BIGINT), CAST($7 AS BIGINT)
        FROM api_keys k WHERE k.reference = $1 AND k.kind = $2 AND k.made_at <= $7
          AND ($4 = '' OR $8 > (
              SELECT COUNT(*) FROM api_key_clients c
              WHERE c.reference = $1 AND c.kind = $2 AND c.day = $3
                AND c.client <> $4 AND c.client <> ''))
        ON CONFLICT (reference, kind, day, client)
        DO UPDATE SET calls = api_key_clients.calls + excluded.calls,
                      first_at = CASE WHEN excluded.first_at < api_key_clients.first_at
                                      THEN excluded.first_at ELSE api_key_clients.first_at END,
                      last_at = CASE WHEN excluded.last_at > api_key_clients.last_at
                                     THEN excluded.last_at ELSE api_key_clients.last_at END");
    const SWEEP: Sql = Sql::same("DELETE FROM api_key_calls WHERE hour < $1");
    const SWEEP_CLIENTS: Sql = Sql::same("DELETE FROM api_key_clients WHERE day < $1");
    const FORGET: Sql = Sql::same("DELETE FROM api_keys WHERE reference = $1");
    const FORGET_ALL_CALLS: Sql = Sql::same("DELETE FROM api_key_calls WHERE reference = $1");
    const FORGET_ALL_CLIENTS: Sql = Sql::same("DELETE FROM api_key_clients WHERE reference = $1");
    const CLIENTS: Sql = Sql::same(r"
        SELECT client, CAST(SUM(calls) AS BIGINT) AS calls, MIN(first_at) AS first_at,
               MAX(last_at) AS last_at
        FROM api_key_clients WHERE reference = $1 AND kind = $2 AND day >= $3
        GROUP BY client ORDER BY MAX(last_at) DESC, client LIMIT $4");
    const OF_APPLICATION: Sql = Sql::same(r"
        SELECT k.kind, k.last_four, k.made_at, k.used_at, k.used_from,
               (SELECT CAST(COALESCE(SUM(c.calls), 0) AS BIGINT)
                FROM api_key_calls c
                WHERE c.reference = k.reference AND c.kind = k.kind AND c.hour >= $2) AS calls
        FROM api_keys k WHERE k.reference = $1 ORDER BY k.kind");
}

/// A key and its application.
pub type KeyName = (Reference, KeyKind);

/// Stores the last four of a new key. Resets the last use and the counts of calls.
pub async fn made(
    conn: Conn<'_>,
    (reference, kind): KeyName,
    last_four: &str,
    now: Timestamp,
) -> Result<()> {
    let key = || (reference.as_str(), kind.as_str());
    query(FORGET_CALLS, key()).execute(&mut *conn).await?;
    query(FORGET_CLIENTS, key()).execute(&mut *conn).await?;
    query(MADE, (reference.as_str(), kind.as_str(), last_four, now)).execute(conn).await.map(drop)
}

/// Returns the last four of a key, or `None` if they aren't known. Locks the row, so that nobody
/// else replaces the key until this transaction ends.
pub async fn last_four(conn: Conn<'_>, (reference, kind): KeyName) -> Result<Option<String>> {
    query(LAST_FOUR, (reference.as_str(), kind.as_str()))
        .fetch_optional(conn, |row| row.get("last_four"))
        .await
}

/// Stores when a key was last used, and the client's address if it is known.
pub async fn used(
    conn: Conn<'_>,
    (reference, kind): KeyName,
    at: Timestamp,
    from: Option<&str>,
) -> Result<()> {
    query(USED, (reference.as_str(), kind.as_str(), at, from)).execute(conn).await.map(drop)
}

/// Adds to the count of a key's calls in an hour. `hour` counts hours since 1970-01-01 UTC. `at` is
/// the time of the last call. Does nothing if the key was made after `at`.
pub async fn count(
    conn: Conn<'_>,
    (reference, kind): KeyName,
    hour: i64,
    calls: i64,
    at: Timestamp,
) -> Result<()> {
    query(COUNT, (reference.as_str(), kind.as_str(), hour, calls, at)).execute(conn).await.map(drop)
}

/// Calls of a client with a key on a day.
#[derive(Clone, Copy, Debug)]
pub struct ClientCalls {
    /// Days since 1970-01-01 UTC.
    pub day: i64,
    pub calls: i64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

/// Adds to the calls of a client. Clients beyond the first `most` of a day are counted together,
/// like an empty `client`. Does nothing if the key was made after the last call.
pub async fn count_client(
    conn: Conn<'_>,
    (reference, kind): KeyName,
    client: &str,
    calls: ClientCalls,
    most: i64,
) -> Result<()> {
    for client in [client, ""] {
        let ClientCalls { day, calls, first_at, last_at } = calls;
        let (reference, kind) = (reference.as_str(), kind.as_str());
        let values = (reference, kind, day, client, calls, first_at, last_at, most);
        if query(COUNT_CLIENT, values).execute(&mut *conn).await? > 0 || client.is_empty() {
            break;
        }
    }
    Ok(())
}

/// Deletes the counts of all hours before this one, and the clients of all days before this one.
pub async fn sweep(conn: Conn<'_>, before_hour: i64, before_day: i64) -> Result<()> {
    query(SWEEP, before_hour).execute(&mut *conn).await?;
    query(SWEEP_CLIENTS, before_day).execute(conn).await.map(drop)
}

/// Returns the clients that used a key from `from_day` on, the last one first.
pub async fn clients(
    conn: Conn<'_>,
    (reference, kind): KeyName,
    from_day: i64,
    limit: i64,
) -> Result<Vec<KeyClientRecord>> {
    let read = |row: &Row<'_>| {
        let client: String = row.get("client")?;
        from_row!(row => KeyClientRecord {
            client: Some(client).filter(|client| !client.is_empty()),
            calls, first_at, last_at,
        })
    };
    let values = (reference.as_str(), kind.as_str(), from_day, limit);
    query(CLIENTS, values).fetch_all(conn, read).await
}

/// Deletes the rows of an application's keys, their counts of calls and their clients.
pub async fn forget(conn: Conn<'_>, reference: Reference) -> Result<()> {
    for statement in [FORGET, FORGET_ALL_CALLS, FORGET_ALL_CLIENTS] {
        query(statement, reference.as_str()).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Returns the keys of an application. Calls are counted from `from_hour` on.
pub async fn of_application(
    conn: Conn<'_>,
    reference: Reference,
    from_hour: i64,
) -> Result<Vec<KeyRecord>> {
    let read = |row: &Row<'_>| {
        from_row!(row => KeyRecord {
            kind: super::row::word(row, "api_keys", "kind", KeyKind::parse)?,
            last_four, made_at, used_at, used_from, calls,
        })
    };
    query(OF_APPLICATION, (reference.as_str(), from_hour)).fetch_all(conn, read).await
}
