//! The test balance, which test keys spend instead of money.

use domain::{Money, Timestamp};

/// The test balance at the start of each day (UTC), in whole units of the currency.
const TEST_MONEY_UNITS: i64 = 1_000;

/// Returns the current test balance. The balance starts anew each day. `day` is the day on which
/// `stored` was stored.
pub(crate) fn test_money(stored: Money, day: i64, now: Timestamp) -> Money {
    if day < now.day() { test_money_max() } else { stored }
}

/// Returns the test balance at the start of a day.
pub(crate) fn test_money_max() -> Money {
    Money::from_units(TEST_MONEY_UNITS).unwrap_or_default()
}
