//! What carriers were handed, and their receipts for it.

use rusqlite::params;

use super::query::{Conn, Connection, each, given, look_up, query};
use domain::{MessageStatus, Timestamp};
use serde::Deserialize;

use super::dialect::Batch;
use super::row::{self, StatusInJson, json};
use super::{WriteTx, statements};
use crate::error::Result;

statements! {
    // Numbers as the carrier has them: local ones behind the country code.
    BEING_SUBMITTED = "SELECT q.message_id FROM queue q JOIN messages m ON m.id = q.message_id \
                       WHERE q.carrier = $1 AND q.lease_token <> 0 AND q.message_id <> $4 AND m.id >= $5 \
                         AND ((m.kind = 'international' AND m.number = $2) \
                              OR (m.kind = 'local' AND $3 || m.number = $2)) LIMIT 1";
    /// Receipts that are parked though their segments' names are known.
    CROSSED = "SELECT DISTINCT p.carrier, p.carrier_message_id, s.message_id, s.application_id \
               FROM parked_receipts p JOIN segments s \
                 ON s.carrier = p.carrier AND s.carrier_message_id = p.carrier_message_id \
               WHERE p.received_at > $1 ORDER BY p.carrier LIMIT $2";
    FORGET_PARKED = "DELETE FROM parked_receipts WHERE received_at < $1";
    FORGET = "DELETE FROM segments WHERE message_id >= $1 AND message_id < $2";
    OLDEST = "SELECT MIN(message_id) AS id FROM segments";
}

/// For a SQLite file, whose rows are bound one by one.
mod file {
    pub(super) const INSERT: &str = "\
        INSERT INTO segments (message_id, segment, segments, application_id, carrier, carrier_message_id, status, \
                              submits, submitted_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1, ?8) \
        ON CONFLICT (message_id, segment) DO UPDATE \
        SET carrier_message_id = COALESCE(excluded.carrier_message_id, carrier_message_id), \
            status = CASE status WHEN 2 THEN excluded.status ELSE status END, submits = 2, \
            submitted_at = excluded.submitted_at";
    /// The status isn't used: that of a segment whose claim was over isn't known.
    pub(super) const NAME: &str = "\
        INSERT INTO segments (message_id, segment, segments, application_id, carrier, carrier_message_id, status, \
                              submits, submitted_at) \
        VALUES (?1, ?2, ?3, ?4, ?5, ?6, 2, 1, ?8) \
        ON CONFLICT (message_id, segment) DO UPDATE \
        SET carrier_message_id = COALESCE(carrier_message_id, excluded.carrier_message_id)";
    pub(super) const PARKED: &str = "\
        SELECT id, status, error FROM parked_receipts \
        WHERE carrier = ?1 AND carrier_message_id = ?2 AND received_at > ?3";
    pub(super) const OF: &str = "\
        SELECT message_id, segment, segments, status, error, submits, carrier_message_id IS NOT NULL \
        FROM segments WHERE message_id = ?1";
    pub(super) const NAMED: &str = "\
        SELECT message_id, segment, segments, application_id, status FROM segments \
        WHERE carrier = ?1 AND carrier_message_id = ?2";
    pub(super) const FINISH: &str = "\
        UPDATE segments SET status = ?3, error = ?4 WHERE message_id = ?1 AND segment = ?2 AND status < 4";
}

/// A segment that was handed over: message, segment, how many the message has, application, the
/// carrier's name for it, and its status.
pub(crate) type NewSegment = (i64, u16, u16, i64, Option<String>, MessageStatus);

/// A segment as it is stored, in the order of [`Batch::segments_of`].
#[derive(Clone, Debug, Deserialize)]
#[expect(
    clippy::struct_field_names,
    reason = "a segment's number and how many there are have the columns' names"
)]
pub(crate) struct Segment {
    pub(crate) message_id: i64,
    pub(crate) segment: u16,
    pub(crate) segments: u16,
    #[serde(deserialize_with = "row::status_in_json")]
    pub(crate) status: MessageStatus,
    pub(crate) error: Option<String>,
    pub(crate) submits: i64,
    named: i64,
}

