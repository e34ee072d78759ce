//! Counts of carriers' answers and receipts, by minute and by hour.

use std::collections::BTreeMap;

use domain::Timestamp;
use domain::carrier_figures::{CarrierCounts, CountedRefusal};

use super::query::{Conn, query};
use super::sql::{Sql, statements};
use crate::error::Result;

/// The beginning of the name of a count of refusals. The reason follows.
const REFUSED: &str = "refused:";

statements! {
    const ADD: Sql = Sql::same(r"
        INSERT INTO carrier_figures (carrier, name, count, period_ms, began_at)
        {values text text int common common}{ ORDER BY value ->> 0, value ->> 1}
        ON CONFLICT (period_ms, began_at, carrier, name)
        DO UPDATE SET count = carrier_figures.count + excluded.count");
    const SINCE: Sql = Sql::same(r"
        SELECT carrier, name, CAST(SUM(count) AS BIGINT) AS count
        FROM carrier_figures WHERE period_ms = $1 AND began_at > $2
        GROUP BY carrier, name");
    const OF_CARRIER: Sql = Sql::same(r"
        SELECT began_at, name, count FROM carrier_figures
        WHERE period_ms = $1 AND began_at > $2 AND carrier = $3");
    const REFUSALS: Sql = Sql::same(r"
        SELECT carrier, name, CAST(SUM(count) AS BIGINT) AS count FROM carrier_figures
        WHERE period_ms = $1 AND began_at > $2 AND substr(name, 1, 8) = 'refused:'
        GROUP BY carrier, name ORDER BY 3 DESC, name");
    const FORGET: Sql = Sql::same(r"
        DELETE FROM carrier_figures WHERE period_ms = $1 AND began_at < $2");
}

/// Adds counts to those of the period that began at this time.
pub async fn add(
    conn: Conn<'_>,
    (period_ms, began_at): (i64, Timestamp),
    counts: &BTreeMap<String, CarrierCounts>,
) -> Result<()> {
    let rows = counts.iter().flat_map(|(carrier, counts)| {
        let named = counts.named();
        named.map(move |(name, count)| (carrier, name, i64::try_from(count).unwrap_or(0)))
    });
    query(ADD, (period_ms, began_at)).execute_each(conn, rows).await.map(drop)
}

/// Adds counts of refusals, by carrier and reason, to those of the period that began at this time.
pub async fn add_refusals(
    conn: Conn<'_>,
    (period_ms, began_at): (i64, Timestamp),
    refusals: &BTreeMap<String, BTreeMap<String, u64>>,
) -> Result<()> {
    let mut rows = Vec::new();
    for (carrier, refusals) in refusals {
        for (reason, count) in refusals {
            let name = format!("{REFUSED}{reason}");
            rows.push((carrier.clone(), name, i64::try_from(*count).unwrap_or(0)));
        }
    }
    query(ADD, (period_ms, began_at)).execute_each(conn, rows).await.map(drop)
}

/// Returns the counts of refusals of all periods that began after this time, by carrier. The most
/// frequent reasons come first.
pub async fn refusals(
    conn: Conn<'_>,
    period_ms: i64,
    after: Timestamp,
) -> Result<BTreeMap<String, Vec<CountedRefusal>>> {
    let rows: Vec<(String, String, i64)> = query(REFUSALS, (period_ms, after))
        .fetch_all(conn, |row| Ok((row.get("carrier")?, row.get("name")?, row.get("count")?)))
        .await?;
    let mut carriers: BTreeMap<String, Vec<CountedRefusal>> = BTreeMap::new();
    for (carrier, name, count) in rows {
        let reason = name.strip_prefix(REFUSED).unwrap_or(&name).to_owned();
        let count = count.max(0).unsigned_abs();
        carriers.entry(carrier).or_default().push(CountedRefusal { reason, count });
    }
    Ok(carriers)
}

/// Returns the counts of all periods that began after this time, by carrier.
pub async fn since(
    conn: Conn<'_>,
    period_ms: i64,
    after: Timestamp,
) -> Result<BTreeMap<String, CarrierCounts>> {
    let rows: Vec<(String, String, i64)> = query(SINCE, (period_ms, after))
        .fetch_all(conn, |row| Ok((row.get("carrier")?, row.get("name")?, row.get("count")?)))
        .await?;
    let mut carriers: BTreeMap<String, CarrierCounts> = BTreeMap::new();
    for (carrier, name, count) in rows {
        carriers.entry(carrier).or_default().add_named(&name, count.max(0).unsigned_abs());
    }
    Ok(carriers)
}

/// Returns the counts of a carrier, for each period that began after this time and has counts.
pub async fn of_carrier(
    conn: Conn<'_>,
    period_ms: i64,
    after: Timestamp,
    carrier: &str,
) -> Result<BTreeMap<Timestamp, CarrierCounts>> {
    let rows: Vec<(Timestamp, String, i64)> = query(OF_CARRIER, (period_ms, after, carrier))
        .fetch_all(conn, |row| Ok((row.get("began_at")?, row.get("name")?, row.get("count")?)))
        .await?;
    let mut periods: BTreeMap<Timestamp, CarrierCounts> = BTreeMap::new();
    for (began_at, name, count) in rows {
        periods.entry(began_at).or_default().add_named(&name, count.max(0).unsigned_abs());
    }
    Ok(periods)
}

/// Deletes the counts of periods that began before this time.
pub async fn forget(conn: Conn<'_>, period_ms: i64, before: Timestamp) -> Result<()> {
    query(FORGET, (period_ms, before)).execute(conn).await.map(drop)
}
