//! Claims: rows of the queue that are handed to carriers, each under a lease.

use std::collections::HashMap;

use domain::{ApplicationId, HandOver, Kind, LostAnswer, MessageStatus, Timestamp, Transid};
use serde::Deserialize;

use super::query::{Conn, Connection, each, given, look_up, query};
use super::row::{self, Ids, json, touched};
use super::sql::{Sql, statements};
use super::tally::OpenMessage;
use super::transaction::WriteTx;
use crate::error::{Error, Fault, Result};

statements! {
    const NEXT_DUE: Sql = Sql::same(r"
        SELECT MIN(due_at) AS due_at
        FROM (
            SELECT MIN(due_at) AS due_at
            FROM queue
            WHERE carrier = $1 AND held = 0 AND bulk = 0 AND message_id >= $2 AND lease_token = 0
              AND due_at >= $3
            UNION ALL SELECT MIN(due_at) FROM queue
            WHERE carrier = $1 AND held = 0 AND bulk = 1 AND message_id >= $2 AND lease_token = 0
              AND due_at >= $4) q
        WHERE NOT EXISTS (SELECT 1 FROM carriers WHERE name = $1 AND drained_at IS NOT NULL)");
    /// Single messages and those of batches are looked for apart, each kind by its own part of the
    /// index of what is due.
    const DUE: Sql = Sql {
        sqlite: r"
            -- No SKIP LOCKED: one transaction writes at a time, so nobody else holds a row.
            WITH drained AS (SELECT 1 FROM carriers WHERE name = $1 AND drained_at IS NOT NULL),
            singles AS MATERIALIZED (
                SELECT message_id, application_id, hand_over, due_at, 0 AS bulk
                FROM queue
                WHERE carrier = $1 AND held = 0 AND bulk = 0 AND due_at BETWEEN $6 AND $2
                  AND message_id >= $3 AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained)
                ORDER BY due_at, message_id LIMIT $4),
            of_batches AS (
                SELECT message_id, application_id, hand_over, due_at, 1 AS bulk
                FROM queue
                WHERE carrier = $1 AND held = 0 AND bulk = 1 AND due_at BETWEEN $7 AND $2
                  AND message_id >= $3 AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained)
                ORDER BY due_at, message_id LIMIT $5 - (SELECT COUNT(*) FROM singles))
            SELECT json_group_array(
                json_array(
                    q.message_id, q.hand_over, a.status = 'Suspended', q.due_at, q.bulk,
                    q.application_id)) AS found
            FROM (SELECT * FROM singles UNION ALL SELECT * FROM of_batches) q
            JOIN applications a ON a.id = q.application_id",
        postgres: r"
            -- What another process is about to claim is passed over. An application's row may have
            -- left many old versions behind: it is looked up once, not for each message.
            WITH drained AS (SELECT 1 FROM carriers WHERE name = $1 AND drained_at IS NOT NULL),
            singles AS MATERIALIZED (
                SELECT message_id, application_id, hand_over, due_at, 0 AS bulk
                FROM queue
                WHERE carrier = $1 AND held = 0 AND bulk = 0 AND due_at BETWEEN $6 AND $2
                  AND message_id >= $3 AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained)
                ORDER BY due_at, message_id LIMIT $4 FOR UPDATE SKIP LOCKED),
            of_batches AS MATERIALIZED (
                SELECT message_id, application_id, hand_over, due_at, 1 AS bulk
                FROM queue
                WHERE carrier = $1 AND held = 0 AND bulk = 1 AND due_at BETWEEN $7 AND $2
                  AND message_id >= $3 AND lease_token = 0 AND NOT EXISTS (SELECT 1 FROM drained)
                ORDER BY due_at, message_id LIMIT $5 - (SELECT COUNT(*) FROM singles)
                FOR UPDATE SKIP LOCKED),
            due AS (SELECT * FROM singles UNION ALL SELECT * FROM of_batches),
            suspended AS MATERIALIZED (
                SELECT id
                FROM applications
                WHERE id = ANY (ARRAY(SELECT DISTINCT application_id FROM due))
                  AND status = 'Suspended')
            SELECT COALESCE(
                json_agg(
                    json_build_array(
                        message_id, hand_over,
                        CASE WHEN application_id IN (SELECT id FROM suspended) THEN 1 ELSE 0 END,
                        due_at, bulk, application_id)),
                '[]')::text AS found
            FROM due",
    };
    const CLAIM: Sql = Sql {
        sqlite: r"
            UPDATE queue SET due_at = ?2, lease_token = ?3 WHERE message_id = ?1",
        postgres: r"
            UPDATE queue SET due_at = $2, lease_token = $3
            WHERE message_id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              AND application_id = ANY ($4::text::bigint[])",
    };
    const CLAIMED: Sql = Sql {
        sqlite: r"
            SELECT id, application_id, test, batch_id, created_at, status, cost, number, kind,
                   sender, body
            FROM messages WHERE id = ?1 AND status < 3",
        postgres: r"
            SELECT COALESCE(
                json_agg(
                    json_build_array(
                        json_build_array(
                            id, application_id, test, batch_id, created_at, status, cost),
                        number, kind, sender, body)),
                '[]')::text AS found
            FROM (
                SELECT *
                FROM messages
                WHERE id = ANY (
                    ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
                  AND id BETWEEN $2 AND $3 AND application_id = ANY ($4::text::bigint[])
                  AND status < 3
                ORDER BY id FOR UPDATE) m",
    };
    const START: Sql = Sql {
        sqlite: r"
            UPDATE messages SET status = 1, sending_at = ?2 WHERE id = ?1 AND status < 2",
        postgres: r"
            UPDATE messages SET status = 1, sending_at = $2
            WHERE id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              AND id BETWEEN $3 AND $4 AND application_id = ANY ($5::text::bigint[])
              AND status < 2",
    };
    /// `[[message, token]]`.
    const LEASED: Sql = Sql {
        sqlite: r"
            SELECT q.message_id, q.hand_over, q.attempts, a.lost_answer
            FROM queue q
            JOIN applications a ON a.id = q.application_id
            WHERE q.message_id = ?1 AND q.lease_token = ?2",
        postgres: r"
            SELECT COALESCE(
                json_agg(
                    json_build_array(
                        q.message_id, q.hand_over, q.attempts, a.lost_answer)),
                '[]')::text AS found
            FROM (
                SELECT q.message_id, q.hand_over, q.attempts, q.application_id
                FROM jsonb_array_elements($1::text::jsonb) AS r
                JOIN queue q ON q.message_id = (r.value ->> 0)::bigint
                  AND q.lease_token = (r.value ->> 1)::bigint
                WHERE q.application_id = ANY ($2::text::bigint[])
                ORDER BY q.message_id FOR UPDATE OF q) q
            JOIN applications a ON a.id = q.application_id",
    };
    const ENDED_LEASES: Sql = Sql {
        sqlite: r"
            SELECT q.message_id, q.carrier, q.hand_over, q.application_id, m.segments, a.lost_answer
            FROM queue q
            JOIN messages m ON m.id = q.message_id
            JOIN applications a ON a.id = q.application_id
            WHERE q.lease_token <> 0 AND q.due_at <= $1 AND m.id >= $3
            LIMIT $2",
        postgres: r"
            SELECT q.message_id, q.carrier, q.hand_over, q.application_id, m.segments, a.lost_answer
            FROM queue q
            JOIN messages m ON m.id = q.message_id
            JOIN applications a ON a.id = q.application_id
            WHERE q.lease_token <> 0 AND q.due_at <= $1 AND m.id >= $3
            LIMIT $2 FOR UPDATE OF q SKIP LOCKED",
    };
}