impl Segment {
    /// Whether a carrier certainly took it.
    pub(crate) fn is_taken(&self) -> bool {
        self.named == 1 || self.status != MessageStatus::Unknown
    }
}

/// Which segment a receipt is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentId {
    pub(crate) message_id: i64,
    pub(crate) segment: u16,
    /// How many the message has.
    pub(crate) segments: u16,
    pub(crate) application_id: i64,
    /// As it is stored.
    pub(crate) status: MessageStatus,
}

/// A segment whose submit wasn't answered.
pub(crate) struct Unanswered {
    pub(crate) id: SegmentId,
    pub(crate) submitted_at: Timestamp,
    pub(crate) sender: Option<String>,
    /// The number as the carrier has it.
    pub(crate) address: String,
}

/// Stores what was handed over.
pub(crate) async fn insert(
    conn: &mut dyn Connection,
    batch: &Batch,
    rows: &[NewSegment],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let statement = match conn.conn() {
        Conn::File(_) => file::INSERT,
        Conn::Sqlx(_) => batch.insert_segments,
    };
    write(conn, statement, rows, carrier, now).await
}

/// Stores the carrier's names that came when the claim was over; nothing else changes.
pub(crate) async fn name(
    conn: &mut dyn Connection,
    batch: &Batch,
    rows: &[NewSegment],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let statement = match conn.conn() {
        Conn::File(_) => file::NAME,
        Conn::Sqlx(_) => batch.name_segments,
    };
    write(conn, statement, rows, carrier, now).await
}

async fn write(
    conn: &mut dyn Connection,
    statement: &'static str,
    rows: &[NewSegment],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    if !rows.is_empty() {
        if let Conn::File(conn) = conn.conn() {
            return write_in_file(given(conn)?, statement, rows, carrier, now);
        }
        let values: Vec<_> = rows
            .iter()
            .map(|(message, segment, segments, application, name, status)| {
                (message, segment, segments, application, name, status.code())
            })
            .collect();
        query(statement)
            .bind(json(&values)?)
            .bind(carrier)
            .bind(now.unix_ms())
            .execute(conn)
            .await?;
    }
    Ok(())
}

fn write_in_file(
    conn: &rusqlite::Connection,
    statement: &'static str,
    rows: &[NewSegment],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    each(conn, statement, rows, |statement, row| {
        let (message, segment, segments, application, name, status) = row;
        let (status, now) = (status.code(), now.unix_ms());
        statement.execute(params![
            message,
            segment,
            segments,
            application,
            carrier,
            name,
            status,
            now
        ])
    })?;
    Ok(())
}

/// Everything that was handed over of these messages.
pub(crate) async fn of(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    messages: &[i64],
) -> Result<Vec<Segment>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    if let Conn::File(conn) = tx.conn() {
        return look_up(
            given(conn)?,
            file::OF,
            messages,
            |s, id| s.query([id]),
            |_, row| {
                Ok(Segment {
                    message_id: row.get(0)?,
                    segment: row.get(1)?,
                    segments: row.get(2)?,
                    status: row::file_status(row, 3, "segments")?,
                    error: row.get(4)?,
                    submits: row.get(5)?,
                    named: row.get(6)?,
                })
            },
        );
    }
    let row = query(batch.segments_of)
        .bind(json(&messages)?)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    row::found(&row, "segments")
}

