//! Segments that were submitted to carriers, and their final statuses.

use domain::support::SegmentRecord;
use domain::{ApplicationId, MessageStatus, Timestamp, Transid};
use serde::Deserialize;

use super::query::{Conn, Row, query};
use super::row::{self, from_row, json};
use super::sql::{Sql, statements};
use super::transaction::Tx;
use crate::error::Result;
use crate::planted::is_planted;

statements! {
    /// Compares numbers in the carrier's format: local numbers have the country code in front.
    const BEING_SUBMITTED: Sql = Sql::in_shard(r"
        SELECT q.message_id
        FROM queue q
        JOIN messages m ON m.id = q.message_id
        WHERE q.carrier = $1 AND q.lease_token <> 0 AND q.message_id <> $4 AND m.id >= $5
          AND (
              (m.kind = 'international' AND m.number = $2)
                OR (m.kind = 'local' AND $3 || m.number = $2)){ AND q.shard = $shard
                AND m.shard = $shard} LIMIT 1");
    /// `$2` and `$3` are the number with and without the country code. Reads each application's
    /// messages to the number by an index.
    const ANOTHER_NAMED: Sql = Sql::in_shard(r"
        SELECT s.message_id
        FROM applications a
        CROSS JOIN messages m
        CROSS JOIN segments s
        WHERE m.application_id = a.id AND m.test IN (0, 1)
          AND ((m.kind = 'international' AND m.number = $2)
            OR (m.kind = 'local' AND m.number = $3))
          AND m.id >= $6 AND s.message_id = m.id AND s.carrier = $1 AND s.status = {submitted}
          AND s.carrier_message_id IS NOT NULL
          AND s.submitted_at BETWEEN $4
            AND $5{ AND a.shard = $shard AND m.shard = $shard AND s.shard = $shard} LIMIT 1");
    const OF_MESSAGE: Sql = Sql::in_shard(r"
        SELECT segment, carrier, carrier_message_id, status, error, submits, submitted_at
        FROM segments WHERE message_id = $1{ AND shard = $shard} ORDER BY segment");
    const FORGET: Sql = Sql::in_shard(
        "DELETE FROM segments WHERE message_id >= $1 AND message_id < $2{ AND shard = $shard}");
    const HAS_UNANSWERED: Sql = Sql::in_shard(r"
        SELECT 1 AS found FROM segments
        WHERE carrier = $1 AND status IN ({submitted}, {unknown})
          AND carrier_message_id IS NULL{ AND shard = $shard} LIMIT 1");
    const OLDEST: Sql = Sql::in_shard(
        "SELECT MIN(message_id) AS id FROM segments{ WHERE shard = $shard}");
    /// Stores segments that were submitted, for the first time or again. If a segment is already
    /// stored with the same carrier message ID, it wasn't submitted again: its ID was stored early,
    /// before the message's other segments were answered. `$1` is `[[message, segment, segments,
    /// application, carrier message ID, status]]`.
    const INSERT: Sql = Sql::in_shard(r"
        INSERT INTO segments (message_id, segment, segments, application_id, carrier_message_id,
            status, carrier, submitted_at, submits{, shard})
        {values int int int int text int common common 1 shard}
        ON CONFLICT (message_id, segment{, shard}) DO UPDATE SET
            carrier_message_id = COALESCE(
                excluded.carrier_message_id, segments.carrier_message_id),
            status = CASE segments.status WHEN {unknown} THEN excluded.status
                ELSE segments.status END,
            submits = CASE WHEN segments.carrier_message_id = excluded.carrier_message_id
                THEN segments.submits ELSE 2 END,
            submitted_at = excluded.submitted_at");
    /// Takes the same rows as [`INSERT`]. Ignores their status: once the claim has ended, the
    /// status of a segment is unknown.
    const NAME: Sql = Sql {
        sqlite: r"
            INSERT INTO segments (message_id, segment, segments, application_id, carrier,
                carrier_message_id, status, submits, submitted_at)
            VALUES (?1, ?2, ?3, ?4, ?7, ?5, {unknown}, 1, ?8)
            ON CONFLICT (message_id, segment)
            DO UPDATE SET carrier_message_id = COALESCE(
                carrier_message_id, excluded.carrier_message_id)",
        postgres: r"
            INSERT INTO segments (message_id, segment, segments, application_id, carrier,
                carrier_message_id, status, submits, submitted_at, shard)
            SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
                   (value ->> 3)::bigint, $2, value ->> 4, {unknown}, 1, $3, at.shard
            FROM jsonb_array_elements($1::text::jsonb)
            CROSS JOIN (SELECT shard FROM applications WHERE shard = $4 LIMIT 1) AS at
            ON CONFLICT (shard, message_id, segment)
            DO UPDATE SET carrier_message_id = COALESCE(
                segments.carrier_message_id, excluded.carrier_message_id)",
        ..Sql::IN_SHARD
    };
    const OF: Sql = Sql {
        sqlite: r"
            SELECT message_id, segment, segments, status, error, submits,
                   carrier_message_id IS NOT NULL
            FROM segments WHERE message_id = ?1",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                message_id, segment, segments, status, error, submits,
                CASE WHEN carrier_message_id IS NULL THEN 0 ELSE 1 END)), '[]')::text AS found
            FROM segments WHERE message_id = ANY ({ids}) AND shard = $2",
        ..Sql::IN_SHARD
    };
    const NAMED: Sql = Sql {
        sqlite: r"
            SELECT ?1, message_id, segment, segments, application_id, status
            FROM segments WHERE carrier = ?3 AND carrier_message_id = ?2",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                (r.value ->> 0)::bigint,
                json_build_array(s.message_id, s.segment, s.segments, s.application_id, s.status)
            ) ORDER BY s.message_id), '[]')::text AS found
            FROM jsonb_array_elements($1::text::jsonb) AS r
            JOIN segments s ON s.carrier = $2 AND s.carrier_message_id = r.value ->> 1
              AND s.shard = $3",
        ..Sql::IN_SHARD
    };
    /// Like [`NAMED`], with the columns that a receipt is compared with. Numbers are in the
    /// carrier's format.
    const STORED_AS: Sql = Sql {
        sqlite: r"
            SELECT ?1, s.message_id, s.segment, s.segments, s.application_id, s.status,
                   s.submitted_at, m.sender,
                   CASE m.kind WHEN 'local' THEN ?4 || m.number ELSE m.number END,
                   COALESCE(m.sending_at, m.created_at)
            FROM segments s
            CROSS JOIN messages m ON m.id = s.message_id
            WHERE s.carrier = ?3 AND s.carrier_message_id = ?2",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                (r.value ->> 0)::bigint,
                json_build_array(
                    json_build_array(
                        s.message_id, s.segment, s.segments, s.application_id, s.status),
                    s.submitted_at, m.sender,
                    CASE m.kind WHEN 'local' THEN $3 || m.number ELSE m.number END,
                    COALESCE(m.sending_at, m.created_at))
            ) ORDER BY s.message_id), '[]')::text AS found
            FROM jsonb_array_elements($1::text::jsonb) AS r
            JOIN segments s ON s.carrier = $2 AND s.carrier_message_id = r.value ->> 1
              AND s.shard = $5
            JOIN messages m ON m.id = s.message_id AND m.id >= $4 AND m.shard = $5",
        ..Sql::IN_SHARD
    };
    /// Compares numbers in the carrier's format: local numbers have the country code in front.
    const UNANSWERED: Sql = Sql {
        sqlite: r"
            SELECT json_group_array(
                json_array(
                    json_array(message_id, segment, segments, application_id, status),
                    submitted_at, sender, address, sending_at))
            AS found
            FROM (
                SELECT s.message_id, s.segment, s.segments, s.application_id, s.status,
                       s.submitted_at, m.sender,
                       CASE m.kind WHEN 'local' THEN $3 || m.number ELSE m.number END AS address,
                       COALESCE(m.sending_at, m.created_at) AS sending_at
                FROM segments s
                CROSS JOIN messages m ON m.id = s.message_id
                WHERE s.carrier = $2 AND s.status IN ({submitted}, {unknown})
                  AND s.carrier_message_id IS NULL)
            WHERE address IN (SELECT value FROM json_each($1))",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                json_build_array(message_id, segment, segments, application_id, status),
                submitted_at, sender, address, sending_at)), '[]')::text AS found
            FROM (
                SELECT s.message_id, s.segment, s.segments, s.application_id, s.status,
                       s.submitted_at, m.sender,
                       CASE m.kind WHEN 'local' THEN $3 || m.number ELSE m.number END AS address,
                       COALESCE(m.sending_at, m.created_at) AS sending_at
                FROM segments s
                JOIN messages m ON m.id = s.message_id AND m.id >= $4
                WHERE s.carrier = $2 AND s.status IN ({submitted}, {unknown})
                  AND s.carrier_message_id IS NULL
                  AND s.shard = $5 AND m.shard = $5) u
            WHERE address IN (SELECT value FROM jsonb_array_elements_text($1::text::jsonb))",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[message, segment]]`.
    const SETTLE: Sql = Sql {
        sqlite: r"
            UPDATE segments SET status = {submitted}
            WHERE message_id = ?1 AND segment = ?2 AND status = {unknown}",
        postgres: r"
            UPDATE segments SET status = {submitted}
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE segments.message_id = (r.value ->> 0)::bigint
              AND segments.segment = (r.value ->> 1)::bigint
              AND segments.shard = $2 AND status = {unknown}",
        ..Sql::IN_SHARD
    };
    const DROP: Sql = Sql {
        sqlite: "DELETE FROM segments WHERE message_id = ?1",
        postgres: r"
            DELETE FROM segments WHERE message_id = ANY ({ids}) AND shard = $2",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[message, segment, status, error]]`.
    const FINISH: Sql = Sql {
        sqlite: r"
            UPDATE segments SET status = ?3, error = ?4
            WHERE message_id = ?1 AND segment = ?2 AND status < {delivered}",
        postgres: r"
            UPDATE segments SET status = (r.value ->> 2)::bigint, error = r.value ->> 3
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE segments.message_id = (r.value ->> 0)::bigint
              AND segments.segment = (r.value ->> 1)::bigint
              AND segments.shard = $2 AND status < {delivered}",
        ..Sql::IN_SHARD
    };
}

