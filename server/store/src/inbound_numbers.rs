//! Numbers that handsets send messages to, and the applications that get the messages.

use domain::records::InboundNumberRecord;
use domain::{ApplicationId, Keyword, Timestamp};
use serde::Deserialize;

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

macro_rules! listed {
    ($rest:literal) => {
        Sql {
            sqlite: listed!("applications a ON a.id", $rest),
            // `applications` may be distributed. The numbers never are.
            postgres: listed!("reference_shards a ON a.application_id", $rest),
            ..Sql::ANYWHERE
        }
    };
    ($applications:literal, $rest:literal) => {
        concat!(
            r"
        SELECT n.number, n.keyword, n.created_at, a.reference
        FROM inbound_numbers n
        JOIN ",
            $applications,
            " = n.application_id ",
            $rest
        )
    };
}

statements! {
    const ALL: Sql = listed!("ORDER BY n.number, n.keyword LIMIT $1");
    const OF_APPLICATION: Sql = listed!("WHERE n.application_id = $1 ORDER BY n.number, n.keyword");
    const ADD: Sql = Sql::same(r"
        INSERT INTO inbound_numbers (number, keyword, application_id, created_at)
        VALUES ($1, $2, $3, $4)
        ON CONFLICT (number, keyword) DO NOTHING");
    const REMOVE: Sql = Sql::same("DELETE FROM inbound_numbers WHERE number = $1 AND keyword = $2");
    const REMOVE_ALL: Sql = Sql::same("DELETE FROM inbound_numbers WHERE application_id = $1");
    const APPLICATIONS_OF: Sql = Sql::same(r"
        SELECT DISTINCT application_id
        FROM inbound_numbers WHERE number = $1 ORDER BY application_id");
    /// `$1` is `[[number, keyword]]`.
    const OWNERS: Sql = Sql {
        sqlite: r"
            SELECT number, keyword, application_id
            FROM inbound_numbers WHERE number = ?1 AND keyword = ?2",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(
                n.number, n.keyword, n.application_id)), '[]')::text AS found
            FROM jsonb_array_elements($1::text::jsonb) AS r
            JOIN inbound_numbers n ON n.number = r.value ->> 0 AND n.keyword = r.value ->> 1",
        ..Sql::ANYWHERE
    };
}

/// The application that gets the messages to a number with a keyword, or with an empty one. The
/// fields are in the order of [`OWNERS`].
#[derive(Deserialize)]
pub struct Owner {
    pub number: String,
    pub keyword: String,
    pub application_id: ApplicationId,
}

fn stored(row: &Row<'_>) -> Result<InboundNumberRecord> {
    let keyword: String = row.get("keyword")?;
    from_row!(row => InboundNumberRecord {
        number,
        keyword: (!keyword.is_empty()).then(|| Keyword::from_stored(keyword)),
        created_at, reference: row::reference(row)?,
    })
}

fn code(keyword: Option<&Keyword>) -> &str {
    keyword.map_or("", Keyword::as_str)
}

/// Returns the numbers in order.
pub async fn all(conn: Conn<'_>, limit: i64) -> Result<Vec<InboundNumberRecord>> {
    query(ALL, limit).fetch_all(conn, stored).await
}

/// Returns the numbers of an application in order.
pub async fn of_application(conn: Conn<'_>, id: ApplicationId) -> Result<Vec<InboundNumberRecord>> {
    query(OF_APPLICATION, id).fetch_all(conn, stored).await
}

/// Assigns a number's messages with a keyword, or those without one, to an application. Returns
/// false if they are already assigned.
pub async fn add(
    conn: Conn<'_>,
    number: &str,
    keyword: Option<&Keyword>,
    application_id: ApplicationId,
    now: Timestamp,
) -> Result<bool> {
    let values = (number, code(keyword), application_id, now);
    Ok(query(ADD, values).execute(conn).await? == 1)
}

/// Ends the assignment of these messages. Returns false if there is none.
pub async fn remove(conn: Conn<'_>, number: &str, keyword: Option<&Keyword>) -> Result<bool> {
    Ok(query(REMOVE, (number, code(keyword))).execute(conn).await? == 1)
}

pub async fn remove_all(conn: Conn<'_>, id: ApplicationId) -> Result<()> {
    query(REMOVE_ALL, id).execute(conn).await.map(drop)
}

/// Returns all applications that get messages to a number.
pub async fn applications_of(conn: Conn<'_>, number: &str) -> Result<Vec<ApplicationId>> {
    query(APPLICATIONS_OF, number).fetch_all(conn, |row| row.get("application_id")).await
}

/// Returns the applications that get the messages to these numbers with these keywords. An empty
/// keyword stands for messages without one.
pub async fn owners(conn: Conn<'_>, of: &[(&str, &str)]) -> Result<Vec<Owner>> {
    query(OWNERS, ()).find_each(conn, of.iter().copied(), "inbound_numbers").await
}
