//! Requests for sender names, and the accounts that own sender names.

use domain::records::{SenderRequestRecord, SimilarName};
use domain::{ApplicationId, Category, SenderName, SenderStatus, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

macro_rules! listed {
    ($rest:literal) => {
        Sql::in_shard(concat!(
            r"
        SELECT s.id, s.name, s.status, s.reason, s.requested_at, s.decided_at, a.reference
        FROM sender_requests s
        JOIN applications a ON a.id = s.application_id",
            $rest,
        ))
    };
}

statements! {
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO sender_requests (application_id, name, status, requested_at{, shard})
        VALUES ($1, $2, 'pending', $3{, $shard})");
    const REPLACE_PENDING: Sql = Sql::in_shard(r"
        UPDATE sender_requests SET status = 'replaced', decided_at = $2
        WHERE application_id = $1 AND status = 'pending'{ AND shard = $shard}");
    const REPLACE_ACCEPTED: Sql = Sql::in_shard(r"
        UPDATE sender_requests SET status = 'replaced'
        WHERE application_id = $1 AND status = 'accepted'{ AND shard = $shard}");
    const DECIDE: Sql = Sql::in_shard(r"
        UPDATE sender_requests SET status = $2, reason = $3, decided_at = $4
        WHERE id = $1 AND status = 'pending'{ AND shard = $shard}");
    const WITHDRAW: Sql = Sql::in_shard(r"
        UPDATE sender_requests SET status = 'withdrawn', decided_at = COALESCE(decided_at, $2)
        WHERE id = $1{ AND shard = $shard}");
    const BY_ID: Sql = listed!(
        " WHERE s.id = $1{ AND s.shard = $shard AND a.shard = $shard}");
    const ALL: Sql = listed!(
        "{ WHERE s.shard = $shard AND a.shard = $shard} ORDER BY s.id");
    const PENDING: Sql = listed!(
        " WHERE s.status = 'pending'{ AND s.shard = $shard AND a.shard = $shard} ORDER BY s.id");
    const CASES: Sql = Sql::in_shard(r"
        SELECT s.id, s.name, s.status, s.reason, s.requested_at, s.decided_at, a.reference,
               a.category, a.account_id, accounts.email
        FROM sender_requests s
        JOIN applications a ON a.id = s.application_id
        JOIN accounts ON accounts.id = a.account_id
        WHERE s.status = 'pending' AND s.id > $1{ AND s.shard = $shard AND a.shard = $shard}
        ORDER BY s.id LIMIT $2");
    const EARLIER: Sql = listed!(r"
        WHERE a.account_id = $1 AND s.id < $2{ AND s.shard = $shard AND a.shard = $shard}
        ORDER BY s.id DESC LIMIT $3");
    const OF_APPLICATION: Sql = listed!(r"
        WHERE s.application_id = $1{ AND s.shard = $shard AND a.shard = $shard}
        ORDER BY s.id DESC LIMIT $2");
    const SIMILAR: Sql = Sql::same(r"
        SELECT o.folded, accounts.email
        FROM sender_name_owners o
        JOIN accounts ON accounts.id = o.account_id
        WHERE o.looks = $1 AND o.account_id <> $2 ORDER BY o.folded LIMIT $3");
    const OWN: Sql = Sql::same(r"
        INSERT INTO sender_name_owners (folded, account_id, looks)
        VALUES ($1, $2, $3)
        ON CONFLICT (folded) DO NOTHING");
    const OWNER: Sql = Sql::same("SELECT account_id FROM sender_name_owners WHERE folded = $1");
}

fn request(row: &Row<'_>) -> Result<SenderRequestRecord> {
    from_row!(row => SenderRequestRecord {
        id, reference: row::reference(row)?, name,
        status: row::word(row, "sender_requests", "status", SenderStatus::parse)?,
        reason, requested_at, decided_at,
    })
}

/// Stores a request for a sender name. It replaces a pending request.
pub async fn insert(
    conn: Conn<'_>,
    application_id: ApplicationId,
    name: &str,
    now: Timestamp,
) -> Result<()> {
    query(REPLACE_PENDING, (application_id, now)).execute(&mut *conn).await?;
    query(INSERT, (application_id, name, now)).execute(conn).await.map(drop)
}

/// Marks an application's accepted request as replaced.
pub async fn replace_accepted(conn: Conn<'_>, application_id: ApplicationId) -> Result<()> {
    query(REPLACE_ACCEPTED, application_id).execute(conn).await.map(drop)
}

/// Decides a request. Returns false if it is no longer pending.
pub async fn decide(
    conn: Conn<'_>,
    id: i64,
    status: SenderStatus,
    reason: Option<&str>,
    now: Timestamp,
) -> Result<bool> {
    Ok(query(DECIDE, (id, status.as_str(), reason, now)).execute(conn).await? == 1)
}

/// Marks a request as withdrawn.
pub async fn withdraw(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<()> {
    let withdrawn = query(WITHDRAW, (id, now)).execute(conn).await?;
    row::touched("sender_requests", 1, withdrawn)
}

pub async fn by_id(conn: Conn<'_>, id: i64) -> Result<Option<SenderRequestRecord>> {
    query(BY_ID, id).fetch_optional(conn, request).await
}

pub async fn list(conn: Conn<'_>, only_pending: bool) -> Result<Vec<SenderRequestRecord>> {
    let statement = if only_pending { PENDING } else { ALL };
    query(statement, ()).fetch_all(conn, request).await
}

/// Assigns a sender name to an account, unless another account owns it. Returns the owner.
pub async fn own(conn: Conn<'_>, name: &SenderName, account_id: i64) -> Result<i64> {
    query(OWN, (name.folded(), account_id, name.looks())).execute(&mut *conn).await?;
    query(OWNER, name.folded()).fetch_one(conn, |row| row.get("account_id")).await
}

/// Returns the account that owns a sender name.
pub async fn owner(conn: Conn<'_>, folded: &str) -> Result<Option<i64>> {
    query(OWNER, folded).fetch_optional(conn, |row| row.get("account_id")).await
}

/// A pending request, with the category and the owner of its application.
pub struct Case {
    pub request: SenderRequestRecord,
    pub category: Category,
    pub account_id: i64,
    pub email: String,
}

/// Returns the pending requests with IDs above `after`, oldest first.
pub async fn cases(conn: Conn<'_>, after: i64, limit: i64) -> Result<Vec<Case>> {
    let read = |row: &Row<'_>| {
        from_row!(row => Case {
            request: request(row)?,
            category: row::word(row, "applications", "category", Category::parse)?,
            account_id, email,
        })
    };
    query(CASES, (after, limit)).fetch_all(conn, read).await
}

/// Returns an account's requests with IDs below `before`, newest first.
pub async fn earlier(
    conn: Conn<'_>,
    account_id: i64,
    before: i64,
    limit: i64,
) -> Result<Vec<SenderRequestRecord>> {
    query(EARLIER, (account_id, before, limit)).fetch_all(conn, request).await
}

/// Returns an application's requests, newest first.
pub async fn of_application(
    conn: Conn<'_>,
    application_id: ApplicationId,
    limit: i64,
) -> Result<Vec<SenderRequestRecord>> {
    query(OF_APPLICATION, (application_id, limit)).fetch_all(conn, request).await
}

/// Returns sender names of other accounts that look like this one.
pub async fn similar(
    conn: Conn<'_>,
    looks: &str,
    account_id: i64,
    limit: i64,
) -> Result<Vec<SimilarName>> {
    let read =
        |row: &Row<'_>| Ok(SimilarName { name: row.get("folded")?, email: row.get("email")? });
    query(SIMILAR, (looks, account_id, limit)).fetch_all(conn, read).await
}
