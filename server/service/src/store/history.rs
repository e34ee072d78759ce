//! Dropping old messages, and the sums that are kept of them; the tables that messages are in.

use domain::ids::id_of_day;

use super::query::{Connection, query};
use super::sql::{Sql, in_home, statements};
use crate::error::Result;

statements! {
    const SUM_UP: Sql = in_home!(
        "INSERT INTO dropped_days (" => "home, ",
        r"day, application_id, charged, released)
        SELECT " => "home, ",
        r"((id >> 21) + 1704067200000) / 86400000 AS day, application_id,
               CAST(SUM(CASE WHEN batch_id IS NULL THEN cost ELSE 0 END) AS BIGINT),
               CAST(SUM(released) AS BIGINT)
        FROM messages WHERE id >= $1 AND id < $2 AND test = 0" => " AND home = $3",
        r"
        GROUP BY " => "home, ",
        r"day, application_id
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

impl Range {
    /// The ids of these days (since 1970-01-01 UTC); `below` isn't one of them.
    pub(crate) const fn of_days(from: i64, below: i64) -> Self {
        Self {
            from: id_of_day(from),
            below: id_of_day(below),
        }
    }
}

/// How many days' messages a new table has, where messages are in tables by their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageTables {
    Day,
    /// From Monday to Sunday. A week of which a day has a table already goes on by days.
    Week,
}

/// A table of messages, and the table of their events.
pub(crate) struct Partition {
    /// What their names end with.
    pub(crate) suffix: String,
    pub(crate) range: Range,
}

/// Adds the charges and releases of these messages to the kept sums, which are by day.
pub(crate) async fn sum_up(conn: &mut dyn Connection, range: Range) -> Result<()> {
    query(SUM_UP, (range.from, range.below))
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
