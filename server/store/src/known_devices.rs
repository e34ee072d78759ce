//! The browsers and networks that accounts have signed in from.

use std::collections::HashMap;

use domain::Timestamp;

use super::query::{Conn, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const SEEN: Sql = Sql::same(r"
        UPDATE known_devices SET seen_at = $3 WHERE account_id = $1 AND fingerprint = $2");
    const INSERT: Sql = Sql::same(r"
        INSERT INTO known_devices (account_id, fingerprint, seen_at, network)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (account_id, fingerprint) DO NOTHING");
    /// Returns a row if the account was created after `$2` and has never signed in.
    const IS_FIRST: Sql = Sql::same(r"
        SELECT 1 AS n FROM accounts a
        WHERE a.id = $1 AND a.created_at > $2
          AND NOT EXISTS (SELECT 1 FROM known_devices k WHERE k.account_id = a.id)");
    const KNOWS_NETWORK: Sql = Sql::same(r"
        SELECT 1 AS n FROM known_devices WHERE account_id = $1 AND network = $2");
    const SET_NAME: Sql = Sql::same(r"
        UPDATE known_devices SET name = $3 WHERE account_id = $1 AND fingerprint = $2");
    const NAMES: Sql = Sql::same(r"
        SELECT fingerprint, name FROM known_devices WHERE account_id = $1 AND name IS NOT NULL");
    const FORGET: Sql = Sql::same("DELETE FROM known_devices WHERE seen_at <= $1");
}

/// Stores a sign-in. Returns whether the account has signed in with this fingerprint before.
pub async fn see(
    conn: Conn<'_>,
    account_id: i64,
    fingerprint: &str,
    network: &str,
    now: Timestamp,
) -> Result<bool> {
    let seeing = query(SEEN, (account_id, fingerprint, now));
    if seeing.execute(conn).await? > 0 {
        return Ok(true);
    }
    let noting = query(INSERT, (account_id, fingerprint, now, network));
    noting.execute(conn).await?;
    Ok(false)
}

/// Returns whether the account has signed in from this network before.
pub async fn knows_network(conn: Conn<'_>, account_id: i64, network: &str) -> Result<bool> {
    query(KNOWS_NETWORK, (account_id, network)).finds(conn).await
}

/// Returns whether this is the first sign-in of an account that was created after `since`.
pub async fn is_first(conn: Conn<'_>, account_id: i64, since: Timestamp) -> Result<bool> {
    query(IS_FIRST, (account_id, since)).finds(conn).await
}

/// Names a browser in its network. `None` removes the name.
pub async fn set_name(
    conn: Conn<'_>,
    account_id: i64,
    fingerprint: &str,
    name: Option<&str>,
) -> Result<()> {
    query(SET_NAME, (account_id, fingerprint, name)).execute(conn).await.map(drop)
}

/// Returns the names that the account has chosen, by fingerprint.
pub async fn names(conn: Conn<'_>, account_id: i64) -> Result<HashMap<String, String>> {
    let named = query(NAMES, account_id)
        .fetch_all(conn, |row| Ok((row.get("fingerprint")?, row.get("name")?)));
    Ok(named.await?.into_iter().collect::<HashMap<_, _>>())
}

/// Deletes the browsers and networks that were last seen at or before this time.
pub async fn forget(conn: Conn<'_>, before: Timestamp) -> Result<()> {
    query(FORGET, before).execute(conn).await.map(drop)
}
