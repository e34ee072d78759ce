//! The confirmation of email addresses, and the links for it.

use domain::Timestamp;

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO confirmations (token_hash, account_id, expires_at, email)
        VALUES ($1, $2, $3, $4)");
    const ACCOUNT_OF: Sql = Sql::same(r"
        SELECT account_id FROM confirmations
        WHERE token_hash = $1 AND expires_at > $2 AND email IS NULL");
    const CHANGE_OF: Sql = Sql::same(r"
        SELECT account_id, email FROM confirmations
        WHERE token_hash = $1 AND expires_at > $2 AND email IS NOT NULL");
    const FORGET: Sql = Sql::same("DELETE FROM confirmations WHERE expires_at <= $1");
    /// From now on the account waits for its confirmation.
    const EXPECT: Sql = Sql::same(r"
        UPDATE accounts SET confirmed_at = NULL, confirm_mailed_at = $2 WHERE id = $1");
    /// Gives no row while the last mail is too young.
    const MAIL_AGAIN: Sql = Sql::same(r"
        UPDATE accounts SET confirm_mailed_at = $2
        WHERE id = $1 AND (confirm_mailed_at IS NULL OR confirm_mailed_at <= $3)");
    const MAILED_AT: Sql = Sql::same(r"
        SELECT COALESCE(confirm_mailed_at, 0) AS at FROM accounts WHERE id = $1");
    const CONFIRM: Sql = Sql::same(r"
        UPDATE accounts SET confirmed_at = $2 WHERE id = $1 AND confirmed_at IS NULL");
}

/// Stores a link, which confirms the account's email or gives it a new one.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    token_hash: &str,
    account_id: i64,
    expires_at: Timestamp,
    new_email: Option<&str>,
) -> Result<()> {
    query(INSERT, (token_hash, account_id, expires_at, new_email))
        .execute(conn)
        .await
        .map(drop)
}

/// The account whose email a link confirms; `None` for a link that is too old or isn't ours.
pub(crate) async fn account_of(
    conn: &mut dyn Connection,
    token_hash: &str,
    now: Timestamp,
) -> Result<Option<i64>> {
    query(ACCOUNT_OF, (token_hash, now))
        .fetch_optional(conn, |row| row.get("account_id"))
        .await
}

/// The account that a link gives a new email, and that email; `None` as with [`account_of`].
pub(crate) async fn change_of(
    conn: &mut dyn Connection,
    token_hash: &str,
    now: Timestamp,
) -> Result<Option<(i64, String)>> {
    query(CHANGE_OF, (token_hash, now))
        .fetch_optional(conn, |row| Ok((row.get("account_id")?, row.get("email")?)))
        .await
}

/// Deletes the links that work no more.
pub(crate) async fn forget(conn: &mut dyn Connection, now: Timestamp) -> Result<()> {
    query(FORGET, now).execute(conn).await.map(drop)
}

/// Makes a new account wait for its confirmation, about which a mail is written now.
pub(crate) async fn expect(
    conn: &mut dyn Connection,
    account_id: i64,
    now: Timestamp,
) -> Result<()> {
    query(EXPECT, (account_id, now))
        .execute(conn)
        .await
        .map(drop)
}

/// Notes that another mail is written now; false when the last one was written after `since`.
pub(crate) async fn mail_again(
    conn: &mut dyn Connection,
    account_id: i64,
    now: Timestamp,
    since: Timestamp,
) -> Result<bool> {
    let noting = query(MAIL_AGAIN, (account_id, now, since));
    Ok(noting.execute(conn).await? == 1)
}

/// When the last mail was written.
pub(crate) async fn mailed_at(conn: &mut dyn Connection, account_id: i64) -> Result<Timestamp> {
    query(MAILED_AT, account_id)
        .fetch_one(conn, |row| row.get("at"))
        .await
}

/// Confirms an account's email; false when it was confirmed before.
pub(crate) async fn confirm(
    conn: &mut dyn Connection,
    account_id: i64,
    now: Timestamp,
) -> Result<bool> {
    Ok(query(CONFIRM, (account_id, now)).execute(conn).await? == 1)
}
