//! Requests of staff that a second staff member has to approve.

use domain::Timestamp;
use domain::approval::{ApprovalRecord, StaffAct};

use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::{Error, Fault, Result};

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO approvals (act, asked_by, asked_at) VALUES ($1, $2, $3)");
    const WAITING: Sql = Sql::same(r"
        SELECT p.id, p.act, p.asked_by, p.asked_at, accounts.email
        FROM approvals p
        JOIN accounts ON accounts.id = p.asked_by
        WHERE p.asked_at > $1 AND accounts.role = 'staff' AND accounts.disabled_at IS NULL
        ORDER BY p.id");
    const DELETE: Sql = Sql::same("DELETE FROM approvals WHERE id = $1");
    const DELETE_UNTIL: Sql = Sql::same("DELETE FROM approvals WHERE asked_at <= $1");
}

fn approval(row: &Row<'_>) -> Result<ApprovalRecord> {
    let act: String = row.get("act")?;
    let corrupt =
        |_| Fault::Corrupt { table: "approvals", column: "act".into(), value: act.clone() };
    from_row!(row => ApprovalRecord {
        id,
        act: serde_json::from_str(&act).map_err(|error| Error::Failed(corrupt(error)))?,
        asked_by, email, asked_at,
    })
}

pub async fn insert(conn: Conn<'_>, act: &StaffAct, asked_by: i64, now: Timestamp) -> Result<()> {
    let text = serde_json::to_string(act).map_err(|error| {
        Error::Failed(Fault::Corrupt {
            table: "approvals",
            column: "act".into(),
            value: error.to_string(),
        })
    })?;
    query(INSERT, (text, asked_by, now)).execute(conn).await.map(drop)
}

/// Returns the requests made after a time by accounts that are still active staff, oldest first.
pub async fn waiting(conn: Conn<'_>, after: Timestamp) -> Result<Vec<ApprovalRecord>> {
    query(WAITING, after).fetch_all(conn, approval).await
}

/// Deletes a request. Returns false if it doesn't exist.
pub async fn delete(conn: Conn<'_>, id: i64) -> Result<bool> {
    Ok(query(DELETE, id).execute(conn).await? == 1)
}

/// Deletes the requests made at or before a time.
pub async fn delete_until(conn: Conn<'_>, until: Timestamp) -> Result<()> {
    query(DELETE_UNTIL, until).execute(conn).await.map(drop)
}
