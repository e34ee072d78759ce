//! Estimates how long an application's balance will last.

use serde::{Deserialize, Serialize};

use crate::Money;

/// The amount that an application paid for messages on past days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spending {
    pub paid: Money,
    /// The number of days, from the first day with a payment to yesterday.
    pub days: i64,
}

impl Spending {
    /// Sums the payments of the days before `today`. Days are counted since 1970-01-01. Returns
    /// `None` if there were no payments.
    pub fn before(today: i64, paid: &[(i64, Money)]) -> Option<Self> {
        let over = paid.iter().filter(|(day, paid)| *day < today && *paid > Money::ZERO);
        let first = over.clone().map(|(day, _)| *day).min()?;
        let micros = over.fold(0_i64, |sum, (_, paid)| sum.saturating_add(paid.micros()));
        Some(Self { paid: Money::from_micros(micros), days: today - first })
    }

    /// Returns the number of whole days that the balance lasts at the average spending per day.
    pub fn lasts_days(self, balance: Money) -> i64 {
        let balance = i128::from(balance.micros().max(0));
        let days = balance * i128::from(self.days) / i128::from(self.paid.micros().max(1));
        i64::try_from(days).unwrap_or(i64::MAX)
    }
}
