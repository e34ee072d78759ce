//! When staff made their latest decisions.

use domain::Timestamp;
use domain::decision::Work;

use super::query::{Conn, Row, query};
use super::sql::{Sql, statements};
use crate::error::Result;

statements! {
    const ACTIVATIONS: Sql = Sql::in_shard(r"
        SELECT activation_requested_at AS requested_at, activated_at AS decided_at FROM applications
        WHERE activated_at > $1 AND activation_requested_at <= activated_at{ AND shard = $shard}
        ORDER BY activated_at DESC LIMIT $2");
    const SENDER_NAMES: Sql = Sql::in_shard(r"
        SELECT requested_at, decided_at FROM sender_requests
        WHERE decided_at > $1 AND (status = 'accepted' OR status = 'rejected'){ AND shard = $shard}
        ORDER BY decided_at DESC LIMIT $2");
}

/// Returns when each of the latest decisions after `since` was requested, and when it was made.
/// Returns nothing for work that needs no decision.
pub async fn of(
    conn: Conn<'_>,
    work: Work,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<(Timestamp, Timestamp)>> {
    let statement = match work {
        Work::Activations => ACTIVATIONS,
        Work::SenderNames => SENDER_NAMES,
        Work::Deposits | Work::Mails | Work::Inbound | Work::Resets | Work::BankLines => {
            return Ok(Vec::new());
        }
    };
    let read = |row: &Row<'_>| Ok((row.get("requested_at")?, row.get("decided_at")?));
    query(statement, (since, limit)).fetch_all(conn, read).await
}
