//! Claims rows of the queue for submission to carriers, each row under a lease. The statements that
//! claim are for SQLite only. On PostgreSQL, `run_commit_group` claims with similar statements.

use std::collections::HashMap;

use domain::{
    ApplicationId, Kind, LostAnswer, MessageStatus, Reference, Submission, Timestamp, Transid,
};
use serde::Deserialize;

use super::query::{Conn, query};
use super::row::{self, from_row, touched};
use super::sql::{Sql, statements};
use super::tally::OpenMessage;
use super::transaction::Tx;
use crate::error::Result;

statements! {
    /// Each part reads only its first row. With `MIN`, SQLite would read all scheduled messages.
    const NEXT_DUE: Sql = Sql::sqlite(r"
        SELECT MIN(due_at) AS due_at
        FROM (
            SELECT * FROM (
                SELECT due_at FROM queue
                WHERE carrier = $1 AND deferred = 0 AND bulk = 0
                  AND (expires_at > $5 OR expires_at IS NULL AND message_id >= $2)
                  AND lease_token = 0
                  AND due_at >= $3
                ORDER BY due_at LIMIT 1)
            UNION ALL SELECT * FROM (
                SELECT due_at FROM queue
                WHERE carrier = $1 AND deferred = 0 AND bulk = 1
                  AND (expires_at > $5 OR expires_at IS NULL AND message_id >= $2)
                  AND lease_token = 0
                  AND due_at >= $4
                ORDER BY due_at LIMIT 1))
        WHERE NOT EXISTS (
            SELECT 1 FROM carriers WHERE name IN ($1, '*') AND drained_at IS NOT NULL)");
    /// Looks up single messages and messages of batches separately, because each lookup then uses
    /// its own part of the index `queue_due`.
    const DUE: Sql = Sql::sqlite(r"
        -- No SKIP LOCKED: one transaction writes at a time, so no other one has locked a row.
        WITH drained AS (
            SELECT 1 FROM carriers WHERE name IN ($1, '*') AND drained_at IS NOT NULL),
        singles AS MATERIALIZED (
            SELECT message_id, application_id, submission, due_at, 0 AS bulk, expires_at FROM queue
            WHERE carrier = $1 AND deferred = 0 AND bulk = 0 AND due_at BETWEEN $6 AND $2
              AND (expires_at > $2 OR expires_at IS NULL AND message_id >= $3)
              AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained)
            ORDER BY due_at, message_id LIMIT $4),
        of_batches AS (
            SELECT message_id, application_id, submission, due_at, 1 AS bulk, expires_at FROM queue
            WHERE carrier = $1 AND deferred = 0 AND bulk = 1 AND due_at BETWEEN $7 AND $2
              AND (expires_at > $2 OR expires_at IS NULL AND message_id >= $3)
              AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained)
            ORDER BY due_at, message_id LIMIT $5 - (SELECT COUNT(*) FROM singles))
        SELECT json_group_array(
            json_array(
                q.message_id, q.submission,
                CASE WHEN a.effective_status = 'Suspended' THEN 1
                    WHEN q.bulk = 1 AND EXISTS (
                        SELECT 1 FROM batches
                        WHERE (cancelling = 1 OR paused_at IS NOT NULL)
                          AND q.message_id BETWEEN first_message_id AND last_message_id) THEN 2
                    ELSE 0 END,
                q.due_at, q.bulk, q.expires_at))
            AS found
        FROM (SELECT * FROM singles UNION ALL SELECT * FROM of_batches) q
        JOIN applications a ON a.id = q.application_id");
    const CLAIM: Sql = Sql::sqlite(r"
        UPDATE queue SET due_at = ?2, lease_token = ?3 WHERE message_id = ?1");
    const CLAIMED: Sql = Sql::sqlite(r"
        SELECT m.id, m.application_id, m.test, m.batch_id, m.created_at, m.status, m.cost,
               m.send_at, m.number, m.kind, m.sender,
               COALESCE(m.body, (SELECT b.body FROM batches b WHERE b.id = m.batch_id)) AS body,
               m.verification_id, v.nonce, v.digits, a.reference
        FROM messages m
        JOIN applications a ON a.id = m.application_id
        LEFT JOIN verifications v ON v.id = m.verification_id
        WHERE m.id = ?1 AND m.status < {submitted}");
    const START: Sql = Sql::sqlite(r"
        UPDATE messages SET status = {sending}, sending_at = ?2
        WHERE id = ?1 AND status < {unknown}");
    /// `$1` is `[[message ID, token]]`.
    const LEASED: Sql = Sql {
        sqlite: r"
            SELECT q.message_id, q.submission, q.attempts, a.lost_answer
            FROM queue q
            JOIN applications a ON a.id = q.application_id
            WHERE q.message_id = ?1 AND q.lease_token = ?2",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                q.message_id, q.submission, q.attempts, a.lost_answer)), '[]')::text AS found
            FROM (
                SELECT q.message_id, q.submission, q.attempts, q.application_id
                FROM jsonb_array_elements($1::text::jsonb) AS r
                JOIN queue q ON q.message_id = (r.value ->> 0)::bigint
                  AND q.lease_token = (r.value ->> 1)::bigint
                WHERE q.shard = $2 ORDER BY q.message_id FOR UPDATE OF q) q
            JOIN applications a ON a.id = q.application_id AND a.shard = $2",
        ..Sql::IN_SHARD
    };
    const ENDED_LEASES: Sql = Sql::in_shard(r"
        SELECT q.message_id, q.carrier, q.submission, q.application_id, m.segments, a.lost_answer
        FROM queue q
        JOIN messages m ON m.id = q.message_id
        JOIN applications a ON a.id = q.application_id
        WHERE q.lease_token <> 0 AND q.due_at <= $1
          AND m.id >= $3{ AND q.shard = $shard AND m.shard = $shard AND a.shard = $shard}
        LIMIT $2{ FOR UPDATE OF q SKIP LOCKED}");
}

/// A row of the queue that can be claimed. The fields are in the order of [`DUE`].
#[derive(Deserialize)]
pub struct DueRow {
    #[serde(deserialize_with = "row::transid_from_number")]
    pub id: Transid,
    pub submission: Submission,
    /// 1 if the application is suspended, 2 if the batch is paused or cancelled, and otherwise 0. A
    /// row with another number than 0 is deferred instead of claimed.
    pub deferred: i64,
    /// Unix milliseconds.
    pub due_at: i64,
    #[serde(deserialize_with = "flag")]
    pub of_batch: bool,
    /// When the message expires, in Unix milliseconds. `None` if that is 48 hours after its
    /// acceptance.
    pub expires_at: Option<i64>,
}

/// The lower bounds of `due_at` for scans of the queue, in Unix milliseconds. Earlier scans have
/// covered the rows that are due before these times.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScanStart {
    pub singles: i64,
    pub of_batches: i64,
}

/// The maximum number of rows to find: of single messages, and of all messages together.
#[derive(Clone, Copy)]
pub struct DueLimits {
    pub singles: i64,
    pub all: i64,
}

/// Returns the rows of a carrier that are due, unclaimed and not expired, including those to defer.
/// Messages with IDs below `least` have expired, unless they have an expiry of their own. Returns
/// no rows if the carrier is drained.
pub async fn due(
    conn: Conn<'_>,
    carrier: &str,
    limits: DueLimits,
    from: ScanStart,
    least: i64,
    now: Timestamp,
) -> Result<Vec<DueRow>> {
    let (singles, all) = (limits.singles, limits.all);
    let values = (carrier, now, least, singles, all, from.singles, from.of_batches);
    let finding = query(DUE, values);
    finding.fetch_one(conn, |row| row::found(row, "queue")).await
}

/// Returns when the next row of a carrier can be claimed, among those that haven't expired, as in
/// [`due`]. Returns `None` if there is no such row or the carrier is drained.
pub async fn next_due(
    conn: Conn<'_>,
    carrier: &str,
    from: ScanStart,
    least: i64,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let values = (carrier, least, from.singles, from.of_batches, now);
    query(NEXT_DUE, values).fetch_one(conn, |row| row.get("due_at")).await
}

/// Claims rows under a lease with this token that expires at `until`.
pub async fn claim(tx: &mut Tx<'_>, ids: &[Transid], token: i64, until: Timestamp) -> Result<()> {
    let claiming = query(CLAIM, (until, token));
    let claimed = claiming.execute_each(tx, ids.iter().copied()).await?;
    touched("queue", ids.len(), claimed)
}

/// Marks claimed messages as `sending`, and returns the fields needed to submit them. Messages that
/// are `unknown` keep their status.
pub async fn start(
    tx: &mut Tx<'_>,
    ids: &[Transid],
    now: Timestamp,
) -> Result<Vec<StartedMessage>> {
    let finding = query(CLAIMED, ());
    let started: Vec<StartedMessage> =
        finding.find_each(tx, ids.iter().copied(), "messages").await?;
    let starting = query(START, now);
    starting.execute_each(tx, ids.iter().copied()).await?;
    for StartedMessage { message, .. } in &started {
        if message.status.may_become(MessageStatus::Sending) {
            tx.tally.change(message, MessageStatus::Sending, now);
        }
    }
    Ok(started)
}

/// A message to submit. The fields are in the order of [`CLAIMED`].
#[derive(Deserialize)]
pub struct StartedMessage {
    /// On SQLite, the status is the one before [`start`]. On PostgreSQL, it is the one after the
    /// claim.
    pub message: OpenMessage,
    pub number: String,
    pub kind: Kind,
    pub sender: Option<String>,
    /// The text as it is stored, in which a one-time code is masked.
    pub body: String,
    pub verification_id: Option<i64>,
    /// The nonce and the number of digits of the verification's code.
    pub nonce: Option<i64>,
    pub digits: Option<usize>,
    pub reference: Reference,
}

/// A claimed row whose lease still holds. The fields are in the order of [`LEASED`].
#[derive(Deserialize)]
pub struct Held {
    #[serde(deserialize_with = "row::transid_from_number")]
    pub id: Transid,
    pub submission: Submission,
    /// The number of submits that the carrier answered with a temporary error.
    pub attempts: i64,
    pub lost_answer: LostAnswer,
}

fn flag<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<bool, D::Error> {
    Ok(i64::deserialize(from)? == 1)
}

/// A claimed message, and the token of its lease.
pub struct Leased {
    pub message_id: Transid,
    pub token: i64,
}

/// Returns the claimed rows whose lease still holds, by message ID.
pub async fn held(tx: &mut Tx<'_>, leases: &[Leased]) -> Result<HashMap<Transid, Held>> {
    let leases = leases.iter().map(|lease| (lease.message_id, lease.token));
    let finding = query(LEASED, ());
    let held: Vec<Held> = finding.find_each(tx, leases, "queue").await?;
    Ok(held.into_iter().map(|held| (held.id, held)).collect())
}

/// A claimed row whose lease has expired.
#[derive(Clone)]
pub struct EndedLease {
    pub id: Transid,
    pub application_id: ApplicationId,
    pub carrier: String,
    pub submission: Submission,
    /// The number of segments, as counted when the message was accepted.
    pub segments: u16,
    pub lost_answer: LostAnswer,
}

/// Returns at most `limit` claimed rows whose lease expired at or before `ended_by` and whose
/// message IDs are at least `least`.
pub async fn ended_leases(
    conn: Conn<'_>,
    ended_by: Timestamp,
    least: i64,
    limit: i64,
) -> Result<Vec<EndedLease>> {
    query(ENDED_LEASES, (ended_by, limit, least))
        .fetch_all(conn, |row| {
            from_row!(row => EndedLease {
                id: row.get("message_id")?, application_id, carrier,
                submission: row::code(row, "queue", "submission", |code| {
                    Submission::try_from(code).ok()
                })?,
                segments: row.get::<i64>("segments")?.try_into().unwrap_or(1),
                lost_answer: row::word(row, "applications", "lost_answer", LostAnswer::parse)?,
            })
        })
        .await
}