pub struct NewSegment {
    pub message_id: Transid,
    pub segment: u16,
    /// The number of segments of the message.
    pub segments: u16,
    pub application_id: ApplicationId,
    pub carrier_message_id: Option<String>,
    pub status: MessageStatus,
}

/// A stored segment. The fields are in the order of [`OF`].
#[derive(Clone, Debug, Deserialize)]
pub struct Segment {
    #[serde(deserialize_with = "row::transid_from_number")]
    pub message_id: Transid,
    pub segment: u16,
    pub segments: u16,
    #[serde(deserialize_with = "row::status_from_number")]
    pub status: MessageStatus,
    pub error: Option<String>,
    pub submits: i64,
    named: i64,
}

impl Segment {
    /// Returns whether a carrier has certainly accepted the segment.
    pub fn is_taken(&self) -> bool {
        self.named == 1 || self.status != MessageStatus::Unknown
    }
}

/// The segment that a receipt is for. The fields are in the order of [`NAMED`] and [`UNANSWERED`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub struct SegmentId {
    #[serde(deserialize_with = "row::transid_from_number")]
    pub message_id: Transid,
    pub segment: u16,
    /// The number of segments of the message.
    pub segments: u16,
    pub application_id: ApplicationId,
    /// The stored status.
    #[serde(deserialize_with = "row::status_from_number")]
    pub status: MessageStatus,
}

