//! Staff who look at cases.

use domain::Timestamp;
use domain::decision::{CaseKind, Look};

use super::query::{Connection, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    /// `[[case]]`.
    const SET: Sql = Sql {
        sqlite: r"
            INSERT INTO staff_looks (case_name, kind, account_id, seen_at)
            VALUES (?1, ?2, ?3, ?4)
            ON CONFLICT (kind, case_name, account_id) DO UPDATE SET seen_at = excluded.seen_at",
        postgres: r"
            INSERT INTO staff_looks (case_name, kind, account_id, seen_at)
            SELECT value ->> 0, $2, $3, $4
            FROM jsonb_array_elements($1::text::jsonb)
            ON CONFLICT (kind, case_name, account_id) DO UPDATE SET seen_at = excluded.seen_at",
        ..Sql::ANYWHERE
    };
    const SINCE: Sql = Sql::same(r"
        SELECT l.case_name, l.account_id, l.seen_at, a.email
        FROM staff_looks l
        JOIN accounts a ON a.id = l.account_id
        WHERE l.kind = $1 AND l.seen_at > $2 ORDER BY a.email");
    const SWEEP: Sql = Sql::same("DELETE FROM staff_looks WHERE seen_at <= $1");
}

/// A look as it is stored.
pub(crate) struct Stored {
    pub(crate) look: Look,
    pub(crate) account_id: i64,
    pub(crate) seen_at: Timestamp,
}

/// Stores that an account looks at these cases now.
pub(crate) async fn set(
    conn: &mut dyn Connection,
    kind: CaseKind,
    cases: &[String],
    account_id: i64,
    now: Timestamp,
) -> Result<()> {
    let rows = cases.iter().map(String::as_str);
    let setting = query(SET, (kind.as_str(), account_id, now));
    setting.execute_each(conn, rows).await.map(drop)
}

/// The looks at cases of a kind after a moment.
pub(crate) async fn since(
    conn: &mut dyn Connection,
    kind: CaseKind,
    since: Timestamp,
) -> Result<Vec<Stored>> {
    query(SINCE, (kind.as_str(), since))
        .fetch_all(conn, |row| {
            Ok(Stored {
                look: Look {
                    case: row.get("case_name")?,
                    email: row.get("email")?,
                },
                account_id: row.get("account_id")?,
                seen_at: row.get("seen_at")?,
            })
        })
        .await
}

/// Deletes the looks up to a moment.
pub(crate) async fn sweep(conn: &mut dyn Connection, until: Timestamp) -> Result<()> {
    query(SWEEP, until).execute(conn).await.map(drop)
}
