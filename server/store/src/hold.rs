//! The hold of a restored database. Nothing is submitted from it until an operator has said what
//! became of the messages that were queued when the backup was made.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::UNIX_EPOCH;

use domain::ids::compose_id;
use domain::{ApplicationId, BatchId, Kind, Number, Submission, Timestamp, Transid};

use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use super::{data_folders, row};
use crate::error::{Fault, Result};

/// The row of `carriers` with this name drains all carriers. Every claim and every commit group
/// reads which carriers are drained, so all nodes obey it. No carrier can have this name.
pub const ALL_CARRIERS: &str = "*";

/// The messages that may have been submitted before the hold began: those that were accepted
/// before it, unless they were scheduled for later. `$1` is the time of the hold, and `$2` the
/// least ID of messages that were accepted after that. The rows of a scheduled batch get their IDs
/// when it begins, which may be after the hold began.
macro_rules! held {
    ($columns:literal, $more:literal, $end:literal) => {
        Sql::in_shard(concat!(
            "SELECT ",
            $columns,
            r"
        FROM queue q
        JOIN messages m ON m.id = q.message_id
        LEFT JOIN batches b ON b.id = m.batch_id{ AND b.shard = $shard}
        WHERE m.test = 0 AND COALESCE(m.send_at <= $1, b.send_at <= $1, q.message_id < $2)",
            $more,
            "{ AND q.shard = $shard AND m.shard = $shard}",
            $end,
        ))
    };
}