/// A row of the queue that may be claimed. The fields are in the order of [`DUE`].
#[derive(Deserialize)]
pub(crate) struct DueRow {
    #[serde(deserialize_with = "row::transid_in_json")]
    pub(crate) id: Transid,
    pub(crate) hand_over: HandOver,
    #[serde(deserialize_with = "flag")]
    pub(crate) suspended: bool,
    /// Unix milliseconds.
    pub(crate) due_at: i64,
    #[serde(deserialize_with = "flag")]
    pub(crate) of_batch: bool,
    pub(crate) application_id: ApplicationId,
}

/// The moments of `due_at`, in unix milliseconds, before which nothing waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScanStart {
    pub(crate) singles: i64,
    pub(crate) of_batches: i64,
}

/// How many rows to look for: at most so many of single messages, and of all.
#[derive(Clone, Copy)]
pub(crate) struct DueLimits {
    pub(crate) singles: i64,
    pub(crate) all: i64,
}

/// The rows that may be claimed, of messages with this id or a greater one; none of a carrier that
/// is drained.
pub(crate) async fn due(
    conn: &mut dyn Connection,
    carrier: &str,
    limits: DueLimits,
    from: ScanStart,
    least: i64,
    now: Timestamp,
) -> Result<Vec<DueRow>> {
    let row = query(DUE)
        .bind(carrier)
        .bind(now.unix_ms())
        .bind(least)
        .bind(limits.singles)
        .bind(limits.all)
        .bind(from.singles)
        .bind(from.of_batches)
        .fetch_one(conn)
        .await?;
    row::found(&row, "queue")
}

