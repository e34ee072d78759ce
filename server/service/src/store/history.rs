//! Dropping old messages, and the sums that are kept of them.

use super::query::{Connection, query};
use super::sql::{Sql, in_home, statements};
use crate::error::Result;

statements! {
    const SUM_UP: Sql = in_home!(
        "INSERT INTO dropped_days (" => "home, ",
        r"day, application_id, charged, released)
        SELECT " => "home, ",
        r"$1, application_id,
               CAST(SUM(CASE WHEN batch_id IS NULL THEN cost ELSE 0 END) AS BIGINT),
               CAST(SUM(released) AS BIGINT)
        FROM messages WHERE id >= $2 AND id < $3 AND test = 0" => " AND home = $4",
        r"
        GROUP BY " => "home, ",
        r"application_id
        ON CONFLICT (" => "home, ",
        r"day, application_id)
        DO UPDATE SET charged = dropped_days.charged + excluded.charged,
            released = dropped_days.released + excluded.released",
    );
    const DELETE_MESSAGES: Sql = in_home!(
        "DELETE FROM messages WHERE id >= $1 AND id < $2" => " AND home = $3",
    );
    const DELETE_EVENTS: Sql = in_home!(
        "DELETE FROM message_events WHERE message_id >= $1 AND message_id < $2"
            => " AND home = $3",
    );
}

/// A range of messages' ids.
#[derive(Clone, Copy)]
pub(crate) struct Range {
    pub(crate) from: i64,
    pub(crate) below: i64,
}

/// Adds the charges and releases of a day's messages, or of some of them, to the kept sums.
pub(crate) async fn sum_up(conn: &mut dyn Connection, day: i64, range: Range) -> Result<()> {
    query(SUM_UP, (day, range.from, range.below))
        .execute(conn)
        .await
        .map(drop)
}

pub(crate) async fn delete(conn: &mut dyn Connection, range: Range) -> Result<()> {
    for statement in [DELETE_MESSAGES, DELETE_EVENTS] {
        query(statement, (range.from, range.below))
            .execute(&mut *conn)
            .await?;
    }
    Ok(())
}