/// The segments that a carrier has these names for, with the place of the name. Where it used a
/// name again, the youngest is the last.
pub(crate) async fn named(
    conn: &mut dyn Connection,
    batch: &Batch,
    carrier: &str,
    names: &[&str],
) -> Result<Vec<(usize, SegmentId)>> {
    type Row = (usize, i64, u16, u16, i64, StatusInJson);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    if let Conn::File(conn) = conn.conn() {
        let names = names.iter().enumerate();
        let run = file::NAMED;
        let mut found = look_up(
            given(conn)?,
            run,
            names,
            |s, n| s.query((carrier, n.1)),
            |n, row| {
                let id = SegmentId {
                    message_id: row.get(0)?,
                    segment: row.get(1)?,
                    segments: row.get(2)?,
                    application_id: row.get(3)?,
                    status: row::file_status(row, 4, "segments")?,
                };
                Ok((n.0, id))
            },
        )?;
        found.sort_by_key(|(_, id)| id.message_id);
        return Ok(found);
    }
    let row = query(batch.segments_named)
        .bind(json(&names)?)
        .bind(carrier)
        .fetch_one(conn)
        .await?;
    let found: Vec<Row> = row::found(&row, "segments")?;
    let id = |(place, message_id, segment, segments, application_id, status): Row| {
        let id = SegmentId {
            message_id,
            segment,
            segments,
            application_id,
            status: status.0,
        };
        (place, id)
    };
    Ok(found.into_iter().map(id).collect())
}

/// The segments to these numbers, as the carrier has them, whose submits it didn't answer.
pub(crate) async fn unanswered(
    conn: &mut dyn Connection,
    batch: &Batch,
    carrier: &str,
    numbers: &[&str],
    country_code: &str,
    least: i64,
) -> Result<Vec<Unanswered>> {
    type Row = (i64, u16, u16, i64, i64, Option<String>, String);
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let row = query(batch.unanswered_segments)
        .bind(json(&numbers)?)
        .bind(carrier)
        .bind(country_code)
        .bind(least)
        .fetch_one(conn)
        .await?;
    let found: Vec<Row> = row::found(&row, "segments")?;
    Ok(found
        .into_iter()
        .map(
            |(message_id, segment, segments, application_id, at, sender, address)| Unanswered {
                id: SegmentId {
                    message_id,
                    segment,
                    segments,
                    application_id,
                    status: MessageStatus::Unknown,
                },
                submitted_at: Timestamp::from_unix_ms(at),
                sender,
                address,
            },
        )
        .collect())
}

/// Whether a message to a number, other than this one, is being submitted now.
pub(crate) async fn is_another_submitted(
    conn: &mut dyn Connection,
    carrier: &str,
    number: &str,
    country_code: &str,
    message_id: i64,
    least: i64,
) -> Result<bool> {
    let found = query(BEING_SUBMITTED)
        .bind(carrier)
        .bind(number)
        .bind(country_code)
        .bind(message_id)
        .bind(least)
        .fetch_optional(conn)
        .await?;
    Ok(found.is_some())
}

/// Makes segments final by their receipts: message, segment, status, error.
pub(crate) async fn finish(
    tx: &mut WriteTx<'_>,
    batch: &Batch,
    rows: &[(i64, u16, MessageStatus, Option<&str>)],
) -> Result<()> {
    if let Conn::File(conn) = tx.conn() {
        each(
            given(conn)?,
            file::FINISH,
            rows,
            |statement, (id, segment, status, error)| {
                statement.execute((id, segment, status.code(), error))
            },
        )?;
        return Ok(());
    }
    if !rows.is_empty() {
        let values: Vec<_> = rows
            .iter()
            .map(|(message, segment, status, error)| (message, segment, status.code(), error))
            .collect();
        query(batch.finish_segments)
            .bind(json(&values)?)
            .bind(tx.named())
            .execute(tx)
            .await?;
    }
    Ok(())
}

/// A receipt that nothing was known for: id, the carrier's name, status, error.
pub(crate) type Parked = (i64, String, MessageStatus, Option<String>);

