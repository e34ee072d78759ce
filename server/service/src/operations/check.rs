//! The check: counts every invariant of the ledger and the queue again.

use domain::Money;

use crate::error::Result;
use crate::store::query::{At, Connection};
use crate::store::{WriteTx, audit_check, check, deposits, prices, transfers};
use crate::{MESSAGE_LIFETIME_MS, Service, homes};
use domain::ids::Home;

/// How long after its lifetime a message may take to become final.
const GRACE_MS: i64 = 10 * 60 * 1000;

/// What was found in one home or several.
#[derive(Default)]
struct Found {
    violations: Vec<String>,
    /// What the ledger has of deposits whose reference is nobody's.
    ledger: Money,
    /// The sum of these deposits.
    waiting: Money,
}

impl Service {
    /// Every broken invariant in words; empty when all hold. All statements about a home see the
    /// same snapshot of the database. A home that can't be reached is one of the words.
    ///
    /// # Errors
    /// `Failed` when the database can't be read.
    pub async fn check(&self) -> Result<Vec<String>> {
        let found = self.in_each_home(|home| self.check_home(home)).await?;
        let checked = found.len();
        let mut all = sum(found)?;
        let left = self.homes().count() - checked;
        if left > 0 {
            let words = format!("homes that can't be reached and weren't checked: {left}");
            all.violations.push(words);
            // The sums are of all homes.
            all.waiting = all.ledger;
        } else if all.ledger != all.waiting && checked > 1 {
            // Money may have moved between two snapshots. No other verb runs meanwhile.
            let mut tx = self.store().begin().await?;
            all.ledger = ledger(&mut tx, self.homes()).await?;
            all.waiting = deposits::unmatched_sum(&mut tx).await?;
        }
        let mut snapshot = self.store().snapshot().await?;
        all.violations
            .extend(audit_check::breaks(&mut snapshot).await?);
        snapshot.rollback().await?;
        let mut conn = self.store().read().await?;
        let fault = prices::history(&mut conn).await?.fault();
        all.violations.extend(fault.map(|fault| fault.to_string()));
        Ok(all.words())
    }

    async fn check_home(&self, home: Home) -> Result<Found> {
        let mut snapshot = self.store().snapshot().await?;
        let dialect = self.store().dialect();
        dialect.prepare_recount(&mut snapshot).await?;
        let found = find(&mut snapshot, home).await?;
        snapshot.rollback().await?;
        Ok(found)
    }
}

async fn find(conn: &mut dyn Connection, home: Home) -> Result<Found> {
    let conn = &mut At { conn, home };
    Ok(Found {
        violations: check::violations(conn, MESSAGE_LIFETIME_MS + GRACE_MS).await?,
        ledger: transfers::unmatched_sum(conn).await?,
        waiting: deposits::unmatched_sum(conn).await?,
    })
}

/// Every broken invariant, as a transaction that writes sees the database.
pub(crate) async fn violations(tx: &mut WriteTx<'_>, homes: i64) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for home in homes::all(homes) {
        found.push(find(&mut *tx, home).await?);
    }
    let mut words = sum(found)?.words();
    words.extend(audit_check::breaks(tx).await?);
    Ok(words)
}

async fn ledger(tx: &mut WriteTx<'_>, homes: impl Iterator<Item = Home>) -> Result<Money> {
    let mut ledger = Money::ZERO;
    for home in homes {
        tx.at(home);
        ledger = added(ledger, transfers::unmatched_sum(tx).await?)?;
    }
    Ok(ledger)
}

/// The sum of what was found in the homes. The unmatched deposits belong to no home, and were read
/// with each home.
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
            self.violations.push(format!(
                "unmatched money {ledger}, unmatched deposits {waiting}"
            ));
        }
        self.violations
    }
}
