//! Support hours: the part of the week in which staff answer, by the operator's clocks.

use serde::{Deserialize, Serialize};

use crate::quiet_hours::TimeOfDay;
use crate::timestamp::DAY_MS;
use crate::{Timestamp, Zone};

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
/// 1970-01-01 was a Thursday.
const FIRST_DAY: i64 = 3;

/// The days of the week on which staff answer, from Monday, and the hours of these days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupportHours {
    days: [bool; 7],
    from: TimeOfDay,
    to: TimeOfDay,
    /// The name of the operator's time zone.
    zone: String,
}

/// How long staff usually take for a kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UsualTime {
    pub ms: i64,
    /// The length of a working day, in milliseconds, if only support hours count. `None` if all
    /// hours do.
    pub working_day_ms: Option<i64>,
}

impl SupportHours {
    /// Parses days, hours and a time zone, such as `Mon-Fri 08:00-17:00 Africa/Maseru`. Several
    /// ranges of days are separated by commas. Doesn't check the zone.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let (ranges, hours, zone) = (words.next()?, words.next()?, words.next()?);
        let (from, to) = hours.split_once('-')?;
        let (from, to) = (TimeOfDay::parse(from)?, TimeOfDay::parse(to)?);
        if from.ms() >= to.ms() || words.next().is_some() {
            return None;
        }
        let mut days = [false; 7];
        let day = |name: &str| DAYS.iter().position(|day| *day == name);
        for range in ranges.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (day(first)?, day(last)?);
            // A range like Sat-Tue includes the end of the week.
            for after in 0..=(last + 7 - first) % 7 {
                days[(first + after) % 7] = true;
            }
        }
        Some(Self { days, from, to, zone: zone.to_owned() })
    }

    /// Returns the name of the time zone.
    pub fn zone(&self) -> &str {
        &self.zone
    }

    /// Returns the length of a working day, in milliseconds.
    pub const fn day_ms(&self) -> i64 {
        self.to.ms() - self.from.ms()
    }

    /// Returns how many milliseconds of these hours are between two times. `zone` is the operator's
    /// time zone.
    pub fn ms_between(&self, zone: &Zone, from: Timestamp, to: Timestamp) -> i64 {
        let works = |day: i64| {
            let of_week = usize::try_from((day + FIRST_DAY).rem_euclid(7));
            of_week.is_ok_and(|of_week| self.days[of_week])
        };
        let time = |day: i64, of_day: TimeOfDay| {
            zone.time_of(Timestamp::from_unix_ms(day * DAY_MS + of_day.ms()))
        };
        let days = (zone.day(from)..=zone.day(to)).filter(|day| works(*day));
        let parts = days.map(|day| {
            let (begin, end) = (time(day, self.from).max(from), time(day, self.to).min(to));
            end.ms_since(begin).max(0)
        });
        parts.sum()
    }
}
