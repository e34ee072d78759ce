//! The clocks of the test keys of applications, and the times in other tables that move with them.
//!
//! Times in the other tables are real times. When a clock moves ahead, future times in the waiting
//! rows become earlier by as much. The rows follow in chunks after the commit that moves the clock.
//! The transaction of a chunk also stores the progress, so no row moves twice.

use domain::{ApplicationId, BatchId, Reference, TestClock, Timestamp, Transid};
use serde::{Deserialize, Serialize};

use super::query::{Conn, Row, query};
use super::row::{json, parse_json, touched};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const LOCK: Sql = Sql::in_shard(r"
        INSERT INTO test_clocks (application_id, moves{, shard}) VALUES ($1, '[]'{, $shard})
        ON CONFLICT (application_id{, shard}) DO UPDATE
        SET moves = test_clocks.moves RETURNING application_id, moves, following");
    const STORE: Sql = Sql::in_shard(r"
        UPDATE test_clocks SET moves = $2, following = $3
        WHERE application_id = $1{ AND shard = $shard}");
    const MOVED: Sql = Sql::in_shard(r"
        SELECT application_id, moves, following
        FROM test_clocks WHERE (moves <> '[]' OR following IS NOT NULL){ AND shard = $shard}
        ORDER BY application_id");
    const ONE: Sql = Sql::in_shard(r"
        SELECT application_id, moves, following FROM test_clocks
        WHERE application_id = $1{ AND shard = $shard}");
    const OF_REFERENCE: Sql = Sql::in_shard(r"
        SELECT application_id, moves, following FROM test_clocks WHERE application_id = (
            SELECT id FROM applications
            WHERE reference = $1{ AND shard = $shard}){ AND shard = $shard}");
    // Each table in `FOLLOWING` has a statement that finds the last row of the next chunk, and one
    // that moves the chunk. `$2` is the row before the chunk. `$4` is how far the clock was moved,
    // and `$5` how far it is ahead. Only scheduled messages and batches move back.
    const LAST_MESSAGE: Sql = Sql::in_shard(r"
        SELECT MAX(id) AS last
        FROM (
            SELECT id FROM messages WHERE application_id = $1 AND test = 1 AND id > $2
              AND id <= $3{ AND shard = $shard} ORDER BY id LIMIT $4) AS chunk");
    /// A row becomes due now at the earliest, so that the next scan covers it
    /// ([`super::claims::ScanStart`]). The due time of a scheduled row is computed from `send_at`,
    /// which is the clock's time. A long move may pass that time. The row is then due now, and its
    /// expiry moves by as much as its due time.
    const MOVE_QUEUE: Sql = Sql::in_shard(r"
        UPDATE queue SET
            due_at = CASE
                WHEN lease_token <> 0 OR due_at <= $6 THEN due_at
                WHEN m.send_at - $5 > $6 THEN m.send_at - $5
                WHEN m.send_at IS NOT NULL THEN $6
                WHEN $4 <= 0 THEN due_at
                WHEN due_at - $4 > $6 THEN due_at - $4
                ELSE $6 END,
            expires_at = CASE
                WHEN lease_token = 0 AND due_at > $6 AND m.send_at IS NOT NULL
                    THEN expires_at - due_at
                        + CASE WHEN m.send_at - $5 > $6 THEN m.send_at - $5 ELSE $6 END
                WHEN $4 > 0 THEN expires_at - $4
                ELSE expires_at END
        FROM (
            SELECT id, CASE WHEN status = {scheduled} THEN send_at END AS send_at FROM messages
            WHERE application_id = $1 AND test = 1 AND id > $2 AND id <= $3
              AND status < {submitted}{ AND shard = $shard}) AS m
          WHERE queue.message_id = m.id{ AND queue.shard = $shard}");
    const LAST_BATCH: Sql = Sql::in_shard(r"
        SELECT MAX(id) AS last
        FROM (
            SELECT id FROM batches WHERE application_id = $1 AND test = 1 AND id > $2
              AND id <= $3{ AND shard = $shard} ORDER BY id LIMIT $4) AS chunk");
    const MOVE_BATCHES: Sql = Sql::in_shard(r"
        UPDATE batches SET
            waits_until = CASE
                WHEN waits_until IS NULL OR waits_until <= $6 THEN waits_until
                WHEN send_at - $5 > $6 THEN send_at - $5
                ELSE $6 END,
            expires_at = CASE
                WHEN waits_until > $6
                    THEN expires_at - waits_until
                        + CASE WHEN send_at - $5 > $6 THEN send_at - $5 ELSE $6 END
                WHEN $4 > 0 THEN expires_at - $4
                ELSE expires_at END
        WHERE application_id = $1 AND test = 1 AND id > $2 AND id <= $3
          AND expanded_at IS NULL{ AND shard = $shard}");
    const LAST_RETRY: Sql = Sql::in_shard(r"
        SELECT MAX(event_id) AS last
        FROM (
            SELECT event_id FROM webhook_retries WHERE webhook_id IN (
                SELECT id FROM webhooks WHERE application_id = $1 AND test = 1{ AND shard = $shard})
              AND event_id > $2 AND event_id <= $3{ AND shard = $shard}
              ORDER BY event_id LIMIT $4) AS chunk");
    const MOVE_RETRIES: Sql = Sql::in_shard(r"
        UPDATE webhook_retries SET due_at = due_at - $4 WHERE webhook_id IN (
            SELECT id FROM webhooks WHERE application_id = $1 AND test = 1{ AND shard = $shard})
          AND event_id > $2 AND event_id <= $3 AND $4 > 0 AND $5 >= $4
          AND due_at > $6{ AND shard = $shard}");
    const LAST_WEBHOOK: Sql = Sql::in_shard(r"
        SELECT MAX(id) AS last
        FROM (
            SELECT id FROM webhooks WHERE application_id = $1 AND test = 1 AND id > $2
              AND id <= $3{ AND shard = $shard} ORDER BY id LIMIT $4) AS chunk");
    /// An endpoint without a token has no lease but may be paused.
    const MOVE_WEBHOOKS: Sql = Sql::in_shard(r"
        UPDATE webhooks SET due_at = CASE WHEN due_at > $6 THEN due_at - $4 ELSE due_at END,
            lease_until = CASE WHEN lease_token = 0 AND lease_until > $6 THEN lease_until - $4
                ELSE lease_until END,
            failing_since = failing_since - $4
        WHERE application_id = $1 AND test = 1 AND id > $2 AND id <= $3 AND $4 > 0
          AND $5 >= $4{ AND shard = $shard}");
    const LAST_VERIFICATION: Sql = Sql::in_shard(r"
        SELECT MAX(id) AS last
        FROM (
            SELECT id FROM verifications WHERE application_id = $1 AND test = 1 AND id > $2
              AND id <= $3{ AND shard = $shard} ORDER BY id LIMIT $4) AS chunk");
    const MOVE_VERIFICATIONS: Sql = Sql::in_shard(r"
        UPDATE verifications SET expires_at = expires_at - $4, sent_at = sent_at - $4
        WHERE application_id = $1 AND test = 1 AND id > $2 AND id <= $3 AND $4 > 0 AND $5 >= $4
          AND expires_at > $6{ AND shard = $shard}");
}

/// A table with times that move with the clock. Its rows are in the order of a number, for example
/// their IDs.
struct FollowingTable {
    /// Finds the last row of a chunk after a row.
    last: Sql,
    /// Moves the times of a chunk.
    shift: Sql,
    /// Whether a row's ID contains the time of its acceptance, like a message's. Rows that were
    /// accepted after the move don't follow it.
    is_accepted: bool,
}

/// The tables in the order in which they follow. To add one, write its two statements.
const FOLLOWING: [FollowingTable; 5] = [
    FollowingTable { last: LAST_MESSAGE, shift: MOVE_QUEUE, is_accepted: true },
    FollowingTable { last: LAST_BATCH, shift: MOVE_BATCHES, is_accepted: true },
    FollowingTable { last: LAST_RETRY, shift: MOVE_RETRIES, is_accepted: false },
    FollowingTable { last: LAST_WEBHOOK, shift: MOVE_WEBHOOKS, is_accepted: false },
    FollowingTable { last: LAST_VERIFICATION, shift: MOVE_VERIFICATIONS, is_accepted: true },
];

/// The most rows of a chunk, which takes some milliseconds.
const CHUNK: i64 = 1000;

#[derive(Clone, Debug)]
pub struct ClockRow {
    pub application_id: ApplicationId,
    pub clock: TestClock,
    /// How far the rows have followed the newest move. `None` once all have.
    pub following: Option<Following>,
}

/// How far the rows have followed a move.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Following {
    /// How far the clock was moved, in milliseconds. Negative if it went back.
    by_ms: i64,
    /// The least ID of a message that may still wait.
    least: i64,
    /// The greatest ID of a message or batch that was accepted before the move.
    greatest: i64,
    /// The table whose rows are next, and the last row of it that has followed.
    table: usize,
    after: i64,
}

impl Following {
    /// Begins a move. Messages and batches that wait have IDs from `least` to `greatest`.
    pub const fn begin(by_ms: i64, least: i64, greatest: i64) -> Self {
        Self { by_ms, least, greatest, table: 0, after: least - 1 }
    }
}

fn clock(row: &Row<'_>) -> Result<ClockRow> {
    let moves: String = row.get("moves")?;
    let following: Option<String> = row.get("following")?;
    let following = following.map(|text| parse_json("test_clocks", "following", &text));
    Ok(ClockRow {
        application_id: row.get("application_id")?,
        clock: parse_json("test_clocks", "moves", &moves)?,
        following: following.transpose()?,
    })
}

/// Returns the clock of an application, and locks it. A clock that was never moved shows real time.
pub async fn lock(conn: Conn<'_>, application_id: ApplicationId) -> Result<ClockRow> {
    query(LOCK, application_id).fetch_one(conn, clock).await
}

/// Stores a clock that is locked.
pub async fn store(conn: Conn<'_>, row: &ClockRow) -> Result<()> {
    let following = row.following.as_ref().map(json).transpose()?;
    let values = (row.application_id, json(&row.clock)?, following);
    touched("test_clocks", 1, query(STORE, values).execute(conn).await?)
}

/// Returns the clocks that don't show real time, and those whose rows haven't all followed the
/// newest move.
pub async fn moved(conn: Conn<'_>) -> Result<Vec<ClockRow>> {
    query(MOVED, ()).fetch_all(conn, clock).await
}

pub async fn of(conn: Conn<'_>, application_id: ApplicationId) -> Result<TestClock> {
    let found = query(ONE, application_id).fetch_optional(conn, clock).await?;
    Ok(found.map(|row| row.clock).unwrap_or_default())
}

pub async fn of_reference(conn: Conn<'_>, reference: Reference) -> Result<TestClock> {
    let found = query(OF_REFERENCE, reference.as_str()).fetch_optional(conn, clock).await?;
    Ok(found.map(|row| row.clock).unwrap_or_default())
}

/// Moves the next rows by the newest move of a locked clock. Returns false if no rows are left.
pub async fn follow(conn: Conn<'_>, row: &mut ClockRow, now: Timestamp) -> Result<bool> {
    let Some(following) = &mut row.following else { return Ok(false) };
    let Some(table) = FOLLOWING.get(following.table) else {
        row.following = None;
        store(conn, row).await?;
        return Ok(false);
    };
    let greatest = if table.is_accepted { following.greatest } else { i64::MAX };
    let chunk = (row.application_id, following.after, greatest, CHUNK);
    let last: Option<i64> =
        query(table.last, chunk).fetch_one(&mut *conn, |row| row.get("last")).await?;
    if let Some(last) = last {
        let rows = (row.application_id, (following.after, last), following.by_ms);
        shift(&mut *conn, table, rows, row.clock.offset_ms(), now).await?;
        following.after = last;
    } else {
        following.table += 1;
        let is_accepted = FOLLOWING.get(following.table).is_some_and(|next| next.is_accepted);
        following.after = if is_accepted { following.least - 1 } else { 0 };
    }
    store(conn, row).await?;
    Ok(true)
}

async fn shift(
    conn: Conn<'_>,
    table: &FollowingTable,
    (application_id, (after, last), by_ms): (ApplicationId, (i64, i64), i64),
    offset_ms: i64,
    now: Timestamp,
) -> Result<()> {
    let values = (application_id, after, last, by_ms, offset_ms, now);
    query(table.shift, values).execute(conn).await.map(drop)
}

/// Corrects the time of a scheduled message that was accepted while the clock was moved.
pub async fn correct_message(
    conn: Conn<'_>,
    (application_id, id): (ApplicationId, Transid),
    offset_ms: i64,
    now: Timestamp,
) -> Result<()> {
    let rows = (application_id, (id.0 - 1, id.0), 0);
    shift(conn, &FOLLOWING[0], rows, offset_ms, now).await
}

/// Corrects the time of a scheduled batch that was accepted while the clock was moved.
pub async fn correct_batch(
    conn: Conn<'_>,
    (application_id, id): (ApplicationId, BatchId),
    offset_ms: i64,
    now: Timestamp,
) -> Result<()> {
    let rows = (application_id, (id.0 - 1, id.0), 0);
    shift(conn, &FOLLOWING[1], rows, offset_ms, now).await
}
