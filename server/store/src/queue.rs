//! The queue: messages that no carrier has accepted as a whole yet.

use domain::{ApplicationId, Kind, Money, Reference, Submission, Timestamp, Transid};
use serde::Deserialize;

use super::query::{Conn, Row, query};
use super::row::{self, touched};
use super::sql::{Sql, statements};
use super::transaction::Tx;
use crate::error::Result;

/// No message waits longer than this for another attempt, or for a route to open.
const WAIT_MAX_MS: i64 = 60 * 60 * 1000;

statements! {
    const LEAST: Sql = Sql::in_shard(
        "SELECT MIN(message_id) AS id FROM queue{ WHERE shard = $shard}");
    const QUEUED: Sql = Sql {
        sqlite: "SELECT message_id FROM queue WHERE message_id = ?1",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(message_id)), '[]')::text AS found FROM queue
            WHERE message_id = ANY ({ids}) AND shard = $2",
        ..Sql::IN_SHARD
    };
    const RESUME: Sql = Sql::in_shard(r"
        UPDATE queue SET deferred = 0, due_at = $3
        WHERE message_id IN (
            SELECT message_id FROM queue
            WHERE application_id = $1 AND deferred = 1{ AND shard = $shard} LIMIT $2)
          AND deferred = 1{ AND shard = $shard}
          AND EXISTS (
              SELECT 1 FROM applications
              WHERE id = $1 AND effective_status <> 'Suspended'{ AND shard = $shard})");
    const DEFERRED_WITHOUT_SUSPENSION: Sql = Sql::in_shard(r"
        SELECT id FROM applications
        WHERE effective_status <> 'Suspended'{ AND shard = $shard}
          AND EXISTS (
              SELECT 1 FROM queue WHERE application_id = applications.id
                AND deferred = 1{ AND shard = $shard})");
    /// `SELECT DISTINCT` would read all rows.
    const NEXT_CARRIER: Sql = Sql::in_shard(r"
        SELECT MIN(carrier) AS carrier
        FROM (
            SELECT MIN(carrier) AS carrier FROM queue
            WHERE lease_token = 0 AND carrier > $1{ AND shard = $shard}
            UNION ALL
            SELECT MIN(carrier) AS carrier FROM queue
            WHERE lease_token <> 0 AND carrier > $1{ AND shard = $shard}) AS c");
    const CARRIER_OF: Sql = Sql::in_shard(r"
        SELECT carrier, due_at, lease_token FROM queue WHERE message_id = $1{ AND shard = $shard}");
    const ANY_UNCLAIMED: Sql = Sql::in_shard(r"
        SELECT message_id FROM queue
        WHERE carrier = $1 AND lease_token = 0{ AND shard = $shard} LIMIT 1");
    /// Leaves out unclaimed rows with an expiry of their own until they are due, because every
    /// scheduled message is such a row. `$3` keeps the statement from reading all scheduled
    /// messages: no other message waits for so long. SQLite would build a tree for a list of all
    /// three values of `deferred`.
    const WAITING: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n,
               MIN(CASE WHEN expires_at IS NULL THEN message_id END) AS id,
               MIN(CASE WHEN expires_at IS NOT NULL AND lease_token = 0 THEN due_at END) AS at
        FROM (
            SELECT message_id, expires_at, lease_token, due_at
            FROM queue WHERE carrier = $1 AND lease_token <> 0{ AND shard = $shard}
            UNION ALL
            SELECT message_id, expires_at, lease_token, due_at FROM queue
            WHERE carrier = $1 AND deferred IN (0, 1) AND bulk IN (0, 1) AND lease_token = 0
              AND due_at <= $3 AND (due_at <= $2 OR expires_at IS NULL){ AND shard = $shard}
            UNION ALL
            SELECT message_id, expires_at, lease_token, due_at FROM queue
            WHERE carrier = $1 AND deferred = 2 AND bulk IN (0, 1) AND lease_token = 0
              AND due_at <= $3 AND (due_at <= $2 OR expires_at IS NULL)
              { AND shard = $shard}) AS q");
    /// All rows share the values of `bulk`, `deferred` and `attempts`. Each row has its own other
    /// values. On PostgreSQL, `run_commit_group` queues sends, and this statement queues all other
    /// messages.
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO queue (message_id, application_id, carrier, due_at, lease_token, expires_at,
                bulk, deferred, attempts)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        postgres: r"
            COPY queue (message_id, application_id, carrier, due_at, lease_token, expires_at, bulk,
                deferred, attempts, shard)
            FROM STDIN (FORMAT binary)",
        ..Sql::IN_SHARD
    };
    /// SQLite only. On PostgreSQL, `run_commit_group` defers messages.
    const DEFER: Sql = Sql::sqlite("UPDATE queue SET deferred = ?2 WHERE message_id = ?1");
    const UNCLAIMED: Sql = Sql {
        sqlite: r"
            -- The plus sign keeps SQLite from using an index by carrier. With such an index it
            -- would sort all rows of the carrier for each chunk.
            SELECT message_id FROM queue
            WHERE +carrier = $1 AND message_id > $2 AND lease_token = 0 AND submission = 0
            ORDER BY message_id LIMIT $3",
        postgres: r"
            SELECT message_id FROM queue
            WHERE carrier = $1 AND message_id > $2 AND lease_token = 0 AND submission = 0
              AND shard = $4
            ORDER BY message_id LIMIT $3 FOR UPDATE SKIP LOCKED",
        ..Sql::IN_SHARD
    };
    const UNROUTED: Sql = Sql {
        sqlite: r"
            SELECT message_id FROM queue
            WHERE carrier = $1 AND deferred IN (0, 1) AND bulk IN (0, 1) AND due_at <= $3
              AND lease_token = 0 AND submission = 0
            UNION ALL
            SELECT message_id FROM queue
            WHERE carrier = $1 AND deferred = 2 AND bulk IN (0, 1) AND due_at <= $3
              AND lease_token = 0 AND submission = 0
            LIMIT $2",
        postgres: r"
            SELECT message_id FROM queue
            WHERE carrier = $1 AND deferred >= 0 AND deferred <= 2 AND bulk IN (0, 1)
              AND due_at <= $3 AND lease_token = 0 AND submission = 0 AND shard = $4
            LIMIT $2 FOR UPDATE SKIP LOCKED",
        ..Sql::IN_SHARD
    };
    /// Leaves out test messages, which only the sandbox receives.
    const ROUTED: Sql = Sql {
        sqlite: r"
            SELECT q.message_id, m.number, m.kind, m.sender, a.reference, q.refused_by,
                   m.segments
            FROM queue q
            JOIN messages m ON m.id = q.message_id
            JOIN applications a ON a.id = q.application_id
            WHERE q.message_id = ?1 AND m.test = 0",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                q.message_id, m.number, m.kind, m.sender, a.reference, q.refused_by,
                m.segments)), '[]')::text AS found
            FROM queue q
            JOIN messages m ON m.id = q.message_id
            JOIN applications a ON a.id = q.application_id
            WHERE q.message_id = ANY ({ids})
              AND q.shard = $4 AND m.shard = $4 AND a.shard = $4 AND m.id BETWEEN $2 AND $3
              AND m.test = 0",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[message, carrier]]`. A moved row becomes due now at the earliest, so that the new
    /// carrier's next scan covers it ([`super::claims::ScanStart`]).
    const MOVE: Sql = Sql {
        sqlite: r"
            UPDATE queue SET carrier = ?2, due_at = MAX(due_at, ?3)
            WHERE message_id = ?1 AND lease_token = 0 AND submission = 0",
        postgres: r"
            UPDATE queue SET carrier = r.value ->> 1, due_at = GREATEST(due_at, $2)
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE queue.message_id = (r.value ->> 0)::bigint AND lease_token = 0 AND submission = 0
              AND queue.shard = $3",
        ..Sql::IN_SHARD
    };
    const DROP: Sql = Sql {
        sqlite: r"
            DELETE FROM queue WHERE message_id = ?1",
        postgres: r"
            DELETE FROM queue WHERE message_id = ANY ({ids}) AND shard = $2",
        ..Sql::IN_SHARD
    };
    const DROP_UNCLAIMED: Sql = Sql {
        sqlite: r"
            DELETE FROM queue
            WHERE message_id = ?1 AND lease_token = 0 AND (submission = 0 OR ?2 = 1)
            RETURNING message_id",
        postgres: r"
            DELETE FROM queue
            WHERE message_id = ANY ({ids})
              AND lease_token = 0 AND (submission = 0 OR $2 = 1) AND shard = $3
            RETURNING message_id",
        ..Sql::IN_SHARD
    };
    /// The cancellation of a batch skips these rows. On PostgreSQL, the range of a batch also
    /// contains message IDs of other processes. Those differ in the bits of the node's slot.
    const EXEMPT_LEASED: Sql = Sql {
        sqlite: r"
            UPDATE queue INDEXED BY queue_leased SET bulk = 0
            WHERE message_id BETWEEN $1 AND $2 AND bulk = 1 AND lease_token <> 0",
        postgres: r"
            UPDATE queue SET bulk = 0
            WHERE message_id BETWEEN $1 AND $2 AND (message_id & {slot_bits}) = ($2 & {slot_bits})
              AND bulk = 1 AND lease_token <> 0 AND shard = $3",
        ..Sql::IN_SHARD
    };
    const EXEMPT_BEGUN: Sql = Sql {
        sqlite: r"
            UPDATE queue INDEXED BY queue_begun SET bulk = 0,
                deferred = CASE WHEN deferred = 2 THEN 0 ELSE deferred END
            WHERE message_id BETWEEN $1 AND $2 AND bulk = 1 AND submission <> 0",
        postgres: r"
            UPDATE queue SET bulk = 0,
                deferred = CASE WHEN deferred = 2 THEN 0 ELSE deferred END
            WHERE message_id BETWEEN $1 AND $2 AND (message_id & {slot_bits}) = ($2 & {slot_bits})
              AND bulk = 1 AND submission <> 0 AND shard = $3",
        ..Sql::IN_SHARD
    };
    const OF_BATCH: Sql = Sql::in_shard(r"
        SELECT message_id FROM queue
        WHERE message_id BETWEEN $1 AND $2 AND (message_id & {slot_bits}) = ($2 & {slot_bits})
          AND bulk = 1 AND lease_token = 0{ AND shard = $shard} ORDER BY message_id LIMIT $3");
    const COST_OF_BATCH: Sql = Sql::in_shard(r"
        SELECT COUNT(*) AS n, CAST(COALESCE(SUM(m.cost), 0) AS BIGINT) AS cost
        FROM queue q
        JOIN messages m ON m.id = q.message_id AND m.id BETWEEN $1 AND $2{ AND m.shard = $shard}
        WHERE q.message_id BETWEEN $1 AND $2
          AND (q.message_id & {slot_bits}) = ($2 & {slot_bits})
          AND q.bulk = 1{ AND q.shard = $shard}");
    const RESUME_BATCH: Sql = Sql::in_shard(r"
        UPDATE queue SET deferred = 0, due_at = $4
        WHERE message_id IN (
            SELECT message_id FROM queue
            WHERE message_id BETWEEN $1 AND $2 AND (message_id & {slot_bits}) = ($2 & {slot_bits})
              AND deferred = 2{ AND shard = $shard} LIMIT $3)
          AND deferred = 2{ AND shard = $shard}");
    /// `$1` is `[[ID, due at, attempts to add, submission, carrier or null, refused by]]`.
    const REQUEUE: Sql = Sql {
        sqlite: r"
            UPDATE queue SET due_at = ?2, attempts = attempts + ?3, submission = ?4,
                carrier = COALESCE(?5, carrier), refused_by = refused_by || ?6, lease_token = 0
            WHERE message_id = ?1",
        postgres: r"
            UPDATE queue SET due_at = (r.value ->> 1)::bigint,
                attempts = attempts + (r.value ->> 2)::bigint, submission = (r.value ->> 3)::bigint,
                carrier = COALESCE(r.value ->> 4, carrier),
                refused_by = refused_by || (r.value ->> 5), lease_token = 0
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE queue.message_id = (r.value ->> 0)::bigint
              AND queue.shard = $2",
        ..Sql::IN_SHARD
    };
}

/// Returns the least ID of the messages in the queue.
pub async fn least(conn: Conn<'_>) -> Result<Option<i64>> {
    query(LEAST, ()).fetch_one(conn, |row| row.get("id")).await
}

/// A message to add to the queue. The fields are in the order of [`INSERT`].
pub struct QueuedRow {
    pub message_id: Transid,
    pub application_id: ApplicationId,
    pub carrier: String,
    /// The time in Unix milliseconds from which the row may be claimed. If the row is stored as
    /// claimed, the end of the lease.
    pub due_at: i64,
    /// The token of the claim, or 0 if the row is unclaimed.
    pub lease_token: i64,
    /// The time from which the row may no longer be claimed. `None` means 48 hours after the
    /// acceptance.
    pub expires_at: Option<Timestamp>,
}

/// The values that messages share when they are queued together.
#[derive(Clone, Copy, Default)]
pub struct QueuedAs {
    /// Whether the messages belong to a batch.
    pub of_batch: bool,
    /// Whether the messages are deferred at once because their application is suspended.
    pub deferred: bool,
}

pub async fn insert(conn: Conn<'_>, rows: &[QueuedRow], queued_as: QueuedAs) -> Result<()> {
    let values = rows.iter().map(|r| {
        let carrier = r.carrier.as_str();
        (r.message_id, r.application_id, carrier, r.due_at, r.lease_token, r.expires_at)
    });
    let inserting = query(INSERT, (queued_as.of_batch, queued_as.deferred, 0_i64));
    let written = inserting.insert_each(conn, values).await?;
    touched("queue", rows.len(), written)
}

/// Returns the applications that have messages deferred by a suspension, but are no longer
/// suspended.
pub async fn deferred_without_suspension(conn: Conn<'_>) -> Result<Vec<ApplicationId>> {
    query(DEFERRED_WITHOUT_SUSPENSION, ()).fetch_all(conn, |row| row.get("id")).await
}

/// Resumes at most `limit` messages of an application that its suspension deferred, and returns
/// their number. Resumes none if the application is still suspended.
pub async fn resume(
    conn: Conn<'_>,
    application_id: ApplicationId,
    limit: i64,
    now: Timestamp,
) -> Result<u64> {
    query(RESUME, (application_id, limit, now)).execute(conn).await
}

/// Returns the carriers that have messages in the queue. An empty name stands for messages without
/// a route.
pub async fn carriers(conn: Conn<'_>) -> Result<Vec<String>> {
    let mut found = Vec::new();
    if has_unclaimed(conn, "").await? {
        found.push(String::new());
    }
    loop {
        let last = found.last().map_or("", String::as_str);
        let next = query(NEXT_CARRIER, last).fetch_one(conn, |row| row.get("carrier")).await?;
        let Some(next) = next else { return Ok(found) };
        found.push(next);
    }
}

/// Returns the carrier that a message in the queue waits for, and when the message is due. The time
/// is `None` while the message is claimed. The carrier is empty if no route fits.
pub async fn carrier_of(
    conn: Conn<'_>,
    message: Transid,
) -> Result<Option<(String, Option<Timestamp>)>> {
    query(CARRIER_OF, message.0)
        .fetch_optional(conn, |row| {
            let due_at: Timestamp = row.get("due_at")?;
            let lease: i64 = row.get("lease_token")?;
            Ok((row.get("carrier")?, (lease == 0).then_some(due_at)))
        })
        .await
}

/// Returns how many messages wait for a carrier, and when the oldest of them was accepted.
pub async fn waiting(conn: Conn<'_>, carrier: &str, now: Timestamp) -> Result<QueueState> {
    query(WAITING, (carrier, now, now.plus_ms(WAIT_MAX_MS))).fetch_one(conn, read_state).await
}

/// Returns whether a carrier has an unclaimed row.
pub async fn has_unclaimed(conn: Conn<'_>, carrier: &str) -> Result<bool> {
    query(ANY_UNCLAIMED, carrier).finds(conn).await
}

/// Returns unclaimed rows of a carrier with IDs above `after`. Leaves out messages of which the
/// carrier has or may have a segment. On PostgreSQL, locks the returned rows and leaves out rows
/// that another transaction has locked.
pub async fn unclaimed(
    conn: Conn<'_>,
    carrier: &str,
    after: Transid,
    limit: i64,
) -> Result<Vec<Transid>> {
    query(UNCLAIMED, (carrier, after.0, limit)).fetch_all(conn, |row| row.get("message_id")).await
}

/// Like [`unclaimed`], for a carrier whose rows no worker claims. Returns the due rows in any
/// order.
pub async fn unrouted(
    conn: Conn<'_>,
    carrier: &str,
    now: Timestamp,
    limit: i64,
) -> Result<Vec<Transid>> {
    query(UNROUTED, (carrier, limit, now)).fetch_all(conn, |row| row.get("message_id")).await
}

/// The fields of a queued message that decide its route, in the order of [`ROUTED`].
#[derive(Deserialize)]
pub struct Routed {
    #[serde(deserialize_with = "row::transid_from_number")]
    pub message_id: Transid,
    pub number: String,
    pub kind: Kind,
    pub sender: Option<String>,
    pub reference: Reference,
    /// The carriers that refused the message, separated by spaces.
    pub refused_by: String,
    pub segments: usize,
}

pub async fn routed(tx: &mut Tx<'_>, ids: &[Transid]) -> Result<Vec<Routed>> {
    let finding = query(ROUTED, ()).bind(tx.among(ids));
    finding.find_each(tx, ids.iter().copied(), "queue").await
}

/// Returns the messages among `ids` that are in the queue.
pub async fn queued(tx: &mut Tx<'_>, ids: &[Transid]) -> Result<Vec<Transid>> {
    let finding = query(QUEUED, ());
    let found: Vec<(i64,)> = finding.find_each(tx, ids.iter().copied(), "queue").await?;
    Ok(found.into_iter().map(|(id,)| Transid(id)).collect())
}

/// A row that moves to another carrier.
pub struct Moved {
    pub message_id: Transid,
    pub carrier: String,
}

/// Moves unclaimed rows to other carriers. Skips claimed rows, and messages of which a carrier has
/// or may have a segment.
pub async fn move_to(tx: &mut Tx<'_>, rows: &[Moved], now: Timestamp) -> Result<()> {
    let moving = query(MOVE, now);
    let values = rows.iter().map(|row| (row.message_id, &row.carrier));
    moving.execute_each(tx, values).await.map(drop)
}

/// The length and the age of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// The number of messages in the queue. Messages with an expiry of their own, such as scheduled
    /// ones, count only when they are due or claimed.
    pub waiting: i64,
    /// When the oldest of them was accepted. An unclaimed message with an expiry of its own counts
    /// from the time when it is due. Claimed ones aren't considered.
    pub oldest: Option<Timestamp>,
}

pub async fn state(conn: Conn<'_>, now: Timestamp) -> Result<QueueState> {
    let mut state = QueueState { waiting: 0, oldest: None };
    for carrier in carriers(conn).await? {
        let of_carrier = waiting(conn, &carrier, now).await?;
        state.waiting += of_carrier.waiting;
        state.oldest = state.oldest.into_iter().chain(of_carrier.oldest).min();
    }
    Ok(state)
}

fn read_state(row: &Row<'_>) -> Result<QueueState> {
    let (id, at): (Option<i64>, Option<Timestamp>) = (row.get("id")?, row.get("at")?);
    let accepted_at = id.map(|id| Timestamp::from_unix_ms(domain::ids::id_unix_ms(id)));
    Ok(QueueState { waiting: row.get("n")?, oldest: accepted_at.into_iter().chain(at).min() })
}

/// Defers rows. The number of each row is the reason, as in [`super::claims::DueRow::deferred`]. A
/// lease on a row stays valid, so that an answer to an earlier submit still counts.
pub async fn defer(
    tx: &mut Tx<'_>,
    rows: impl Iterator<Item = (Transid, i64)> + Send,
) -> Result<()> {
    query(DEFER, ()).execute_each(tx, rows).await.map(drop)
}

/// Deletes rows, whether they are claimed or not.
pub async fn drop_all(tx: &mut Tx<'_>, ids: &[Transid]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let dropping = query(DROP, ());
    dropping.execute_each(tx, ids.iter().copied()).await.map(drop)
}

/// Deletes the unclaimed rows among `ids` and returns them. If a carrier has or may have a segment
/// of a message, deletes its row only if `begun` is true.
pub async fn drop_unclaimed(tx: &mut Tx<'_>, ids: &[Transid], begun: bool) -> Result<Vec<Transid>> {
    let dropping = query(DROP_UNCLAIMED, begun);
    dropping.fetch_each(tx, ids.iter().copied(), |row| row.get("message_id")).await
}

/// Exempts rows from the cancellation of their batch: claimed rows, and messages of which a carrier
/// has or may have a segment.
pub async fn exempt(conn: Conn<'_>, (first, last): (i64, i64)) -> Result<()> {
    query(EXEMPT_LEASED, (first, last)).execute(&mut *conn).await?;
    query(EXEMPT_BEGUN, (first, last)).execute(conn).await.map(drop)
}

/// Returns at most `limit` unclaimed rows of a batch, in the order of their IDs.
pub async fn of_batch(
    conn: Conn<'_>,
    (first, last): (i64, i64),
    limit: i64,
) -> Result<Vec<Transid>> {
    query(OF_BATCH, (first, last, limit)).fetch_all(conn, |row| row.get("message_id")).await
}

/// Returns the number and the cost of the messages of a batch that its cancellation stops.
pub async fn cost_of_batch(conn: Conn<'_>, (first, last): (i64, i64)) -> Result<(i64, Money)> {
    let read = |row: &Row<'_>| Ok((row.get("n")?, row.get("cost")?));
    query(COST_OF_BATCH, (first, last)).fetch_one(conn, read).await
}

/// Makes at most `limit` rows of a batch due that its pause deferred. Returns their number.
pub async fn resume_batch(
    conn: Conn<'_>,
    (first, last): (i64, i64),
    limit: i64,
    now: Timestamp,
) -> Result<u64> {
    query(RESUME_BATCH, (first, last, limit, now)).execute(conn).await
}

/// A claimed row that becomes unclaimed again.
pub struct Requeued {
    pub id: Transid,
    /// Unix milliseconds.
    pub due_at: i64,
    /// The number to add to the row's attempts.
    pub attempts: i64,
    pub submission: Submission,
    /// The new carrier, if the message moves to another carrier.
    pub carrier: Option<String>,
    /// The text to append to the names of the carriers that refused the message: a space and a
    /// name, or nothing.
    pub refused_by: String,
}

impl Requeued {
    /// Returns whether another carrier may get the message. If a carrier has or may have a segment
    /// of the message, the message stays with that carrier. Any other message may move if its
    /// carrier is unusable, or if it would have to wait for its carrier.
    pub const fn may_move(&self, usable: bool, now: Timestamp) -> bool {
        matches!(self.submission, Submission::None) && (!usable || self.due_at > now.unix_ms())
    }
}

/// Ends the claims of rows. Each row can be claimed again at its `due_at`.
pub async fn requeue(tx: &mut Tx<'_>, rows: &[Requeued]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = rows.iter().map(|r| {
        let submission = i64::from(r.submission);
        (r.id, r.due_at, r.attempts, submission, &r.carrier, &r.refused_by)
    });
    let requeuing = query(REQUEUE, ());
    let requeued = requeuing.execute_each(tx, values).await?;
    touched("queue", rows.len(), requeued)
}
