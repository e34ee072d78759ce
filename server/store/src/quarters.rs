//! Figures of messages by quarter hour. Each transaction that changes messages also updates these
//! figures, as it does the counts by day. Hours and days of any time zone are sums of these
//! figures.

use std::collections::BTreeMap;

use domain::quarter::{Figure, Figures, QuarterRange};
use domain::{ApplicationId, MessageStatus, Money, Timestamp};

use super::query::{Conn, Row, query};
use super::sql::{Sql, statements};
use crate::error::{Error, Fault, Result};

statements! {
    const PERIODS: Sql = Sql::in_shard(r"
        SELECT (quarter + $3) / $4 AS period, figure, CAST(SUM(n) AS BIGINT) AS n,
               CAST(SUM(cost) AS BIGINT) AS cost
        FROM message_quarters WHERE application_id = $1 AND test = $2 AND quarter >= $5
          AND quarter < $6{ AND shard = $shard}
        GROUP BY 1, 2");
    /// `$1` is `[[application, test, quarter, figure, n to add, cost to add]]`.
    const ADD: Sql = Sql {
        sqlite: r"
            INSERT INTO message_quarters (application_id, test, quarter, figure, n, cost, node,
                writer)
            VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
            ON CONFLICT (application_id, test, quarter, figure, node, writer)
            DO UPDATE SET n = n + ?5, cost = cost + ?6",
        postgres: r"
            INSERT INTO message_quarters (application_id, test, quarter, figure, n, cost, node,
                writer, shard)
            SELECT (value ->> 0)::bigint, (value ->> 1)::bigint, (value ->> 2)::bigint,
                   (value ->> 3)::bigint, (value ->> 4)::bigint, (value ->> 5)::bigint, $2, $3,
                   at.shard
            FROM jsonb_array_elements($1::text::jsonb) WITH ORDINALITY AS r (value, place)
            CROSS JOIN (SELECT shard FROM applications WHERE shard = $4 LIMIT 1) AS at
            ORDER BY place
            ON CONFLICT (shard, application_id, test, quarter, figure, node, writer)
            DO UPDATE SET n = message_quarters.n + excluded.n,
                cost = message_quarters.cost + excluded.cost",
        ..Sql::IN_SHARD
    };
    /// The quarter hours below `$1` whose figures aren't folded.
    const UNFOLDED: Sql = Sql::in_shard(r"
        SELECT DISTINCT quarter
        FROM message_quarters WHERE (node <> 0 OR writer <> 1) AND quarter < $1{ AND shard = $shard}
        ORDER BY quarter");
    /// Locks the figures in the order in which other transactions change them.
    const LOCK_PARTS: Sql = Sql::postgres_in_shard(r"
        SELECT COUNT(*) AS n
        FROM (
            SELECT 1
            FROM message_quarters WHERE quarter = $1 AND (node <> 0 OR writer <> 1) AND shard = $2
            ORDER BY application_id, test, figure, node, writer FOR UPDATE) q");
    /// Returns the deleted rows. A separate read could miss a figure that another transaction adds
    /// before the delete.
    const TAKE_PARTS: Sql = Sql::in_shard(r"
        DELETE FROM message_quarters
        WHERE quarter = $1 AND (node <> 0 OR writer <> 1){ AND shard = $shard}
        RETURNING application_id, test, figure, n, cost");
}

/// The key of a figure. Transactions update figures in the order of these keys.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    application_id: ApplicationId,
    test: i64,
    quarter: i64,
    /// The code in the column `figure`.
    figure: i64,
}

/// The changes that a transaction makes to the figures.
#[derive(Default)]
pub struct Changes(BTreeMap<Key, (i64, i64)>);

impl Changes {
    pub(crate) const fn none() -> Self {
        Self(BTreeMap::new())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds messages that were accepted at this time, and their cost in micro-units.
    pub(crate) fn add(
        &mut self,
        (application_id, test): (ApplicationId, i64),
        accepted_at: Timestamp,
        figure: Figure,
        (n, cost): (i64, i64),
    ) {
        let key =
            Key { application_id, test, quarter: accepted_at.quarter(), figure: code(figure) };
        let sums = self.0.entry(key).or_default();
        sums.0 += n;
        sums.1 += cost;
    }

    /// Writes the changes to the rows of a node and a writer.
    pub(crate) async fn write(self, conn: Conn<'_>, node: i64, writer: i64) -> Result<()> {
        let rows = self.0.into_iter();
        let rows = rows.map(|(key, (n, cost))| {
            let Key { application_id, test, quarter, figure } = key;
            (application_id, test, quarter, figure, n, cost)
        });
        let adding = query(ADD, (node, writer));
        adding.execute_each(conn, rows).await.map(drop)
    }
}

/// The code of the shortest delivery times. The codes of longer ones follow.
const DELIVERED: i64 = 100;

/// Returns the code in the column `figure`: 0 for all messages, a code per range of delivery times
/// for delivered messages, and the code of the status for messages with another final status.
const fn code(figure: Figure) -> i64 {
    match figure {
        Figure::Accepted => 0,
        Figure::Ended(status) => status.code(),
        Figure::Delivered(bucket) => DELIVERED + bucket.cast_signed() as i64,
    }
}

fn figure(row: &Row<'_>) -> Result<Figure> {
    let code: i64 = row.get("figure")?;
    let corrupt = || {
        Error::Failed(Fault::Corrupt {
            table: "message_quarters",
            column: "figure".into(),
            value: code.to_string(),
        })
    };
    Ok(match code {
        0 => Figure::Accepted,
        DELIVERED.. => Figure::Delivered(usize::try_from(code - DELIVERED).map_err(|_| corrupt())?),
        _ => Figure::Ended(MessageStatus::from_code(code).ok_or_else(corrupt)?),
    })
}

/// Adds an application's figures to the periods of a range.
pub async fn add_periods(
    conn: Conn<'_>,
    (application_id, test): (ApplicationId, bool),
    range: QuarterRange,
    periods: &mut BTreeMap<i64, Figures>,
) -> Result<()> {
    let read = |row: &Row<'_>| {
        let cost: Money = row.get("cost")?;
        Ok((row.get("period")?, figure(row)?, row.get("n")?, cost))
    };
    let QuarterRange { first, below, ahead, length } = range;
    let arguments = (application_id, test, ahead, length, first, below);
    let found: Vec<(i64, Figure, i64, Money)> =
        query(PERIODS, arguments).fetch_all(conn, read).await?;
    for (period, figure, n, cost) in found {
        periods.entry(period).or_default().add_to(figure, n, cost);
    }
    Ok(())
}

/// Returns the quarter hours below this one whose figures aren't folded. Such figures are in
/// several rows, or in a row that a process adds to.
pub async fn unfolded(conn: Conn<'_>, below: i64) -> Result<Vec<i64>> {
    query(UNFOLDED, below).fetch_all(conn, |row| row.get("quarter")).await
}

/// Folds a quarter hour's figures into one row per figure. Other processes may change the figures
/// meanwhile. Their changes are folded by a later call.
pub async fn fold(conn: Conn<'_>, quarter: i64) -> Result<()> {
    if conn.dialect().is_shared() {
        query(LOCK_PARTS, quarter).finds(&mut *conn).await?;
    }
    let read = |row: &Row<'_>| {
        let (application_id, test) = (row.get("application_id")?, row.get("test")?);
        let key = Key { application_id, test, quarter, figure: row.get("figure")? };
        Ok((key, (row.get("n")?, row.get("cost")?)))
    };
    let parts: Vec<(Key, (i64, i64))> =
        query(TAKE_PARTS, quarter).fetch_all(&mut *conn, read).await?;
    let mut folded = Changes::none();
    for (key, (n, cost)) in parts {
        let sums = folded.0.entry(key).or_default();
        sums.0 += n;
        sums.1 += cost;
    }
    folded.write(conn, 0, 1).await
}
