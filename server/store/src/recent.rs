//! Searches for messages of many applications, by number or request ID. The indexes on messages
//! start with the application, so each application is looked up separately.

use domain::{ApplicationId, Transid};

use super::query::{Conn, Row, query};
use super::row::from_row;
use super::sql::{Sql, statements};
use crate::error::Result;

/// The newest messages whose `$column` has the value `$3`. Covers the applications whose IDs are
/// above `$1` and at most `$2`.
macro_rules! found_by {
    ($column:literal, $index:literal) => {
        Sql {
            sqlite: concat!(
                r"
            SELECT m.id, m.application_id, m.test
            FROM applications a
            CROSS JOIN (SELECT 0 AS test UNION ALL SELECT 1) t
            CROSS JOIN messages m INDEXED BY ",
                $index,
                " ON m.application_id = a.id AND m.test = t.test AND m.",
                $column,
                r" = $3 AND m.id >= $4
            WHERE a.id > $1 AND a.id <= $2 ORDER BY m.id DESC LIMIT $5"
            ),
            // Without the inner limit, PostgreSQL might read all messages of these days for the
            // join.
            postgres: concat!(
                r"
            SELECT m.id, m.application_id, m.test
            FROM applications a
            CROSS JOIN (VALUES (0), (1)) t (test)
            CROSS JOIN LATERAL (
                SELECT id, application_id, test FROM messages
                WHERE application_id = a.id AND test = t.test AND ",
                $column,
                r" = $3 AND id >= $4 AND shard = $6
                ORDER BY id DESC LIMIT $5) m
            WHERE a.id > $1 AND a.id <= $2 AND a.shard = $6 ORDER BY m.id DESC LIMIT $5"
            ),
            ..Sql::IN_SHARD
        }
    };
}

statements! {
    /// The last of the next `$2` applications, or null if none follows.
    const LAST_OF_NEXT: Sql = Sql::in_shard(r"
        SELECT MAX(id) AS id
        FROM (
            SELECT id FROM applications
            WHERE id > $1{ AND shard = $shard} ORDER BY id LIMIT $2) a");
    /// `$2` is a carrier, or empty for all.
    const UNKNOWN: Sql = Sql::in_shard(r"
        SELECT m.id, m.application_id, m.test
        FROM applications a
        CROSS JOIN messages m
        WHERE m.application_id = a.id AND m.test = 0 AND m.status = {unknown} AND m.id >= $1
          AND ($2 = '' OR m.carrier = $2){ AND a.shard = $shard AND m.shard = $shard}
          ORDER BY m.id DESC LIMIT $3");
    const BY_NUMBER: Sql = found_by!("number", "messages_by_number");
    const BY_REQUESTID: Sql = found_by!("requestid", "messages_by_requestid");
}

/// The key that messages are looked up by.
#[derive(Clone, Copy)]
pub enum Key<'a> {
    /// The digits of a number, as stored.
    Number(&'a str),
    Requestid(&'a str),
}

/// A message's ID, with its application and kind of key.
#[derive(Clone, Copy)]
pub struct MessageLocation {
    pub application_id: ApplicationId,
    pub test: bool,
    pub transid: Transid,
}

/// Reads a [`MessageLocation`] from the columns `application_id`, `test` and `id`.
pub(crate) fn location(row: &Row<'_>) -> Result<MessageLocation> {
    from_row!(row => MessageLocation { application_id, test, transid: row.get("id")? })
}

/// Returns the last of the `count` applications that follow `after`, or `None` if none follows.
pub async fn last_of_next(conn: Conn<'_>, after: i64, count: i64) -> Result<Option<i64>> {
    query(LAST_OF_NEXT, (after, count)).fetch_one(conn, |row| row.get("id")).await
}

/// Returns the newest messages whose IDs are at least `from`. Covers the applications whose IDs are
/// above `after` and at most `last`.
pub async fn find(
    conn: Conn<'_>,
    key: Key<'_>,
    (after, last): (i64, i64),
    from: i64,
    limit: i64,
) -> Result<Vec<MessageLocation>> {
    let (statement, value) = match key {
        Key::Number(digits) => (BY_NUMBER, digits),
        Key::Requestid(text) => (BY_REQUESTID, text),
    };
    query(statement, (after, last, value, from, limit)).fetch_all(conn, location).await
}

/// Returns the newest live messages whose outcome is unknown and whose IDs are at least `from`, of
/// one carrier or of all.
pub async fn unknown(
    conn: Conn<'_>,
    carrier: Option<&str>,
    from: i64,
    limit: i64,
) -> Result<Vec<MessageLocation>> {
    let values = (from, carrier.unwrap_or_default(), limit);
    query(UNKNOWN, values).fetch_all(conn, location).await
}
