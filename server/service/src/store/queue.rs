//! The queue: messages that no carrier has taken yet.

use std::collections::HashMap;

use domain::{BatchId, Kind, MessageStatus, MessageText, Number, Reference, Timestamp, Transid};
use serde::Deserialize;
use sqlx::AnyConnection;

use super::dialect::Batch;
use super::row::{self, Ids, json, touched};
use super::tally::{Standing, standing};
use super::{WriteTx, statements};
use crate::MESSAGE_LIFETIME_MS;
use crate::dispatch::{Claimed, Outstanding, QueueState};
use crate::error::Result;
use crate::expiry::first_unexpired;
use crate::routing::Network;

statements! {
    RESUME = "UPDATE queue SET held = 0, due_at = $3 \
              WHERE message_id IN (SELECT message_id FROM queue WHERE application_id = $1 AND held = 1 LIMIT $2) \
                AND held = 1 \
                AND EXISTS (SELECT 1 FROM applications WHERE id = $1 AND status <> 'Suspended')";
    WAITING_FOR_NOTHING = "SELECT id FROM applications WHERE status <> 'Suspended' \
                           AND EXISTS (SELECT 1 FROM queue WHERE application_id = applications.id AND held = 1)";
    EXPAND = "INSERT INTO queue (message_id, application_id, carrier, held, bulk, due_at, lease_token, attempts) \
              SELECT id, application_id, $4, 0, 1, $5, 0, 0 FROM messages \
              WHERE id >= $1 AND id <= $2 AND batch_id = $3 AND application_id = $6";
    CARRIERS = "SELECT DISTINCT carrier FROM queue";
    ANYTHING = "SELECT message_id FROM queue WHERE carrier = $1 AND lease_token = 0 LIMIT 1";
    OLDEST = "SELECT MIN(message_id) AS id, COUNT(*) AS n FROM queue WHERE carrier = $1";
    STATE = "SELECT COUNT(*) AS n, MIN(message_id) AS oldest FROM queue";
    NEXT_DUE = "SELECT MIN(due_at) AS due_at FROM (\
                SELECT MIN(due_at) AS due_at FROM queue \
                WHERE carrier = $1 AND held = 0 AND bulk = 0 AND message_id >= $2 AND lease_token = 0 AND due_at >= $3 \
                UNION ALL SELECT MIN(due_at) FROM queue \
                WHERE carrier = $1 AND held = 0 AND bulk = 1 AND message_id >= $2 AND lease_token = 0 AND due_at >= $4) q \
                WHERE NOT EXISTS (SELECT 1 FROM carriers WHERE name = $1 AND drained_at IS NOT NULL)";
    OUTSTANDING = "SELECT id, application_id, number, kind, submitted_at FROM messages \
                   WHERE id > $1 AND id < $5 AND status = 'submitted' AND carrier = $2 AND submitted_at < $4 \
                   ORDER BY id LIMIT $3";
    OVERDUE = "SELECT id, application_id, status, submitted_at, \
                   (SELECT COUNT(*) FROM queue WHERE message_id = id AND lease_token <> 0) AS leased, \
                   (SELECT MIN(COALESCE(s.error, '')) FROM segments s \
                    WHERE s.message_id = messages.id AND s.status = 'failed') AS failed \
               FROM messages WHERE id >= $1 AND id < $2 \
                 AND status IN ('queued', 'sending', 'unknown', 'submitted') ORDER BY id LIMIT $3";
}

/// Queues messages: id, application, carrier.
pub(crate) async fn insert(
    conn: &mut AnyConnection,
    batch: &Batch,
    rows: &[(i64, i64, String)],
    of_batch: bool,
    now: Timestamp,
) -> Result<()> {
    let done = sqlx::query(batch.insert_queue)
        .bind(json(&rows)?)
        .bind(i64::from(of_batch))
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    touched("queue", rows.len(), done.rows_affected())
}

