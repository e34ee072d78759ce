//! How fast an application spends its balance.

use serde::{Deserialize, Serialize};

use crate::Money;

/// What an application paid for messages on days that are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    pub paid: Money,
    /// How many days: from the first one on which something was paid to yesterday.
    pub days: i64,
}

impl Spending {
    /// Adds what was paid on days before `today`, each counted since 1970-01-01. `None` where
    /// nothing was paid.
    pub fn before(today: i64, paid: &[(i64, Money)]) -> Option<Self> {
        let over = paid
            .iter()
            .filter(|(day, paid)| *day < today && *paid > Money::ZERO);
        let first = over.clone().map(|(day, _)| *day).min()?;
        let micros = over.fold(0_i64, |sum, (_, paid)| sum.saturating_add(paid.micros()));
        Some(Self {
            paid: Money::from_micros(micros),
            days: today - first,
        })
    }

    /// How many whole days the balance lasts if as much is spent on each day as on these, on
    /// average.
    pub fn lasts_days(self, balance: Money) -> i64 {
        let balance = i128::from(balance.micros().max(0));
        let days = balance * i128::from(self.days) / i128::from(self.paid.micros().max(1));
        i64::try_from(days).unwrap_or(i64::MAX)
    }
}
