//! The confirmation of email addresses, and the links in the mails about it.

use domain::Timestamp;

use super::query::{Conn, query};
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
    /// Marks the account's email as unconfirmed.
    const EXPECT: Sql = Sql::same(r"
        UPDATE accounts SET confirmed_at = NULL, confirm_mailed_at = $2 WHERE id = $1");
    /// Updates no row if the last mail is too recent.
    const MAIL_AGAIN: Sql = Sql::same(r"
        UPDATE accounts SET confirm_mailed_at = $2
        WHERE id = $1 AND (confirm_mailed_at IS NULL OR confirm_mailed_at <= $3)");
    const MAILED_AT: Sql = Sql::same(r"
        SELECT COALESCE(confirm_mailed_at, 0) AS at FROM accounts WHERE id = $1");
    const CONFIRM: Sql = Sql::same(r"
        UPDATE accounts SET confirmed_at = $2 WHERE id = $1 AND confirmed_at IS NULL");
}

/// The effect of a link in a mail on the account's email.
#[derive(Clone, Copy)]
pub enum Purpose {
    /// Confirms the current email.
    Confirm,
    /// Confirms the pending new email.
    Change,
    /// Cancels the change to a new email.
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

/// Stores a link that is mailed to `email`.
pub async fn insert(
    conn: Conn<'_>,
    token_hash: &str,
    account_id: i64,
    purpose: Purpose,
    email: &str,
    expires_at: Timestamp,
) -> Result<()> {
    let values = (token_hash, account_id, purpose.as_str(), email, expires_at);
    query(INSERT, values).execute(conn).await.map(drop)
}

/// Returns the account of a link, and the address that the link was mailed to. Returns `None` if
/// the link has expired, has another purpose or doesn't exist.
pub async fn find(
    conn: Conn<'_>,
    token_hash: &str,
    purpose: Purpose,
    now: Timestamp,
) -> Result<Option<(i64, String)>> {
    query(FIND, (token_hash, purpose.as_str(), now))
        .fetch_optional(conn, |row| Ok((row.get("account_id")?, row.get("email")?)))
        .await
}

/// Deletes the expired links.
pub async fn forget(conn: Conn<'_>, now: Timestamp) -> Result<()> {
    query(FORGET, now).execute(conn).await.map(drop)
}

/// Marks the email of a new account as unconfirmed, and stores `now` as the time of the first
/// confirmation mail.
pub async fn expect(conn: Conn<'_>, account_id: i64, now: Timestamp) -> Result<()> {
    query(EXPECT, (account_id, now)).execute(conn).await.map(drop)
}

/// Stores `now` as the time of the latest confirmation mail. Returns false if the previous one was
/// written after `since`.
pub async fn mail_again(
    conn: Conn<'_>,
    account_id: i64,
    now: Timestamp,
    since: Timestamp,
) -> Result<bool> {
    let noting = query(MAIL_AGAIN, (account_id, now, since));
    Ok(noting.execute(conn).await? == 1)
}

/// Returns when the last confirmation mail was written. 0 if none was.
pub async fn mailed_at(conn: Conn<'_>, account_id: i64) -> Result<Timestamp> {
    query(MAILED_AT, account_id).fetch_one(conn, |row| row.get("at")).await
}

/// Confirms an account's email. Returns false if it was already confirmed.
pub async fn confirm(conn: Conn<'_>, account_id: i64, now: Timestamp) -> Result<bool> {
    Ok(query(CONFIRM, (account_id, now)).execute(conn).await? == 1)
}
