//! The queue: messages that no carrier has taken yet.

use std::collections::{HashMap, HashSet};

use domain::{BatchId, Kind, MessageStatus, MessageText, Number, Timestamp, Transid};
use sqlx::AnyConnection;

use super::dialect::Batch;
use super::row::{self, json, touched};
use super::statements;
use super::tally::{Standing, Tally, standing};
use crate::MESSAGE_LIFETIME_MS;
use crate::dispatch::{Claimed, Outstanding, QueueState};
use crate::error::Result;
use crate::expiry::first_unexpired;

statements! {
    RESUME = "UPDATE queue SET held = 0 \
              WHERE message_id IN (SELECT message_id FROM queue WHERE application_id = $1 AND held = 1 LIMIT $2) \
                AND EXISTS (SELECT 1 FROM applications WHERE id = $1 AND status <> 'Suspended')";
    WAITING_FOR_NOTHING = "SELECT id FROM applications WHERE status <> 'Suspended' \
                           AND EXISTS (SELECT 1 FROM queue WHERE application_id = applications.id AND held = 1)";
    EXPAND = "INSERT INTO queue (message_id, application_id, carrier, held, bulk, due_at, lease_token, attempts) \
              SELECT id, application_id, $4, 0, 1, $5, 0, 0 FROM messages \
              WHERE id >= $1 AND id <= $2 AND batch_id = $3";
    RECOVER = "UPDATE queue SET due_at = $1, lease_token = 0 WHERE lease_token <> 0";
    STATE = "SELECT COUNT(*) AS n, MIN(message_id) AS oldest FROM queue";
    NEXT_DUE = "SELECT MIN(due_at) AS due_at FROM (\
                SELECT MIN(due_at) AS due_at FROM queue \
                WHERE carrier = $1 AND held = 0 AND bulk = 0 AND message_id >= $2 \
                UNION ALL SELECT MIN(due_at) FROM queue \
                WHERE carrier = $1 AND held = 0 AND bulk = 1 AND message_id >= $2) q";
    OUTSTANDING = "SELECT id, application_id, number, kind, submitted_at FROM messages \
                   WHERE id > $1 AND status = 'submitted' AND carrier = $2 AND submitted_at < $4 \
                   ORDER BY id LIMIT $3";
    OVERDUE = "SELECT id, status, \
                   (SELECT COUNT(*) FROM queue WHERE message_id = id AND lease_token <> 0 AND due_at > $4) AS leased \
               FROM messages WHERE id >= $1 AND id < $2 \
                 AND status IN ('queued', 'sending', 'unknown', 'submitted') ORDER BY id LIMIT $3";
}

pub(crate) async fn insert(
    conn: &mut AnyConnection,
    batch: &Batch,
    messages: impl Iterator<Item = (Transid, i64)>,
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let rows: Vec<_> = messages
        .map(|(id, application)| (id.0, application))
        .collect();
    let done = sqlx::query(batch.insert_queue)
        .bind(json(&rows)?)
        .bind(carrier)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    touched("queue", rows.len(), done.rows_affected())
}

/// Queues a batch's messages of a range of ids.
pub(crate) async fn expand(
    conn: &mut AnyConnection,
    batch_id: BatchId,
    first: i64,
    last: i64,
    carrier: &str,
    now: Timestamp,
) -> Result<u64> {
    Ok(sqlx::query(EXPAND)
        .bind(first)
        .bind(last)
        .bind(batch_id.0)
        .bind(carrier)
        .bind(now.unix_ms())
        .execute(conn)
        .await?
        .rows_affected())
}

/// Applications that aren't suspended and have messages that were put aside.
pub(crate) async fn put_aside_without_cause(conn: &mut AnyConnection) -> Result<Vec<i64>> {
    let rows = sqlx::query(WAITING_FOR_NOTHING).fetch_all(conn).await?;
    rows.iter().map(|row| row::int(row, "id")).collect()
}

/// Lets some of an application's messages that were put aside go on; how many.
pub(crate) async fn resume(
    conn: &mut AnyConnection,
    application_id: i64,
    limit: i64,
) -> Result<u64> {
    Ok(sqlx::query(RESUME)
        .bind(application_id)
        .bind(limit)
        .execute(conn)
        .await?
        .rows_affected())
}

