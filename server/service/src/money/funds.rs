//! Funds: an application's money while requests are admitted against it.

use domain::{KeyKind, Money, Timestamp};

use crate::admission::play_money;
use crate::store::applications::{ChargedApplication, KeyRow};

/// The balances of an application, in the transaction that charges it.
pub(crate) struct Funds {
    pub(crate) row: KeyRow,
    balance: Money,
    play: Money,
}

impl Funds {
    pub(crate) fn new(row: KeyRow, now: Timestamp) -> Self {
        let play = play_money(row.test_balance, row.test_day, now);
        Self {
            balance: row.balance,
            play,
            row,
        }
    }

    /// The balance that a key of this kind spends.
    pub(crate) const fn of(&self, kind: KeyKind) -> Money {
        match kind {
            KeyKind::Live => self.balance,
            KeyKind::Test => self.play,
        }
    }

    /// What would be left after spending, or `None` when there isn't enough.
    pub(crate) fn left(&self, kind: KeyKind, cost: Money) -> Option<Money> {
        self.of(kind)
            .checked_sub(cost)
            .filter(|left| *left >= Money::ZERO)
    }

    /// What is left after spending, or `None` when there isn't enough.
    pub(crate) fn spend(&mut self, kind: KeyKind, cost: Money) -> Option<Money> {
        let left = self.left(kind, cost)?;
        match kind {
            KeyKind::Live => self.balance = left,
            KeyKind::Test => self.play = left,
        }
        Some(left)
    }

    /// The row to be written, if anything was spent.
    pub(crate) fn changed(self, now: Timestamp) -> Option<ChargedApplication> {
        let spent = self.balance != self.row.balance
            || self.play != play_money(self.row.test_balance, self.row.test_day, now);
        spent.then(|| ChargedApplication {
            balance: self.balance,
            test_balance: self.play,
            test_day: now.day(),
            before: self.row,
        })
    }
}
