//! Endpoints that get events, with their retries, replays and attempts.

use domain::webhook::AttemptCounts;
use domain::{ApplicationId, EventStream, EventType, Reference, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row, touched};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The maximum length of a lease or a pause. An endpoint may request a pause of an hour.
const LEASE_MAX_MS: i64 = 3_600_000;

macro_rules! columns {
    ($where:literal) => {
        Sql::in_shard(concat!(
            r"
        SELECT id, application_id, test, url, secret, old_secret, old_until, types, created_at,
               disabled_at, disabled_reason, position, failures, failing_since,
               (
                   SELECT reference FROM applications a
                   WHERE a.id = application_id{ AND a.shard = $shard}) AS reference
        FROM webhooks WHERE removed_at IS NULL AND ",
            $where,
            "{ AND shard = $shard} ORDER BY id",
        ))
    };
}

statements! {
    const LIST: Sql = columns!("application_id = $1 AND test = $2");
    const NEWEST_SECRET: Sql = Sql::in_shard(r"
        SELECT id, secret FROM webhooks
        WHERE removed_at IS NULL{ AND shard = $shard} ORDER BY id DESC LIMIT 1");
    const ONE: Sql = columns!("id = $1");
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO webhooks (id, application_id, test, url, secret, types, created_at, position,
            failures, due_at, lease_token, lease_until{, shard})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 0, $9, 0, 0{, $shard})");
    const SET_URL: Sql = Sql::in_shard(
        "UPDATE webhooks SET url = $2 WHERE id = $1{ AND shard = $shard}");
    const SET_TYPES: Sql = Sql::in_shard(
        "UPDATE webhooks SET types = $2 WHERE id = $1{ AND shard = $shard}");
    const ROTATE: Sql = Sql::in_shard(r"
        UPDATE webhooks SET old_secret = secret, secret = $2, old_until = $3
        WHERE id = $1{ AND shard = $shard}");
    const ENABLE: Sql = Sql::in_shard(r"
        UPDATE webhooks SET disabled_at = NULL, disabled_reason = NULL, failures = 0,
            failing_since = NULL, position = CASE WHEN position < $2 THEN $2 ELSE position END,
            due_at = $3, lease_token = 0, lease_until = 0
        WHERE id = $1{ AND shard = $shard}");
    const DISABLE: Sql = Sql::in_shard(r"
        UPDATE webhooks SET disabled_at = $2, disabled_reason = $3, lease_token = 0,
            lease_until = 0
        WHERE id = $1{ AND shard = $shard}");
    const REMOVE: Sql = Sql::in_shard(r"
        UPDATE webhooks SET removed_at = $2
        WHERE id = $1 AND removed_at IS NULL{ AND shard = $shard}");
    const REMOVE_ALL: Sql = Sql::in_shard(r"
        UPDATE webhooks SET removed_at = $2
        WHERE application_id = $1 AND removed_at IS NULL{ AND shard = $shard}");
    const WAKE: Sql = Sql::in_shard(
        "UPDATE webhooks SET due_at = $2 WHERE id = $1{ AND shard = $shard}");
    /// `$3` is later than the end of every lease and pause. A later end was set before the clock
    /// was set back, and counts as over. Events in a restored backup may have been delivered
    /// already, so no endpoint is due while all carriers are drained.
    const DUE: Sql = Sql::in_shard(r"
        SELECT id FROM webhooks
        WHERE due_at <= $1 AND disabled_at IS NULL AND removed_at IS NULL
          AND (lease_until <= $1 OR lease_until > $3){ AND shard = $shard}
          AND NOT EXISTS (SELECT 1 FROM carriers WHERE name = '*' AND drained_at IS NOT NULL)
        ORDER BY due_at LIMIT $2");
    /// Skips an endpoint that another transaction has locked. A transaction that waited for the
    /// lock could deadlock with one that makes several endpoints due.
    const LEASE: Sql = Sql {
        sqlite: r"
            UPDATE webhooks SET lease_token = ?2, lease_until = ?4
            WHERE id = ?1 AND disabled_at IS NULL AND removed_at IS NULL
              AND (lease_until <= ?3 OR lease_until > ?5)",
        postgres: r"
            UPDATE webhooks SET lease_token = $2, lease_until = $4
            WHERE shard = $6 AND id = (
                SELECT id FROM webhooks
                WHERE id = $1 AND shard = $6 AND disabled_at IS NULL AND removed_at IS NULL
                  AND (lease_until <= $3 OR lease_until > $5)
                FOR NO KEY UPDATE SKIP LOCKED)",
        ..Sql::IN_SHARD
    };
    const HELD: Sql = columns!("id = $1 AND lease_token = $2");
    /// Locks the endpoint on PostgreSQL, and extends the lease.
    const RENEW: Sql = Sql::in_shard(r"
        UPDATE webhooks SET lease_until = $3
        WHERE id = $1 AND lease_token = $2 AND removed_at IS NULL{ AND shard = $shard}");
    const PROGRESS: Sql = Sql::in_shard(r"
        UPDATE webhooks SET position = CASE WHEN position < $2 THEN $2 ELSE position END,
            failures = $3, failing_since = $4
        WHERE id = $1{ AND shard = $shard}");
    const RELEASE: Sql = Sql::in_shard(r"
        UPDATE webhooks SET lease_token = 0, lease_until = 0, due_at = $3
        WHERE id = $1 AND lease_token = $2{ AND shard = $shard}");
    const END_LEASES: Sql = Sql::in_shard(r"
        UPDATE webhooks SET lease_token = 0, lease_until = 0
        WHERE lease_token <> 0{ AND shard = $shard}");
    const PAUSE: Sql = Sql::in_shard(r"
        UPDATE webhooks SET lease_token = 0, lease_until = $3, due_at = $3
        WHERE id = $1 AND lease_token = $2{ AND shard = $shard}");
    const RETRIES: Sql = Sql::in_shard(r"
        SELECT event_id, attempts
        FROM webhook_retries WHERE webhook_id = $1 AND due_at <= $2{ AND shard = $shard}
        ORDER BY due_at, event_id LIMIT $3");
    const NEXT_RETRY: Sql = Sql::in_shard(r"
        SELECT MIN(due_at) AS due_at FROM webhook_retries
        WHERE webhook_id = $1{ AND shard = $shard}");
    const RETRIES_WITHIN: Sql = Sql::in_shard(r"
        SELECT event_id AS id FROM webhook_retries WHERE webhook_id = $1 AND event_id >= $2
          AND event_id <= $3{ AND shard = $shard}");
    const PUT_RETRY: Sql = Sql::in_shard(r"
        INSERT INTO webhook_retries (webhook_id, event_id, attempts, due_at{, shard})
        VALUES ($1, $2, $3, $4{, $shard})
        ON CONFLICT (webhook_id, event_id{, shard})
        DO UPDATE SET attempts = excluded.attempts, due_at = excluded.due_at");
    const DROP_RETRY: Sql = Sql::in_shard(
        "DELETE FROM webhook_retries WHERE webhook_id = $1 AND event_id = $2{ AND shard = $shard}");
    const REPLAY: Sql = Sql::in_shard(r"
        SELECT id, position, last_id FROM webhook_replays
        WHERE webhook_id = $1{ AND shard = $shard}");
    const PUT_REPLAY: Sql = Sql::in_shard(r"
        INSERT INTO webhook_replays (id, webhook_id, position, last_id{, shard})
        VALUES ($1, $2, $3, $4{, $shard})");
    const DROP_REPLAY: Sql = Sql::in_shard(
        "DELETE FROM webhook_replays WHERE id = $1{ AND shard = $shard}");
    const ADVANCE_REPLAY: Sql = Sql::in_shard(
        "UPDATE webhook_replays SET position = $2 WHERE id = $1{ AND shard = $shard}");
    const END_REPLAYS: Sql = Sql::in_shard(r"
        DELETE FROM webhook_replays
        WHERE webhook_id = $1 AND position >= last_id{ AND shard = $shard}");
    const INSERT_ATTEMPTS: Sql = Sql::in_shard(r"
        INSERT INTO webhook_attempts (webhook_id, id, at, event_id, type, delivered, status,
            latency_ms, error, answer, next_at{, shard})
        {values int int int int int int int int text text int shard}");
    const ATTEMPTS: Sql = Sql::in_shard(r"
        SELECT id, at, event_id, type, delivered, status, latency_ms, error, answer, next_at
        FROM webhook_attempts WHERE webhook_id = $1 AND id < $2{ AND shard = $shard}
        ORDER BY id DESC LIMIT $3");
    const FAILED: Sql = Sql::in_shard(r"
        SELECT id, at, event_id, type, delivered, status, latency_ms, error, answer, next_at
        FROM webhook_attempts WHERE webhook_id = $1 AND id < $2
          AND delivered = 0{ AND shard = $shard} ORDER BY id DESC LIMIT $3");
    const OF_EVENT: Sql = Sql::in_shard(r"
        SELECT id, at, event_id, type, delivered, status, latency_ms, error, answer, next_at
        FROM webhook_attempts WHERE webhook_id = $1 AND event_id = $2{ AND shard = $shard}
        ORDER BY id DESC LIMIT $3");
    /// Counts the newest attempts since `$2`, by quarter hour.
    const COUNTS: Sql = Sql::in_shard(r"
        SELECT quarter, CAST(COUNT(*) AS BIGINT) AS attempts,
               CAST(SUM(delivered) AS BIGINT) AS delivered
        FROM (
            SELECT ((id >> 21) + 1704067200000) / 900000 AS quarter, delivered
            FROM webhook_attempts WHERE webhook_id = $1 AND id >= $2{ AND shard = $shard}
            ORDER BY id DESC LIMIT $3) AS newest
        GROUP BY quarter ORDER BY quarter");
    const TAKEN_WITHIN: Sql = Sql::in_shard(r"
        SELECT DISTINCT event_id AS id FROM webhook_attempts
        WHERE webhook_id = $1 AND event_id >= $2 AND event_id <= $3
          AND delivered = 1{ AND shard = $shard}");
    /// An endpoint with attempts below `$1`.
    const OUTDATED: Sql = Sql::in_shard(r"
        SELECT w.id FROM webhooks w WHERE EXISTS (
            SELECT 1 FROM webhook_attempts a WHERE a.webhook_id = w.id
              AND a.id < $1{ AND a.shard = $shard}){ AND w.shard = $shard} ORDER BY w.id LIMIT 1");
    const DROP_ATTEMPTS: Sql = Sql::in_shard(r"
        DELETE FROM webhook_attempts WHERE webhook_id = $1 AND id < $2 AND id IN (
            SELECT a.id
            FROM webhook_attempts a WHERE a.webhook_id = $1 AND a.id < $2{ AND a.shard = $shard}
            ORDER BY a.id LIMIT $3){ AND shard = $shard}");
    const REMOVED: Sql = Sql::in_shard(r"
        SELECT id FROM webhooks
        WHERE removed_at IS NOT NULL{ AND shard = $shard} ORDER BY removed_at LIMIT 1");
    /// Keeps events that were requested by their IDs and haven't been attempted again.
    const DROP_FAILED: Sql = Sql::in_shard(
        "DELETE FROM webhook_retries WHERE webhook_id = $1 AND attempts > 0{ AND shard = $shard}");
    const DROP_RETRIES: Sql = Sql::in_shard(
        "DELETE FROM webhook_retries WHERE webhook_id = $1{ AND shard = $shard}");
    const DROP_REPLAYS: Sql = Sql::in_shard(
        "DELETE FROM webhook_replays WHERE webhook_id = $1{ AND shard = $shard}");
    const DROP: Sql = Sql::in_shard("DELETE FROM webhooks WHERE id = $1{ AND shard = $shard}");
}

/// An endpoint.
#[derive(Clone, Debug)]
pub struct WebhookRow {
    pub id: i64,
    pub stream: EventStream,
    pub reference: Reference,
    pub url: String,
    pub secret: String,
    /// The secret before the last rotation, encrypted, and until when it signs.
    pub old_secret: Option<(String, Timestamp)>,
    /// The types of the events that it gets. `None` means the default ones.
    pub types: Option<Vec<EventType>>,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    pub disabled_reason: Option<String>,
    /// The ID of the last event that had its first attempt.
    pub position: i64,
    pub failures: i64,
    pub failing_since: Option<Timestamp>,
}

impl WebhookRow {
    /// Whether the endpoint gets events of this type.
    pub fn gets(&self, kind: EventType) -> bool {
        match &self.types {
            Some(types) => types.contains(&kind),
            None => kind.is_sent_unasked(),
        }
    }
}

/// The types of an endpoint as the database stores them.
fn joined(types: Option<&[EventType]>) -> Option<String> {
    let names = types?.iter().map(|kind| kind.as_str());
    Some(names.collect::<Vec<_>>().join(","))
}

fn webhook(row: &Row<'_>) -> Result<WebhookRow> {
    let old: (Option<String>, Option<Timestamp>) = (row.get("old_secret")?, row.get("old_until")?);
    let types: Option<String> = row.get("types")?;
    let parse = |text: &str| text.split(',').map(EventType::parse).collect::<Option<Vec<_>>>();
    from_row!(row => WebhookRow {
        id,
        stream: EventStream { application_id: row.get("application_id")?, test: row.get("test")? },
        reference: row::reference(row)?, url, secret, old_secret: old.0.zip(old.1),
        types: match types {
            Some(_) => Some(row::word(row, "webhooks", "types", parse)?),
            None => None,
        },
        created_at, disabled_at, disabled_reason, position, failures, failing_since,
    })
}

/// Returns the endpoints of a stream, oldest first.
pub async fn list(conn: Conn<'_>, stream: EventStream) -> Result<Vec<WebhookRow>> {
    query(LIST, (stream.application_id, stream.test)).fetch_all(conn, webhook).await
}

pub async fn one(conn: Conn<'_>, id: i64) -> Result<Option<WebhookRow>> {
    query(ONE, id).fetch_optional(conn, webhook).await
}

/// Returns the ID and the encrypted secret of a shard's newest endpoint.
pub async fn newest_secret(conn: Conn<'_>) -> Result<Option<(i64, String)>> {
    let read = |row: &Row<'_>| Ok((row.get("id")?, row.get("secret")?));
    query(NEWEST_SECRET, ()).fetch_optional(conn, read).await
}

/// An endpoint that isn't stored yet.
pub struct NewWebhook<'a> {
    pub id: i64,
    pub stream: EventStream,
    pub url: &'a str,
    pub secret: &'a str,
    pub types: Option<&'a [EventType]>,
    /// The ID of the last event that the endpoint doesn't get.
    pub position: i64,
}

pub async fn insert(conn: Conn<'_>, new: &NewWebhook<'_>, now: Timestamp) -> Result<()> {
    let values = (
        new.id,
        new.stream.application_id,
        new.stream.test,
        new.url,
        new.secret,
        joined(new.types),
        now,
        new.position,
        i64::MAX,
    );
    query(INSERT, values).execute(conn).await.map(drop)
}

pub async fn set_url(conn: Conn<'_>, id: i64, url: &str) -> Result<()> {
    let set = query(SET_URL, (id, url)).execute(conn).await?;
    touched("webhooks", 1, set)
}

pub async fn set_types(conn: Conn<'_>, id: i64, types: Option<&[EventType]>) -> Result<()> {
    let set = query(SET_TYPES, (id, joined(types))).execute(conn).await?;
    touched("webhooks", 1, set)
}

/// Replaces the secret. The old one also signs until `old_until`.
pub async fn rotate(conn: Conn<'_>, id: i64, secret: &str, old_until: Timestamp) -> Result<()> {
    let set = query(ROTATE, (id, secret, old_until)).execute(conn).await?;
    touched("webhooks", 1, set)
}

/// Enables an endpoint. Cancels the retries of failed events. Delivery continues after `position`
/// at the earliest.
pub async fn enable(conn: Conn<'_>, id: i64, position: i64, now: Timestamp) -> Result<()> {
    query(DROP_FAILED, id).execute(&mut *conn).await?;
    let set = query(ENABLE, (id, position, now)).execute(conn).await?;
    touched("webhooks", 1, set)
}

/// Disables an endpoint, and ends its lease.
pub async fn disable(conn: Conn<'_>, id: i64, reason: &str, now: Timestamp) -> Result<()> {
    let set = query(DISABLE, (id, now, reason)).execute(conn).await?;
    touched("webhooks", 1, set)
}

/// Removes an endpoint. [`drop_removed`] deletes its rows later.
pub async fn remove(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<()> {
    query(REMOVE, (id, now)).execute(conn).await.map(drop)
}

/// Removes all endpoints of an application.
pub async fn remove_all(
    conn: Conn<'_>,
    application_id: ApplicationId,
    now: Timestamp,
) -> Result<()> {
    query(REMOVE_ALL, (application_id, now)).execute(conn).await.map(drop)
}

/// Returns at most `limit` endpoints that are due and that no process delivers to.
pub async fn due(conn: Conn<'_>, now: Timestamp, limit: i64) -> Result<Vec<i64>> {
    query(DUE, (now, limit, now.plus_ms(LEASE_MAX_MS))).fetch_all(conn, |row| row.get("id")).await
}

/// Takes the lease of an endpoint. Returns false if another process has it, or if the endpoint was
/// disabled or removed.
pub async fn lease(
    conn: Conn<'_>,
    id: i64,
    token: i64,
    now: Timestamp,
    until: Timestamp,
) -> Result<bool> {
    let values = (id, token, now, until, now.plus_ms(LEASE_MAX_MS));
    Ok(query(LEASE, values).execute(conn).await? == 1)
}

/// Returns an endpoint if this token still has its lease.
pub async fn held(conn: Conn<'_>, id: i64, token: i64) -> Result<Option<WebhookRow>> {
    query(HELD, (id, token)).fetch_optional(conn, webhook).await
}

/// Extends the lease of an endpoint. Returns false if this token no longer has it, or if the
/// endpoint was removed.
pub async fn renew(conn: Conn<'_>, id: i64, token: i64, until: Timestamp) -> Result<bool> {
    Ok(query(RENEW, (id, token, until)).execute(conn).await? == 1)
}

/// Stores an endpoint's position, and its failures since the last success.
pub async fn progress(
    conn: Conn<'_>,
    id: i64,
    position: i64,
    failures: i64,
    failing_since: Option<Timestamp>,
) -> Result<()> {
    let set = query(PROGRESS, (id, position, failures, failing_since)).execute(conn).await?;
    touched("webhooks", 1, set)
}

/// Ends the lease of an endpoint, which is due again at `due_at`, or when there are new events.
pub async fn release(conn: Conn<'_>, id: i64, token: i64, due_at: Option<Timestamp>) -> Result<()> {
    let due_at = due_at.map_or(i64::MAX, Timestamp::unix_ms);
    query(RELEASE, (id, token, due_at)).execute(conn).await.map(drop)
}

pub async fn end_leases(conn: Conn<'_>) -> Result<()> {
    query(END_LEASES, ()).execute(conn).await.map(drop)
}

/// Ends the lease of an endpoint. No process delivers to it before `until`.
pub async fn pause(conn: Conn<'_>, id: i64, token: i64, until: Timestamp) -> Result<()> {
    query(PAUSE, (id, token, until)).execute(conn).await.map(drop)
}

/// Makes an endpoint due.
pub async fn wake(conn: Conn<'_>, id: i64, now: Timestamp) -> Result<()> {
    query(WAKE, (id, now)).execute(conn).await.map(drop)
}

/// Returns at most `limit` events that are due for another attempt, each with its failed attempts.
pub async fn retries(
    conn: Conn<'_>,
    id: i64,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<(i64, i64)>> {
    let read = |row: &Row<'_>| Ok((row.get("event_id")?, row.get("attempts")?));
    query(RETRIES, (id, now, limit)).fetch_all(conn, read).await
}

pub async fn next_retry(conn: Conn<'_>, id: i64) -> Result<Option<Timestamp>> {
    query(NEXT_RETRY, id).fetch_one(conn, |row| row.get("due_at")).await
}

/// Schedules another attempt. Replaces the event's earlier retry.
pub async fn put_retry(
    conn: Conn<'_>,
    id: i64,
    event_id: i64,
    attempts: i64,
    due_at: Timestamp,
) -> Result<()> {
    query(PUT_RETRY, (id, event_id, attempts, due_at)).execute(conn).await.map(drop)
}

pub async fn drop_retry(conn: Conn<'_>, id: i64, event_id: i64) -> Result<()> {
    query(DROP_RETRY, (id, event_id)).execute(conn).await.map(drop)
}

/// A range of events to replay.
#[derive(Clone, Copy)]
pub struct Replay {
    pub id: i64,
    /// The ID of the last event that was replayed.
    pub position: i64,
    /// The ID of the last event to replay.
    pub last_id: i64,
}

/// Returns the replay of an endpoint, if there is one.
pub async fn replay(conn: Conn<'_>, webhook_id: i64) -> Result<Option<Replay>> {
    let read = |row: &Row<'_>| from_row!(row => Replay { id, position, last_id });
    query(REPLAY, webhook_id).fetch_optional(conn, read).await
}

/// Stores a replay. An earlier one that isn't done becomes part of it.
pub async fn put_replay(conn: Conn<'_>, webhook_id: i64, new: Replay) -> Result<()> {
    let (mut position, mut last_id) = (new.position, new.last_id);
    if let Some(earlier) = replay(&mut *conn, webhook_id).await? {
        query(DROP_REPLAY, earlier.id).execute(&mut *conn).await?;
        (position, last_id) = (position.min(earlier.position), last_id.max(earlier.last_id));
    }
    query(PUT_REPLAY, (new.id, webhook_id, position, last_id)).execute(conn).await.map(drop)
}

/// Stores how far a replay has come, and deletes the endpoint's completed replays.
pub async fn advance_replay(conn: Conn<'_>, webhook_id: i64, id: i64, position: i64) -> Result<()> {
    query(ADVANCE_REPLAY, (id, position)).execute(&mut *conn).await?;
    query(END_REPLAYS, webhook_id).execute(conn).await.map(drop)
}

/// Returns those events between two IDs, both included, that the endpoint has taken or will get
/// again anyway.
pub async fn not_to_replay(conn: Conn<'_>, id: i64, (first, last): (i64, i64)) -> Result<Vec<i64>> {
    let mut found = Vec::new();
    for statement in [TAKEN_WITHIN, RETRIES_WITHIN] {
        let reading = query(statement, (id, first, last));
        found.extend(reading.fetch_all(&mut *conn, |row| row.get::<i64>("id")).await?);
    }
    Ok(found)
}

/// An attempt to deliver an event.
#[derive(Clone, Debug)]
pub struct AttemptRow {
    pub id: i64,
    pub at: Timestamp,
    pub event_id: i64,
    pub kind: EventType,
    /// Whether the endpoint took the event.
    pub delivered: bool,
    /// The HTTP status. `None` if there was no answer.
    pub status: Option<i64>,
    pub latency_ms: i64,
    pub error: Option<String>,
    pub answer: Option<String>,
    pub next_at: Option<Timestamp>,
}

pub async fn insert_attempts(
    conn: Conn<'_>,
    webhook_id: i64,
    attempts: &[AttemptRow],
) -> Result<()> {
    let rows = attempts.iter().map(|a| {
        (
            webhook_id,
            a.id,
            a.at,
            a.event_id,
            a.kind.code(),
            a.delivered,
            a.status,
            a.latency_ms,
            &a.error,
            &a.answer,
            a.next_at,
        )
    });
    let written = query(INSERT_ATTEMPTS, ()).execute_each(conn, rows).await?;
    touched("webhook_attempts", attempts.len(), written)
}

/// Selects attempts of an endpoint.
#[derive(Clone, Copy, Debug)]
pub enum AttemptsWanted {
    /// Attempts with IDs below this ID.
    Below(i64),
    /// Failed attempts with IDs below this ID.
    FailedBelow(i64),
    /// The attempts to deliver this event.
    OfEvent(i64),
}

/// Returns attempts of an endpoint, newest first.
pub async fn attempts(
    conn: Conn<'_>,
    webhook_id: i64,
    wanted: AttemptsWanted,
    limit: i64,
) -> Result<Vec<AttemptRow>> {
    let (statement, id) = match wanted {
        AttemptsWanted::Below(id) => (ATTEMPTS, id),
        AttemptsWanted::FailedBelow(id) => (FAILED, id),
        AttemptsWanted::OfEvent(id) => (OF_EVENT, id),
    };
    query(statement, (webhook_id, id, limit)).fetch_all(conn, attempt).await
}

fn attempt(row: &Row<'_>) -> Result<AttemptRow> {
    from_row!(row => AttemptRow {
        id, at, event_id,
        kind: row::code(row, "webhook_attempts", "type", EventType::from_code)?,
        delivered, status, latency_ms, error, answer, next_at,
    })
}

/// Counts the newest attempts of an endpoint by quarter hour: those with IDs of at least `from`,
/// and at most `limit`.
pub async fn attempt_counts(
    conn: Conn<'_>,
    webhook_id: i64,
    from: i64,
    limit: i64,
) -> Result<Vec<AttemptCounts>> {
    let read = |row: &Row<'_>| {
        let (attempts, delivered): (i64, i64) = (row.get("attempts")?, row.get("delivered")?);
        let quarter = row.get("quarter")?;
        Ok(AttemptCounts { quarter, delivered, failed: attempts - delivered })
    };
    query(COUNTS, (webhook_id, from, limit)).fetch_all(conn, read).await
}

/// Deletes at most `limit` attempts with IDs below `below`. Returns whether there may be more.
pub async fn drop_old_attempts(conn: Conn<'_>, below: i64, limit: i64) -> Result<bool> {
    let outdated = query(OUTDATED, below).fetch_optional(&mut *conn, |row| row.get("id")).await?;
    let Some(id): Option<i64> = outdated else {
        return Ok(false);
    };
    query(DROP_ATTEMPTS, (id, below, limit)).execute(conn).await?;
    Ok(true)
}

/// Deletes rows of a removed endpoint, at most `limit` attempts. Returns whether there may be more.
pub async fn drop_removed(conn: Conn<'_>, limit: i64) -> Result<bool> {
    let removed = query(REMOVED, ()).fetch_optional(&mut *conn, |row| row.get("id")).await?;
    let Some(id): Option<i64> = removed else {
        return Ok(false);
    };
    let dropping = query(DROP_ATTEMPTS, (id, i64::MAX, limit));
    if dropping.execute(&mut *conn).await? == 0 {
        for statement in [DROP_RETRIES, DROP_REPLAYS, DROP] {
            query(statement, id).execute(&mut *conn).await?;
        }
    }
    Ok(true)
}
