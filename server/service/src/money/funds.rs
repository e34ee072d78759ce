//! An application's funds while requests are admitted: its balances, and how many messages its test
//! key may still send.

use domain::{KeyKind, Money, Timestamp};

use crate::money::test_money::{test_money, test_money_max};
use crate::zones;
use store::applications::{ChargedApplication, KeyRow};

/// The balances of an application, from which admitted requests are paid.
pub(crate) struct Funds {
    pub(crate) row: KeyRow,
    balance: Money,
    test_money: Money,
    test_sent: i64,
    /// The maximum number of messages that the test key may send today. `None` means no limit.
    test_max: Option<i64>,
    /// The current day of the account's time zone.
    day: i64,
    /// The price of the live messages that were accepted on that day.
    spent: Money,
}

impl Funds {
    /// `unpaid_max` is the maximum number of test messages per day for an account that has never
    /// had a deposit.
    pub(crate) fn new(row: KeyRow, now: Timestamp, unpaid_max: i64) -> Self {
        let test_money = test_money(row.test_balance, row.test_day, now);
        let day = spend_day(&row, now);
        Self {
            balance: row.balance,
            test_money,
            test_sent: row.test_sent_on(now),
            test_max: (!row.paid).then_some(unpaid_max),
            spent: row.spent_on(day),
            day,
            row,
        }
    }

    /// Returns the balance that a key of this kind spends.
    pub(crate) const fn of(&self, kind: KeyKind) -> Money {
        match kind {
            KeyKind::Live => self.balance,
            KeyKind::Test => self.test_money,
        }
    }

    /// Returns how many more messages a key of this kind may send today. `None` means no limit.
    pub(crate) fn messages_left(&self, kind: KeyKind) -> Option<i64> {
        let max = self.test_max.filter(|_| kind == KeyKind::Test)?;
        Some((max - self.test_sent).max(0))
    }

    /// Whether a key of this kind may send this many messages today.
    pub(crate) fn may_send(&self, kind: KeyKind, messages: i64) -> bool {
        self.messages_left(kind).is_none_or(|left| messages <= left)
    }

    /// Whether the application's limits allow a key of this kind to spend `cost` too on this day. A
    /// test key has spent the difference between the daily test balance and what is left of it.
    pub(crate) fn may_spend(&self, kind: KeyKind, cost: Money) -> bool {
        let spent = match kind {
            KeyKind::Live => self.spent,
            KeyKind::Test => test_money_max().checked_sub(self.test_money).unwrap_or_default(),
        };
        self.row.limits().admits_spend(spent, cost)
    }

    /// Whether most of the application's spend limit for this day is used up.
    pub(crate) fn is_nearly_spent(&self) -> bool {
        self.row.limits().is_nearly_spent(self.spent)
    }

    /// Returns the balance that would be left after spending `cost`. Returns `None` if the balance
    /// is too small.
    pub(crate) fn left(&self, kind: KeyKind, cost: Money) -> Option<Money> {
        self.of(kind).checked_sub(cost).filter(|left| *left >= Money::ZERO)
    }

    /// Spends `cost` on this many messages and returns the balance that is left. Spends nothing and
    /// returns `None` if the balance is too small.
    pub(crate) fn spend(&mut self, kind: KeyKind, cost: Money, messages: i64) -> Option<Money> {
        let left = self.left(kind, cost)?;
        match kind {
            KeyKind::Live => {
                self.balance = left;
                self.spent = self.spent.checked_add(cost).unwrap_or(self.spent);
            }
            KeyKind::Test => {
                self.test_money = left;
                self.test_sent += messages;
            }
        }
        Some(left)
    }

    /// Returns the row to write, if anything was spent.
    pub(crate) fn changed(self, now: Timestamp) -> Option<ChargedApplication> {
        let spent = self.balance != self.row.balance
            || self.test_sent != self.row.test_sent_on(now)
            || self.test_money != test_money(self.row.test_balance, self.row.test_day, now);
        spent.then(|| ChargedApplication {
            balance: self.balance,
            test_balance: self.test_money,
            test_day: now.day(),
            test_sent: self.test_sent,
            spent_day: self.day.max(self.row.spent_day),
            spent_today: self.spent,
            before: self.row,
        })
    }
}

/// Returns the day of the account's time zone on which an application spends now.
pub(crate) fn spend_day(row: &KeyRow, now: Timestamp) -> i64 {
    zones::day(row.limits().zone.as_deref(), now)
}
