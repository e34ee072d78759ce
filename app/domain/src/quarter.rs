//! Message figures by quarter hour: accepted messages and their cost, deliveries by delivery time,
//! and messages that weren't delivered.
//!
//! In every time zone in use, days begin on a quarter hour of UTC. The hours and days of any zone
//! are therefore sums of these figures.

use serde::{Deserialize, Serialize};

use crate::status::StatusCounts;
use crate::{MessageStatus, Money, Timestamp};

/// The length of a quarter hour in milliseconds.
pub const QUARTER_MS: i64 = 900_000;

/// The upper limits of the delivery time buckets, in milliseconds. A message counts in the first
/// bucket whose limit it doesn't exceed. One more bucket counts the messages that exceed all
/// limits.
pub const DELIVERY_TIMES_MS: [i64; 14] = [
    1_000, 2_000, 3_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 900_000,
    3_600_000, 21_600_000, 86_400_000,
];

/// The number of delivery time buckets.
pub const DELIVERY_TIMES: usize = DELIVERY_TIMES_MS.len() + 1;

/// A figure about the messages that were accepted within a quarter hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Figure {
    /// All accepted messages.
    Accepted,
    /// Delivered messages in one delivery time bucket: the index of its limit in
    /// [`DELIVERY_TIMES_MS`], or the next index for the bucket above all limits.
    Delivered(usize),
    /// Messages with another final status.
    Ended(MessageStatus),
}

impl Figure {
    /// Returns the figure that counts a message with a final status, or `None` for other statuses.
    /// `took_ms` is the time from when the message was due to its final status.
    pub fn of_ending(status: MessageStatus, took_ms: i64) -> Option<Self> {
        match status {
            MessageStatus::Delivered => {
                let bucket = DELIVERY_TIMES_MS.partition_point(|limit| *limit < took_ms);
                Some(Self::Delivered(bucket))
            }
            _ => status.is_final().then_some(Self::Ended(status)),
        }
    }
}

/// The figures of the messages that were accepted within a quarter hour, an hour or a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    pub accepted: i64,
    /// The cost of the messages, minus released amounts.
    pub cost: Money,
    /// The number of delivered messages in each bucket, in the order of [`DELIVERY_TIMES_MS`].
    pub delivered: [i64; DELIVERY_TIMES],
    /// The number of messages with each final status but `Delivered`.
    pub ended: StatusCounts,
}

impl Figures {
    /// Adds `n` to a figure. `cost` is the cost of the messages, or a released amount as a negative
    /// number.
    pub fn add_to(&mut self, figure: Figure, n: i64, cost: Money) {
        let count = match figure {
            Figure::Accepted => &mut self.accepted,
            Figure::Delivered(bucket) => &mut self.delivered[bucket.min(DELIVERY_TIMES - 1)],
            Figure::Ended(status) => self.ended.get_mut(status),
        };
        *count = count.saturating_add(n);
        self.cost = self.cost.checked_add(cost).unwrap_or(self.cost);
    }

    /// Adds other figures to these.
    pub fn add(&mut self, other: &Self) {
        for (bucket, n) in other.delivered.iter().enumerate() {
            self.add_to(Figure::Delivered(bucket), *n, Money::ZERO);
        }
        self.ended.add(&other.ended);
        self.add_to(Figure::Accepted, other.accepted, other.cost);
    }

    /// Returns the number of delivered messages.
    pub fn delivered(&self) -> i64 {
        self.delivered.iter().sum()
    }

    /// Returns the number of messages with this final status.
    pub fn of_status(&self, status: MessageStatus) -> i64 {
        match status {
            MessageStatus::Delivered => self.delivered(),
            _ => self.ended.get(status),
        }
    }

    /// Returns the number of messages without a final status.
    pub fn under_way(&self) -> i64 {
        self.accepted - self.delivered() - self.ended.total()
    }

    /// Returns the time within which `percent` of the delivered messages were delivered. The time
    /// is a limit from [`DELIVERY_TIMES_MS`], or `Some(None)` if it exceeds the last limit. Returns
    /// `None` if no message was delivered yet.
    pub fn delivered_within_ms(&self, percent: i64) -> Option<Option<i64>> {
        let delivered = self.delivered();
        if delivered == 0 {
            return None;
        }
        let wanted = delivered.saturating_mul(percent);
        let mut sum = 0;
        let bucket = self.delivered.iter().position(|n| {
            sum += n;
            sum * 100 >= wanted
        });
        bucket.map(|bucket| DELIVERY_TIMES_MS.get(bucket).copied())
    }
}

/// A range of quarter hours, and the periods (hours or days) into which to sum their figures. The
/// zone's clocks don't change within a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuarterRange {
    /// The first quarter hour, counted since 1970-01-01 UTC.
    pub first: i64,
    /// The quarter hour after the last one.
    pub below: i64,
    /// How many quarter hours the zone is ahead of UTC.
    pub ahead: i64,
    /// The number of quarter hours in a period. Periods are counted since 1970-01-01 in the zone.
    pub length: i64,
}

impl Timestamp {
    /// Returns the quarter hour, counted since 1970-01-01 UTC.
    pub const fn quarter(self) -> i64 {
        self.unix_ms().div_euclid(QUARTER_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_delivery_time_is_counted_by_the_first_limit_that_holds_it() {
        let bucket = |ms| Figure::of_ending(MessageStatus::Delivered, ms);
        for (ms, expected) in
            [(-5, 0), (0, 0), (1_000, 0), (1_001, 1), (86_400_000, 13), (86_400_001, 14)]
        {
            assert_eq!(bucket(ms), Some(Figure::Delivered(expected)), "{ms}");
        }
        assert_eq!(Figure::of_ending(MessageStatus::Submitted, 5), None);
        let failed = Figure::of_ending(MessageStatus::Failed, 5);
        assert_eq!(failed, Some(Figure::Ended(MessageStatus::Failed)));
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
        quarter.add_to(Figure::Ended(MessageStatus::Rejected), 1, Money::ZERO);
        hour.add(&quarter);
        hour.add(&quarter);
        assert_eq!((hour.accepted, hour.cost), (10, money("0.5")));
        assert_eq!((hour.delivered(), hour.of_status(MessageStatus::Rejected)), (4, 2));
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
