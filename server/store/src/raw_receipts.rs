//! Receipts as carriers sent them.

use domain::Timestamp;
use domain::ids::{compose_id, id_unix_ms};
use domain::support::ReceiptKind;

use super::query::{Connection, Row, query};
use super::row;
use super::sql::{Sql, statements};
use crate::error::Result;

/// The columns of a [`RawReceiptRow`].
macro_rules! raw {
    ($($rest:literal),+) => {
        Sql::same(concat!(
            "SELECT id, carrier, kind, written_id, parameter_id, number, state, error, raw ",
            "FROM raw_receipts ",
            $($rest),+
        ))
    };
}

statements! {
    /// `$1` is `[[ID, carrier, kind, written ID, ID in the parameter, number, state, error,
    /// raw]]`.
    const INSERT: Sql = Sql {
        sqlite: r"
            INSERT INTO raw_receipts (id, carrier, kind, written_id, parameter_id, number, state,
                error, raw)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        postgres: r"
            INSERT INTO raw_receipts (id, carrier, kind, written_id, parameter_id, number, state,
                error, raw)
            SELECT (value ->> 0)::bigint, value ->> 1, value ->> 2, value ->> 3, value ->> 4,
                   value ->> 5, value ->> 6, value ->> 7, value ->> 8
            FROM jsonb_array_elements($1::text::jsonb)",
        ..Sql::ANYWHERE
    };
    const NEWEST: Sql = raw!("WHERE carrier = $1 ORDER BY id DESC LIMIT $2");
    const BY_ID: Sql = raw!("WHERE written_id = $2 AND carrier = $1 ORDER BY id DESC LIMIT $3");
    const BY_NUMBER: Sql = raw!("WHERE number = $2 AND carrier = $1 ORDER BY id DESC LIMIT $3");
    const FORGET: Sql = Sql::same(r"
        DELETE FROM raw_receipts WHERE id IN (
            SELECT id FROM raw_receipts WHERE id < $1 ORDER BY id LIMIT $2)");
}

/// A receipt as it is stored.
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
    /// The error as a stable code. `None` if it reports none.
    pub error: Option<String>,
    pub raw: String,
}

impl RawReceiptRow {
    pub fn received_at(&self) -> Timestamp {
        Timestamp::from_unix_ms(id_unix_ms(self.id))
    }
}

/// Which receipts of a carrier to return, newest first.
#[derive(Clone, Copy)]
pub enum Selection<'a> {
    All,
    /// The receipts with this ID, as the carrier wrote it.
    WrittenId(&'a str),
    /// The receipts for messages to this number.
    Number(&'a str),
}

pub async fn insert(conn: &mut dyn Connection, rows: &[RawReceiptRow]) -> Result<()> {
    let values = rows.iter().map(|row| {
        let (id, kind) = (row.id, row.kind.as_str());
        let ids = (&row.written_id, &row.parameter_id);
        (id, &row.carrier, kind, ids.0, ids.1, &row.number, &row.state, &row.error, &row.raw)
    });
    query(INSERT, ()).execute_each(conn, values).await.map(drop)
}

pub async fn list(
    conn: &mut dyn Connection,
    carrier: &str,
    selection: Selection<'_>,
    limit: i64,
) -> Result<Vec<RawReceiptRow>> {
    let finding = match selection {
        Selection::All => query(NEWEST, (carrier, limit)),
        Selection::WrittenId(id) => query(BY_ID, (carrier, id, limit)),
        Selection::Number(number) => query(BY_NUMBER, (carrier, number, limit)),
    };
    finding.fetch_all(conn, read).await
}

fn read(row: &Row<'_>) -> Result<RawReceiptRow> {
    Ok(RawReceiptRow {
        id: row.get("id")?,
        carrier: row.get("carrier")?,
        kind: row::word(row, "raw_receipts", "kind", ReceiptKind::parse)?,
        written_id: row.get("written_id")?,
        parameter_id: row.get("parameter_id")?,
        number: row.get("number")?,
        state: row.get("state")?,
        error: row.get("error")?,
        raw: row.get("raw")?,
    })
}

/// Deletes at most `limit` receipts that came before this time, oldest first. Returns whether there
/// may be more.
pub async fn forget(conn: &mut dyn Connection, before: Timestamp, limit: i64) -> Result<bool> {
    let deleted = query(FORGET, (compose_id(before.unix_ms(), 0), limit)).execute(conn).await?;
    Ok(deleted >= limit.unsigned_abs())
}
