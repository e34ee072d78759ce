//! How long staff took for their latest decisions.

use domain::Timestamp;
use domain::decision::Work;

use super::query::{Connection, query};
use super::sql::{Sql, in_shard, statements};
use crate::error::Result;

statements! {
    const ACTIVATIONS: Sql = in_shard!(
        r"
        SELECT activated_at - activation_requested_at AS took
        FROM applications
        WHERE activated_at > $1 AND activation_requested_at <= activated_at" => " AND shard = $3",
        " ORDER BY activated_at DESC LIMIT $2",
    );
    const SENDER_NAMES: Sql = in_shard!(
        r"
        SELECT decided_at - requested_at AS took
        FROM sender_requests
        WHERE decided_at > $1 AND (status = 'accepted' OR status = 'rejected')"
            => " AND shard = $3",
        " ORDER BY decided_at DESC LIMIT $2",
    );
}

/// Returns how many milliseconds each of the latest decisions after `since` took. Returns nothing
/// for work that needs no decision.
pub async fn of(
    conn: &mut dyn Connection,
    work: Work,
    since: Timestamp,
    limit: i64,
) -> Result<Vec<i64>> {
    let statement = match work {
        Work::Activations => ACTIVATIONS,
        Work::SenderNames => SENDER_NAMES,
        Work::Deposits | Work::Mails | Work::Inbound | Work::Resets => return Ok(Vec::new()),
    };
    query(statement, (since, limit)).fetch_all(conn, |row| row.get("took")).await
}