/// When the next row of a carrier can be claimed, of a message with this id or a greater one; none
/// of a carrier that is drained.
pub(crate) async fn next_due(
    conn: &mut dyn Connection,
    carrier: &str,
    from: ScanStart,
    least: i64,
) -> Result<Option<Timestamp>> {
    let row = query(NEXT_DUE)
        .bind(carrier)
        .bind(least)
        .bind(from.singles)
        .bind(from.of_batches)
        .fetch_one(conn)
        .await?;
    Ok(row::opt_int(&row, "due_at")?.map(Timestamp::from_unix_ms))
}

/// Claims rows under a lease: its token, and when it ends.
pub(crate) async fn claim(
    tx: &mut WriteTx<'_>,
    ids: &[Transid],
    token: i64,
    until: Timestamp,
) -> Result<()> {
    let until = until.unix_ms();
    if let Conn::File(conn) = tx.conn() {
        let claimed = each(given(conn)?, CLAIM, ids, |statement, id| {
            statement.execute((id.0, until, token))
        })?;
        return touched("queue", ids.len(), claimed);
    }
    let done = query(CLAIM)
        .bind(row::numbers(ids)?)
        .bind(until)
        .bind(token)
        .bind(tx.named())
        .execute(tx)
        .await?;
    touched("queue", ids.len(), done.rows_affected())
}

