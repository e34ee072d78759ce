//! Opt-outs: numbers that want no messages from an application.

use domain::ids::id_unix_ms;
use domain::opt_out::ERASED;
use domain::{ApplicationId, EventStream, OptOutRecord, OptOutSource, Timestamp, Transid};

use super::query::{Conn, Row, query};
use super::row;
use super::sql::{Sql, statements};
use super::transaction::Tx;
use crate::error::Result;

statements! {
    /// `$1` is `[[application, test, number]]`.
    const AMONG: Sql = Sql {
        sqlite: r"
            SELECT application_id, test, number
            FROM opt_outs WHERE application_id = ?1 AND test = ?2 AND number = ?3",
        postgres: r"
            SELECT COALESCE(
                json_agg(json_build_array(o.application_id, o.test, o.number)), '[]')::text AS found
            FROM jsonb_array_elements($1::text::jsonb) AS r
            JOIN opt_outs o ON o.application_id = (r.value ->> 0)::bigint
              AND o.test = (r.value ->> 1)::bigint AND o.number = r.value ->> 2
            WHERE o.shard = $2",
        ..Sql::IN_SHARD
    };
    /// Finds the messages whose recipients have opted out, except replies, which are free. In
    /// opt-outs, the country code precedes a local number.
    const OF_MESSAGES: Sql = Sql {
        sqlite: r"
            SELECT m.id
            FROM messages m
            JOIN opt_outs o ON o.application_id = m.application_id AND o.test = m.test
              AND o.number = CASE m.kind WHEN 'local' THEN ?2 || m.number ELSE m.number END
            WHERE m.id = ?1 AND m.unit_price > 0",
        postgres: r"
            SELECT COALESCE(json_agg(json_build_array(m.id)), '[]')::text AS found
            FROM messages m
            CROSS JOIN LATERAL (
                SELECT 1 FROM opt_outs o
                WHERE o.application_id = m.application_id AND o.test = m.test
                  AND o.number = CASE m.kind WHEN 'local' THEN $2 || m.number ELSE m.number END
                  AND o.shard = $5
                OFFSET 0) o
            WHERE m.id = ANY ({ids})
              AND m.id BETWEEN $3 AND $4 AND m.unit_price > 0 AND m.shard = $5",
        ..Sql::IN_SHARD
    };
    const ADD: Sql = Sql::in_shard(r"
        INSERT INTO opt_outs (application_id, test, number, source, id{, shard})
        {values int int text text int shard} ON CONFLICT DO NOTHING");
    /// Finds the numbers that were stored with these IDs. `$1` is
    /// `[[application, test, number, ID]]`.
    const ADDED: Sql = Sql {
        sqlite: r"
            SELECT number, id
            FROM opt_outs WHERE application_id = ?1 AND test = ?2 AND number = ?3 AND id = ?4",
        postgres: r"
            SELECT COALESCE(
                json_agg(json_build_array(o.number, o.id) ORDER BY o.id), '[]')::text AS found
            FROM jsonb_array_elements($1::text::jsonb) AS r
            JOIN opt_outs o ON o.application_id = (r.value ->> 0)::bigint
              AND o.test = (r.value ->> 1)::bigint AND o.number = r.value ->> 2
              AND o.id = (r.value ->> 3)::bigint
            WHERE o.shard = $2",
        ..Sql::IN_SHARD
    };
    const REMOVE: Sql = Sql::in_shard(r"
        DELETE FROM opt_outs
        WHERE application_id = $1 AND test = $2 AND number = $3{ AND shard = $shard}");
    const REMOVE_ALL: Sql = Sql::in_shard(
        "DELETE FROM opt_outs WHERE application_id = $1{ AND shard = $shard}");
    const LIST: Sql = Sql::in_shard(r"
        SELECT number, source, id
        FROM opt_outs WHERE application_id = $1 AND test = $2 AND id < $3{ AND shard = $shard}
        ORDER BY id DESC LIMIT $4");
    const ONE: Sql = Sql::in_shard(r"
        SELECT number, source, id FROM opt_outs WHERE application_id = $1 AND test = $2
          AND number = $3{ AND shard = $shard}");
    /// Erased numbers begin with a letter.
    const NUMBERS: Sql = Sql::in_shard(r"
        SELECT number FROM opt_outs
        WHERE application_id = $1 AND test = $2 AND number > $3
          AND number < 'x'{ AND shard = $shard} ORDER BY number LIMIT $4");
    const NUMBERS_ERASED: Sql = Sql::in_shard(r"
        SELECT number FROM opt_outs WHERE application_id = $1 AND test = $2
          AND number >= 'x'{ AND shard = $shard}");
    /// `$3` is the number, and `$4` the text that replaces it.
    const ERASE: Sql = Sql::in_shard(r"
        UPDATE opt_outs SET number = $4
        WHERE application_id = $1 AND test = $2 AND number = $3{ AND shard = $shard}");
}

/// A number of one of an application's lists, as carriers get it.
pub type OptedOut = (ApplicationId, bool, String);

/// An opt-out. The lists of an application's live key and of its test key are separate, like its
/// events.
pub struct OptOut {
    /// Begins with the time at which the opt-out was added, and orders the list.
    pub id: i64,
    pub record: OptOutRecord,
}

/// Returns the numbers among `numbers` that have opted out.
pub async fn among(
    conn: Conn<'_>,
    numbers: impl IntoIterator<Item = (ApplicationId, bool, &str)>,
) -> Result<Vec<OptedOut>> {
    let finding = query(AMONG, ());
    let found: Vec<(ApplicationId, i64, String)> =
        finding.find_each(conn, numbers, "opt_outs").await?;
    Ok(found.into_iter().map(|(id, test, number)| (id, test == 1, number)).collect())
}

/// Returns the messages among `ids` whose recipients have opted out.
pub async fn of_messages(
    tx: &mut Tx<'_>,
    ids: &[Transid],
    country_code: &str,
) -> Result<Vec<Transid>> {
    let finding = query(OF_MESSAGES, country_code).bind(tx.among(ids));
    let found: Vec<(i64,)> = finding.find_each(tx, ids.iter().copied(), "messages").await?;
    Ok(found.into_iter().map(|(id,)| Transid(id)).collect())
}

/// Adds numbers with their IDs to a list. Returns the new opt-outs: a number that is on the list
/// already keeps its ID and its source.
pub async fn add(
    conn: Conn<'_>,
    list: EventStream,
    numbers: &[(String, i64)],
    source: OptOutSource,
) -> Result<Vec<OptOutRecord>> {
    let EventStream { application_id, test } = list;
    let rows = numbers.iter();
    let rows = rows.map(|(number, id)| (application_id, test, number, source.as_str(), *id));
    query(ADD, ()).execute_each(conn, rows).await?;
    let rows = numbers.iter().map(|(number, id)| (application_id, test, number, *id));
    let added: Vec<(String, i64)> = query(ADDED, ()).find_each(conn, rows, "opt_outs").await?;
    let record = |(number, id)| {
        let number = Some(number);
        OptOutRecord { number, source, created_at: added_at(id) }
    };
    Ok(added.into_iter().map(record).collect())
}

/// Removes a number from a list. Returns false if the number isn't on the list.
pub async fn remove(conn: Conn<'_>, list: EventStream, number: &str) -> Result<bool> {
    let removing = query(REMOVE, (list.application_id, list.test, number));
    Ok(removing.execute(conn).await? == 1)
}

pub async fn remove_all(conn: Conn<'_>, id: ApplicationId) -> Result<()> {
    query(REMOVE_ALL, id).execute(conn).await.map(drop)
}

/// Returns at most `limit` opt-outs of a list with IDs below `below`, newest first.
pub async fn list(
    conn: Conn<'_>,
    list: EventStream,
    below: i64,
    limit: i64,
) -> Result<Vec<OptOut>> {
    query(LIST, (list.application_id, list.test, below, limit)).fetch_all(conn, read).await
}

pub async fn one(conn: Conn<'_>, list: EventStream, number: &str) -> Result<Option<OptOut>> {
    query(ONE, (list.application_id, list.test, number)).fetch_optional(conn, read).await
}

/// Returns at most `limit` numbers of a list that come after `after`, in the order of their text.
pub async fn numbers(
    conn: Conn<'_>,
    list: EventStream,
    after: &str,
    limit: i64,
) -> Result<Vec<String>> {
    let reading = query(NUMBERS, (list.application_id, list.test, after, limit));
    reading.fetch_all(conn, |row| row.get("number")).await
}

/// Returns the texts that are stored instead of the erased numbers of a list.
pub async fn erased(conn: Conn<'_>, list: EventStream) -> Result<Vec<String>> {
    let reading = query(NUMBERS_ERASED, (list.application_id, list.test));
    reading.fetch_all(conn, |row| row.get("number")).await
}

/// Stores `erased` instead of a number of a list. Returns false if the number isn't on it.
pub async fn erase(conn: Conn<'_>, list: EventStream, number: &str, erased: &str) -> Result<bool> {
    if one(conn, list, number).await?.is_none() {
        return Ok(false);
    }
    // The number may have been erased and added again.
    remove(conn, list, erased).await?;
    let erasing = query(ERASE, (list.application_id, list.test, number, erased));
    Ok(erasing.execute(conn).await? == 1)
}

fn read(row: &Row<'_>) -> Result<OptOut> {
    let id = row.get("id")?;
    let number: String = row.get("number")?;
    Ok(OptOut {
        id,
        record: OptOutRecord {
            number: (!number.starts_with(ERASED)).then_some(number),
            source: row::word(row, "opt_outs", "source", OptOutSource::parse)?,
            created_at: added_at(id),
        },
    })
}

const fn added_at(id: i64) -> Timestamp {
    Timestamp::from_unix_ms(id_unix_ms(id))
}
