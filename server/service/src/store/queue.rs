//! The queue: messages that no carrier has taken yet.

use std::collections::HashMap;

use super::query::{Conn, Connection, Row, each, given, look_up, query};
use domain::{Kind, MessageStatus, Number, Reference, Timestamp, Transid};
use serde::Deserialize;

use super::dialect::Batch;
use super::row::{self, Ids, json, touched};
use super::tally::{OpenMessage, open_messages};
use super::{WriteTx, statements};
use crate::error::{Error, Fault, Result};

statements! {
    RESUME = "UPDATE queue SET held = 0, due_at = $3 \
              WHERE message_id IN (SELECT message_id FROM queue WHERE application_id = $1 AND held = 1 LIMIT $2) \
                AND held = 1 \
                AND EXISTS (SELECT 1 FROM applications WHERE id = $1 AND status <> 'Suspended')";
    PUT_ASIDE_WITHOUT_SUSPENSION = "SELECT id FROM applications WHERE status <> 'Suspended' \
                           AND EXISTS (SELECT 1 FROM queue WHERE application_id = applications.id AND held = 1)";
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
                   WHERE id > $1 AND id < $5 AND status = 3 AND carrier = $2 AND submitted_at < $4 \
                   ORDER BY id LIMIT $3";
    OVERDUE = "SELECT id, application_id, status, submitted_at, \
                   (SELECT COUNT(*) FROM queue WHERE message_id = id AND lease_token <> 0) AS leased, \
                   (SELECT MIN(COALESCE(s.error, '')) FROM segments s \
                    WHERE s.message_id = messages.id AND s.status = 5) AS failed \
               FROM messages WHERE id >= $1 AND id < $2 \
                 AND status < 4 ORDER BY id LIMIT $3";
}

/// For a SQLite file, whose rows are bound one by one.
mod file {
    pub(super) const INSERT: &str = "\
        INSERT INTO queue (message_id, application_id, carrier, held, bulk, due_at, lease_token, attempts) \
        VALUES (?1, ?2, ?3, ?7, ?4, ?5, ?6, 0)";
    pub(super) const CLAIM: &str =
        "UPDATE queue SET due_at = ?2, lease_token = ?3 WHERE message_id = ?1";
    pub(super) const CLAIMED: &str = "\
        SELECT id, application_id, test, batch_id, created_at, status, cost, number, kind, sender, body \
        FROM messages WHERE id = ?1 AND status < 3";
    pub(super) const START: &str =
        "UPDATE messages SET status = 1, sending_at = ?2 WHERE id = ?1 AND status < 2";
    pub(super) const HELD: &str = "\
        SELECT q.message_id, q.begun, q.attempts, a.lost_answer = 'resend' \
        FROM queue q JOIN applications a ON a.id = q.application_id \
        WHERE q.message_id = ?1 AND q.lease_token = ?2";
    pub(super) const DROP: &str = "DELETE FROM queue WHERE message_id = ?1";
    pub(super) const SUBMIT: &str = "\
        UPDATE messages SET status = 3, carrier = ?2, segments = COALESCE(?3, segments), \
               submitted_at = COALESCE(submitted_at, ?4) \
        WHERE id = ?1 AND status < 3";
}

/// A message that is put into the queue. The fields are in the order of [`Batch::insert_queue`].
pub(crate) struct QueuedRow {
    pub(crate) message_id: i64,
    pub(crate) application_id: i64,
    pub(crate) carrier: String,
    /// Unix milliseconds; of a row that is claimed at once the end of its lease.
    pub(crate) due_at: i64,
    /// 0 for a row that waits to be claimed.
    pub(crate) lease_token: i64,
}

/// What messages that are queued together have in common.
#[derive(Clone, Copy, Default)]
pub(crate) struct QueuedAs {
    /// They are of an upload.
    pub(crate) of_batch: bool,
    /// Their application is suspended: they are put aside at once.
    pub(crate) held: bool,
}

/// Queues messages.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    batch: &Batch,
    rows: &[QueuedRow],
    queued_as: QueuedAs,
) -> Result<()> {
    let (bulk, held) = (i64::from(queued_as.of_batch), i64::from(queued_as.held));
    if let Conn::File(conn) = conn.conn() {
        let written = each(given(conn)?, file::INSERT, rows, |statement, r| {
            let (due_at, token) = (r.due_at, r.lease_token);
            statement.execute((
                r.message_id,
                r.application_id,
                &r.carrier,
                bulk,
                due_at,
                token,
                held,
            ))
        })?;
        return touched("queue", rows.len(), written);
    }
    let values: Vec<_> = rows
        .iter()
        .map(|r| {
            (
                r.message_id,
                r.application_id,
                &r.carrier,
                r.due_at,
                r.lease_token,
            )
        })
        .collect();
    let done = query(batch.insert_queue)
        .bind(json(&values)?)
        .bind(bulk)
        .bind(held)
        .execute(conn)
        .await?;
    touched("queue", rows.len(), done.rows_affected())
}

