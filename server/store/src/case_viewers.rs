//! The staff members who are viewing cases.

use domain::Timestamp;
use domain::decision::{CaseKind, Viewer};

use super::query::{Conn, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const SET: Sql = Sql::same(r"
        INSERT INTO case_viewers (case_name, kind, account_id, seen_at)
        {values text common common common}
        ON CONFLICT (kind, case_name, account_id) DO UPDATE SET seen_at = excluded.seen_at");
    const SINCE: Sql = Sql::same(r"
        SELECT v.case_name, v.account_id, v.seen_at, a.email
        FROM case_viewers v
        JOIN accounts a ON a.id = v.account_id
        WHERE v.kind = $1 AND v.seen_at > $2 ORDER BY a.email");
    const SWEEP: Sql = Sql::same("DELETE FROM case_viewers WHERE seen_at <= $1");
}

pub struct Stored {
    pub viewer: Viewer,
    pub account_id: i64,
    pub seen_at: Timestamp,
}

/// Stores that an account is viewing these cases now.
pub async fn set(
    conn: Conn<'_>,
    kind: CaseKind,
    cases: &[String],
    account_id: i64,
    now: Timestamp,
) -> Result<()> {
    let rows = cases.iter().map(String::as_str);
    let setting = query(SET, (kind.as_str(), account_id, now));
    setting.execute_each(conn, rows).await.map(drop)
}

/// Returns the viewers of a kind of case who were last seen after a time.
pub async fn since(conn: Conn<'_>, kind: CaseKind, since: Timestamp) -> Result<Vec<Stored>> {
    query(SINCE, (kind.as_str(), since))
        .fetch_all(conn, |row| {
            from_row!(row => Stored {
                viewer: Viewer { case: row.get("case_name")?, email: row.get("email")? },
                account_id, seen_at,
            })
        })
        .await
}

/// Deletes the viewers who were last seen at or before a time.
pub async fn sweep(conn: Conn<'_>, until: Timestamp) -> Result<()> {
    query(SWEEP, until).execute(conn).await.map(drop)
}
