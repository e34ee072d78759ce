//! Sessions and the devices they are.

use domain::Timestamp;
use domain::records::{AccountRecord, DeviceRecord};

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use super::{accounts, row};
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

/// False when the token exists.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    token_hash: &str,
    data: &str,
    now: Timestamp,
) -> Result<bool> {
    let done = query(INSERT)
        .bind(token_hash)
        .bind(data)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// False when there is no such session.
pub(crate) async fn save(
    conn: &mut dyn Connection,
    token_hash: &str,
    data: &str,
    now: Timestamp,
) -> Result<()> {
    query(SAVE)
        .bind(token_hash)
        .bind(data)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(())
}

pub(crate) async fn load(
    conn: &mut dyn Connection,
    token_hash: &str,
    valid: Valid,
) -> Result<Option<Stored>> {
    let row = query(LOAD)
        .bind(token_hash)
        .bind(valid.seen_after.unix_ms())
        .bind(valid.made_after.unix_ms())
        .fetch_optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    Ok(Some(Stored {
        account_id: row::opt_int(&row, "account_id")?,
        data: row::text(&row, "data")?,
        created_at: Timestamp::from_unix_ms(row::int(&row, "created_at")?),
        last_seen_at: Timestamp::from_unix_ms(row::int(&row, "last_seen_at")?),
    }))
}

pub(crate) async fn touch(
    conn: &mut dyn Connection,
    token_hash: &str,
    now: Timestamp,
) -> Result<()> {
    query(TOUCH)
        .bind(token_hash)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(())
}

pub(crate) async fn delete(conn: &mut dyn Connection, token_hash: &str) -> Result<()> {
    query(DELETE).bind(token_hash).execute(conn).await?;
    Ok(())
}

/// Makes a session a signed-in device; false when there is no such session, or when the password
/// was changed since it was asked for.
pub(crate) async fn bind(
    conn: &mut dyn Connection,
    token_hash: &str,
    account: &AccountRecord,
    user_agent: &str,
    address: &str,
) -> Result<bool> {
    let done = query(BIND)
        .bind(token_hash)
        .bind(account.id)
        .bind(user_agent)
        .bind(address)
        .bind(account.password_changed_at.unix_ms())
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Who is signed in, and when the session was last seen.
pub(crate) async fn account(
    conn: &mut dyn Connection,
    token_hash: &str,
    valid: Valid,
) -> Result<Option<(AccountRecord, Timestamp)>> {
    let row = query(ACCOUNT)
        .bind(token_hash)
        .bind(valid.seen_after.unix_ms())
        .bind(valid.made_after.unix_ms())
        .fetch_optional(conn)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let seen = Timestamp::from_unix_ms(row::int(&row, "last_seen_at")?);
    Ok(Some((accounts::record(&row)?, seen)))
}

pub(crate) async fn devices(
    conn: &mut dyn Connection,
    account_id: i64,
    current_hash: &str,
    valid: Valid,
) -> Result<Vec<DeviceRecord>> {
    let rows = query(DEVICES)
        .bind(account_id)
        .bind(valid.seen_after.unix_ms())
        .bind(valid.made_after.unix_ms())
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(DeviceRecord {
                id: row::int(row, "id")?,
                user_agent: row::text(row, "user_agent")?,
                address: row::text(row, "address")?,
                signed_in_at: Timestamp::from_unix_ms(row::int(row, "created_at")?),
                last_seen_at: Timestamp::from_unix_ms(row::int(row, "last_seen_at")?),
                current: row::text(row, "token_hash")? == current_hash,
            })
        })
        .collect()
}

/// False when the account has no such device.
pub(crate) async fn delete_device(
    conn: &mut dyn Connection,
    account_id: i64,
    id: i64,
) -> Result<bool> {
    let done = query(DELETE_DEVICE)
        .bind(account_id)
        .bind(id)
        .execute(conn)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Signs out every device of an account but one; an empty hash keeps none.
pub(crate) async fn delete_others(
    conn: &mut dyn Connection,
    account_id: i64,
    keep_hash: &str,
) -> Result<()> {
    query(DELETE_OTHERS)
        .bind(account_id)
        .bind(keep_hash)
        .execute(conn)
        .await?;
    Ok(())
}

/// Deletes sessions that aren't valid any more.
pub(crate) async fn sweep(conn: &mut dyn Connection, valid: Valid) -> Result<u64> {
    let done = query(SWEEP)
        .bind(valid.seen_after.unix_ms())
        .bind(valid.made_after.unix_ms())
        .execute(conn)
        .await?;
    Ok(done.rows_affected())
}
