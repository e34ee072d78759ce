//! Messages of many applications by number or request id: the indexes of messages begin with the
//! application, and so each application is looked up by itself.

use domain::{ApplicationId, Transid};

use super::query::{Connection, Row, query};
use super::sql::{Sql, in_shard, statements};
use crate::error::Result;

/// The newest messages of the applications in a range of ids whose column has a value. The least
/// application is left out; the greatest one is looked up too.
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
            WHERE a.id > $1 AND a.id <= $2
            ORDER BY m.id DESC LIMIT $5"
            ),
            // Without the limit PostgreSQL might join by reading all messages of the days.
            postgres: concat!(
                r"
            SELECT m.id, m.application_id, m.test
            FROM applications a
            CROSS JOIN (VALUES (0), (1)) t (test)
            CROSS JOIN LATERAL (
                SELECT id, application_id, test
                FROM messages
                WHERE application_id = a.id AND test = t.test AND ",
                $column,
                r" = $3 AND id >= $4 AND shard = $6
                ORDER BY id DESC LIMIT $5) m
            WHERE a.id > $1 AND a.id <= $2 AND a.shard = $6
            ORDER BY m.id DESC LIMIT $5"
            ),
            ..Sql::IN_SHARD
        }
    };
}

statements! {
    /// The last of the next applications; null where there is none.
    const LAST_OF_NEXT: Sql = in_shard!(
        r"
        SELECT MAX(id) AS id
        FROM (SELECT id FROM applications WHERE id > $1" => " AND shard = $3",
        " ORDER BY id LIMIT $2) a",
    );
    const BY_NUMBER: Sql = found_by!("number", "messages_by_number");
    const BY_REQUESTID: Sql = found_by!("requestid", "messages_by_requestid");
}

/// What messages are looked up by.
#[derive(Clone, Copy)]
pub(crate) enum Key<'a> {
    /// The digits of a number, as stored.
    Number(&'a str),
    Requestid(&'a str),
}

/// Where a message is.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) application_id: ApplicationId,
    pub(crate) test: bool,
    pub(crate) transid: Transid,
}

/// Reads a place from the columns `application_id`, `test` and `id`.
pub(super) fn place(row: &Row<'_>) -> Result<Place> {
    Ok(Place {
        application_id: row.get("application_id")?,
        test: row.get("test")?,
        transid: row.get("id")?,
    })
}

/// The last of the `count` applications that follow an application; `None` where none follows.
pub(crate) async fn last_of_next(
    conn: &mut dyn Connection,
    after: i64,
    count: i64,
) -> Result<Option<i64>> {
    query(LAST_OF_NEXT, (after, count))
        .fetch_one(conn, |row| row.get("id"))
        .await
}

/// The newest messages from an id on of the applications after `after` up to `last`.
pub(crate) async fn find(
    conn: &mut dyn Connection,
    key: Key<'_>,
    (after, last): (i64, i64),
    from: i64,
    limit: i64,
) -> Result<Vec<Place>> {
    let (statement, value) = match key {
        Key::Number(digits) => (BY_NUMBER, digits),
        Key::Requestid(text) => (BY_REQUESTID, text),
    };
    query(statement, (after, last, value, from, limit))
        .fetch_all(conn, place)
        .await
}
