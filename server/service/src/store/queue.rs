//! The queue: messages that no carrier has taken yet.

use domain::{ApplicationId, HandOver, Kind, Reference, Timestamp, Transid};
use serde::Deserialize;

use super::query::{Conn, Connection, Row, each, given, query};
use super::row::{self, Ids, json, touched};
use super::sql::{Sql, statements};
use super::transaction::WriteTx;
use crate::error::Result;

statements! {
    const RESUME: Sql = Sql::same(r"
        UPDATE queue SET held = 0, due_at = $3
        WHERE message_id IN (
            SELECT message_id FROM queue WHERE application_id = $1 AND held = 1 LIMIT $2)
          AND held = 1
          AND EXISTS (SELECT 1 FROM applications WHERE id = $1 AND status <> 'Suspended')");
    const PUT_ASIDE_WITHOUT_SUSPENSION: Sql = Sql::same(r"
        SELECT id
        FROM applications
        WHERE status <> 'Suspended'
          AND EXISTS (SELECT 1 FROM queue WHERE application_id = applications.id AND held = 1)");
    const CARRIERS: Sql = Sql::same("SELECT DISTINCT carrier FROM queue");
    const ANY_UNCLAIMED: Sql = Sql::same(r"
        SELECT message_id FROM queue WHERE carrier = $1 AND lease_token = 0 LIMIT 1");
    const OLDEST: Sql = Sql::same(r"
        SELECT MIN(message_id) AS id, COUNT(*) AS n FROM queue WHERE carrier = $1");
    const STATE: Sql = Sql::same("SELECT COUNT(*) AS n, MIN(message_id) AS oldest FROM queue");
    /// `[[message, application, carrier, due at, lease token]]`, then whether they are of a batch
    /// (0|1) and whether they are put aside (0|1).
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO queue (message_id, application_id, carrier, held, bulk, due_at,
                lease_token, attempts)
            VALUES (?1, ?2, ?3, ?7, ?4, ?5, ?6, 0)",
        postgres: r"
            INSERT INTO queue (message_id, application_id, carrier, held, bulk, due_at,
                lease_token, attempts)
            SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, value ->> 2, $3, $2,
                   (value ->> 3)::bigint, (value ->> 4)::bigint, 0
            FROM jsonb_array_elements($1::text::jsonb)",
    };
    const PUT_ASIDE: Sql = Sql {
        sqlite: r"
            UPDATE queue SET held = 1
            WHERE message_id IN (SELECT value FROM json_each($1))
              AND application_id IN (SELECT id FROM applications WHERE status = 'Suspended')",
        postgres: r"
            UPDATE queue SET held = 1
            FROM jsonb_array_elements_text($1::text::jsonb) AS r
            WHERE message_id = r.value::bigint AND application_id = ANY ($2::text::bigint[])
              AND application_id IN (SELECT id FROM applications WHERE status = 'Suspended')",
    };
    const UNCLAIMED: Sql = Sql {
        sqlite: r"
            -- The plus sign keeps SQLite from sorting all that waits for the carrier, for each
            -- chunk.
            SELECT message_id, application_id
            FROM queue
            WHERE +carrier = $1 AND message_id > $2 AND lease_token = 0 AND hand_over = 0
            ORDER BY message_id LIMIT $3",
        postgres: r"
            SELECT message_id, application_id
            FROM queue
            WHERE carrier = $1 AND message_id > $2 AND lease_token = 0 AND hand_over = 0
            ORDER BY message_id LIMIT $3 FOR UPDATE SKIP LOCKED",
    };
    const UNROUTED: Sql = Sql {
        sqlite: r"
            SELECT message_id, application_id
            FROM queue WHERE carrier = $1 AND lease_token = 0 AND hand_over = 0 LIMIT $2",
        postgres: r"
            SELECT message_id, application_id
            FROM queue WHERE carrier = $1 AND lease_token = 0 AND hand_over = 0 LIMIT $2
            FOR UPDATE SKIP LOCKED",
    };
    /// Test messages have no other way, and are not among them.
    const ROUTED: Sql = Sql {
        sqlite: r"
            SELECT json_group_array(
                json_array(
                    q.message_id, m.number, m.kind, m.sender, a.reference, q.refused_by))
            AS found
            FROM queue q
            JOIN messages m ON m.id = q.message_id
            JOIN applications a ON a.id = q.application_id
            WHERE q.message_id IN (SELECT value FROM json_each($1)) AND m.test = 0",
        postgres: r"
            SELECT COALESCE(
                json_agg(
                    json_build_array(
                        q.message_id, m.number, m.kind, m.sender, a.reference, q.refused_by)),
                '[]')::text AS found
            FROM queue q
            JOIN messages m ON m.id = q.message_id
            JOIN applications a ON a.id = q.application_id
            WHERE q.message_id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              AND q.application_id = ANY ($4::text::bigint[])
              AND m.application_id = ANY ($4::text::bigint[]) AND m.id BETWEEN $2 AND $3
              AND m.test = 0",
    };
    /// `[[message, carrier]]`. The other carrier finds the rows as if they were new.
    const MOVE: Sql = Sql {
        sqlite: r"
            UPDATE queue SET carrier = r.value ->> 1, due_at = MAX(due_at, $2)
            FROM json_each($1) AS r
            WHERE queue.message_id = r.value ->> 0 AND lease_token = 0 AND hand_over = 0",
        postgres: r"
            UPDATE queue SET carrier = r.value ->> 1, due_at = GREATEST(due_at, $2)
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE queue.message_id = (r.value ->> 0)::bigint AND lease_token = 0 AND hand_over = 0
              AND queue.application_id = ANY ($3::text::bigint[])",
    };
    const DROP: Sql = Sql {
        sqlite: r"
            DELETE FROM queue WHERE message_id = ?1",
        postgres: r"
            DELETE FROM queue
            WHERE message_id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              AND application_id = ANY ($2::text::bigint[])",
    };
    /// `[[id, due at, attempts to add, begun, carrier or null, refused by]]`.
    const REQUEUE: Sql = Sql {
        sqlite: r"
            UPDATE queue SET due_at = r.value ->> 1, attempts = attempts + (r.value ->> 2),
                hand_over = r.value ->> 3, carrier = COALESCE(r.value ->> 4, carrier),
                refused_by = refused_by || (r.value ->> 5), lease_token = 0
            FROM json_each($1) AS r WHERE queue.message_id = r.value ->> 0",
        postgres: r"
            UPDATE queue SET due_at = (r.value ->> 1)::bigint,
                attempts = attempts + (r.value ->> 2)::bigint, hand_over = (r.value ->> 3)::bigint,
                carrier = COALESCE(r.value ->> 4, carrier),
                refused_by = refused_by || (r.value ->> 5), lease_token = 0
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE queue.message_id = (r.value ->> 0)::bigint
              AND queue.application_id = ANY ($2::text::bigint[])",
    };
}

/// A message that is put into the queue. The fields are in the order of [`INSERT`].
pub(crate) struct QueuedRow {
    pub(crate) message_id: Transid,
    pub(crate) application_id: ApplicationId,
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
    rows: &[QueuedRow],
    queued_as: QueuedAs,
) -> Result<()> {
    let (bulk, held) = (i64::from(queued_as.of_batch), i64::from(queued_as.held));
    if let Conn::File(conn) = conn.conn() {
        let written = each(given(conn)?, INSERT, rows, |statement, r| {
            let (due_at, token) = (r.due_at, r.lease_token);
            statement.execute((
                r.message_id.0,
                r.application_id.0,
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
                r.message_id.0,
                r.application_id,
                &r.carrier,
                r.due_at,
                r.lease_token,
            )
        })
        .collect();
    let done = query(INSERT)
        .bind(json(&values)?)
        .bind(bulk)
        .bind(held)
        .execute(conn)
        .await?;
    touched("queue", rows.len(), done.rows_affected())
}

/// Applications that aren't suspended and have messages that were put aside.
pub(crate) async fn put_aside_without_suspension(
    conn: &mut dyn Connection,
) -> Result<Vec<ApplicationId>> {
    let rows = query(PUT_ASIDE_WITHOUT_SUSPENSION).fetch_all(conn).await?;
    rows.iter().map(|row| row::application(row, "id")).collect()
}

/// Lets some of an application's messages that were put aside go on; how many.
pub(crate) async fn resume(
    conn: &mut dyn Connection,
    application_id: ApplicationId,
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

/// Whether an unclaimed row waits for a carrier.
pub(crate) async fn has_unclaimed(conn: &mut dyn Connection, carrier: &str) -> Result<bool> {
    let row = query(ANY_UNCLAIMED).bind(carrier);
    Ok(row.fetch_optional(conn).await?.is_some())
}

/// An unclaimed row.
pub(crate) struct WaitingRow {
    pub(crate) message_id: Transid,
    pub(crate) application_id: ApplicationId,
}

fn waiting_row(row: &Row) -> Result<WaitingRow> {
    Ok(WaitingRow {
        message_id: row::transid(row, "message_id")?,
        application_id: row::application(row, "application_id")?,
    })
}

/// Unclaimed rows that no submit has begun, after this id.
pub(crate) async fn unclaimed(
    conn: &mut dyn Connection,
    carrier: &str,
    after: Transid,
    limit: i64,
) -> Result<Vec<WaitingRow>> {
    let rows = query(UNCLAIMED)
        .bind(carrier)
        .bind(after.0)
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter().map(waiting_row).collect()
}

/// Some of the rows that wait for a carrier which nobody claims for.
pub(crate) async fn unrouted(
    conn: &mut dyn Connection,
    carrier: &str,
    limit: i64,
) -> Result<Vec<WaitingRow>> {
    let rows = query(UNROUTED)
        .bind(carrier)
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter().map(waiting_row).collect()
}

/// What routes look at in a queued message. The fields are in the order of
/// [`ROUTED`].
#[derive(Deserialize)]
pub(crate) struct Routed {
    #[serde(deserialize_with = "row::transid_in_json")]
    pub(crate) message_id: Transid,
    pub(crate) number: String,
    pub(crate) kind: Kind,
    pub(crate) sender: Option<String>,
    pub(crate) reference: Reference,
    /// Carriers, with spaces between them.
    pub(crate) refused_by: String,
}

pub(crate) async fn routed(tx: &mut WriteTx<'_>, ids: &[Transid]) -> Result<Vec<Routed>> {
    let ids = Ids::new(ids)?;
    let row = query(ROUTED)
        .bind(ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    row::found(&row, "queue")
}

/// A row that is given to another carrier.
pub(crate) struct Moved {
    pub(crate) message_id: Transid,
    pub(crate) carrier: String,
}

/// Gives rows that nobody claimed to other carriers.
pub(crate) async fn move_to(tx: &mut WriteTx<'_>, rows: &[Moved], now: Timestamp) -> Result<()> {
    let values: Vec<_> = rows
        .iter()
        .map(|row| (row.message_id.0, &row.carrier))
        .collect();
    query(MOVE)
        .bind(json(&values)?)
        .bind(now.unix_ms())
        .bind(tx.named())
        .execute(tx)
        .await?;
    Ok(())
}

/// What the queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueState {
    /// Messages.
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

/// Puts rows of suspended applications aside. A lease on them stays what it is: an answer to an
/// earlier submit counts.
pub(crate) async fn put_aside(tx: &mut WriteTx<'_>, ids: &[Transid]) -> Result<()> {
    query(PUT_ASIDE)
        .bind(row::numbers(ids)?)
        .bind(tx.named())
        .execute(tx)
        .await?;
    Ok(())
}

/// Deletes rows, claimed or not.
pub(crate) async fn drop_all(tx: &mut WriteTx<'_>, ids: &[Transid]) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    if let Conn::File(conn) = tx.conn() {
        each(given(conn)?, DROP, ids, |statement, id| {
            statement.execute([id.0])
        })?;
        return Ok(());
    }
    query(DROP)
        .bind(row::numbers(ids)?)
        .bind(tx.named())
        .execute(tx)
        .await?;
    Ok(())
}

/// A claimed row that goes back.
pub(crate) struct Requeued {
    pub(crate) id: Transid,
    /// Unix milliseconds.
    pub(crate) due_at: i64,
    /// To be added.
    pub(crate) attempts: i64,
    pub(crate) hand_over: HandOver,
    /// Another one than before.
    pub(crate) carrier: Option<String>,
    /// To be added: a space and the carrier that refused it.
    pub(crate) refused_by: String,
}

impl Requeued {
    /// Whether its carrier has nothing of it and doesn't want it now. What didn't leave at all may
    /// be claimed again at once, unless the carrier can't take it.
    pub(crate) const fn is_put_off(&self, usable: bool, now: Timestamp) -> bool {
        matches!(self.hand_over, HandOver::None) && (!usable || self.due_at > now.unix_ms())
    }
}

/// Puts claimed rows back, to be claimed again at the moment given for each.
pub(crate) async fn requeue(tx: &mut WriteTx<'_>, rows: &[Requeued]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values: Vec<_> = rows
        .iter()
        .map(|r| {
            (
                r.id.0,
                r.due_at,
                r.attempts,
                r.hand_over,
                &r.carrier,
                &r.refused_by,
            )
        })
        .collect();
    let done = query(REQUEUE)
        .bind(json(&values)?)
        .bind(tx.named())
        .execute(tx)
        .await?;
    touched("queue", rows.len(), done.rows_affected())
}
