//! Margins: daily figures of live messages, computed from the messages after the day has ended.

use domain::records::{MarginFigures, MarginLine, MarginRow};
use domain::{Kind, Money, Reference, Timestamp};

use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The sums of the figures in a range of days.
macro_rules! summed {
    ($columns:literal, $end:literal) => {
        Sql::same(concat!(
            "SELECT ",
            $columns,
            r", CAST(SUM(messages) AS BIGINT) AS messages, CAST(SUM(pages) AS BIGINT) AS pages,
                CAST(SUM(segments) AS BIGINT) AS segments,
                CAST(SUM(unpriced) AS BIGINT) AS unpriced,
                CAST(SUM(charged) AS BIGINT) AS charged, CAST(SUM(cost) AS BIGINT) AS cost
        FROM margin_days WHERE day BETWEEN $1 AND $2
        GROUP BY ",
            $end
        ))
    };
}

statements! {
    const MESSAGES: Sql = Sql::in_shard(r"
        SELECT m.id, m.number, m.kind, m.sender, m.carrier, m.pages, m.segments, m.unit_price,
               m.cost, m.released, m.created_at, a.reference
        FROM messages m
        JOIN applications a ON a.id = m.application_id
        WHERE m.id >= $1 AND m.id < $2 AND m.test = 0{ AND m.shard = $shard AND a.shard = $shard}
        ORDER BY m.id LIMIT $3");
    const LAST_SETTLED: Sql = Sql::same(
        "SELECT MAX(day) AS day FROM margin_days WHERE unfinished IS NOT NULL");
    const UNFINISHED: Sql = Sql::same(
        "SELECT DISTINCT day, unfinished FROM margin_days WHERE unfinished > 0 ORDER BY day");
    const LAST: Sql = Sql::same("SELECT MAX(day) AS day FROM margin_days");
    const COUNTED: Sql = Sql::same("SELECT DISTINCT day FROM margin_days WHERE day >= $1");
    const FORGET: Sql = Sql::same("DELETE FROM margin_days WHERE day = $1");
    const INSERT: Sql = Sql::same(r"
        INSERT INTO margin_days (day, reference, rule, carrier, unfinished, messages, pages,
            segments, unpriced, charged, cost)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)");
    const BY_DAY: Sql = summed!("CAST(day AS TEXT) AS name", "day ORDER BY day");
    const BY_RULE: Sql = summed!("rule AS name", "rule ORDER BY charged DESC, rule LIMIT $3");
    const BY_APPLICATION: Sql = summed!(
        "reference AS name",
        "reference ORDER BY charged DESC, reference LIMIT $3"
    );
    const LINES: Sql = summed!(
        "day, rule, reference",
        "day, rule, reference ORDER BY day, rule, reference LIMIT $3"
    );
}

/// The fields of a message that the figures are computed from.
pub struct CountedMessage {
    pub id: i64,
    pub number: String,
    pub kind: Kind,
    pub sender: Option<String>,
    /// The carrier that accepted the message.
    pub carrier: Option<String>,
    pub pages: i64,
    pub segments: i64,
    pub unit_price: Money,
    pub cost: Money,
    pub released: Money,
    pub created_at: Timestamp,
    pub reference: Reference,
}

/// The key of a row of figures: the application, the price rule and the carrier.
pub type Counted = (Reference, String, String);

/// Returns the first `limit` live messages in this range of IDs.
pub async fn messages(
    conn: Conn<'_>,
    (from, below): (i64, i64),
    limit: i64,
) -> Result<Vec<CountedMessage>> {
    let read = |row: &Row<'_>| {
        from_row!(row => CountedMessage {
            id, number,
            kind: row::word(row, "messages", "kind", Kind::parse)?,
            sender, carrier, pages, segments, unit_price, cost, released, created_at,
            reference: row::reference(row)?,
        })
    };
    query(MESSAGES, (from, below, limit)).fetch_all(conn, read).await
}

/// Returns the last day whose messages were final when it was counted, except scheduled ones.
pub async fn last_settled(conn: Conn<'_>) -> Result<Option<i64>> {
    query(LAST_SETTLED, ()).fetch_one(conn, |row| row.get("day")).await
}

/// Returns the days with scheduled messages that weren't final when the day was counted, and the
/// number of these messages.
pub async fn unfinished(conn: Conn<'_>) -> Result<Vec<(i64, i64)>> {
    let read = |row: &Row<'_>| Ok((row.get("day")?, row.get("unfinished")?));
    query(UNFINISHED, ()).fetch_all(conn, read).await
}

/// Returns the last day that has figures.
pub async fn last(conn: Conn<'_>) -> Result<Option<i64>> {
    query(LAST, ()).fetch_one(conn, |row| row.get("day")).await
}

/// Returns the days from `from` on that have figures.
pub async fn counted(conn: Conn<'_>, from: i64) -> Result<Vec<i64>> {
    query(COUNTED, from).fetch_all(conn, |row| row.get("day")).await
}

/// Stores the figures of a day and deletes the day's earlier figures. `unfinished` is the number of
/// scheduled messages that aren't final, or `None` while other messages aren't final.
pub async fn store<'f>(
    conn: Conn<'_>,
    (day, unfinished): (i64, Option<i64>),
    figures: impl IntoIterator<Item = (&'f Counted, &'f MarginFigures)>,
) -> Result<()> {
    query(FORGET, day).execute(&mut *conn).await?;
    for ((reference, rule, carrier), figures) in figures {
        // Bound in two parts, because tuples of eleven values aren't implemented: no other
        // statement needs them.
        let of = (day, reference.as_str(), rule, carrier, unfinished);
        let counts = [
            figures.messages.into(),
            figures.pages.into(),
            figures.segments.into(),
            figures.unpriced.into(),
            figures.charged.into(),
            figures.cost.into(),
        ];
        query(INSERT, of).bind(counts).execute(&mut *conn).await?;
    }
    Ok(())
}

/// Returns the sums by day. Each row's name is the number of the day.
pub async fn by_day(conn: Conn<'_>, (from, to): (i64, i64)) -> Result<Vec<MarginRow>> {
    query(BY_DAY, (from, to)).fetch_all(conn, named).await
}

/// Returns the sums by price rule, at most `limit`.
pub async fn by_rule(conn: Conn<'_>, (from, to): (i64, i64), limit: i64) -> Result<Vec<MarginRow>> {
    query(BY_RULE, (from, to, limit)).fetch_all(conn, named).await
}

/// Returns the sums by application, at most `limit`, the highest charges first.
pub async fn by_application(
    conn: Conn<'_>,
    (from, to): (i64, i64),
    limit: i64,
) -> Result<Vec<MarginRow>> {
    query(BY_APPLICATION, (from, to, limit)).fetch_all(conn, named).await
}

/// Returns the sums by day, price rule and application, at most `limit`.
pub async fn lines(conn: Conn<'_>, (from, to): (i64, i64), limit: i64) -> Result<Vec<MarginLine>> {
    let read = |row: &Row<'_>| {
        from_row!(row => MarginLine {
            day, rule, reference: row::reference(row)?, figures: figures(row)?,
        })
    };
    query(LINES, (from, to, limit)).fetch_all(conn, read).await
}

fn named(row: &Row<'_>) -> Result<MarginRow> {
    Ok(MarginRow { name: row.get("name")?, figures: figures(row)? })
}

fn figures(row: &Row<'_>) -> Result<MarginFigures> {
    from_row!(row => MarginFigures { messages, pages, segments, unpriced, charged, cost })
}
