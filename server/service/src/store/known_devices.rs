//! Browsers and networks that accounts signed in from.

use std::collections::HashMap;

use domain::Timestamp;

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const SEEN: Sql = Sql::same(r"
        UPDATE known_devices SET seen_at = $3 WHERE account_id = $1 AND fingerprint = $2");
    const INSERT: Sql = Sql::same(r"
        INSERT INTO known_devices (account_id, fingerprint, seen_at)
        VALUES ($1, $2, $3)
        ON CONFLICT (account_id, fingerprint) DO NOTHING");
    /// Whether an account was made after `$2` and never signed in before.
    const IS_FIRST: Sql = Sql::same(r"
        SELECT 1 AS n
        FROM accounts a
        WHERE a.id = $1 AND a.created_at > $2
          AND NOT EXISTS (SELECT 1 FROM known_devices k WHERE k.account_id = a.id)");
    const SET_NAME: Sql = Sql::same(r"
        UPDATE known_devices SET name = $3 WHERE account_id = $1 AND fingerprint = $2");
    const NAMES: Sql = Sql::same(r"
        SELECT fingerprint, name FROM known_devices WHERE account_id = $1 AND name IS NOT NULL");
    const FORGET: Sql = Sql::same("DELETE FROM known_devices WHERE seen_at <= $1");
}

/// Notes a sign-in; whether the account signed in like this before.
pub(crate) async fn see(
    conn: &mut dyn Connection,
    account_id: i64,
    fingerprint: &str,
    now: Timestamp,
) -> Result<bool> {
    let values = || (account_id, fingerprint, now);
    if query(SEEN, values()).execute(conn).await? > 0 {
        return Ok(true);
    }
    query(INSERT, values()).execute(conn).await?;
    Ok(false)
}

/// Whether this is the first sign-in of an account that was made after `since`.
pub(crate) async fn is_first(
    conn: &mut dyn Connection,
    account_id: i64,
    since: Timestamp,
) -> Result<bool> {
    query(IS_FIRST, (account_id, since)).finds(conn).await
}

/// Names a browser in its network; without a name it has none any more.
pub(crate) async fn set_name(
    conn: &mut dyn Connection,
    account_id: i64,
    fingerprint: &str,
    name: Option<&str>,
) -> Result<()> {
    query(SET_NAME, (account_id, fingerprint, name))
        .execute(conn)
        .await
        .map(drop)
}

/// The names that an account gave, by fingerprint.
pub(crate) async fn names(
    conn: &mut dyn Connection,
    account_id: i64,
) -> Result<HashMap<String, String>> {
    let named = query(NAMES, account_id)
        .fetch_all(conn, |row| Ok((row.get("fingerprint")?, row.get("name")?)));
    Ok(named.await?.into_iter().collect::<HashMap<_, _>>())
}

/// Forgets what wasn't seen after this moment.
pub(crate) async fn forget(conn: &mut dyn Connection, before: Timestamp) -> Result<()> {
    query(FORGET, before).execute(conn).await.map(drop)
}
