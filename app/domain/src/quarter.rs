//! Figures of messages by quarter hour: how many were accepted and what they cost, how many were
//! delivered and after what time, and how many were not.
//!
//! Every time zone that is in use begins its days with a quarter hour of UTC, so that hours and
//! days of any zone are sums of these figures.

use serde::{Deserialize, Serialize};

use crate::{MessageStatus, Money, Timestamp};

/// The length of a quarter hour in milliseconds.
pub const QUARTER_MS: i64 = 900_000;

/// Delivery times are counted by the first of these that isn't exceeded, in milliseconds; those
/// that exceed all of them are counted together.
pub const DELIVERY_TIMES_MS: [i64; 14] = [
    1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 900_000,
    3_600_000, 21_600_000, 86_400_000,
];

/// How many delivery times are told apart.
pub const DELIVERY_TIMES: usize = DELIVERY_TIMES_MS.len() + 1;

/// One figure of the messages that were accepted within a quarter hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// All of them.
    Accepted,
    /// Those that were delivered after a time: its place in [`DELIVERY_TIMES_MS`].
    Delivered(usize),
    Failed,
    Expired,
    Rejected,
}

impl Figure {
    /// The figure that counts a message with a final status; `None` for other statuses. `took_ms`
    /// is the time from the acceptance until now.
    pub fn of_ending(status: MessageStatus, took_ms: i64) -> Option<Self> {
        match status {
            MessageStatus::Delivered => Some(Self::Delivered(
                DELIVERY_TIMES_MS.partition_point(|limit| *limit < took_ms),
            )),
            MessageStatus::Failed => Some(Self::Failed),
            MessageStatus::Expired => Some(Self::Expired),
            MessageStatus::Rejected => Some(Self::Rejected),
            MessageStatus::Queued
            | MessageStatus::Sending
            | MessageStatus::Unknown
            | MessageStatus::Submitted => None,
        }
    }
}

/// The figures of the messages that were accepted within a quarter hour, an hour or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    pub accepted: i64,
    /// What they cost, without what was released.
    pub cost: Money,
    /// How many were delivered after which time, in the order of [`DELIVERY_TIMES_MS`].
    pub delivered: [i64; DELIVERY_TIMES],
    pub failed: i64,
    pub expired: i64,
    pub rejected: i64,
}

impl Figures {
    /// Adds to a figure; `cost` is what the messages cost or, negative, what was released.
    pub fn add_to(&mut self, figure: Figure, n: i64, cost: Money) {
        let count = match figure {
            Figure::Accepted => &mut self.accepted,
            Figure::Delivered(place) => &mut self.delivered[place.min(DELIVERY_TIMES - 1)],
            Figure::Failed => &mut self.failed,
            Figure::Expired => &mut self.expired,
            Figure::Rejected => &mut self.rejected,
        };
        *count = count.saturating_add(n);
        self.cost = self.cost.checked_add(cost).unwrap_or(self.cost);
    }

    /// Adds other figures to these.
    pub fn add(&mut self, other: &Self) {
        for (place, n) in other.delivered.iter().enumerate() {
            self.add_to(Figure::Delivered(place), *n, Money::ZERO);
        }
        self.add_to(Figure::Failed, other.failed, Money::ZERO);
        self.add_to(Figure::Expired, other.expired, Money::ZERO);
        self.add_to(Figure::Rejected, other.rejected, Money::ZERO);
        self.add_to(Figure::Accepted, other.accepted, other.cost);
    }

    /// How many were delivered.
    pub fn delivered(&self) -> i64 {
        self.delivered.iter().sum()
    }

    /// How many have no final status yet.
    pub fn under_way(&self) -> i64 {
        self.accepted - self.delivered() - self.failed - self.expired - self.rejected
    }

    /// The time within which so many of a hundred delivered messages were delivered: a limit of
    /// [`DELIVERY_TIMES_MS`], or `Some(None)` when more than the last one. `None` before any is
    /// delivered.
    pub fn delivered_within_ms(&self, percent: i64) -> Option<Option<i64>> {
        let delivered = self.delivered();
        if delivered == 0 {
            return None;
        }
        let wanted = delivered.saturating_mul(percent);
        let mut sum = 0;
        let place = self.delivered.iter().position(|n| {
            sum += n;
            sum * 100 >= wanted
        });
        place.map(|place| DELIVERY_TIMES_MS.get(place).copied())
    }
}

/// Some quarter hours, and the periods whose figures are wanted of them: hours, or days. The clocks
/// of a zone don't change within a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarterRange {
    /// The first quarter hour since 1970-01-01 UTC.
    pub first: i64,
    /// The quarter hour after the last one.
    pub below: i64,
    /// By how many quarter hours the zone is ahead of UTC.
    pub ahead: i64,
    /// How many quarter hours a period has. Periods are counted since 1970-01-01 in the zone.
    pub length: i64,
}

impl Timestamp {
    /// Quarter hours since 1970-01-01, UTC.
    pub const fn quarter(self) -> i64 {
        self.unix_ms().div_euclid(QUARTER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_time_is_counted_by_the_first_limit_that_holds_it() {
        let place = |ms| Figure::of_ending(MessageStatus::Delivered, ms);
        for (ms, expected) in [
            (-5, 0),
            (0, 0),
            (1_000, 0),
            (1_001, 1),
            (86_400_000, 13),
            (86_400_001, 14),
        ] {
            assert_eq!(place(ms), Some(Figure::Delivered(expected)), "{ms}");
        }
        assert_eq!(Figure::of_ending(MessageStatus::Submitted, 5), None);
        let failed = Figure::of_ending(MessageStatus::Failed, 5);
        assert_eq!(failed, Some(Figure::Failed));
    }

    #[test]
    fn times_within_which_messages_were_delivered() {
        let mut figures = Figures::default();
        assert_eq!(figures.delivered_within_ms(50), None);
        figures.add_to(Figure::Delivered(1), 50, Money::ZERO);
        figures.add_to(Figure::Delivered(4), 45, Money::ZERO);
        figures.add_to(Figure::Delivered(14), 5, Money::ZERO);
        assert_eq!(figures.delivered_within_ms(50), Some(Some(2_000)));
        assert_eq!(figures.delivered_within_ms(51), Some(Some(10_000)));
        assert_eq!(figures.delivered_within_ms(95), Some(Some(10_000)));
        assert_eq!(figures.delivered_within_ms(96), Some(None));
    }

    #[test]
    fn figures_are_added_up() {
        let money = |text| Money::parse(text).unwrap();
        let mut hour = Figures::default();
        let mut quarter = Figures::default();
        quarter.add_to(Figure::Accepted, 5, money("0.25"));
        quarter.add_to(Figure::Delivered(2), 2, Money::ZERO);
        quarter.add_to(Figure::Rejected, 1, Money::ZERO);
        hour.add(&quarter);
        hour.add(&quarter);
        assert_eq!((hour.accepted, hour.cost), (10, money("0.5")));
        assert_eq!((hour.delivered(), hour.rejected), (4, 2));
        assert_eq!(hour.under_way(), 4);
    }

    #[test]
    fn quarter_hours_begin_with_the_hour() {
        let at = |text| Timestamp::parse(text).unwrap().quarter();
        let first = at("2026-11-21T13:00:00Z");
        assert_eq!(first % 4, 0);
        assert_eq!(at("2026-11-21T13:14:59.999Z"), first);
        assert_eq!(at("2026-11-21T13:15:00Z"), first + 1);
    }
}
