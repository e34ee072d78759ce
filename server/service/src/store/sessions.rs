//! Sessions, and the devices that they are once somebody has signed in.

use domain::Timestamp;
use domain::records::{AccountRecord, DeviceRecord};

use super::accounts;
use super::query::{Connection, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO sessions (token_hash, data, user_agent, address, created_at, last_seen_at)
        VALUES ($1, $2, '', '', $3, $3)
        ON CONFLICT (token_hash) DO NOTHING");
    const SAVE: Sql = Sql::same(r"
        UPDATE sessions SET data = $2, last_seen_at = $3 WHERE token_hash = $1");
    const LOAD: Sql = Sql::same(r"
        SELECT account_id, data, created_at, last_seen_at
        FROM sessions
        WHERE token_hash = $1 AND last_seen_at > $2 AND created_at > $3");
    const TOUCH: Sql = Sql::same(r"
        UPDATE sessions SET last_seen_at = $2 WHERE token_hash = $1 AND last_seen_at < $2");
    const DELETE: Sql = Sql::same("DELETE FROM sessions WHERE token_hash = $1");
    const BIND: Sql = Sql::same(r"
        UPDATE sessions SET account_id = $2, user_agent = $3, address = $4
        WHERE token_hash = $1
          AND EXISTS (SELECT 1 FROM accounts WHERE id = $2 AND password_changed_at = $5)");
    const ACCOUNT: Sql = Sql::same(r"
        SELECT accounts.id, accounts.email, accounts.role, accounts.password_changed_at,
               sessions.last_seen_at
        FROM sessions
        JOIN accounts ON accounts.id = sessions.account_id
        WHERE token_hash = $1 AND last_seen_at > $2 AND sessions.created_at > $3");
    const DEVICES: Sql = Sql::same(r"
        SELECT id, token_hash, user_agent, address, created_at, last_seen_at
        FROM sessions
        WHERE account_id = $1 AND last_seen_at > $2 AND created_at > $3
        ORDER BY last_seen_at DESC, id DESC");
    const DELETE_DEVICE: Sql = Sql::same("DELETE FROM sessions WHERE account_id = $1 AND id = $2");
    const DELETE_OTHERS: Sql = Sql::same(r"
        DELETE FROM sessions WHERE account_id = $1 AND token_hash <> $2");
    const SWEEP: Sql = Sql::same(r"
        DELETE FROM sessions WHERE last_seen_at <= $1 OR created_at <= $2");
}

/// Which sessions are valid: those seen after one moment and made after another.
#[derive(Clone, Copy)]
pub(crate) struct Valid {
    pub(crate) seen_after: Timestamp,
    pub(crate) made_after: Timestamp,
}

/// A session as it is stored.
pub(crate) struct Stored {
    pub(crate) account_id: Option<i64>,
    pub(crate) data: String,
    pub(crate) created_at: Timestamp,
    pub(crate) last_seen_at: Timestamp,
}

/// Stores a session; false when a session with this token exists.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    token_hash: &str,
    data: &str,
    now: Timestamp,
) -> Result<bool> {
    Ok(query(INSERT, (token_hash, data, now)).execute(conn).await? == 1)
}

/// Saves a session's data; does nothing when there is no such session.
pub(crate) async fn save(
    conn: &mut dyn Connection,
    token_hash: &str,
    data: &str,
    now: Timestamp,
) -> Result<()> {
    query(SAVE, (token_hash, data, now))
        .execute(conn)
        .await
        .map(drop)
}

pub(crate) async fn load(
    conn: &mut dyn Connection,
    token_hash: &str,
    valid: Valid,
) -> Result<Option<Stored>> {
    let read = |row: &Row<'_>| {
        Ok(Stored {
            account_id: row.get("account_id")?,
            data: row.get("data")?,
            created_at: row.get("created_at")?,
            last_seen_at: row.get("last_seen_at")?,
        })
    };
    let loading = query(LOAD, (token_hash, valid.seen_after, valid.made_after));
    loading.fetch_optional(conn, read).await
}

pub(crate) async fn touch(
    conn: &mut dyn Connection,
    token_hash: &str,
    now: Timestamp,
) -> Result<()> {
    query(TOUCH, (token_hash, now))
        .execute(conn)
        .await
        .map(drop)
}

pub(crate) async fn delete(conn: &mut dyn Connection, token_hash: &str) -> Result<()> {
    query(DELETE, token_hash).execute(conn).await.map(drop)
}

/// Makes a session a signed-in device; false when there is no such session, or when the password
/// was changed after `account` was read.
pub(crate) async fn bind(
    conn: &mut dyn Connection,
    token_hash: &str,
    account: &AccountRecord,
    user_agent: &str,
    address: &str,
) -> Result<bool> {
    let changed_at = account.password_changed_at;
    let values = (token_hash, account.id, user_agent, address, changed_at);
    Ok(query(BIND, values).execute(conn).await? == 1)
}

/// The account that is signed in with a session, and when the session was last seen.
pub(crate) async fn account(
    conn: &mut dyn Connection,
    token_hash: &str,
    valid: Valid,
) -> Result<Option<(AccountRecord, Timestamp)>> {
    let read = |row: &Row<'_>| Ok((accounts::record(row)?, row.get("last_seen_at")?));
    let finding = query(ACCOUNT, (token_hash, valid.seen_after, valid.made_after));
    finding.fetch_optional(conn, read).await
}

pub(crate) async fn devices(
    conn: &mut dyn Connection,
    account_id: i64,
    current_hash: &str,
    valid: Valid,
) -> Result<Vec<DeviceRecord>> {
    query(DEVICES, (account_id, valid.seen_after, valid.made_after))
        .fetch_all(conn, |row| {
            Ok(DeviceRecord {
                id: row.get("id")?,
                user_agent: row.get("user_agent")?,
                address: row.get("address")?,
                signed_in_at: row.get("created_at")?,
                last_seen_at: row.get("last_seen_at")?,
                current: row.get::<String>("token_hash")? == current_hash,
            })
        })
        .await
}

/// Signs out a device; false when the account has no such device.
pub(crate) async fn delete_device(
    conn: &mut dyn Connection,
    account_id: i64,
    id: i64,
) -> Result<bool> {
    Ok(query(DELETE_DEVICE, (account_id, id)).execute(conn).await? == 1)
}

/// Signs out every device of an account except one; an empty hash keeps none.
pub(crate) async fn delete_others(
    conn: &mut dyn Connection,
    account_id: i64,
    keep_hash: &str,
) -> Result<()> {
    query(DELETE_OTHERS, (account_id, keep_hash))
        .execute(conn)
        .await
        .map(drop)
}

/// Deletes sessions that aren't valid any more.
pub(crate) async fn sweep(conn: &mut dyn Connection, valid: Valid) -> Result<u64> {
    query(SWEEP, (valid.seen_after, valid.made_after))
        .execute(conn)
        .await
}