statements! {
    const PLACE: Sql = Sql::same("SELECT place FROM installation WHERE id = 1");
    const SET_PLACE: Sql = Sql::same("UPDATE installation SET place = $1 WHERE id = 1");
    /// The identifiers of the server, the database and the table. In a restored dump, at least the
    /// table has another identifier.
    const PLACE_ON_SERVER: Sql = Sql::postgres(r"
        SELECT concat_ws(':', s.system_identifier, d.oid, 'installation'::regclass::oid) AS place
        FROM pg_control_system() s, pg_database d WHERE d.datname = current_database()");
    const BACKED_UP: Sql = Sql::same("UPDATE installation SET backed_up_at = $1 WHERE id = 1");
    const LAST_BACKUP: Sql = Sql::same(r"
        SELECT COALESCE(backed_up_at, created_at) AS at FROM installation WHERE id = 1");
    const BEGIN: Sql = Sql::same(r"
        INSERT INTO carriers (name, drained_at) VALUES ('*', $1)
        ON CONFLICT (name) DO UPDATE SET drained_at = $1");
    const SINCE: Sql = Sql::same(r"
        SELECT drained_at FROM carriers WHERE name = '*' AND drained_at IS NOT NULL");
    const COUNT: Sql = held!("COUNT(*) AS n", "", "");
    const HOLDS: Sql = held!("1 AS found", " AND q.message_id = $3", "");
    const LIST: Sql = held!(
        r"q.message_id, q.application_id, q.carrier, q.submission, m.number, m.kind, m.sender,
               m.segments, COALESCE(m.send_at, b.send_at, m.created_at) AS due_at",
        " AND q.lease_token = 0 AND q.message_id > $3",
        " ORDER BY q.message_id LIMIT $4"
    );
    const SUBMITTING: Sql = held!(
        "1 AS found",
        " AND q.lease_token <> 0",
        " LIMIT 1"
    );
    const HOLDS_BATCH: Sql = Sql::in_shard(r"
        SELECT id FROM batches
        WHERE id = $2 AND test = 0 AND created_at < $1
          AND (send_at IS NULL OR send_at <= $1){ AND shard = $shard}");
    const UNEXPANDED: Sql = Sql::in_shard(r"
        SELECT id FROM batches
        WHERE expanded_at IS NULL AND cancelled_at IS NULL AND test = 0 AND created_at < $1
          AND (send_at IS NULL OR send_at <= $1){ AND shard = $shard} LIMIT 1");
}

/// Marks a copy of a SQLite database as a backup.
pub(crate) const MARK: &str =
    "UPDATE installation SET place = 'backup', backed_up_at = ?1 WHERE id = 1";
/// Marks a database as a backup that was restored.
pub(crate) const MARK_RESTORED: &str = "UPDATE installation SET place = 'backup' WHERE id = 1";

/// Returns an identifier of where a database is stored. A copy of the database has another
/// identifier. `file` is the file of a SQLite database.
pub(crate) async fn place(file: Option<&Path>, conn: Conn<'_>) -> Result<String> {
    if let Some(file) = file {
        return Ok(place_of_file(file).map_err(Fault::File)?);
    }
    query(PLACE_ON_SERVER, ()).fetch_one(conn, |row| row.get("place")).await
}

/// Returns the inode number of a file and when the file was created. The file system may reuse the
/// number of a deleted file, but not with the same time.
fn place_of_file(file: &Path) -> std::io::Result<String> {
    let metadata = std::fs::metadata(file)?;
    let born = metadata.created().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    Ok(format!("{}:{}", metadata.ino(), born.map_or(0, |born| born.as_nanos())))
}

/// Returns the identifier of where this database was stored when it was last opened. `None` before
/// the first start.
pub async fn known_place(conn: Conn<'_>) -> Result<Option<String>> {
    query(PLACE, ()).fetch_one(conn, |row| row.get("place")).await
}

pub async fn set_place(conn: Conn<'_>, place: Option<&str>) -> Result<()> {
    query(SET_PLACE, place).execute(conn).await.map(drop)
}

/// Stores when a backup was made.
pub async fn backed_up(conn: Conn<'_>, now: Timestamp) -> Result<()> {
    query(BACKED_UP, now).execute(conn).await.map(drop)
}

/// Returns when the last backup was made. Without any, returns when the service first started.
pub async fn last_backup(conn: Conn<'_>) -> Result<Timestamp> {
    query(LAST_BACKUP, ()).fetch_one(conn, |row| row.get("at")).await
}

/// Begins the hold. Every message that was accepted before `since` may have been submitted.
pub async fn begin(conn: Conn<'_>, since: Timestamp) -> Result<()> {
    query(BEGIN, since).execute(&mut *conn).await?;
    data_folders::note_hold(conn, since).await
}

/// Returns since when messages are held. `None` if they aren't.
pub async fn since(conn: Conn<'_>) -> Result<Option<Timestamp>> {
    query(SINCE, ()).fetch_optional(conn, |row| row.get("drained_at")).await
}

/// Counts the messages in the queue that may have been submitted before the hold.
pub async fn count(conn: Conn<'_>, since: Timestamp) -> Result<i64> {
    let values = (since, compose_id(since.unix_ms(), 0));
    query(COUNT, values).fetch_one(conn, |row| row.get("n")).await
}

/// Whether a message is held: it is in the queue and may have been submitted before the hold.
pub async fn holds(conn: Conn<'_>, id: Transid) -> Result<bool> {
    match since(conn).await? {
        Some(since) => {
            query(HOLDS, (since, compose_id(since.unix_ms(), 0), id.0)).finds(conn).await
        }
        None => Ok(false),
    }
}

/// Whether a batch is held: its rows may have been submitted before the hold.
pub async fn holds_batch(conn: Conn<'_>, id: BatchId) -> Result<bool> {
    match since(conn).await? {
        Some(since) => query(HOLDS_BATCH, (since, id)).finds(conn).await,
        None => Ok(false),
    }
}

/// Whether messages that may have been submitted before the hold have a lease. An expired lease
/// counts too, because [`list`] leaves out its message.
pub async fn is_submitting(conn: Conn<'_>, since: Timestamp) -> Result<bool> {
    query(SUBMITTING, (since, compose_id(since.unix_ms(), 0))).finds(conn).await
}

/// Returns an upload that was accepted and due before the hold began, and that still has rows that
/// aren't messages.
pub async fn unexpanded(conn: Conn<'_>, since: Timestamp) -> Result<Option<BatchId>> {
    let read = |row: &Row<'_>| Ok(BatchId(row.get("id")?));
    query(UNEXPANDED, since).fetch_optional(conn, read).await
}

/// A message in the queue that may have been submitted before the hold.
#[derive(Clone, Debug)]
pub struct HeldMessage {
    pub id: Transid,
    pub application_id: ApplicationId,
    /// The carrier that it waits for.
    pub carrier: String,
    pub submission: Submission,
    pub number: Number,
    pub sender: Option<String>,
    pub segments: u16,
    /// When it was accepted, or the time that it was scheduled for.
    pub due_at: Timestamp,
}

/// Returns at most `limit` of these messages that aren't claimed, in the order of their IDs, which
/// are above `after`.
pub async fn list(
    conn: Conn<'_>,
    since: Timestamp,
    after: Transid,
    limit: i64,
) -> Result<Vec<HeldMessage>> {
    let values = (since, compose_id(since.unix_ms(), 0), after.0, limit);
    let read = |row: &Row<'_>| {
        from_row!(row => HeldMessage {
            id: row.get("message_id")?, application_id, carrier,
            submission: row::code(row, "queue", "submission", |code| {
                Submission::try_from(code).ok()
            })?,
            number: Number::from_stored(
                row.get("number")?,
                row::word(row, "messages", "kind", Kind::parse)?,
            ),
            sender,
            segments: row.get::<i64>("segments")?.try_into().unwrap_or(1),
            due_at,
        })
    };
    query(LIST, values).fetch_all(conn, read).await
}
