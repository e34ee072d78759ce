//! The open notes about incidents. Customers can read them.

use domain::Timestamp;
use domain::incident::IncidentRecord;

use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO incidents (text, carrier, began_at) VALUES ($1, $2, $3) RETURNING id");
    const OPEN: Sql = Sql::same("SELECT id, text, carrier, began_at FROM incidents ORDER BY id");
    const DELETE: Sql = Sql::same(r"
        DELETE FROM incidents WHERE id = $1 RETURNING id, text, carrier, began_at");
}

fn incident(row: &Row<'_>) -> Result<IncidentRecord> {
    from_row!(row => IncidentRecord { id, text, carrier, began_at })
}

/// Stores a note that begins now, and returns its ID.
pub async fn insert(
    conn: Conn<'_>,
    text: &str,
    carrier: Option<&str>,
    now: Timestamp,
) -> Result<i64> {
    query(INSERT, (text, carrier, now)).fetch_one(conn, |row| row.get("id")).await
}

/// Returns the open notes, oldest first.
pub async fn open(conn: Conn<'_>) -> Result<Vec<IncidentRecord>> {
    query(OPEN, ()).fetch_all(conn, incident).await
}

/// Deletes a note and returns it. Returns `None` if there is no such note.
pub async fn delete(conn: Conn<'_>, id: i64) -> Result<Option<IncidentRecord>> {
    query(DELETE, id).fetch_optional(conn, incident).await
}
