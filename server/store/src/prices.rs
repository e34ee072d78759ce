//! Prices: one row for each price change. Rows are never updated.

use domain::records::PriceChangeRecord;
use domain::{Money, Prefix, PriceChange, PriceHistory, PriceRow, Prices, Timestamp};
use serde::Deserialize;

use super::query::{Conn, Row, query};
use super::sql::{Sql, statements};
use crate::error::{Error, Fault, Result};

/// The value of `set_by` for prices that the service recorded when it started.
pub const SETTINGS: &str = "settings";

statements! {
    const VERSION: Sql = Sql::same("SELECT MAX(id) AS version FROM prices");
    /// The newest price change and the drained carriers. On PostgreSQL `run_commit_group` reads
    /// them.
    const VERSION_AND_DRAINED: Sql = Sql::sqlite(r"
        SELECT MAX(id) AS version, NULL AS name FROM prices
        UNION ALL SELECT 0, name FROM carriers WHERE drained_at IS NOT NULL");
    const CHANGES: Sql = Sql::same(r"
        SELECT id, prefix, local, international, in_force_at, set_at, cancels, set_by
        FROM prices ORDER BY id");
    const SET_BY_STAFF: Sql = Sql::same("SELECT id FROM prices WHERE set_by <> $1 LIMIT 1");
    const INSERT: Sql = Sql::same(r"
        INSERT INTO prices (prefix, local, international, in_force_at, set_at, set_by, cancels)
        VALUES ($1, $2, $3, $4, $5, $6, $7)");
}

/// Returns the ID of the newest price change, or 0 if there is none.
pub async fn version(conn: Conn<'_>) -> Result<i64> {
    let read = |row: &Row<'_>| row.get::<Option<i64>>("version");
    let version = query(VERSION, ()).fetch_one(conn, read).await?;
    Ok(version.unwrap_or(0))
}

/// Returns the ID of the newest price change and the drained carriers. A commit group needs both to
/// admit sends.
pub async fn version_and_drained(conn: Conn<'_>) -> Result<(i64, Vec<String>)> {
    let read = |row: &Row<'_>| {
        let version: Option<i64> = row.get("version")?;
        Ok((version.unwrap_or(0), row.get::<Option<String>>("name")?))
    };
    let rows = query(VERSION_AND_DRAINED, ()).fetch_all(conn, read).await?;
    let version = rows.iter().map(|(version, _)| *version).max();
    let drained = rows.into_iter().filter_map(|(_, name)| name);
    Ok((version.unwrap_or(0), drained.collect()))
}

pub async fn history(conn: Conn<'_>) -> Result<PriceHistory> {
    let rows = query(CHANGES, ()).fetch_all(conn, change).await?;
    Ok(PriceHistory::new(rows))
}

/// Returns all price changes and who set them, in the order in which they were set.
pub async fn records(conn: Conn<'_>) -> Result<Vec<PriceChangeRecord>> {
    let read = |row: &Row<'_>| {
        let PriceRow { id, change, from, set_at } = change(row)?;
        Ok(PriceChangeRecord { id, change, from, set_at, set_by: row.get("set_by")? })
    };
    query(CHANGES, ()).fetch_all(conn, read).await
}

/// Returns whether staff have set a price. All other prices come from the settings.
pub async fn are_set_by_staff(conn: Conn<'_>) -> Result<bool> {
    query(SET_BY_STAFF, SETTINGS).finds(conn).await
}

/// Stores a price change that comes into force at `from`.
pub async fn insert(
    conn: Conn<'_>,
    change: &PriceChange,
    from: Timestamp,
    (now, by): (Timestamp, &str),
) -> Result<()> {
    let (prefix, local, international, cancels) = match change {
        PriceChange::Base(prices) => (None, Some(prices.local), Some(prices.international), None),
        PriceChange::Prefix(prefix, price) => (Some(prefix.digits()), None, *price, None),
        PriceChange::Cancel(id) => (None, None, None, Some(*id)),
    };
    let row = (prefix, local, international, from, now, by, cancels);
    query(INSERT, row).execute(conn).await.map(drop)
}

/// A price change as `run_commit_group` returns it: ID, prefix, local price, international price,
/// when it comes into force, when it was set, and the ID of the change that it cancels.
#[derive(Deserialize)]
pub struct ChangeFields(i64, Option<String>, Option<Money>, Option<Money>, i64, i64, Option<i64>);

impl ChangeFields {
    pub fn read(self) -> Result<PriceRow> {
        let Self(id, prefix, local, international, from, set_at, cancels) = self;
        let corrupt = |column: &'static str, value: String| {
            Error::Failed(Fault::Corrupt { table: "prices", column: column.into(), value })
        };
        let change = match (cancels, prefix, local, international) {
            (Some(id), ..) => PriceChange::Cancel(id),
            (None, Some(prefix), ..) => {
                let parsed = Prefix::parse(&prefix).map_err(|_| corrupt("prefix", prefix))?;
                PriceChange::Prefix(parsed, international)
            }
            (None, None, Some(local), Some(international)) => {
                PriceChange::Base(Prices { local, international })
            }
            (None, ..) => return Err(corrupt("local", "null".to_owned())),
        };
        Ok(PriceRow {
            id,
            change,
            from: Timestamp::from_unix_ms(from),
            set_at: Timestamp::from_unix_ms(set_at),
        })
    }
}

fn change(row: &Row<'_>) -> Result<PriceRow> {
    let fields = ChangeFields(
        row.get("id")?,
        row.get("prefix")?,
        row.get("local")?,
        row.get("international")?,
        row.get("in_force_at")?,
        row.get("set_at")?,
        row.get("cancels")?,
    );
    fields.read()
}
