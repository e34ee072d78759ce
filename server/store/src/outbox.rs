//! The outbox: mails that are queued, being sent, sent, kept or failed. A mail is kept if there was
//! no mail server.

use domain::records::MailRecord;
use domain::{MailKind, MailState, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

macro_rules! listed {
    ($rest:literal) => {
        Sql::same(concat!(
            r"
        SELECT id, kind, state, recipient, subject, body, created_at, attempts, due_at, last_error
        FROM outbox ",
            $rest
        ))
    };
}

macro_rules! claim {
    ($lock:literal) => {
        concat!(
            r"
            UPDATE outbox SET state = 'sending', attempts = attempts + 1, due_at = $2
            WHERE id IN (
                SELECT id FROM outbox
                WHERE (state = 'queued' OR state = 'sending') AND due_at <= $1
                ORDER BY due_at, id LIMIT $3",
            $lock,
            r")
            RETURNING id, account_id, kind, recipient, subject, body, path, created_at, attempts"
        )
    };
}

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO outbox (account_id, kind, recipient, subject, body, path, created_at, state,
            due_at, attempts)
        VALUES ($1, $2, $3, $4, $5, $6, $7, 'queued', $7, 0)");
    const NEXT_DUE: Sql = Sql::same(r"
        SELECT MIN(due_at) AS due_at FROM outbox WHERE state = 'queued' OR state = 'sending'");
    /// Also claims mails whose lease has expired. The process that held the lease may have died
    /// before or after the mail server accepted the mail.
    const CLAIM: Sql = Sql {
        sqlite: claim!(""),
        postgres: claim!(" FOR UPDATE SKIP LOCKED"),
        ..Sql::ANYWHERE
    };
    const SENT: Sql = Sql::same(r"
        UPDATE outbox SET state = 'sent', body = '', last_error = NULL
        WHERE id = $1 AND attempts = $2 AND state = 'sending'");
    const NOT_SENT: Sql = Sql::same(r"
        UPDATE outbox SET state = $3, due_at = $4, last_error = $5
        WHERE id = $1 AND attempts = $2 AND state = 'sending'");
    const KEEP: Sql = Sql::same("UPDATE outbox SET state = 'kept' WHERE state = 'queued'");
    const RETRY: Sql = Sql::same(r"
        UPDATE outbox SET state = 'queued', due_at = $2, attempts = 0
        WHERE id = $1 AND (state = 'queued' OR state = 'kept' OR state = 'failed')");
    const FORGET_RESETS: Sql = Sql::same(r"
        DELETE FROM outbox
        WHERE account_id = $1 AND kind = 'reset' AND state IN ('queued', 'kept')");
    const BY_ID: Sql = listed!("WHERE id = $1");
    const NEWEST: Sql = listed!("WHERE id < $1 ORDER BY id DESC LIMIT $2");
    const COUNTS: Sql = Sql::same(r"
        SELECT CAST(COALESCE(SUM(
                   CASE WHEN state = 'queued' OR state = 'sending' THEN 1 ELSE 0 END), 0) AS BIGINT)
                   AS waiting,
               CAST(COALESCE(SUM(CASE WHEN state = 'failed' THEN 1 ELSE 0 END), 0) AS BIGINT)
                   AS failed
        FROM outbox");
    const DROP: Sql = Sql::same("DELETE FROM outbox WHERE id = $1");
    const WRITTEN: Sql = Sql::same(r"
        SELECT kind, COUNT(*) AS n
        FROM outbox WHERE recipient = $1 AND created_at > $2 GROUP BY kind");
    const FORGET: Sql = Sql::same(r"
        DELETE FROM outbox
        WHERE created_at <= $1 AND (state = 'sent' OR state = 'kept' OR state = 'failed')");
}

/// Deletes the requests of an account for a reset link that weren't mailed.
pub async fn forget_resets(conn: Conn<'_>, account_id: i64) -> Result<()> {
    query(FORGET_RESETS, account_id).execute(conn).await.map(drop)
}

/// A mail that isn't stored yet.
pub struct NewMail<'a> {
    pub account_id: Option<i64>,
    pub kind: MailKind,
    pub recipient: &'a str,
    pub subject: &'a str,
    /// Paragraphs, separated by empty lines.
    pub body: &'a str,
    /// The page that the mail links to.
    pub path: Option<&'a str>,
}

/// A mail that a process has claimed for sending.
pub struct ClaimedRow {
    pub id: i64,
    pub account_id: Option<i64>,
    pub kind: MailKind,
    pub recipient: String,
    pub subject: String,
    pub body: String,
    pub path: Option<String>,
    pub created_at: Timestamp,
    /// The number of this attempt, from 1. Only this attempt may store its result.
    pub attempts: i64,
}

fn kind(row: &Row<'_>) -> Result<MailKind> {
    row::word(row, "outbox", "kind", MailKind::parse)
}

fn record(row: &Row<'_>) -> Result<MailRecord> {
    from_row!(row => MailRecord {
        id, kind: kind(row)?,
        state: row::word(row, "outbox", "state", MailState::parse)?,
        recipient, subject, text: row.get("body")?, created_at, attempts,
        next_attempt_at: row.get("due_at")?, last_error,
    })
}

pub async fn insert(conn: Conn<'_>, mail: &NewMail<'_>, now: Timestamp) -> Result<()> {
    let values = (
        mail.account_id,
        mail.kind.as_str(),
        mail.recipient,
        mail.subject,
        mail.body,
        mail.path,
        now,
    );
    query(INSERT, values).execute(conn).await.map(drop)
}

/// Returns when the next mail is due, or `None` if no mail is pending.
pub async fn next_due(conn: Conn<'_>) -> Result<Option<Timestamp>> {
    query(NEXT_DUE, ()).fetch_one(conn, |row| row.get("due_at")).await
}

/// Claims mails that are due. No other process can claim them before `lease_end`.
pub async fn claim(
    conn: Conn<'_>,
    now: Timestamp,
    lease_end: Timestamp,
    limit: i64,
) -> Result<Vec<ClaimedRow>> {
    let read = |row: &Row<'_>| {
        from_row!(row => ClaimedRow {
            id, account_id, kind: kind(row)?, recipient, subject, body, path, created_at, attempts,
        })
    };
    let claiming = query(CLAIM, (now, lease_end, limit));
    let mut claimed = claiming.fetch_all(conn, read).await?;
    // RETURNING doesn't keep the order.
    claimed.sort_by_key(|row| row.id);
    Ok(claimed)
}

/// Marks a mail as sent and deletes its body. Returns false if the lease of this attempt has
/// expired and another attempt has begun.
pub async fn sent(conn: Conn<'_>, id: i64, attempts: i64) -> Result<bool> {
    Ok(query(SENT, (id, attempts)).execute(conn).await? == 1)
}

/// Stores that an attempt failed. Returns false in the same case as [`sent`].
pub async fn not_sent(
    conn: Conn<'_>,
    (id, attempts): (i64, i64),
    state: MailState,
    next_attempt_at: Timestamp,
    error: &str,
) -> Result<bool> {
    let values = (id, attempts, state.as_str(), next_attempt_at, error);
    Ok(query(NOT_SENT, values).execute(conn).await? == 1)
}

/// Deletes a mail whose link has become useless.
pub async fn drop_mail(conn: Conn<'_>, id: i64) -> Result<()> {
    query(DROP, id).execute(conn).await.map(drop)
}

/// Returns how many mails of each kind were written to an address after this time.
pub async fn written(
    conn: Conn<'_>,
    recipient: &str,
    since: Timestamp,
) -> Result<Vec<(MailKind, i64)>> {
    query(WRITTEN, (recipient, since)).fetch_all(conn, |row| Ok((kind(row)?, row.get("n")?))).await
}

/// Marks all queued mails as kept, because there is no mail server. Returns how many there were.
pub async fn keep(conn: Conn<'_>) -> Result<u64> {
    query(KEEP, ()).execute(conn).await
}

/// Queues a mail again. Returns false if the mail doesn't exist, is being sent, or was sent.
pub async fn retry(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<bool> {
    Ok(query(RETRY, (id, now)).execute(conn).await? == 1)
}

pub async fn by_id(conn: Conn<'_>, id: i64) -> Result<Option<MailRecord>> {
    query(BY_ID, id).fetch_optional(conn, record).await
}

/// Returns the mails with IDs below `before`, newest first.
pub async fn newest(conn: Conn<'_>, before: i64, limit: i64) -> Result<Vec<MailRecord>> {
    query(NEWEST, (before, limit)).fetch_all(conn, record).await
}

/// Returns how many mails are pending and how many have failed.
pub async fn counts(conn: Conn<'_>) -> Result<(i64, i64)> {
    let read = |row: &Row<'_>| Ok((row.get("waiting")?, row.get("failed")?));
    query(COUNTS, ()).fetch_one(conn, read).await
}

/// Deletes the mails that are no longer pending and were written at or before this time.
pub async fn forget(conn: Conn<'_>, before: Timestamp) -> Result<()> {
    query(FORGET, before).execute(conn).await.map(drop)
}
