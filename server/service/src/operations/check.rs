//! The check, which verifies every invariant of the ledger and the queue by recomputing it from the
//! rows.

use domain::Money;

use crate::{MESSAGE_LIFETIME_MS, Operations, shards};
use domain::ids::Shard;
use store::error::Result;
use store::query::{At, Conn};
use store::{Tx, audit_check, check, deposits, prices, transfers};

/// How long after its lifetime a message may still not be final, in milliseconds.
const GRACE_MS: i64 = 10 * 60 * 1000;

/// The findings in one shard, or in several.
#[derive(Default)]
struct Found {
    violations: Vec<String>,
    /// The unmatched deposits according to the ledger.
    ledger: Money,
    /// The sum of the unmatched deposits.
    waiting: Money,
}

impl Operations<'_> {
    /// Returns a description of each broken invariant, and of shards that can't be reached. Returns
    /// an empty list if all invariants hold. All statements about a shard read the same snapshot of
    /// the database.
    pub async fn check(&self) -> Result<Vec<String>> {
        let found = self.in_each_shard(|shard| self.check_shard(shard)).await?;
        let checked = found.len();
        let mut all = sum(found)?;
        let left = self.shards().count() - checked;
        if left > 0 {
            let words = format!("shards that can't be reached and weren't checked: {left}");
            all.violations.push(words);
            // Findings of some shards are missing, so make the sums equal: they can't be compared.
            all.waiting = all.ledger;
        } else if all.ledger != all.waiting && checked > 1 {
            // Money may have moved between two snapshots. While this transaction is open, no other
            // verb runs.
            let mut tx = self.store().begin().await?;
            all.ledger = ledger(&mut tx, self.shards()).await?;
            all.waiting = deposits::unmatched_sum(&mut tx).await?;
        }
        let mut snapshot = self.store().snapshot().await?;
        all.violations.extend(audit_check::breaks(&mut snapshot).await?);
        let fault = prices::history(&mut self.store().read().await?).await?.fault();
        all.violations.extend(fault.map(|fault| fault.to_string()));
        Ok(all.words())
    }

    async fn check_shard(&self, shard: Shard) -> Result<Found> {
        let mut snapshot = self.store().snapshot().await?;
        let dialect = self.store().dialect();
        dialect.prepare_recount(&mut snapshot).await?;
        let found = find(&mut snapshot, shard).await?;
        Ok(found)
    }
}

async fn find(conn: Conn<'_>, shard: Shard) -> Result<Found> {
    let conn = &mut At { conn, shard };
    Ok(Found {
        violations: check::violations(conn, MESSAGE_LIFETIME_MS + GRACE_MS).await?,
        ledger: transfers::unmatched_sum(conn).await?,
        waiting: deposits::unmatched_sum(conn).await?,
    })
}

/// Returns the broken invariants as a write transaction sees the database.
pub(crate) async fn violations(tx: &mut Tx<'_>, shards: i64) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for shard in shards::all(shards) {
        found.push(find(&mut *tx, shard).await?);
    }
    let mut words = sum(found)?.words();
    words.extend(audit_check::breaks(tx).await?);
    Ok(words)
}

async fn ledger(tx: &mut Tx<'_>, shards: impl Iterator<Item = Shard>) -> Result<Money> {
    let mut ledger = Money::ZERO;
    for shard in shards {
        tx.at(shard);
        ledger = added(ledger, transfers::unmatched_sum(tx).await?)?;
    }
    Ok(ledger)
}

/// Adds up the findings in the shards. Unmatched deposits belong to no shard, and each shard's
/// findings have all of them.
fn sum(found: Vec<Found>) -> Result<Found> {
    let mut all = Found::default();
    for found in found {
        all.violations.extend(found.violations);
        all.ledger = added(all.ledger, found.ledger)?;
        all.waiting = found.waiting;
    }
    Ok(all)
}

fn added(to: Money, amount: Money) -> Result<Money> {
    let sum = to.checked_add(amount);
    sum.ok_or(crate::Error::Failed(crate::Fault::MoneyOverflow))
}

impl Found {
    fn words(mut self) -> Vec<String> {
        let (ledger, waiting) = (self.ledger.micros(), self.waiting.micros());
        if ledger != waiting {
            self.violations.push(format!("unmatched money {ledger}, unmatched deposits {waiting}"));
        }
        self.violations
    }
}
