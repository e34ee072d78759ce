//! Play money: what test keys spend.

use domain::{Money, Timestamp};

/// Play money that a test key has at the start of each day (UTC), in units.
const PLAY_MONEY_UNITS: i64 = 1_000;

/// The play money that a test key has now: the balance is topped up at the first use of a day.
pub(crate) fn play_money(stored: Money, day: i64, now: Timestamp) -> Money {
    if day < now.day() {
        play_money_max()
    } else {
        stored
    }
}

/// The play money after a top-up.
pub(crate) fn play_money_max() -> Money {
    Money::from_units(PLAY_MONEY_UNITS).unwrap_or_default()
}
