//! Receipts, and answers to submits, as carriers sent them.

use domain::ids::{compose_id, id_unix_ms};
use domain::support::ReceiptKind;
use domain::{Timestamp, Transid};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use super::unmatched_receipts::WaitingReceipt;
use crate::error::Result;

/// The columns of a [`RawReceiptRow`].
macro_rules! raw {
    ($($rest:literal),+) => {
        Sql::same(concat!(
            "SELECT id, carrier, kind, written_id, parameter_id, number, state, error, raw, ",
            "message_id ",
            "FROM raw_receipts ",
            $($rest),+
        ))
    };
}

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO raw_receipts (id, carrier, kind, written_id, parameter_id, number, state,
            error, raw, message_id)
        {values int text text text text text text text text int}");
    // The conditions are those of the indexes.
    const NEWEST_RECEIPTS: Sql = raw!(
        "WHERE carrier = $1 ",
        "AND (kind = 'final' OR kind = 'intermediate' OR kind = 'unknown_state') ",
        "ORDER BY id DESC LIMIT $2"
    );
    const NEWEST_ANSWERS: Sql = raw!(
        "WHERE carrier = $1 AND kind <> 'final' AND kind <> 'intermediate' ",
        "AND kind <> 'unknown_state' ",
        "ORDER BY id DESC LIMIT $2"
    );
    const BY_ID: Sql = raw!("WHERE written_id = $2 AND carrier = $1 ORDER BY id DESC LIMIT $3");
    const BY_NUMBER: Sql = raw!("WHERE number = $2 AND carrier = $1 ORDER BY id DESC LIMIT $3");
    const HAS_UNKNOWN: Sql = Sql::same(r"
        SELECT 1 AS found FROM raw_receipts
        WHERE carrier = $1 AND state = $2 AND kind = 'unknown_state' LIMIT 1");
    const UNKNOWN: Sql = raw!(
        "WHERE carrier = $1 AND state = $2 AND kind = 'unknown_state' ORDER BY id LIMIT $3"
    );
    /// `$1` is `[[ID, kind, error]]`.
    const SET_KIND: Sql = Sql {
        sqlite: "UPDATE raw_receipts SET kind = ?2, error = ?3 WHERE id = ?1",
        postgres: r"
            UPDATE raw_receipts SET kind = r.value ->> 1, error = r.value ->> 2
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE raw_receipts.id = (r.value ->> 0)::bigint",
        ..Sql::ANYWHERE
    };
    /// `$1` is `[[message, written ID, first ID, last ID]]`.
    const SET_MESSAGE: Sql = Sql {
        sqlite: r"
            UPDATE raw_receipts SET message_id = ?1
            WHERE carrier = ?5 AND written_id = ?2 AND id BETWEEN ?3 AND ?4
              AND kind = 'final' AND message_id IS NULL",
        postgres: r"
            UPDATE raw_receipts SET message_id = (r.value ->> 0)::bigint
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE raw_receipts.carrier = $2 AND raw_receipts.written_id = r.value ->> 1
              AND raw_receipts.id BETWEEN (r.value ->> 2)::bigint AND (r.value ->> 3)::bigint
              AND raw_receipts.kind = 'final' AND raw_receipts.message_id IS NULL",
        ..Sql::ANYWHERE
    };
    /// For receipts without an ID. Leaves out receipts if several for the same number came at about
    /// the same time, because nothing tells them apart. `$1` is `[[message, number, first ID, last
    /// ID]]`.
    const SET_MESSAGE_OF_NUMBER: Sql = Sql {
        sqlite: r"
            UPDATE raw_receipts SET message_id = ?1
            WHERE carrier = ?5 AND number = ?2 AND id BETWEEN ?3 AND ?4
              AND written_id IS NULL AND kind = 'final' AND message_id IS NULL
              AND NOT EXISTS (
                  SELECT 1 FROM raw_receipts other
                  WHERE other.carrier = ?5 AND other.number = ?2 AND other.id BETWEEN ?3 AND ?4
                    AND other.written_id IS NULL AND other.kind = 'final'
                    AND other.id <> raw_receipts.id)",
        postgres: r"
            UPDATE raw_receipts SET message_id = (r.value ->> 0)::bigint
            FROM jsonb_array_elements($1::text::jsonb) AS r
            WHERE raw_receipts.carrier = $2 AND raw_receipts.number = r.value ->> 1
              AND raw_receipts.id BETWEEN (r.value ->> 2)::bigint AND (r.value ->> 3)::bigint
              AND raw_receipts.written_id IS NULL AND raw_receipts.kind = 'final'
              AND raw_receipts.message_id IS NULL
              AND NOT EXISTS (
                  SELECT 1 FROM raw_receipts other
                  WHERE other.carrier = $2 AND other.number = r.value ->> 1
                    AND other.id BETWEEN (r.value ->> 2)::bigint AND (r.value ->> 3)::bigint
                    AND other.written_id IS NULL AND other.kind = 'final'
                    AND other.id <> raw_receipts.id)",
        ..Sql::ANYWHERE
    };
    const FORGET: Sql = Sql::same(r"
        DELETE FROM raw_receipts WHERE id IN (
            SELECT id FROM raw_receipts WHERE id < $1 ORDER BY id LIMIT $2)");
}

/// The maximum difference between the times in a receipt's ID here and in its number in
/// `unmatched_receipts`, in milliseconds.
const SAME_MS: i64 = 2000;

/// A receipt or an answer as it is stored.
pub struct RawReceiptRow {
    /// Made from the time of arrival.
    pub id: i64,
    pub carrier: String,
    pub kind: ReceiptKind,
    /// The ID in the text, as the carrier wrote it, otherwise the ID in the parameter.
    pub written_id: Option<String>,
    pub parameter_id: Option<String>,
    pub number: String,
    pub state: String,
    /// The error as a stable code. `None` if the receipt or answer reports no error. If the state
    /// is unknown, the error as the carrier wrote it.
    pub error: Option<String>,
    pub raw: String,
    /// The message that it was matched to, or that the answer is for. `None` if it isn't known. In
    /// that case, the carrier message ID may identify it.
    pub message_id: Option<Transid>,
}

impl RawReceiptRow {
    pub fn received_at(&self) -> Timestamp {
        Timestamp::from_unix_ms(id_unix_ms(self.id))
    }
}

/// Which receipts and answers of a carrier to return, newest first.
#[derive(Clone, Copy)]
pub enum Selection<'a> {
    Receipts,
    Answers,
    /// Those with this ID, as the carrier wrote it.
    WrittenId(&'a str),
    /// Those for messages to this number.
    Number(&'a str),
}

pub async fn insert(conn: Conn<'_>, rows: &[RawReceiptRow]) -> Result<()> {
    let values = rows.iter().map(|row| {
        let (id, kind) = (row.id, row.kind.as_str());
        let ids = (&row.written_id, &row.parameter_id);
        let texts = (&row.number, &row.state, &row.error, &row.raw);
        let message = row.message_id.map(|id| id.0);
        (id, &row.carrier, kind, ids.0, ids.1, texts.0, texts.1, texts.2, texts.3, message)
    });
    query(INSERT, ()).execute_each(conn, values).await.map(drop)
}

pub async fn list(
    conn: Conn<'_>,
    carrier: &str,
    selection: Selection<'_>,
    limit: i64,
) -> Result<Vec<RawReceiptRow>> {
    let finding = match selection {
        Selection::Receipts => query(NEWEST_RECEIPTS, (carrier, limit)),
        Selection::Answers => query(NEWEST_ANSWERS, (carrier, limit)),
        Selection::WrittenId(id) => query(BY_ID, (carrier, id, limit)),
        Selection::Number(number) => query(BY_NUMBER, (carrier, number, limit)),
    };
    finding.fetch_all(conn, read).await
}

/// Whether a carrier has receipts that came with this state while the state was unknown.
pub async fn has_unknown_state(conn: Conn<'_>, carrier: &str, state: &str) -> Result<bool> {
    query(HAS_UNKNOWN, (carrier, state)).finds(conn).await
}

/// Returns the oldest receipts that came with this state while the state was unknown.
pub async fn with_unknown_state(
    conn: Conn<'_>,
    carrier: &str,
    state: &str,
    limit: i64,
) -> Result<Vec<RawReceiptRow>> {
    query(UNKNOWN, (carrier, state, limit)).fetch_all(conn, read).await
}

/// Stores the meanings of these receipts' states. Each has its ID, its kind and its error as a
/// stable code.
pub async fn set_kinds(conn: Conn<'_>, rows: &[(i64, ReceiptKind, Option<String>)]) -> Result<()> {
    let values = rows.iter().map(|(id, kind, error)| (*id, kind.as_str(), error));
    query(SET_KIND, ()).execute_each(conn, values).await.map(drop)
}

/// Stores the messages of receipts that were matched later. Leaves out receipts without an ID if
/// several to the number came at about the same time.
pub async fn set_messages<'a>(
    conn: Conn<'_>,
    carrier: &str,
    matched: impl Iterator<Item = (&'a WaitingReceipt, Transid)> + Send,
) -> Result<()> {
    let (mut named, mut of_numbers) = (Vec::new(), Vec::new());
    for (waiting, message) in matched {
        let at = |ms| compose_id(waiting.made_at().plus_ms(ms).unix_ms(), 0);
        let (first, last) = (at(-SAME_MS), at(SAME_MS));
        match waiting.text_id.as_deref().or(waiting.parameter_id.as_deref()) {
            Some(id) => named.push((message, id, first, last)),
            None if waiting.number.is_empty() => {}
            None => of_numbers.push((message, &*waiting.number, first, last)),
        }
    }
    query(SET_MESSAGE, carrier).execute_each(conn, named).await?;
    query(SET_MESSAGE_OF_NUMBER, carrier).execute_each(conn, of_numbers).await.map(drop)
}

fn read(row: &Row<'_>) -> Result<RawReceiptRow> {
    from_row!(row => RawReceiptRow {
        id, carrier,
        kind: row::word(row, "raw_receipts", "kind", ReceiptKind::parse)?,
        written_id, parameter_id, number, state, error, raw, message_id,
    })
}

/// Deletes at most `limit` receipts that came before this time, oldest first. Returns whether there
/// may be more.
pub async fn forget(conn: Conn<'_>, before: Timestamp, limit: i64) -> Result<bool> {
    let deleted = query(FORGET, (compose_id(before.unix_ms(), 0), limit)).execute(conn).await?;
    Ok(deleted >= limit.unsigned_abs())
}