/// Applications that aren't suspended and have messages that were put aside.
pub(crate) async fn put_aside_without_suspension(conn: &mut dyn Connection) -> Result<Vec<i64>> {
    let rows = query(PUT_ASIDE_WITHOUT_SUSPENSION).fetch_all(conn).await?;
    rows.iter().map(|row| row::int(row, "id")).collect()
}

/// Lets some of an application's messages that were put aside go on; how many.
pub(crate) async fn resume(
    conn: &mut dyn Connection,
    application_id: i64,
    limit: i64,
    now: Timestamp,
) -> Result<u64> {
    Ok(query(RESUME)
        .bind(application_id)
        .bind(limit)
        .bind(now.unix_ms())
        .execute(conn)
        .await?
        .rows_affected())
}

/// A claimed row whose lease is over.
#[derive(Clone)]
pub(crate) struct EndedLease {
    pub(crate) id: i64,
    pub(crate) application_id: i64,
    pub(crate) carrier: String,
    pub(crate) begun: i64,
    /// Of the message, as it was counted at its acceptance.
    pub(crate) segments: u16,
    pub(crate) resend: bool,
}

/// Some of the claimed rows whose lease ended before this moment.
pub(crate) async fn ended_leases(
    conn: &mut dyn Connection,
    batch: &Batch,
    ended_by: Timestamp,
    least: i64,
    limit: i64,
) -> Result<Vec<EndedLease>> {
    let rows = query(batch.ended_leases)
        .bind(ended_by.unix_ms())
        .bind(limit)
        .bind(least)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(EndedLease {
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
pub(crate) async fn carriers(conn: &mut dyn Connection) -> Result<Vec<String>> {
    let rows = query(CARRIERS).fetch_all(conn).await?;
    rows.iter().map(|row| row::text(row, "carrier")).collect()
}

/// When the oldest message that waits for a carrier was accepted, and how many wait.
pub(crate) async fn waiting(
    conn: &mut dyn Connection,
    carrier: &str,
) -> Result<(Option<Timestamp>, i64)> {
    let row = query(OLDEST).bind(carrier).fetch_one(conn).await?;
    let oldest = row::opt_int(&row, "id")?;
    let oldest = oldest.map(|id| Timestamp::from_unix_ms(domain::ids::id_unix_ms(id)));
    Ok((oldest, row::int(&row, "n")?))
}

/// Whether anything waits for a carrier that nobody claimed.
pub(crate) async fn anything(conn: &mut dyn Connection, carrier: &str) -> Result<bool> {
    let row = query(ANYTHING).bind(carrier);
    Ok(row.fetch_optional(conn).await?.is_some())
}

/// A row that nobody claimed: message, application.
pub(crate) type WaitingRow = (i64, i64);

fn waiting_row(row: &Row) -> Result<WaitingRow> {
    Ok((
        row::int(row, "message_id")?,
        row::int(row, "application_id")?,
    ))
}

/// Unclaimed rows that no submit has begun, after this id.
pub(crate) async fn unclaimed(
    conn: &mut dyn Connection,
    batch: &Batch,
    carrier: &str,
    after: i64,
    limit: i64,
) -> Result<Vec<WaitingRow>> {
    let rows = query(batch.unclaimed)
        .bind(carrier)
        .bind(after)
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter().map(waiting_row).collect()
}

/// Some of the rows that wait for a carrier which nobody claims for.
pub(crate) async fn unrouted(
    conn: &mut dyn Connection,
    batch: &Batch,
    carrier: &str,
    limit: i64,
) -> Result<Vec<WaitingRow>> {
    let rows = query(batch.unrouted)
        .bind(carrier)
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter().map(waiting_row).collect()
}

/// What routes look at in a queued message. The fields are in the order of
/// [`Batch::routed_messages`].
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
    let row = query(batch.routed_messages)
        .bind(ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(tx)
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
    query(batch.move_queued)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .bind(tx.named())
        .execute(tx)
        .await?;
    Ok(())
}

/// How much waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    pub waiting: i64,
    /// When the oldest of them was accepted.
    pub oldest: Option<Timestamp>,
}

pub(crate) async fn state(conn: &mut dyn Connection) -> Result<QueueState> {
    let row = query(STATE).fetch_one(conn).await?;
    let oldest = row::opt_int(&row, "oldest")?;
    Ok(QueueState {
        waiting: row::int(&row, "n")?,
        oldest: oldest.map(|id| Timestamp::from_unix_ms(domain::ids::id_unix_ms(id))),
    })
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
    batch: &Batch,
    carrier: &str,
    limits: DueLimits,
    from: ScanStart,
    least: i64,
    now: Timestamp,
) -> Result<Vec<DueRow>> {
    let row = query(batch.due)
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

/// Puts rows of suspended applications aside. A lease on them stays what it is: an answer to an
/// earlier submit counts.
pub(crate) async fn put_aside(tx: &mut WriteTx<'_>, batch: &Batch, ids: &[i64]) -> Result<()> {
    query(batch.put_aside)
        .bind(json(&ids)?)
        .bind(tx.named())
        .execute(tx)
        .await?;
    Ok(())
}

/// Claims rows under a lease: its token, and when it ends.
pub(crate) async fn claim(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    ids: &[i64],
    token: i64,
    until: Timestamp,
) -> Result<()> {
    let until = until.unix_ms();
    if let Conn::File(conn) = tx.conn() {
        let claimed = each(given(conn)?, file::CLAIM, ids, |statement, id| {
            statement.execute((id, until, token))
        })?;
        return touched("queue", ids.len(), claimed);
    }
    let done = query(batch.claim)
        .bind(json(&ids)?)
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
    batch: &Batch,
    ids: &[i64],
    now: Timestamp,
) -> Result<Vec<StartedMessage>> {
    if let Conn::File(conn) = tx.conn() {
        let started = start_in_file(given(conn)?, ids, now)?;
        count_as_sending(tx, &started, now);
        return Ok(started);
    }
    let ids = Ids::new(ids)?;
    let row = query(batch.claimed_messages)
        .bind(&ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    let started: Vec<StartedMessage> = row::found(&row, "messages")?;
    query(batch.start_messages)
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
/// [`Batch::claimed_messages`].
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
    ids: &[i64],
    now: Timestamp,
) -> Result<Vec<StartedMessage>> {
    let found = look_up(
        conn,
        file::CLAIMED,
        ids,
        |s, id| s.query([id]),
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
    each(conn, file::START, ids, |statement, id| {
        statement.execute((id, now.unix_ms()))
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

fn number(row: &Row) -> Result<Number> {
    let kind = row::word(row, "messages", "kind", Kind::parse)?;
    Ok(Number::from_stored(row::text(row, "number")?, kind))
}

/// Records that a carrier took messages whole: id, and the segments where they are known better
/// now.
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
    for message in open_messages(tx, batch, &ids).await? {
        if message.status.may_become(MessageStatus::Submitted) {
            tx.tally.change(&message, MessageStatus::Submitted, now);
        }
    }
    if let Conn::File(conn) = tx.conn() {
        each(
            given(conn)?,
            file::SUBMIT,
            taken,
            |statement, (id, segments)| statement.execute((id, carrier, segments, now.unix_ms())),
        )?;
        return Ok(());
    }
    let ids = Ids::new(&ids)?;
    query(batch.submit_messages)
        .bind(json(&taken)?)
        .bind(carrier)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(tx)
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
    for message in open_messages(tx, batch, &unknown).await? {
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
    query(batch.begin_messages)
        .bind(json(&rows)?)
        .bind(carrier)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(tx)
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
    if let Conn::File(conn) = tx.conn() {
        let held = look_up(
            given(conn)?,
            file::HELD,
            leases,
            |s, lease| s.query(**lease),
            |_, row| {
                let held = Held {
                    id: row.get(0)?,
                    begun: row.get(1)?,
                    attempts: row.get(2)?,
                    resend: row.get(3)?,
                };
                Ok((held.id, held))
            },
        )?;
        return Ok(held.into_iter().collect());
    }
    let row = query(batch.leased)
        .bind(json(&leases)?)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    let held: Vec<Held> = row::found(&row, "queue")?;
    Ok(held.into_iter().map(|held| (held.id, held)).collect())
}

/// Takes rows out, whoever holds them.
pub(crate) async fn drop_all(tx: &mut WriteTx<'_>, batch: &Batch, ids: &[i64]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    if let Conn::File(conn) = tx.conn() {
        each(given(conn)?, file::DROP, ids, |statement, id| {
            statement.execute([id])
        })?;
        return Ok(());
    }
    query(batch.drop_queued)
        .bind(json(&ids)?)
        .bind(tx.named())
        .execute(tx)
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
    /// Whether its carrier has nothing of it and doesn't want it now. What didn't leave at all may
    /// be claimed again at once, unless the carrier can't take it.
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
    let done = query(batch.requeue)
        .bind(json(&values)?)
        .bind(tx.named())
        .execute(tx)
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
    conn: &mut dyn Connection,
    batch: &Batch,
    events: &[Event],
    now: Timestamp,
) -> Result<()> {
    if events.is_empty() {
        return Ok(());
    }
    let rows: Vec<_> = events
        .iter()
        .map(|e| (e.id.0, e.application_id, e.status.code(), &e.detail))
        .collect();
    query(batch.insert_events)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(())
}

/// A message that a carrier took and that isn't final.
#[derive(Clone, Debug)]
pub struct Outstanding {
    pub id: Transid,
    pub application_id: i64,
    pub number: Number,
    pub submitted_at: Timestamp,
}

/// Messages that a carrier took and that aren't final, between these ids.
pub(crate) async fn outstanding(
    conn: &mut dyn Connection,
    (after, below): (i64, i64),
    carrier: &str,
    submitted_before: Timestamp,
    limit: i64,
) -> Result<Vec<Outstanding>> {
    let rows = query(OUTSTANDING)
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
    conn: &mut dyn Connection,
    from: i64,
    below: i64,
    limit: i64,
) -> Result<Vec<Overdue>> {
    let rows = query(OVERDUE)
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
                status: row::status(row, "messages")?,
                taken: row::opt_int(row, "submitted_at")?.is_some(),
                leased: row::int(row, "leased")? > 0,
                failed: row::opt_text(row, "failed")?,
            })
        })
        .collect()
}
