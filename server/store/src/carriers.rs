//! Carriers: whether staff drained them, the counts of their receipts, and the state of their
//! connections.

use std::collections::BTreeMap;

use domain::Timestamp;
use domain::records::{ConnectionRecord, ConnectionState, RefusedReload};

use super::hold;
use super::query::{Conn, Row, query};
use super::row::{self, from_row};
use super::sql::{Sql, statements};
use crate::error::Result;

/// How long the stored state of a connection is valid. A running process updates it much more
/// often.
const STATE_HOLDS_MS: i64 = 15_000;

statements! {
    const ENSURE: Sql = Sql::same(r"
        INSERT INTO carriers (name) VALUES ($1) ON CONFLICT (name) DO NOTHING");
    const DRAIN: Sql = Sql::same(r"
        UPDATE carriers SET drained_at = $2 WHERE name = $1 AND drained_at IS NULL");
    const RESUME: Sql = Sql::same(r"
        UPDATE carriers SET drained_at = NULL WHERE name = $1 AND drained_at IS NOT NULL");
    const ADD_UNKNOWN_STATES: Sql = Sql::same(r"
        INSERT INTO receipt_counts (carrier, unmatched, matched, unknown_state)
        VALUES ($1, 0, 0, $2)
        ON CONFLICT (carrier)
        DO UPDATE SET unknown_state = receipt_counts.unknown_state + $2");
    const ADD_UNMATCHED: Sql = Sql::same(r"
        INSERT INTO receipt_counts (carrier, unmatched, matched)
        VALUES ($1, $2, $3)
        ON CONFLICT (carrier)
        DO UPDATE SET unmatched = receipt_counts.unmatched + $2,
            matched = receipt_counts.matched + $3");
    const ALL: Sql = Sql::same(r"
        SELECT name, drained_at FROM carriers WHERE name <> '*'");
    const RECEIPT_COUNTS: Sql = Sql::same(r"
        SELECT carrier, unmatched, matched, unknown_state FROM receipt_counts");
    const CONNECTIONS: Sql = Sql::same(r"
        SELECT carrier, number, state, since, in_flight, window_size, rate, throttled,
               last_error, last_error_at, updated_at, node
        FROM connections WHERE updated_at >= $1 ORDER BY carrier, node, number");
    const REFUSED_RELOADS: Sql = Sql::same(r"
        SELECT node, refused_at, error FROM refused_reloads ORDER BY node");
    const REFUSE_RELOAD: Sql = Sql::same(r"
        INSERT INTO refused_reloads (node, refused_at, error) VALUES ($1, $2, $3)
        ON CONFLICT (node) DO UPDATE SET refused_at = $2, error = $3");
    const FORGET_RELOAD: Sql = Sql::same("DELETE FROM refused_reloads WHERE node = $1");
    const FORGET_CONNECTIONS: Sql = Sql::same("DELETE FROM connections WHERE node = $1");
    const WRITE_CONNECTIONS: Sql = Sql::same(r"
        INSERT INTO connections (carrier, number, state, since, in_flight, window_size, rate,
            throttled, last_error, last_error_at, updated_at, node)
        {values text int text int int int int int text int common common}");
}

/// The stored state of a carrier. The default is the state of a carrier without stored rows.
#[derive(Default)]
pub struct CarrierRow {
    pub drained_at: Option<Timestamp>,
    pub receipts_unmatched: i64,
    pub receipts_matched: i64,
    pub receipts_unknown_state: i64,
}

pub async fn ensure(conn: Conn<'_>, name: &str) -> Result<()> {
    query(ENSURE, name).execute(conn).await.map(drop)
}

/// Drains a carrier. Returns false if it was already drained.
pub async fn drain(conn: Conn<'_>, name: &str, now: Timestamp) -> Result<bool> {
    Ok(query(DRAIN, (name, now)).execute(conn).await? > 0)
}

/// Ends the drain of a carrier. Returns false if it wasn't drained.
pub async fn resume(conn: Conn<'_>, name: &str) -> Result<bool> {
    Ok(query(RESUME, name).execute(conn).await? > 0)
}

/// Adds to a carrier's counts of unmatched receipts and of receipts that were matched later.
pub async fn add_unmatched(
    conn: Conn<'_>,
    name: &str,
    unmatched: usize,
    matched: usize,
) -> Result<()> {
    let values = (name, i64::try_from(unmatched).unwrap_or(0), i64::try_from(matched).unwrap_or(0));
    query(ADD_UNMATCHED, values).execute(conn).await.map(drop)
}

/// Adds to a carrier's count of receipts with an unknown state.
pub async fn add_unknown_states(conn: Conn<'_>, name: &str, count: i64) -> Result<()> {
    query(ADD_UNKNOWN_STATES, (name, count)).execute(conn).await.map(drop)
}

pub async fn all(conn: Conn<'_>) -> Result<BTreeMap<String, CarrierRow>> {
    let mut carriers: BTreeMap<String, CarrierRow> = BTreeMap::new();
    let drained: Vec<(String, _)> = query(ALL, ())
        .fetch_all(&mut *conn, |row| Ok((row.get("name")?, row.get("drained_at")?)))
        .await?;
    for (name, drained_at) in drained {
        carriers.entry(name).or_default().drained_at = drained_at;
    }
    let counts: Vec<(String, [i64; 3])> = query(RECEIPT_COUNTS, ())
        .fetch_all(conn, |row| {
            let counts = [row.get("unmatched")?, row.get("matched")?, row.get("unknown_state")?];
            Ok((row.get("carrier")?, counts))
        })
        .await?;
    for (name, [unmatched, matched, unknown_state]) in counts {
        let carrier = carriers.entry(name).or_default();
        carrier.receipts_unmatched = unmatched;
        carrier.receipts_matched = matched;
        carrier.receipts_unknown_state = unknown_state;
    }
    Ok(carriers)
}

/// Returns the names of the drained carriers.
pub async fn drained(conn: Conn<'_>) -> Result<Vec<String>> {
    let mut rows = all(conn).await?;
    rows.retain(|name, row| name != hold::ALL_CARRIERS && row.drained_at.is_some());
    Ok(rows.into_keys().collect())
}

/// Stores why a node refused to reload its settings. Without an error, stores that the node has
/// reloaded them.
pub async fn set_reload(
    conn: Conn<'_>,
    node: i64,
    error: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    let setting = match error {
        Some(error) => query(REFUSE_RELOAD, (node, now, error)),
        None => query(FORGET_RELOAD, node),
    };
    setting.execute(conn).await.map(drop)
}

/// Returns the nodes that refused their new settings and still use the earlier ones.
pub async fn refused_reloads(conn: Conn<'_>) -> Result<Vec<RefusedReload>> {
    let read = |row: &Row<'_>| {
        let (node, at) = (row.get("node")?, row.get("refused_at")?);
        Ok(RefusedReload { node, at, error: row.get("error")? })
    };
    query(REFUSED_RELOADS, ()).fetch_all(conn, read).await
}

/// Replaces the stored state of a node's connections.
pub async fn write_connections(
    conn: Conn<'_>,
    connections: &[ConnectionRecord],
    node: i64,
    now: Timestamp,
) -> Result<()> {
    let forget = query(FORGET_CONNECTIONS, node);
    forget.execute(&mut *conn).await?;
    let rows = connections.iter().map(|c| {
        (
            &c.carrier,
            c.number,
            c.state.as_str(),
            c.since,
            c.in_flight,
            c.window,
            c.rate,
            c.throttled,
            &c.last_error,
            c.last_error_at,
        )
    });
    let writing = query(WRITE_CONNECTIONS, (now, node));
    writing.execute_each(conn, rows).await.map(drop)
}

/// Returns the connections of all running processes.
pub async fn connections(conn: Conn<'_>, now: Timestamp) -> Result<Vec<ConnectionRecord>> {
    query(CONNECTIONS, now.plus_ms(-STATE_HOLDS_MS))
        .fetch_all(conn, |row| {
            from_row!(row => ConnectionRecord {
                carrier, node, number,
                state: row::word(row, "connections", "state", ConnectionState::parse)?,
                since, in_flight, window: row.get("window_size")?, rate, throttled, last_error,
                last_error_at, updated_at,
            })
        })
        .await
}
