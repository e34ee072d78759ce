//! Balances of applications that get money back.

use super::query::{Connection, query};
use domain::Money;

use super::dialect::Batch;
use super::row::{self, json, touched};
use crate::error::Result;

/// Balances of these applications; duplicates are fine.
pub(crate) async fn balances(
    conn: &mut dyn Connection,
    batch: &Batch,
    ids: &[i64],
) -> Result<Vec<(i64, Money)>> {
    let rows = query(batch.balances)
        .bind(json(&ids)?)
        .fetch_all(conn)
        .await?;
    rows.iter()
        .map(|row| {
            Ok((
                row::int(row, "id")?,
                Money::from_micros(row::int(row, "balance")?),
            ))
        })
        .collect()
}

/// Application, balance before, balance, play money to add.
pub(crate) async fn write_balances(
    conn: &mut dyn Connection,
    batch: &Batch,
    rows: &[(i64, i64, i64, i64)],
    play_money_max: Money,
) -> Result<()> {
    let done = query(batch.settle_applications)
        .bind(json(&rows)?)
        .bind(play_money_max.micros())
        .execute(conn)
        .await?;
    touched("applications", rows.len(), done.rows_affected())
}