/// A segment that a receipt may be for, with the values that the receipt is compared with. The
/// fields are in the order of [`UNANSWERED`] and [`STORED_AS`].
#[derive(Clone, Deserialize)]
pub struct Unanswered {
    pub id: SegmentId,
    #[serde(deserialize_with = "row::timestamp_from_number")]
    pub submitted_at: Timestamp,
    pub sender: Option<String>,
    /// The number that the message is for, in the carrier's format.
    pub address: String,
    /// When the message was claimed for its submit. If that is unknown, when it was accepted.
    #[serde(deserialize_with = "row::timestamp_from_number")]
    pub sending_at: Timestamp,
}

/// Stores submitted segments. If a segment is already stored, it was submitted again.
pub async fn insert(
    conn: Conn<'_>,
    rows: &[NewSegment],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    write(conn, INSERT, rows, carrier, now).await
}

/// Stores carrier message IDs that arrived after the claim had ended. Keeps the ID of a segment
/// that already has one. Inserts segments that aren't stored yet, and changes nothing else of
/// stored segments.
pub async fn set_ids(
    conn: Conn<'_>,
    rows: &[NewSegment],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    write(conn, NAME, rows, carrier, now).await
}

async fn write(
    conn: Conn<'_>,
    statement: Sql,
    rows: &[NewSegment],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    let values = rows.iter().map(|row| {
        let (id, status) = (&row.carrier_message_id, row.status.code());
        (row.message_id, row.segment, row.segments, row.application_id, id, status)
    });
    let writing = query(statement, (carrier, now));
    writing.execute_each(conn, values).await.map(drop)
}

/// Returns the segments of a message in order, as staff see them.
pub async fn of_message(conn: Conn<'_>, message: Transid) -> Result<Vec<SegmentRecord>> {
    let read = |row: &Row<'_>| {
        from_row!(row => SegmentRecord {
            segment, carrier,
            carrier_id: row.get("carrier_message_id")?,
            status: row::status(row, "segments")?, error, submits, submitted_at,
        })
    };
    query(OF_MESSAGE, message).fetch_all(conn, read).await
}

/// Returns the submitted segments of these messages.
pub async fn of(tx: &mut Tx<'_>, messages: &[Transid]) -> Result<Vec<Segment>> {
    if messages.is_empty() {
        return Ok(Vec::new());
    }
    let finding = query(OF, ());
    finding.find_each(tx, messages.iter().copied(), "segments").await
}

