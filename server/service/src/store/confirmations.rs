//! The confirmation of email addresses, and the links for it.

use domain::Timestamp;

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO confirmations (token_hash, account_id, purpose, email, expires_at)
        VALUES ($1, $2, $3, $4, $5)");
    const FIND: Sql = Sql::same(r"
        SELECT account_id, email FROM confirmations
        WHERE token_hash = $1 AND purpose = $2 AND expires_at > $3");
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

/// What a link in a mail does with an account's email.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// Confirms the email that the account has.
    Confirm,
    /// Gives the account a new one.
    Change,
    /// Ends such a change.
    Stop,
}

impl Purpose {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Confirm => "confirm",
            Self::Change => "change",
            Self::Stop => "stop",
        }
    }
}

/// Stores a link that is mailed to this address.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    token_hash: &str,
    account_id: i64,
    purpose: Purpose,
    email: &str,
    expires_at: Timestamp,
) -> Result<()> {
    let values = (token_hash, account_id, purpose.as_str(), email, expires_at);
    query(INSERT, values).execute(conn).await.map(drop)
}

/// The account that a link is about, and the address that it was mailed to; `None` for a link that
/// is too old, does something else or isn't ours.
pub(crate) async fn find(
    conn: &mut dyn Connection,
    token_hash: &str,
    purpose: Purpose,
    now: Timestamp,
) -> Result<Option<(i64, String)>> {
    query(FIND, (token_hash, purpose.as_str(), now))
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
