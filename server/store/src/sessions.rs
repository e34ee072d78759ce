//! Sessions. A session becomes a device when somebody signs in.

use domain::Timestamp;
use domain::records::{AccountRecord, DeviceRecord};

use super::accounts;
use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

/// Selects the account that this column of a session names.
macro_rules! account {
    ($column:literal, $where:literal) => {
        concat!(
            r"
        SELECT accounts.id, accounts.email, accounts.role, accounts.password_changed_at,
               accounts.confirmed_at, accounts.theme, accounts.time_zone, accounts.closed_at,
               (
                   SELECT COUNT(*)
                   FROM second_factors f WHERE f.account_id = accounts.id) AS factors,
               sessions.last_seen_at
        FROM sessions
        JOIN accounts ON accounts.id = sessions.",
            $column,
            $where
        )
    };
}

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO sessions (token_hash, data, user_agent, address, created_at, last_seen_at)
        VALUES ($1, $2, '', '', $3, $3)
        ON CONFLICT (token_hash) DO NOTHING");
    const SAVE: Sql = Sql::same(r"
        UPDATE sessions SET data = $2, last_seen_at = $3 WHERE token_hash = $1");
    const LOAD: Sql = Sql::same(r"
        SELECT account_id, data, created_at, last_seen_at FROM sessions
        WHERE token_hash = $1 AND last_seen_at > $2 AND created_at > $3");
    const TOUCH: Sql = Sql::same(r"
        UPDATE sessions SET last_seen_at = $2 WHERE token_hash = $1 AND last_seen_at < $2");
    const RENAME: Sql = Sql::same("UPDATE sessions SET token_hash = $2 WHERE token_hash = $1");
    const DELETE: Sql = Sql::same("DELETE FROM sessions WHERE token_hash = $1");
    /// `$7` is the number of second factors that the sign-in has checked. Updates no row if the
    /// account has more.
    const BIND: Sql = Sql::same(r"
        UPDATE sessions SET account_id = $2, user_agent = $3, address = $4, stepped_up_at = $6,
            awaited_account_id = NULL
        WHERE token_hash = $1
          AND EXISTS (
              SELECT 1
              FROM accounts WHERE id = $2 AND password_changed_at = $5 AND disabled_at IS NULL)
          AND (SELECT COUNT(*) FROM second_factors WHERE account_id = $2) <= $7");
    const AWAIT: Sql = Sql::same(r"
        UPDATE sessions SET awaited_account_id = $2
        WHERE token_hash = $1 AND account_id IS NULL
          AND EXISTS (
              SELECT 1
              FROM accounts WHERE id = $2 AND password_changed_at = $3 AND disabled_at IS NULL)");
    const AWAITED: Sql = Sql::same(account!(
        "awaited_account_id",
        " WHERE token_hash = $1 AND sessions.created_at > $2 AND disabled_at IS NULL"
    ));
    const ACCOUNT: Sql = Sql::same(account!(
        "account_id",
        r"
        WHERE token_hash = $1 AND last_seen_at > $2 AND sessions.created_at > $3
          AND disabled_at IS NULL"
    ));
    const STEPPED_UP_AT: Sql = Sql::same(r"
        SELECT stepped_up_at FROM sessions WHERE token_hash = $1 AND account_id = $2");
    const SET_STEPPED_UP: Sql = Sql::same(r"
        UPDATE sessions SET stepped_up_at = $3 WHERE token_hash = $1 AND account_id = $2");
    const DEVICES: Sql = Sql::same(r"
        SELECT id, token_hash, user_agent, address, created_at, last_seen_at FROM sessions
        WHERE account_id = $1 AND last_seen_at > $2 AND created_at > $3
        ORDER BY last_seen_at DESC, id DESC");
    const DEVICE: Sql = Sql::same(r"
        SELECT user_agent, address FROM sessions WHERE account_id = $1 AND id = $2");
    const DELETE_DEVICE: Sql = Sql::same("DELETE FROM sessions WHERE account_id = $1 AND id = $2");
    const DELETE_OTHERS: Sql = Sql::same(r"
        DELETE FROM sessions
        WHERE (account_id = $1 OR awaited_account_id = $1) AND token_hash <> $2");
    const SWEEP: Sql = Sql::same(r"
        DELETE FROM sessions WHERE last_seen_at <= $1 OR created_at <= $2");
}

/// The limits of a valid session: it was last seen after one time and created after another.
#[derive(Clone, Copy)]
pub struct Valid {
    pub seen_after: Timestamp,
    pub made_after: Timestamp,
}

pub struct Stored {
    pub account_id: Option<i64>,
    pub data: String,
    pub created_at: Timestamp,
    pub last_seen_at: Timestamp,
}

/// Stores a session. Returns false if a session with this token already exists.
pub async fn insert(conn: Conn<'_>, token_hash: &str, data: &str, now: Timestamp) -> Result<bool> {
    Ok(query(INSERT, (token_hash, data, now)).execute(conn).await? == 1)
}

/// Saves a session's data. Does nothing if there is no such session.
pub async fn save(conn: Conn<'_>, token_hash: &str, data: &str, now: Timestamp) -> Result<()> {
    query(SAVE, (token_hash, data, now)).execute(conn).await.map(drop)
}

pub async fn load(conn: Conn<'_>, token_hash: &str, valid: Valid) -> Result<Option<Stored>> {
    let read =
        |row: &Row<'_>| from_row!(row => Stored { account_id, data, created_at, last_seen_at });
    let loading = query(LOAD, (token_hash, valid.seen_after, valid.made_after));
    loading.fetch_optional(conn, read).await
}

pub async fn touch(conn: Conn<'_>, token_hash: &str, now: Timestamp) -> Result<()> {
    query(TOUCH, (token_hash, now)).execute(conn).await.map(drop)
}

pub async fn rename(conn: Conn<'_>, from_hash: &str, to_hash: &str) -> Result<()> {
    query(RENAME, (from_hash, to_hash)).execute(conn).await.map(drop)
}

pub async fn delete(conn: Conn<'_>, token_hash: &str) -> Result<()> {
    query(DELETE, token_hash).execute(conn).await.map(drop)
}

/// A sign-in, which makes a session a device.
pub struct SignIn<'a> {
    pub account: &'a AccountRecord,
    pub user_agent: &'a str,
    pub address: &'a str,
    /// The number of second factors that the sign-in has checked.
    pub factors: i64,
}

/// Makes a session a signed-in device. Returns false if there is no such session, or if the
/// account's second factor wasn't checked. Also returns false if the account's password was changed
/// or the account was disabled since `sign_in.account` was read.
pub async fn bind(
    conn: Conn<'_>,
    token_hash: &str,
    sign_in: &SignIn<'_>,
    now: Timestamp,
) -> Result<bool> {
    let values = (
        token_hash,
        sign_in.account.id,
        sign_in.user_agent,
        sign_in.address,
        sign_in.account.password_changed_at,
        now,
        sign_in.factors,
    );
    Ok(query(BIND, values).execute(conn).await? == 1)
}

/// Stores that a session waits for a code of this account. Returns false if there is no such
/// session or if it is already signed in. Also returns false if the password was changed or the
/// account was disabled since `account` was read.
pub async fn await_code(conn: Conn<'_>, token_hash: &str, account: &AccountRecord) -> Result<bool> {
    let values = (token_hash, account.id, account.password_changed_at);
    Ok(query(AWAIT, values).execute(conn).await? == 1)
}

/// Returns the account whose code a session waits for. The session must be newer than `made_after`.
pub async fn awaited(
    conn: Conn<'_>,
    token_hash: &str,
    made_after: Timestamp,
) -> Result<Option<AccountRecord>> {
    query(AWAITED, (token_hash, made_after)).fetch_optional(conn, accounts::record).await
}

/// Returns the time of a session's last step-up authentication.
pub async fn stepped_up_at(
    conn: Conn<'_>,
    token_hash: &str,
    account_id: i64,
) -> Result<Option<Timestamp>> {
    let stepped_up: Option<Option<Timestamp>> = query(STEPPED_UP_AT, (token_hash, account_id))
        .fetch_optional(conn, |row| row.get("stepped_up_at"))
        .await?;
    Ok(stepped_up.flatten())
}

pub async fn set_stepped_up(
    conn: Conn<'_>,
    token_hash: &str,
    account_id: i64,
    now: Timestamp,
) -> Result<()> {
    query(SET_STEPPED_UP, (token_hash, account_id, now)).execute(conn).await.map(drop)
}

/// Returns the account that is signed in with a session, and when the session was last seen.
pub async fn account(
    conn: Conn<'_>,
    token_hash: &str,
    valid: Valid,
) -> Result<Option<(AccountRecord, Timestamp)>> {
    let read = |row: &Row<'_>| Ok((accounts::record(row)?, row.get("last_seen_at")?));
    let finding = query(ACCOUNT, (token_hash, valid.seen_after, valid.made_after));
    finding.fetch_optional(conn, read).await
}

pub async fn devices(
    conn: Conn<'_>,
    account_id: i64,
    current_hash: &str,
    valid: Valid,
) -> Result<Vec<DeviceRecord>> {
    query(DEVICES, (account_id, valid.seen_after, valid.made_after))
        .fetch_all(conn, |row| {
            from_row!(row => DeviceRecord {
                id, user_agent, address, name: None, signed_in_at: row.get("created_at")?,
                last_seen_at,
                current: row.get::<String>("token_hash")? == current_hash,
            })
        })
        .await
}

/// Returns the browser and the address of an account's device.
pub async fn device(conn: Conn<'_>, account_id: i64, id: i64) -> Result<Option<(String, String)>> {
    query(DEVICE, (account_id, id))
        .fetch_optional(conn, |row| Ok((row.get("user_agent")?, row.get("address")?)))
        .await
}

/// Signs out a device and cancels a change of the account's email. Returns false if the account has
/// no such device.
pub async fn delete_device(conn: Conn<'_>, account_id: i64, id: i64) -> Result<bool> {
    accounts::set_new_email(conn, account_id, None).await?;
    Ok(query(DELETE_DEVICE, (account_id, id)).execute(conn).await? == 1)
}

/// Signs out all devices of an account except one, or all of them if `keep_hash` is empty. Returns
/// how many were signed out. A user who does this suspects that somebody else had access, so this
/// also cancels a change of the email.
pub async fn delete_others(conn: Conn<'_>, account_id: i64, keep_hash: &str) -> Result<u64> {
    accounts::set_new_email(conn, account_id, None).await?;
    query(DELETE_OTHERS, (account_id, keep_hash)).execute(conn).await
}

/// Deletes sessions that are no longer valid, and returns how many there were.
pub async fn sweep(conn: Conn<'_>, valid: Valid) -> Result<u64> {
    query(SWEEP, (valid.seen_after, valid.made_after)).execute(conn).await
}