/// Queues a batch's messages of a range of ids, all for one carrier.
pub(crate) async fn expand(
    conn: &mut AnyConnection,
    (batch_id, application_id): (BatchId, i64),
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
        .bind(application_id)
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
    now: Timestamp,
) -> Result<u64> {
    Ok(sqlx::query(RESUME)
        .bind(application_id)
        .bind(limit)
        .bind(now.unix_ms())
        .execute(conn)
        .await?
        .rows_affected())
}

/// A claimed row whose lease is over.
#[derive(Clone)]
pub(crate) struct Lapsed {
    pub(crate) id: i64,
    pub(crate) application_id: i64,
    pub(crate) carrier: String,
    pub(crate) begun: i64,
    /// Of the message, as it was counted at its acceptance.
    pub(crate) segments: u16,
    pub(crate) resend: bool,
}

/// Some of the claimed rows whose lease ended before this moment.
pub(crate) async fn lapsed(
    conn: &mut AnyConnection,
    batch: &Batch,
    ended_by: Timestamp,
    least: i64,
    limit: i64,
) -> Result<Vec<Lapsed>> {
    let rows = sqlx::query(batch.lapsed)
        .bind(ended_by.unix_ms())
        .bind(limit)
        .bind(least)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Lapsed {
                id: row::int(row, "message_id")?,
                application_id: row::int(row, "application_id")?,
                carrier: row::text(row, "carrier")?,
                begun: row::int(row, "begun")?,
                segments: row::int(row, "segments")?.try_into().unwrap_or(1),
                resend: row::text(row, "lost_answer")? == "resend",
            })
        })
        .collect()
}

/// The carriers that rows wait for.
pub(crate) async fn carriers(conn: &mut AnyConnection) -> Result<Vec<String>> {
    let rows = sqlx::query(CARRIERS).fetch_all(conn).await?;
    rows.iter().map(|row| row::text(row, "carrier")).collect()
}

/// When the oldest message that waits for a carrier was accepted, and how many wait.
pub(crate) async fn waiting(
    conn: &mut AnyConnection,
    carrier: &str,
) -> Result<(Option<Timestamp>, i64)> {
    let row = sqlx::query(OLDEST).bind(carrier).fetch_one(conn).await?;
    let oldest = row::opt_int(&row, "id")?;
    let oldest = oldest.map(|id| Timestamp::from_unix_ms(domain::ids::id_unix_ms(id)));
    Ok((oldest, row::int(&row, "n")?))
}

/// Whether anything waits for a carrier that nobody claimed.
pub(crate) async fn anything(conn: &mut AnyConnection, carrier: &str) -> Result<bool> {
    let row = sqlx::query(ANYTHING).bind(carrier);
    Ok(row.fetch_optional(conn).await?.is_some())
}

/// A row that nobody claimed: message, application.
pub(crate) type WaitingRow = (i64, i64);

fn waiting_row(row: &sqlx::any::AnyRow) -> Result<WaitingRow> {
    Ok((
        row::int(row, "message_id")?,
        row::int(row, "application_id")?,
    ))
}

