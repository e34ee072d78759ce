//! Balances of applications that get money back.

use super::query::{Connection, query};
use domain::{Money, Reference};

use super::WriteTx;
use super::dialect::Batch;
use super::row::{self, json, touched};
use crate::error::Result;

/// Locks applications, by id and by reference, in one order. Nothing where nobody else writes.
pub(crate) async fn lock(
    tx: &mut WriteTx<'_>,
    ids: &[i64],
    references: &[Reference],
) -> Result<()> {
    if let Some(statement) = tx.batch().lock_applications {
        let locking = query(statement).bind(json(&ids)?).bind(json(&references)?);
        locking.fetch_one(tx).await?;
    }
    Ok(())
}

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
