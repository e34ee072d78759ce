//! Messages that a carrier has, or may have, in whole or in part.

use domain::{ApplicationId, Kind, MessageStatus, Number, Timestamp, Transid};

use super::messages::open_messages;
use super::query::{Conn, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use super::transaction::Tx;
use crate::error::Result;

statements! {
    const OUTSTANDING: Sql = Sql::in_shard(r"
        SELECT id, application_id, test, number, kind, submitted_at FROM messages
        WHERE id > $1 AND id < $5 AND status = {submitted} AND carrier = $2
          AND submitted_at < $4{ AND shard = $shard} ORDER BY id LIMIT $3");
    /// `$1` is `[[ID, segments]]`.
    const SUBMIT: Sql = Sql {
        sqlite: r"
            UPDATE messages SET status = {submitted}, carrier = ?3,
                segments = COALESCE(?2, segments),
                submitted_at = ?4
            WHERE id = ?1 AND status < {submitted}",
        postgres: r"
            -- The rows of the parameter are looked up by ID instead of being joined: see
            -- `messages::FINISH`.
            WITH r AS MATERIALIZED (
                SELECT jsonb_object_agg(value ->> 0, value) AS by_id
                FROM jsonb_array_elements($1::text::jsonb))
            UPDATE messages SET status = {submitted}, carrier = $2,
                segments = COALESCE((by_id -> id::text ->> 1)::bigint, segments),
                submitted_at = $3
            FROM r WHERE id = ANY (
                ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb)))
              AND id BETWEEN $4 AND $5 AND shard = $6
              AND status < {submitted}",
        ..Sql::IN_SHARD
    };
    /// `$1` is `[[ID, unknown 0|1, partly accepted 0|1]]`.
    const BEGIN: Sql = Sql {
        sqlite: r"
            UPDATE messages SET carrier = ?4,
                status = CASE ?2 WHEN 1 THEN {unknown} ELSE status END,
                submitted_at = CASE ?3 WHEN 1 THEN COALESCE(submitted_at, ?5)
                    ELSE submitted_at END
            WHERE id = ?1 AND status < {submitted}",
        postgres: r"
            WITH r AS MATERIALIZED (
                SELECT jsonb_object_agg(value ->> 0, value) AS by_id
                FROM jsonb_array_elements($1::text::jsonb))
            UPDATE messages SET carrier = $2,
                status = CASE by_id -> id::text ->> 1 WHEN '1' THEN {unknown} ELSE status END,
                submitted_at = CASE by_id -> id::text ->> 2 WHEN '1'
                    THEN COALESCE(submitted_at, $3) ELSE submitted_at END
            FROM r WHERE id = ANY (
                ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb)))
              AND id BETWEEN $4 AND $5 AND shard = $6
              AND status < {submitted}",
        ..Sql::IN_SHARD
    };
}

/// A message that a carrier accepted as a whole.
pub struct Taken {
    pub id: Transid,
    /// The number of segments that the message was submitted in. `None` if the sandbox accepted the
    /// message, or if the carrier splits messages itself.
    pub segments: Option<u16>,
}

/// Stores that a carrier accepted these messages as a whole.
pub async fn submitted(
    tx: &mut Tx<'_>,
    taken: &[Taken],
    carrier: &str,
    now: Timestamp,
) -> Result<()> {
    if taken.is_empty() {
        return Ok(());
    }
    let ids: Vec<Transid> = taken.iter().map(|taken| taken.id).collect();
    for message in open_messages(tx, &ids).await? {
        if message.status.may_become(MessageStatus::Submitted) {
            tx.tally.change(&message, MessageStatus::Submitted, now);
        }
    }
    let submitting = query(SUBMIT, (carrier, now)).bind(tx.among(&ids));
    let rows = taken.iter().map(|taken| (taken.id, taken.segments));
    submitting.execute_each(tx, rows).await.map(drop)
}

/// A message of which a carrier has, or may have, a part.
pub struct Begun {
    pub id: Transid,
    /// Whether the carrier may have segments without having confirmed them.
    pub unknown: bool,
    /// Whether the carrier certainly has some segments.
    pub taken: bool,
}

/// Stores that a carrier has, or may have, a part of these messages.
pub async fn begin(tx: &mut Tx<'_>, begun: &[Begun], carrier: &str, now: Timestamp) -> Result<()> {
    if begun.is_empty() {
        return Ok(());
    }
    let unknown: Vec<Transid> = begun.iter().filter(|b| b.unknown).map(|b| b.id).collect();
    for message in open_messages(tx, &unknown).await? {
        if message.status.may_become(MessageStatus::Unknown) {
            tx.tally.change(&message, MessageStatus::Unknown, now);
        }
    }
    let ids: Vec<Transid> = begun.iter().map(|b| b.id).collect();
    let beginning = query(BEGIN, (carrier, now)).bind(tx.among(&ids));
    let rows = begun.iter().map(|b| (b.id, b.unknown, b.taken));
    beginning.execute_each(tx, rows).await.map(drop)
}

/// A message that a carrier accepted and that isn't final.
#[derive(Clone, Debug)]
pub struct Outstanding {
    pub id: Transid,
    pub application_id: ApplicationId,
    pub test: bool,
    pub number: Number,
    pub submitted_at: Timestamp,
}

/// Returns at most `limit` messages, in the order of their IDs, that the carrier accepted before
/// `submitted_before` and that aren't final. Their IDs are above `after` and below `below`.
pub async fn outstanding(
    conn: Conn<'_>,
    after: i64,
    below: i64,
    carrier: &str,
    submitted_before: Timestamp,
    limit: i64,
) -> Result<Vec<Outstanding>> {
    let values = (after, carrier, limit, submitted_before, below);
    query(OUTSTANDING, values)
        .fetch_all(conn, |row| {
            from_row!(row => Outstanding {
                id, application_id, test,
                number: Number::from_stored(
                    row.get("number")?,
                    row::word(row, "messages", "kind", Kind::parse)?,
                ),
                submitted_at,
            })
        })
        .await
}
