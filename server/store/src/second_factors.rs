//! Second factors of accounts, and their recovery codes.

use domain::Timestamp;

use super::passkeys;
use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const SET: Sql = Sql::same(r"
        INSERT INTO second_factors (account_id, secret, created_at, last_step)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (account_id)
        DO UPDATE SET secret = excluded.secret, created_at = excluded.created_at,
            last_step = excluded.last_step");
    const OF: Sql = Sql::same(r"
        SELECT secret, created_at,
               (
                   SELECT COUNT(*) FROM recovery_codes WHERE account_id = $1) AS codes
        FROM second_factors WHERE account_id = $1");
    const NEWEST: Sql = Sql::same(r"
        SELECT account_id, secret FROM second_factors ORDER BY created_at DESC LIMIT 1");
    const USE_STEP: Sql = Sql::same(r"
        UPDATE second_factors SET last_step = $3
        WHERE account_id = $1 AND secret = $2 AND last_step < $3");
    const WRONG: Sql = Sql::same(r"
        SELECT wrong_codes, wrong_at FROM second_factors WHERE account_id = $1");
    /// Updates no row if another attempt was counted in the meantime.
    const COUNT: Sql = Sql::same(r"
        UPDATE second_factors SET wrong_codes = $2 + 1, wrong_at = $3
        WHERE account_id = $1 AND wrong_codes = $2");
    const END_WRONG: Sql = Sql::same(r"
        UPDATE second_factors SET wrong_codes = 0 WHERE account_id = $1 AND wrong_codes > 0");
    const REMOVE: Sql = Sql::same("DELETE FROM second_factors WHERE account_id = $1");
    const ADD_CODE: Sql = Sql::same(r"
        INSERT INTO recovery_codes (account_id, code_hash) VALUES ($1, $2)");
    const USE_CODE: Sql = Sql::same(r"
        DELETE FROM recovery_codes WHERE account_id = $1 AND code_hash = $2");
    const REMOVE_CODES: Sql = Sql::same("DELETE FROM recovery_codes WHERE account_id = $1");
}

/// A stored second factor.
pub struct Stored {
    /// The TOTP secret, encrypted with the key that seals secrets.
    pub secret: String,
    pub created_at: Timestamp,
    /// The number of recovery codes left.
    pub codes: i64,
}

/// Sets an account's second factor. Codes up to this step are already used.
pub async fn set(
    conn: Conn<'_>,
    account_id: i64,
    secret: &str,
    step: i64,
    now: Timestamp,
) -> Result<()> {
    query(SET, (account_id, secret, now, step)).execute(conn).await.map(drop)
}

pub async fn of(conn: Conn<'_>, account_id: i64) -> Result<Option<Stored>> {
    let read = |row: &Row<'_>| from_row!(row => Stored { secret, created_at, codes });
    query(OF, account_id).fetch_optional(conn, read).await
}

/// Returns the account and the encrypted secret of the newest second factor.
pub async fn newest(conn: Conn<'_>) -> Result<Option<(i64, String)>> {
    let read = |row: &Row<'_>| Ok((row.get("account_id")?, row.get("secret")?));
    query(NEWEST, ()).fetch_optional(conn, read).await
}

/// Uses up the code of a step. Returns false if this code or a later one was already used, or if
/// the secret was replaced.
pub async fn use_step(conn: Conn<'_>, account_id: i64, secret: &str, step: i64) -> Result<bool> {
    let using = query(USE_STEP, (account_id, secret, step));
    Ok(using.execute(conn).await? == 1)
}

/// Returns the number of consecutive wrong codes and the time of the last one. `None` without a
/// second factor.
pub async fn wrong(conn: Conn<'_>, account_id: i64) -> Result<Option<(i64, Timestamp)>> {
    query(WRONG, account_id)
        .fetch_optional(conn, |row| Ok((row.get("wrong_codes")?, row.get("wrong_at")?)))
        .await
}

/// Counts an attempt as wrong before its code is checked. `before` is the number of wrong attempts
/// so far. Returns false if another attempt was counted in the meantime.
pub async fn count_wrong(
    conn: Conn<'_>,
    account_id: i64,
    before: i64,
    now: Timestamp,
) -> Result<bool> {
    let counting = query(COUNT, (account_id, before, now));
    Ok(counting.execute(conn).await? == 1)
}

/// Resets the number of consecutive wrong codes, after a correct code or a new password.
pub async fn end_wrong(conn: Conn<'_>, account_id: i64) -> Result<()> {
    query(END_WRONG, account_id).execute(conn).await.map(drop)
}

/// Removes an account's second factor, recovery codes and passkeys. Returns false if the account
/// had no second factor.
pub async fn remove(conn: Conn<'_>, account_id: i64) -> Result<bool> {
    query(REMOVE_CODES, account_id).execute(&mut *conn).await?;
    passkeys::remove_all(&mut *conn, account_id).await?;
    Ok(query(REMOVE, account_id).execute(conn).await? == 1)
}

/// Replaces the recovery codes.
pub async fn set_codes(conn: Conn<'_>, account_id: i64, hashes: &[String]) -> Result<()> {
    query(REMOVE_CODES, account_id).execute(&mut *conn).await?;
    for hash in hashes {
        query(ADD_CODE, (account_id, hash.as_str())).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Uses up a recovery code. Returns false if there is no such code.
pub async fn use_code(conn: Conn<'_>, account_id: i64, hash: &str) -> Result<bool> {
    Ok(query(USE_CODE, (account_id, hash)).execute(conn).await? == 1)
}
