//! Messages: written in batches, read by reports.

use std::collections::HashMap;

use domain::{ApplicationId, MessageStatus, MessageText, Money, Number, Timestamp, Transid};
use rusqlite::params;

use super::query::{Conn, Connection, each, given, look_up, query};
use super::row::{self, Ids, json, touched};
use super::sql::{Sql, statements};
use super::tally::OpenMessage;
use super::transaction::WriteTx;
use crate::error::Result;

statements! {
    const EXISTS: Sql = Sql::same("SELECT id FROM messages WHERE id = $1");
    const FIRST: Sql = Sql::same("SELECT MIN(id) AS id FROM messages WHERE id >= $1 AND id < $2");
    const NTH_AFTER: Sql = Sql::same(r"
        SELECT id FROM messages WHERE id >= $1 ORDER BY id LIMIT 1 OFFSET $2");
    const STATUS: Sql = Sql::same("SELECT status FROM messages WHERE id = $1");
    const GREATEST: Sql = Sql::same("SELECT MAX(id) AS id FROM messages");
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO messages (id, application_id, test, number, kind, sender, body,
                requestid, pages, segments, unit_price, cost, created_at, sending_at, status,
                released)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, 0)",
        postgres: r"
            INSERT INTO messages (id, application_id, test, number, kind, sender, body,
                requestid, pages, segments, unit_price, cost, created_at, sending_at, status,
                released)
            SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
                   value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
                   (value ->> 8)::bigint, (value ->> 9)::bigint, (value ->> 10)::bigint,
                   (value ->> 11)::bigint, (value ->> 12)::bigint, (value ->> 13)::bigint,
                   (value ->> 14)::bigint, 0
            FROM jsonb_array_elements($1::text::jsonb)",
    };
    const LOCK: Sql = Sql::postgres(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1
            FROM messages
            WHERE id = ANY (
                ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
              AND id BETWEEN $2 AND $3 AND application_id = ANY ($4::text::bigint[])
            ORDER BY id FOR UPDATE) m");
    const OPEN: Sql = Sql {
        sqlite: r"
            SELECT id, application_id, test, batch_id, created_at, status, cost
            FROM messages WHERE id = ?1 AND status < 4",
        postgres: r"
            SELECT COALESCE(
                json_agg(
                    json_build_array(
                        id, application_id, test, batch_id, created_at, status, cost)),
                '[]')::text AS found
            FROM (
                SELECT id, application_id, test, batch_id, created_at, status, cost
                FROM messages
                WHERE id = ANY (
                    ARRAY(SELECT value::bigint FROM jsonb_array_elements_text($1::text::jsonb)))
                  AND id BETWEEN $2 AND $3 AND application_id = ANY ($4::text::bigint[])
                  AND status < 4
                ORDER BY id FOR UPDATE) m",
    };
    const OVERDUE: Sql = Sql::same(r"
        SELECT id, application_id, status, submitted_at,
               (SELECT COUNT(*) FROM queue WHERE message_id = id AND lease_token <> 0) AS leased,
               (
                   SELECT MIN(COALESCE(s.error, ''))
                   FROM segments s WHERE s.message_id = messages.id AND s.status = 5) AS failed
        FROM messages WHERE id >= $1 AND id < $2 AND status < 4 ORDER BY id LIMIT $3");
    /// `[[id, status, error, release 0|1, taken by a carrier 0|1]]`.
    const FINISH: Sql = Sql {
        sqlite: r"
            UPDATE messages SET status = ?2, error = ?3, final_at = ?4,
                submitted_at = CASE WHEN ?6 = 1 THEN COALESCE(submitted_at, ?4)
                    ELSE submitted_at END,
                released = CASE WHEN ?5 = 1 THEN cost ELSE 0 END
            WHERE id = ?1 AND status < 4",
        postgres: r"
            -- Rows are looked up in an object by id rather than joined: of ids that are newer than
            -- its statistics PostgreSQL expects one, and would compare each message with each row.
            WITH r AS MATERIALIZED (
                SELECT jsonb_object_agg(value ->> 0, value) AS by_id
                FROM jsonb_array_elements($1::text::jsonb))
            UPDATE messages SET status = (by_id -> id::text ->> 1)::bigint,
                error = by_id -> id::text ->> 2, final_at = $2,
                submitted_at = CASE WHEN by_id -> id::text ->> 4 = '1'
                    THEN COALESCE(submitted_at, $2) ELSE submitted_at END,
                released = CASE WHEN by_id -> id::text ->> 3 = '1' THEN cost ELSE 0 END
            FROM r
            WHERE id = ANY (
                ARRAY(SELECT (value ->> 0)::bigint FROM jsonb_array_elements($1::text::jsonb)))
              AND id BETWEEN $3 AND $4 AND application_id = ANY ($5::text::bigint[])
              AND status < 4",
    };
}

/// A message as it is accepted.
pub(crate) struct NewMessage {
    pub(crate) id: Transid,
    pub(crate) application_id: ApplicationId,
    pub(crate) test: bool,
    pub(crate) number: Number,
    pub(crate) sender: Option<String>,
    pub(crate) body: MessageText,
    pub(crate) requestid: Option<String>,
    pub(crate) pages: usize,
    pub(crate) segments: usize,
    pub(crate) unit_price: Money,
    pub(crate) cost: Money,
    /// Set where a connection has a place for it: it is stored as claimed.
    pub(crate) sending_at: Option<Timestamp>,
}

pub(crate) async fn insert(conn: &mut dyn Connection, messages: &[&NewMessage]) -> Result<()> {
    if let Conn::File(conn) = conn.conn() {
        let written = each(given(conn)?, INSERT, messages, |statement, m| {
            statement.execute(params![
                m.id.0,
                m.application_id.0,
                i64::from(m.test),
                m.number.digits(),
                m.number.kind().as_str(),
                m.sender,
                m.body.as_str(),
                m.requestid,
                m.pages.cast_signed() as i64,
                m.segments.cast_signed() as i64,
                m.unit_price.micros(),
                m.cost.micros(),
                domain::ids::id_unix_ms(m.id.0),
                m.sending_at.map(Timestamp::unix_ms),
                m.status().code(),
            ])
        })?;
        return touched("messages", messages.len(), written);
    }
    let rows: Vec<_> = messages
        .iter()
        .map(|m| {
            (
                m.id.0,
                m.application_id,
                i64::from(m.test),
                m.number.digits(),
                m.number.kind().as_str(),
                &m.sender,
                m.body.as_str(),
                &m.requestid,
                m.pages,
                m.segments,
                m.unit_price.micros(),
                m.cost.micros(),
                domain::ids::id_unix_ms(m.id.0),
                m.sending_at.map(Timestamp::unix_ms),
                m.status().code(),
            )
        })
        .collect();
    let done = query(INSERT).bind(json(&rows)?).execute(conn).await?;
    touched("messages", rows.len(), done.rows_affected())
}

pub(crate) async fn exists(conn: &mut dyn Connection, id: Transid) -> Result<bool> {
    Ok(query(EXISTS)
        .bind(id.0)
        .fetch_optional(conn)
        .await?
        .is_some())
}

pub(crate) async fn status(
    conn: &mut dyn Connection,
    id: Transid,
) -> Result<Option<MessageStatus>> {
    let row = query(STATUS).bind(id.0).fetch_optional(conn).await?;
    row.map(|row| row::status(&row, "messages")).transpose()
}

/// The first message of a range of ids.
pub(crate) async fn first(conn: &mut dyn Connection, from: i64, below: i64) -> Result<Option<i64>> {
    let found = query(FIRST).bind(from).bind(below);
    row::opt_int(&found.fetch_one(conn).await?, "id")
}

/// The id so many messages after another one.
pub(crate) async fn nth_after(
    conn: &mut dyn Connection,
    from: i64,
    count: i64,
) -> Result<Option<i64>> {
    let found = query(NTH_AFTER).bind(from).bind(count);
    let found = found.fetch_optional(conn).await?;
    found.map(|row| row::int(&row, "id")).transpose()
}

/// The greatest id given so far; 0 without messages.
pub(crate) async fn greatest(conn: &mut dyn Connection) -> Result<i64> {
    Ok(row::opt_int(&query(GREATEST).fetch_one(conn).await?, "id")?.unwrap_or(0))
}

/// Locks messages that are about to be changed, in their order. False where nobody else writes, so
/// that there is nothing to lock.
pub(crate) async fn lock(tx: &mut WriteTx<'_>, ids: &[Transid]) -> Result<bool> {
    if tx.must_lock() && !ids.is_empty() {
        let ids = Ids::new(ids)?;
        query(LOCK)
            .bind(ids.json)
            .bind(ids.least)
            .bind(ids.greatest)
            .bind(tx.named())
            .fetch_one(tx)
            .await?;
    }
    Ok(tx.must_lock())
}

/// How a message ends.
pub(crate) struct Ending {
    pub(crate) id: Transid,
    pub(crate) status: domain::MessageStatus,
    pub(crate) error: Option<String>,
    /// Give its price back: no carrier took it.
    pub(crate) release: bool,
    /// This end shows that a carrier took it, even if its submit isn't recorded.
    pub(crate) taken: bool,
}

/// A message that became final just now.
pub(crate) struct Ended {
    pub(crate) id: Transid,
    pub(crate) application_id: ApplicationId,
    pub(crate) test: bool,
    pub(crate) released: Money,
}

/// Makes messages final; those that were final before are left alone and not returned. Of several
/// endings for one message the first counts.
pub(crate) async fn finish(
    tx: &mut WriteTx<'_>,
    endings: &[Ending],
    now: Timestamp,
) -> Result<Vec<Ended>> {
    let ids: Vec<Transid> = endings.iter().map(|ending| ending.id).collect();
    let mut open: HashMap<Transid, OpenMessage> = open_messages(tx, &ids)
        .await?
        .into_iter()
        .map(|message| (message.id, message))
        .collect();
    let (mut ended, mut rows) = (Vec::new(), Vec::new());
    for ending in endings {
        let Some(message) = open.remove(&ending.id) else {
            continue;
        };
        tx.tally.change(&message, ending.status, now);
        let release = i64::from(ending.release);
        let status = ending.status.code();
        rows.push((
            message.id.0,
            status,
            &ending.error,
            release,
            i64::from(ending.taken),
        ));
        ended.push(Ended {
            id: ending.id,
            application_id: message.application_id,
            test: message.test == 1,
            released: if ending.release {
                Money::from_micros(message.cost)
            } else {
                Money::ZERO
            },
        });
    }
    if rows.is_empty() {
        return Ok(ended);
    }
    if let Conn::File(conn) = tx.conn() {
        let written = each(given(conn)?, FINISH, &rows, |statement, row| {
            let (id, status, error, release, taken) = row;
            statement.execute(params![id, status, error, now.unix_ms(), release, taken])
        })?;
        return touched("messages", rows.len(), written).map(|()| ended);
    }
    let ids = Ids::new(&ids)?;
    let done = query(FINISH)
        .bind(json(&rows)?)
        .bind(now.unix_ms())
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .execute(tx)
        .await?;
    touched("messages", rows.len(), done.rows_affected())?;
    Ok(ended)
}

/// Those of these messages that aren't final.
pub(crate) async fn open_messages(
    tx: &mut WriteTx<'_>,
    ids: &[Transid],
) -> Result<Vec<OpenMessage>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    if let Conn::File(conn) = tx.conn() {
        let statement = OPEN;
        return look_up(
            given(conn)?,
            statement,
            ids,
            |s, id| s.query([id.0]),
            |_, row| OpenMessage::of_file(row),
        );
    }
    let ids = Ids::new(ids)?;
    let row = query(OPEN)
        .bind(ids.json)
        .bind(ids.least)
        .bind(ids.greatest)
        .bind(tx.named())
        .fetch_one(tx)
        .await?;
    row::found(&row, "messages")
}

/// A message whose time ran out.
pub(crate) struct Overdue {
    pub(crate) id: Transid,
    pub(crate) application_id: ApplicationId,
    pub(crate) status: MessageStatus,
    /// A carrier has it, or a part of it.
    pub(crate) taken: bool,
    /// A connection holds it now.
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
                id: row::transid(row, "id")?,
                application_id: row::application(row, "application_id")?,
                status: row::status(row, "messages")?,
                taken: row::opt_int(row, "submitted_at")?.is_some(),
                leased: row::int(row, "leased")? > 0,
                failed: row::opt_text(row, "failed")?,
            })
        })
        .collect()
}