/// Keeps receipts for ids that may become known: the carrier's name, status, error.
pub(crate) async fn park(
    conn: &mut dyn Connection,
    batch: &Batch,
    rows: &[(&str, MessageStatus, Option<&str>)],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let values: Vec<_> = rows
        .iter()
        .map(|(name, status, error)| (name, status.code(), error))
        .collect();
    query(batch.park_receipts)
        .bind(json(&values)?)
        .bind(carrier)
        .bind(now.unix_ms())
        .execute(conn)
        .await?;
    Ok(())
}

/// Takes out the receipts that were parked for these names since a moment.
pub(crate) async fn unpark(
    conn: &mut dyn Connection,
    batch: &Batch,
    carrier: &str,
    names: &[&str],
    since: Timestamp,
) -> Result<Vec<Parked>> {
    type Row = (i64, String, StatusInJson, Option<String>);
    if names.is_empty() {
        return Ok(Vec::new());
    }
    let found: Vec<Parked> = if let Conn::File(conn) = conn.conn() {
        parked_in_file(given(conn)?, carrier, names, since)?
    } else {
        let row = query(batch.parked_receipts)
            .bind(json(&names)?)
            .bind(carrier)
            .bind(since.unix_ms())
            .fetch_one(&mut *conn)
            .await?;
        let found: Vec<Row> = row::found(&row, "parked_receipts")?;
        found
            .into_iter()
            .map(|(id, name, status, error)| (id, name, status.0, error))
            .collect()
    };
    if !found.is_empty() {
        let ids: Vec<i64> = found.iter().map(|(id, ..)| *id).collect();
        query(batch.drop_parked)
            .bind(json(&ids)?)
            .bind(carrier)
            .execute(conn)
            .await?;
    }
    Ok(found)
}

fn parked_in_file(
    conn: &rusqlite::Connection,
    carrier: &str,
    names: &[&str],
    since: Timestamp,
) -> Result<Vec<Parked>> {
    let since = since.unix_ms();
    let run = file::PARKED;
    let mut found = look_up(
        conn,
        run,
        names,
        |s, name| s.query((carrier, name, since)),
        |name, row| {
            let status = row::file_status(row, 1, "parked_receipts")?;
            Ok((row.get(0)?, (**name).to_owned(), status, row.get(2)?))
        },
    )?;
    found.sort_by_key(|(id, ..)| *id);
    Ok(found)
}

/// A parked receipt and the segment that it is for.
pub(crate) struct Crossed {
    pub(crate) carrier: String,
    /// The carrier's, for the segment.
    pub(crate) name: String,
    pub(crate) message_id: i64,
    pub(crate) application_id: i64,
}

/// Receipts that were parked since a moment though their segments' names are known, by carrier.
pub(crate) async fn crossed(
    conn: &mut dyn Connection,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<Crossed>> {
    let rows = query(CROSSED)
        .bind(since.unix_ms())
        .bind(limit)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok(Crossed {
                carrier: row::text(row, "carrier")?,
                name: row::text(row, "carrier_message_id")?,
                message_id: row::int(row, "message_id")?,
                application_id: row::int(row, "application_id")?,
            })
        })
        .collect()
}

/// Forgets receipts that were parked before this moment; how many.
pub(crate) async fn forget_parked(conn: &mut dyn Connection, before: Timestamp) -> Result<u64> {
    let done = query(FORGET_PARKED).bind(before.unix_ms());
    Ok(done.execute(conn).await?.rows_affected())
}

/// Forgets the segments of messages below this id, so many ids at a time; false when none is left.
pub(crate) async fn forget(conn: &mut dyn Connection, below: i64, ids: i64) -> Result<bool> {
    let oldest = row::opt_int(&query(OLDEST).fetch_one(&mut *conn).await?, "id")?;
    let Some(oldest) = oldest.filter(|oldest| *oldest < below) else {
        return Ok(false);
    };
    query(FORGET)
        .bind(oldest)
        .bind(below.min(oldest.saturating_add(ids)))
        .execute(conn)
        .await?;
    Ok(true)
}