/// Returns the segments with these carrier message IDs, each with the index of its ID in `ids`. The
/// segments are in the order of their messages: if the carrier has used an ID again, the newest
/// segment comes last.
pub async fn with_ids(
    conn: Conn<'_>,
    carrier: &str,
    ids: &[&str],
) -> Result<Vec<(usize, SegmentId)>> {
    let ids = ids.iter().copied().enumerate();
    let finding = query(NAMED, carrier).find_each(conn, ids, "segments");
    let mut found: Vec<(usize, SegmentId)> = finding.await?;
    found.sort_by_key(|(_, id)| id.message_id);
    found.retain(|_| !is_planted("receipt-ids-ignored"));
    Ok(found)
}

/// Returns the segments with these carrier message IDs as they are stored, each with the index of
/// its ID in `ids`. On PostgreSQL, leaves out messages with IDs below `least`.
pub async fn stored_as(
    conn: Conn<'_>,
    carrier: &str,
    ids: &[&str],
    country_code: &str,
    least: i64,
) -> Result<Vec<(usize, Unanswered)>> {
    let ids = ids.iter().copied().enumerate();
    let finding = query(STORED_AS, (carrier, country_code, least));
    finding.find_each(conn, ids, "segments").await
}

/// Returns the segments for these numbers that were submitted to a carrier and have neither a
/// carrier message ID nor a final status. The numbers are in the carrier's format. On PostgreSQL,
/// leaves out messages with IDs below `least`.
pub async fn unanswered(
    conn: Conn<'_>,
    carrier: &str,
    numbers: &[String],
    country_code: &str,
    least: i64,
) -> Result<Vec<Unanswered>> {
    if numbers.is_empty() {
        return Ok(Vec::new());
    }
    let values = (json(&numbers)?, carrier, country_code, least);
    let finding = query(UNANSWERED, values);
    finding.fetch_one(conn, |row| row::found(row, "segments")).await
}

/// Returns whether a carrier has a segment that isn't final and whose carrier message ID is
/// unknown.
pub async fn has_unanswered(conn: Conn<'_>, carrier: &str) -> Result<bool> {
    query(HAS_UNANSWERED, carrier).finds(conn).await
}

/// Returns whether a connection to the carrier has claimed another message to this number. Leaves
/// out messages with IDs below `least`.
pub async fn is_another_submitted(
    conn: Conn<'_>,
    carrier: &str,
    number: &str,
    country_code: &str,
    message_id: Transid,
    least: i64,
) -> Result<bool> {
    let values = (carrier, number, country_code, message_id, least);
    query(BEING_SUBMITTED, values).finds(conn).await
}

/// Returns whether a carrier accepted another segment to this number between two times, with a
/// carrier message ID, and no receipt has come for it yet. The number is in the carrier's format.
/// Leaves out messages with IDs below `least`.
pub async fn is_another_named(
    conn: Conn<'_>,
    carrier: &str,
    number: &str,
    (country_code, least): (&str, i64),
    (from, until): (Timestamp, Timestamp),
) -> Result<bool> {
    let local = number.strip_prefix(country_code).unwrap_or_default();
    query(ANOTHER_NAMED, (carrier, number, local, from, until, least)).finds(conn).await
}

/// The final status to give to a segment.
pub struct SegmentEnding<'a> {
    pub message_id: Transid,
    pub segment: u16,
    pub status: MessageStatus,
    pub error: Option<&'a str>,
}

/// Makes segments final. Skips segments that were already final.
pub async fn finish(tx: &mut Tx<'_>, rows: &[SegmentEnding<'_>]) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let values = rows.iter().map(|row| (row.message_id, row.segment, row.status.code(), row.error));
    let finishing = query(FINISH, ());
    finishing.execute_each(tx, values).await.map(drop)
}

/// Stores that a carrier accepted these segments, whose outcome was unknown.
pub async fn settle(tx: &mut Tx<'_>, accepted: &[(Transid, u16)]) -> Result<()> {
    let rows = accepted.iter().copied();
    query(SETTLE, ()).execute_each(tx, rows).await.map(drop)
}

/// Deletes the segments of messages that the carrier never got.
pub async fn drop_all(tx: &mut Tx<'_>, messages: &[Transid]) -> Result<()> {
    query(DROP, ()).execute_each(tx, messages.iter().copied()).await.map(drop)
}

/// Deletes segments of messages with IDs below `below`, oldest first. A call covers a range of
/// `ids` message IDs. Returns false if there was nothing to delete.
pub async fn forget(conn: Conn<'_>, below: i64, ids: i64) -> Result<bool> {
    let oldest: Option<i64> = query(OLDEST, ()).fetch_one(conn, |row| row.get("id")).await?;
    let Some(oldest) = oldest.filter(|oldest| *oldest < below) else {
        return Ok(false);
    };
    query(FORGET, (oldest, below.min(oldest.saturating_add(ids)))).execute(conn).await?;
    Ok(true)
}
