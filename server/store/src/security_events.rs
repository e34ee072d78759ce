//! Security events of accounts: sign-ins, failures, resets, keys.

use domain::Timestamp;
use domain::records::SecurityEventRecord;
use domain::security_event::SecurityEventKind;

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const INSERT: Sql = Sql::same(r"
        INSERT INTO security_events (at, account_id, kind, address, network, user_agent, detail)
        VALUES ($1, $2, $3, $4, $5, $6, $7)
        RETURNING id");
    const DELETE: Sql = Sql::same("DELETE FROM security_events WHERE id = $1");
    const OF_ACCOUNT: Sql = Sql::same(r"
        SELECT at, kind, address, user_agent, detail FROM security_events
        WHERE account_id = $1 ORDER BY id DESC LIMIT $2");
    const SWEEP: Sql = Sql::same("DELETE FROM security_events WHERE at <= $1");
}

/// The origin of a request, as it is recorded.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub address: String,
    /// The /64 of an IPv6 address, or the IPv4 address itself.
    pub network: String,
    pub user_agent: String,
}

/// Records an event, with or without an account, and returns its ID.
pub async fn insert(
    conn: Conn<'_>,
    now: Timestamp,
    account_id: Option<i64>,
    kind: SecurityEventKind,
    origin: &Origin,
    detail: Option<&str>,
) -> Result<i64> {
    let Origin { address, network, user_agent } = origin;
    let values = (
        now,
        account_id,
        kind.as_str(),
        address.as_str(),
        network.as_str(),
        user_agent.as_str(),
        detail,
    );
    query(INSERT, values).fetch_one(conn, |row| row.get("id")).await
}

/// Writes a row and deletes it, to check that the database can be written.
pub async fn probe(conn: Conn<'_>, now: Timestamp) -> Result<()> {
    let kind = SecurityEventKind::Throttled;
    let id = insert(conn, now, None, kind, &Origin::default(), None).await?;
    query(DELETE, id).execute(conn).await.map(drop)
}

/// Returns the latest events of an account, newest first.
pub async fn of_account(
    conn: Conn<'_>,
    account_id: i64,
    limit: i64,
) -> Result<Vec<SecurityEventRecord>> {
    let read = |row: &Row<'_>| {
        from_row!(row => SecurityEventRecord {
            at,
            kind: row::word(row, "security_events", "kind", SecurityEventKind::parse)?,
            address, user_agent, detail,
        })
    };
    query(OF_ACCOUNT, (account_id, limit)).fetch_all(conn, read).await
}

/// Deletes the events at or before this time.
pub async fn sweep(conn: Conn<'_>, before: Timestamp) -> Result<()> {
    query(SWEEP, before).execute(conn).await.map(drop)
}