/// Ends every lease: for a start when nobody else can hold one.
pub(crate) async fn recover(conn: &mut AnyConnection, now: Timestamp) -> Result<u64> {
    Ok(sqlx::query(RECOVER)
        .bind(now.unix_ms())
        .execute(conn)
        .await?
        .rows_affected())
}

pub(crate) async fn state(conn: &mut AnyConnection) -> Result<QueueState> {
    let row = sqlx::query(STATE).fetch_one(conn).await?;
    let oldest = row::opt_int(&row, "oldest")?;
    Ok(QueueState {
        waiting: row::int(&row, "n")?,
        oldest: oldest.map(|id| Timestamp::from_unix_ms(domain::ids::id_unix_ms(id))),
    })
}

/// When the next row of a carrier can be claimed.
pub(crate) async fn next_due(
    conn: &mut AnyConnection,
    carrier: &str,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let row = sqlx::query(NEXT_DUE)
        .bind(carrier)
        .bind(first_unexpired(now))
        .fetch_one(conn)
        .await?;
    Ok(row::opt_int(&row, "due_at")?.map(Timestamp::from_unix_ms))
}

/// A row of the queue that may be claimed: message, how often it was tried, whether its application is
/// suspended (1).
pub(crate) type DueRow = (i64, i64, i64);

/// The rows that may be claimed: at most so many of single messages, and of all.
pub(crate) async fn due(
    conn: &mut AnyConnection,
    batch: &Batch,
    carrier: &str,
    now: Timestamp,
    singles_max: i64,
    limit: i64,
) -> Result<Vec<DueRow>> {
    let row = sqlx::query(batch.due)
        .bind(carrier)
        .bind(now.unix_ms())
        .bind(first_unexpired(now))
        .bind(singles_max)
        .bind(limit)
        .fetch_one(conn)
        .await?;
    row::found(&row, "queue")
}

/// Puts rows of suspended applications aside. A lease on them stays what it is: an answer to an earlier
/// submit counts.
pub(crate) async fn put_aside(conn: &mut AnyConnection, batch: &Batch, ids: &[i64]) -> Result<()> {
    sqlx::query(batch.put_aside)
        .bind(json(&ids)?)
        .execute(conn)
        .await?;
    Ok(())
}

/// Claims rows under a lease.
pub(crate) async fn claim(
    conn: &mut AnyConnection,
    batch: &Batch,
    ids: &[i64],
    lease: crate::dispatch::Lease,
) -> Result<()> {
    let done = sqlx::query(batch.claim)
        .bind(json(&ids)?)
        .bind(lease.until.unix_ms())
        .bind(lease.token)
        .execute(conn)
        .await?;
    touched("queue", ids.len(), done.rows_affected())
}

/// Marks claimed messages as being sent and reads what a carrier needs.
pub(crate) async fn start(
    conn: &mut AnyConnection,
    batch: &Batch,
    claimed: &[DueRow],
    now: Timestamp,
) -> Result<Vec<Claimed>> {
    type Row = (Standing, String, Kind, Option<String>, String);
    let ids = json(&claimed.iter().map(|(id, ..)| id).collect::<Vec<_>>())?;
    let row = sqlx::query(batch.claimed_messages)
        .bind(&ids)
        .fetch_one(&mut *conn)
        .await?;
    let found: Vec<Row> = row::found(&row, "messages")?;
    sqlx::query(batch.start_messages)
        .bind(&ids)
        .bind(now.unix_ms())
        .execute(&mut *conn)
        .await?;
    let attempts: HashMap<i64, i64> = claimed.iter().map(|(id, tried, _)| (*id, *tried)).collect();
    let mut tally = Tally::default();
    let messages = found
        .into_iter()
        .map(|(message, number, kind, sender, body)| {
            if message.status.may_become(MessageStatus::Sending) {
                tally.change(&message, MessageStatus::Sending);
            }
            let created_at = Timestamp::from_unix_ms(message.created_at);
            Claimed {
                id: Transid(message.id),
                application_id: message.application_id,
                number: Number::from_stored(number, kind),
                sender,
                message: MessageText::from_stored(body),
                attempts: attempts.get(&message.id).copied().unwrap_or(0),
                expires_at: created_at.plus_ms(MESSAGE_LIFETIME_MS),
            }
        })
        .collect();
    tally.write(conn, batch, now).await?;
    Ok(messages)
}

fn number(row: &sqlx::any::AnyRow) -> Result<Number> {
    let kind = row::word(row, "messages", "kind", Kind::parse)?;
    Ok(Number::from_stored(row::text(row, "number")?, kind))
}