/// Rows that wait for a carrier which has nothing of them, after this id.
pub(crate) async fn unclaimed(
    conn: &mut AnyConnection,
    batch: &Batch,
    carrier: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<WaitingRow>> {
    let rows = sqlx::query(batch.unclaimed)
        .bind(carrier)
        .bind(after)
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter().map(waiting_row).collect()
}

/// Some of the rows that wait for a carrier which nobody claims for.
pub(crate) async fn unrouted(
    conn: &mut AnyConnection,
    batch: &Batch,
    carrier: &str,
    limit: i64,
) -> Result<Vec<WaitingRow>> {
    let rows = sqlx::query(batch.unrouted)
        .bind(carrier)
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter().map(waiting_row).collect()
}

/// What routes look at in a queued message. The fields are in the order of [`Batch::routed_messages`].
#[derive(Deserialize)]
pub(crate) struct Routed {
    pub(crate) message_id: i64,
    pub(crate) number: String,
    pub(crate) kind: Kind,
    pub(crate) sender: Option<String>,
    pub(crate) reference: Reference,
    /// Carriers, with spaces between them.
    pub(crate) refused_by: String,
}

pub(crate) async fn routed(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    ids: &[i64],
) -> Result<Vec<Routed>> {
    let ids = Ids::new(ids)?;
    let row = sqlx::query(batch.routed_messages)
        .bind(ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(&mut **tx)
        .await?;
    row::found(&row, "queue")
}

/// Gives rows that nobody claimed to other carriers.
pub(crate) async fn move_to(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    rows: &[(i64, String)],
    now: Timestamp,
) -> Result<()> {
    sqlx::query(batch.move_queued)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

pub(crate) async fn state(conn: &mut AnyConnection) -> Result<QueueState> {
    let row = sqlx::query(STATE).fetch_one(conn).await?;
    let oldest = row::opt_int(&row, "oldest")?;
    Ok(QueueState {
        waiting: row::int(&row, "n")?,
        oldest: oldest.map(|id| Timestamp::from_unix_ms(domain::ids::id_unix_ms(id))),
    })
}

/// When the next row of a carrier can be claimed; none of one that is drained.
pub(crate) async fn next_due(
    conn: &mut AnyConnection,
    carrier: &str,
    from: Marks,
    now: Timestamp,
) -> Result<Option<Timestamp>> {
    let row = sqlx::query(NEXT_DUE)
        .bind(carrier)
        .bind(first_unexpired(now))
        .bind(from.singles)
        .bind(from.of_batches)
        .fetch_one(conn)
        .await?;
    Ok(row::opt_int(&row, "due_at")?.map(Timestamp::from_unix_ms))
}

/// A row of the queue that may be claimed. The fields are in the order of [`Batch::due`].
#[derive(Deserialize)]
pub(crate) struct DueRow {
    pub(crate) id: i64,
    /// 0, 1 or 2, as in the schema.
    pub(crate) begun: i64,
    #[serde(deserialize_with = "flag")]
    pub(crate) suspended: bool,
    /// Unix milliseconds.
    pub(crate) due_at: i64,
    #[serde(deserialize_with = "flag")]
    pub(crate) of_batch: bool,
    pub(crate) application_id: i64,
}

/// The moments of `due_at`, in unix milliseconds, before which nothing waits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Marks {
    pub(crate) singles: i64,
    pub(crate) of_batches: i64,
}

/// How many rows to look for: at most so many of single messages, and of all.
#[derive(Clone, Copy)]
pub(crate) struct DueLimits {
    pub(crate) singles: i64,
    pub(crate) all: i64,
}

/// The rows that may be claimed; none of a carrier that is drained.
pub(crate) async fn due(
    conn: &mut AnyConnection,
    batch: &Batch,
    carrier: &str,
    limits: DueLimits,
    from: Marks,
    now: Timestamp,
) -> Result<Vec<DueRow>> {
    let row = sqlx::query(batch.due)
        .bind(carrier)
        .bind(now.unix_ms())
        .bind(first_unexpired(now))
        .bind(limits.singles)
        .bind(limits.all)
        .bind(from.singles)
        .bind(from.of_batches)
        .fetch_one(conn)
        .await?;
    row::found(&row, "queue")
}

/// Puts rows of suspended applications aside. A lease on them stays what it is: an answer to an earlier
/// submit counts.
pub(crate) async fn put_aside(tx: &mut WriteTx<'_>, batch: &Batch, ids: &[i64]) -> Result<()> {
    sqlx::query(batch.put_aside)
        .bind(json(&ids)?)
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// Claims rows under a lease.
pub(crate) async fn claim(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    ids: &[i64],
    lease: crate::dispatch::Lease,
) -> Result<()> {
    let done = sqlx::query(batch.claim)
        .bind(json(&ids)?)
        .bind(lease.until.unix_ms())
        .bind(lease.token)
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    touched("queue", ids.len(), done.rows_affected())
}

/// Marks claimed messages as being sent and reads what a carrier needs.
pub(crate) async fn start(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    ids: &[i64],
    network: &Network,
    now: Timestamp,
) -> Result<Vec<Claimed>> {
    type Row = (Standing, String, Kind, Option<String>, String);
    let ids = Ids::new(ids)?;
    let row = sqlx::query(batch.claimed_messages)
        .bind(&ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(&mut **tx)
        .await?;
    let found: Vec<Row> = row::found(&row, "messages")?;
    sqlx::query(batch.start_messages)
        .bind(ids.json)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    let messages = found
        .into_iter()
        .map(|(message, number, kind, sender, body)| {
            if message.status.may_become(MessageStatus::Sending) {
                tx.tally.change(&message, MessageStatus::Sending, now);
            }
            let created_at = Timestamp::from_unix_ms(message.created_at);
            let number = Number::from_stored(number, kind);
            Claimed {
                id: Transid(message.id),
                application_id: message.application_id,
                address: number.for_carrier(&network.country_code),
                number,
                sender: sender.unwrap_or_else(|| network.default_sender.clone()),
                message: MessageText::from_stored(body),
                handed_over: Vec::new(),
                expires_at: created_at.plus_ms(MESSAGE_LIFETIME_MS),
            }
        })
        .collect();
    Ok(messages)
}

fn number(row: &sqlx::any::AnyRow) -> Result<Number> {
    let kind = row::word(row, "messages", "kind", Kind::parse)?;
    Ok(Number::from_stored(row::text(row, "number")?, kind))
}

/// Records that a carrier took messages whole: id, and the segments where they are known better now.
pub(crate) async fn submitted(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    taken: &[(i64, Option<u16>)],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    if taken.is_empty() {
        return Ok(());
    }
    let ids: Vec<i64> = taken.iter().map(|(id, _)| *id).collect();
    for message in standing(tx, batch, &ids).await? {
        if message.status.may_become(MessageStatus::Submitted) {
            tx.tally.change(&message, MessageStatus::Submitted, now);
        }
    }
    let ids = Ids::new(&ids)?;
    sqlx::query(batch.submit_messages)
        .bind(json(&taken)?)
        .bind(carrier)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A message of which a carrier has a part, or may have.
pub(crate) struct Begun {
    pub(crate) id: Transid,
    /// Of some segments it isn't known.
    pub(crate) unknown: bool,
    /// Of some segments it is known.
    pub(crate) taken: bool,
}

/// Records which messages a carrier has parts of, or may have.
pub(crate) async fn begin(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    begun: &[Begun],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    if begun.is_empty() {
        return Ok(());
    }
    let unknown: Vec<i64> = begun.iter().filter(|b| b.unknown).map(|b| b.id.0).collect();
    for message in standing(tx, batch, &unknown).await? {
        if message.status.may_become(MessageStatus::Unknown) {
            tx.tally.change(&message, MessageStatus::Unknown, now);
        }
    }
    let rows: Vec<_> = begun
        .iter()
        .map(|b| (b.id.0, i64::from(b.unknown), i64::from(b.taken)))
        .collect();
    let ids: Vec<i64> = begun.iter().map(|b| b.id.0).collect();
    let ids = Ids::new(&ids)?;
    sqlx::query(batch.begin_messages)
        .bind(json(&rows)?)
        .bind(carrier)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A row whose lease holds.
#[derive(Deserialize)]
pub(crate) struct Held {
    pub(crate) id: i64,
    /// 0, 1 or 2, as in the schema.
    pub(crate) begun: i64,
    /// Submits that the carrier put off.
    pub(crate) attempts: i64,
    #[serde(deserialize_with = "flag")]
    pub(crate) resend: bool,
}

fn flag<'de, D: serde::Deserializer<'de>>(from: D) -> std::result::Result<bool, D::Error> {
    Ok(i64::deserialize(from)? == 1)
}

/// Those of the rows, given with their leases' tokens, whose lease still holds.
pub(crate) async fn held(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    leases: &[(i64, i64)],
) -> Result<HashMap<i64, Held>> {
    let row = sqlx::query(batch.leased)
        .bind(json(&leases)?)
        .bind(tx.named())
        .fetch_one(&mut **tx)
        .await?;
    let held: Vec<Held> = row::found(&row, "queue")?;
    Ok(held.into_iter().map(|held| (held.id, held)).collect())
}

/// Takes rows out, whoever holds them.
pub(crate) async fn drop_all(tx: &mut WriteTx<'_>, batch: &Batch, ids: &[i64]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    sqlx::query(batch.drop_queued)
        .bind(json(&ids)?)
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    Ok(())
}

/// A claimed row that goes back.
pub(crate) struct Requeued {
    pub(crate) id: i64,
    /// Unix milliseconds.
    pub(crate) due_at: i64,
    /// To be added.
    pub(crate) attempts: i64,
    /// 0, 1 or 2, as in the schema.
    pub(crate) begun: i64,
    /// Another one than before.
    pub(crate) carrier: Option<String>,
    /// To be added: a space and the carrier that refused it.
    pub(crate) refused_by: String,
}

impl Requeued {
    /// Whether its carrier has nothing of it and doesn't want it now. What didn't leave at all may be
    /// claimed again at once, unless the carrier can't take it.
    pub(crate) const fn is_put_off(&self, usable: bool, now: Timestamp) -> bool {
        self.begun == 0 && (!usable || self.due_at > now.unix_ms())
    }
}

/// Puts claimed rows back, to be claimed again at the moment given for each.
pub(crate) async fn requeue(tx: &mut WriteTx<'_>, batch: &Batch, rows: &[Requeued]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values: Vec<_> = rows
        .iter()
        .map(|r| {
            (
                r.id,
                r.due_at,
                r.attempts,
                r.begun,
                &r.carrier,
                &r.refused_by,
            )
        })
        .collect();
    let done = sqlx::query(batch.requeue)
        .bind(json(&values)?)
        .bind(tx.named())
        .execute(&mut **tx)
        .await?;
    touched("queue", rows.len(), done.rows_affected())
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

/// Messages that a carrier took and that aren't final, between these ids.
pub(crate) async fn outstanding(
    conn: &mut AnyConnection,
    (after, below): (i64, i64),
    carrier: &str,
    submitted_before: Timestamp,
    limit: i64,
) -> Result<Vec<Outstanding>> {
    let rows = sqlx::query(OUTSTANDING)
        .bind(after)
        .bind(carrier)
        .bind(limit)
        .bind(submitted_before.unix_ms())
        .bind(below)
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
    pub(crate) application_id: i64,
    pub(crate) status: MessageStatus,
    /// A carrier has it, or a part of it.
    pub(crate) taken: bool,
    /// A dispatcher holds it now.
    pub(crate) leased: bool,
    /// Why a part of it wasn't delivered, where a receipt said so.
    pub(crate) failed: Option<String>,
}

/// Messages of this range of ids that aren't final.
pub(crate) async fn overdue(
    conn: &mut AnyConnection,
    from: i64,
    below: i64,
    limit: i64,
) -> Result<Vec<Overdue>> {
    let rows = sqlx::query(OVERDUE)
        .bind(from)
        .bind(below)
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Overdue {
                id: Transid(row::int(row, "id")?),
                application_id: row::int(row, "application_id")?,
                status: row::word(row, "messages", "status", MessageStatus::parse)?,
                taken: row::opt_int(row, "submitted_at")?.is_some(),
                leased: row::int(row, "leased")? > 0,
                failed: row::opt_text(row, "failed")?,
            })
        })
        .collect()
}
