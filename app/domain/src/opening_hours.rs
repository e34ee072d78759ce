//! Opening hours of a route: hours of the day and days of the week in a time zone.

use crate::timestamp::DAY_MS;
use crate::{Timestamp, Zone};

const MINUTE_MS: i64 = 60_000;
const MINUTES: u16 = 24 * 60;
const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
/// 1970-01-01 was a Thursday.
const FIRST_DAY: i64 = 3;

/// When a route may be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpeningHours {
    pub span: Span,
    pub days: Days,
    pub zone: Zone,
}

/// A part of each day, in minutes since midnight. It ends before `to`. If `to` is less than `from`,
/// the part lasts until the next day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    from: u16,
    to: u16,
}

/// Days of the week, beginning with Monday.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Days([bool; 7]);

impl Span {
    pub const ALL: Self = Self { from: 0, to: MINUTES };

    /// Parses `08:00-20:00`.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let (from, to) = (minute(from)?, minute(to)?);
        (from != to && from < MINUTES).then_some(Self { from, to })
    }
}

fn minute(text: &str) -> Option<u16> {
    let (hour, minute) = text.split_once(':')?;
    let two = |text: &str| (text.len() == 2).then(|| text.parse::<u16>().ok()).flatten();
    let (hour, minute) = (two(hour)?, two(minute)?);
    (minute < 60).then_some(hour * 60 + minute).filter(|minute| *minute <= MINUTES)
}

impl Days {
    pub const ALL: Self = Self([true; 7]);

    /// Parses days and ranges of days, separated by commas, like `mon-fri, sun`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut days = [false; 7];
        let day = |name: &str| DAYS.iter().position(|day| *day == name.trim());
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last) = (day(first)?, day(last)?);
            let count = (last + 7 - first) % 7;
            for place in 0..=count {
                days[(first + place) % 7] = true;
            }
        }
        Some(Self(days))
    }
}

impl OpeningHours {
    /// Whether the route may be used now. The hours after midnight belong to the day before.
    pub fn include(&self, now: Timestamp) -> bool {
        let local = now.plus_ms(i64::from(self.zone.offset_minutes(now)) * MINUTE_MS);
        let minute = local.unix_ms().rem_euclid(DAY_MS) / MINUTE_MS;
        let Span { from, to } = self.span;
        let (begun, over) = (minute >= i64::from(from), minute >= i64::from(to));
        let today = self.has_day(local.day());
        if from < to {
            return today && begun && !over;
        }
        (today && begun) || (!over && self.has_day(local.day() - 1))
    }

    /// Returns when the route opens next, or `now` if it is open.
    pub fn opening(&self, now: Timestamp) -> Timestamp {
        // A day can be as long as 25 hours, and the days of the week repeat.
        let minutes = 0..=8 * i64::from(MINUTES) + 60;
        let start = now.plus_ms(-now.unix_ms().rem_euclid(MINUTE_MS));
        let times = minutes.map(|minute| start.plus_ms(minute * MINUTE_MS).max(now));
        times.into_iter().find(|time| self.include(*time)).unwrap_or(now)
    }

    fn has_day(&self, day: i64) -> bool {
        let place = usize::try_from((day + FIRST_DAY).rem_euclid(7)).unwrap_or(0);
        self.days.0[place]
    }
}