/// Records that a carrier took messages.
pub(crate) async fn submitted(
    conn: &mut AnyConnection,
    batch: &Batch,
    taken: &[(i64, String)],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let ids: Vec<i64> = taken.iter().map(|(id, _)| *id).collect();
    let mut tally = Tally::default();
    for message in standing(conn, batch, &ids).await? {
        if message.status.may_become(MessageStatus::Submitted) {
            tally.change(&message, MessageStatus::Submitted);
        }
    }
    sqlx::query(batch.submit_messages)
        .bind(json(&taken)?)
        .bind(carrier)
        .bind(now.unix_ms())
        .execute(&mut *conn)
        .await?;
    tally.write(conn, batch, now).await
}

/// Takes rows out whose lease still holds; which ones they were.
pub(crate) async fn dequeue(
    conn: &mut AnyConnection,
    batch: &Batch,
    ids: &[i64],
    token: i64,
) -> Result<HashSet<i64>> {
    let row = sqlx::query(batch.leased)
        .bind(json(&ids)?)
        .bind(token)
        .fetch_one(&mut *conn)
        .await?;
    let held: Vec<i64> = row::found(&row, "queue")?;
    drop_all(conn, batch, &held).await?;
    Ok(held.into_iter().collect())
}

/// Takes rows out, whoever holds them.
pub(crate) async fn drop_all(conn: &mut AnyConnection, batch: &Batch, ids: &[i64]) -> Result<()> {
    sqlx::query(batch.drop_queued)
        .bind(json(&ids)?)
        .execute(conn)
        .await?;
    Ok(())
}

/// Puts claimed rows back whose lease still holds, to be claimed again at the moment given for each;
/// which ones they were.
pub(crate) async fn requeue(
    conn: &mut AnyConnection,
    batch: &Batch,
    rows: &[(i64, i64)],
    token: i64,
    attempted: bool,
) -> Result<Vec<i64>> {
    let rows = sqlx::query(batch.requeue)
        .bind(json(&rows)?)
        .bind(token)
        .bind(i64::from(attempted))
        .fetch_all(conn)
        .await?;
    rows.iter().map(|row| row::int(row, "message_id")).collect()
}

/// Something in a message's life that its row can't say.
pub(crate) struct Event {
    pub(crate) id: Transid,
    pub(crate) application_id: i64,
    pub(crate) status: MessageStatus,
    pub(crate) detail: Option<String>,
}

pub(crate) async fn insert_events(
    conn: &mut AnyConnection,
    batch: &Batch,
    events: &[Event],
    now: Timestamp,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = events
        .iter()
        .map(|e| (e.id.0, e.application_id, e.status.as_str(), &e.detail))
        .collect();
    sqlx::query(batch.insert_events)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(())
}

/// Messages that a carrier took and that aren't final, after this id.
pub(crate) async fn outstanding(
    conn: &mut AnyConnection,
    after: i64,
    carrier: &str,
    submitted_before: Timestamp,
    limit: i64,
) -> Result<Vec<Outstanding>> {
    let rows = sqlx::query(OUTSTANDING)
        .bind(after)
        .bind(carrier)
        .bind(limit)
        .bind(submitted_before.unix_ms())
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Outstanding {
                id: Transid(row::int(row, "id")?),
                application_id: row::int(row, "application_id")?,
                number: number(row)?,
                submitted_at: Timestamp::from_unix_ms(row::int(row, "submitted_at")?),
            })
        })
        .collect()
}

/// A message whose time ran out.
pub(crate) struct Overdue {
    pub(crate) id: Transid,
    pub(crate) status: MessageStatus,
    /// A dispatcher holds it now.
    pub(crate) leased: bool,
}

/// Messages of this range of ids that aren't final.
pub(crate) async fn overdue(
    conn: &mut AnyConnection,
    from: i64,
    below: i64,
    limit: i64,
    now: Timestamp,
) -> Result<Vec<Overdue>> {
    let rows = sqlx::query(OVERDUE)
        .bind(from)
        .bind(below)
        .bind(limit)
        .bind(now.unix_ms())
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Overdue {
                id: Transid(row::int(row, "id")?),
                status: row::word(row, "messages", "status", MessageStatus::parse)?,
                leased: row::int(row, "leased")? > 0,
            })
        })
        .collect()
}