/// Marks claimed messages as being sent and reads what a carrier needs.
pub(crate) async fn start(
    tx: &mut WriteTx<'_>,
    ids: &[Transid],
    now: Timestamp,
) -> Result<Vec<StartedMessage>> {
    if let Conn::File(conn) = tx.conn() {
        let started = start_in_file(given(conn)?, ids, now)?;
        count_as_sending(tx, &started, now);
        return Ok(started);
    }
    let ids = Ids::new(ids)?;
    let row = query(CLAIMED)
        .bind(&ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    let started: Vec<StartedMessage> = row::found(&row, "messages")?;
    query(START)
        .bind(ids.json)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(tx)
        .await?;
    count_as_sending(tx, &started, now);
    Ok(started)
}

/// A message that is being sent from now on. The fields are in the order of
/// [`CLAIMED`].
#[derive(Deserialize)]
pub(crate) struct StartedMessage {
    pub(crate) before: OpenMessage,
    pub(crate) number: String,
    pub(crate) kind: Kind,
    pub(crate) sender: Option<String>,
    pub(crate) body: String,
}

fn start_in_file(
    conn: &rusqlite::Connection,
    ids: &[Transid],
    now: Timestamp,
) -> Result<Vec<StartedMessage>> {
    let found = look_up(
        conn,
        CLAIMED,
        ids,
        |s, id| s.query([id.0]),
        |_, row| {
            let kind: String = row.get(8)?;
            let kind = Kind::parse(&kind).ok_or(Error::Failed(Fault::Corrupt {
                table: "messages",
                column: "kind",
                value: kind,
            }))?;
            Ok(StartedMessage {
                before: OpenMessage::of_file(row)?,
                number: row.get(7)?,
                kind,
                sender: row.get(9)?,
                body: row.get(10)?,
            })
        },
    )?;
    each(conn, START, ids, |statement, id| {
        statement.execute((id.0, now.unix_ms()))
    })?;
    Ok(found)
}

fn count_as_sending(tx: &mut WriteTx<'_>, started: &[StartedMessage], now: Timestamp) {
    for StartedMessage { before, .. } in started {
        if before.status.may_become(MessageStatus::Sending) {
            tx.tally.change(before, MessageStatus::Sending, now);
        }
    }
}

/// A row whose lease holds.
#[derive(Deserialize)]
pub(crate) struct Held {
    #[serde(deserialize_with = "row::transid_in_json")]
    pub(crate) id: Transid,
    pub(crate) hand_over: HandOver,
    /// Submits that the carrier put off.
    pub(crate) attempts: i64,
    pub(crate) lost_answer: LostAnswer,
}

fn flag<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<bool, D::Error> {
    Ok(i64::deserialize(from)? == 1)
}

/// A row and the token that it was claimed with.
pub(crate) struct Leased {
    pub(crate) message_id: Transid,
    pub(crate) token: i64,
}

/// Those of the rows whose lease still holds.
pub(crate) async fn held(
    tx: &mut WriteTx<'_>,
    leases: &[Leased],
) -> Result<HashMap<Transid, Held>> {
    if let Conn::File(conn) = tx.conn() {
        let held = look_up(
            given(conn)?,
            LEASED,
            leases,
            |s, lease| s.query((lease.message_id.0, lease.token)),
            |_, row| {
                let held = Held {
                    id: Transid(row.get(0)?),
                    hand_over: row::file_hand_over(row, 1)?,
                    attempts: row.get(2)?,
                    lost_answer: row::file_lost_answer(row, 3)?,
                };
                Ok((held.id, held))
            },
        )?;
        return Ok(held.into_iter().collect());
    }
    let leases: Vec<_> = leases
        .iter()
        .map(|lease| (lease.message_id.0, lease.token))
        .collect();
    let row = query(LEASED)
        .bind(json(&leases)?)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    let held: Vec<Held> = row::found(&row, "queue")?;
    Ok(held.into_iter().map(|held| (held.id, held)).collect())
}

/// A claimed row whose lease is over.
#[derive(Clone)]
pub(crate) struct EndedLease {
    pub(crate) id: Transid,
    pub(crate) application_id: ApplicationId,
    pub(crate) carrier: String,
    pub(crate) hand_over: HandOver,
    /// Of the message, as it was counted at its acceptance.
    pub(crate) segments: u16,
    pub(crate) lost_answer: LostAnswer,
}

/// Some of the claimed rows whose lease ended before this moment.
pub(crate) async fn ended_leases(
    conn: &mut dyn Connection,
    ended_by: Timestamp,
    least: i64,
    limit: i64,
) -> Result<Vec<EndedLease>> {
    let rows = query(ENDED_LEASES)
        .bind(ended_by.unix_ms())
        .bind(limit)
        .bind(least)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(EndedLease {
                id: row::transid(row, "message_id")?,
                application_id: row::application(row, "application_id")?,
                carrier: row::text(row, "carrier")?,
                hand_over: row::code(row, "queue", "hand_over", |code| {
                    HandOver::try_from(code).ok()
                })?,
                segments: row::int(row, "segments")?.try_into().unwrap_or(1),
                lost_answer: row::word(row, "applications", "lost_answer", LostAnswer::parse)?,
            })
        })
        .collect()
}
