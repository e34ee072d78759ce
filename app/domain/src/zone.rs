//! Time zones, as far as pages need them: a name, and the offsets from UTC with the times at which
//! they begin. The server makes them of its time zone database; a browser needs none.

use serde::{Deserialize, Serialize};

use crate::quarter::QUARTER_MS;
use crate::timestamp::{DAY_MS, Timestamp};

/// An offset from UTC: the time from which it holds, its minutes (more in the east), and its short
/// name, like `CET` or `UTC+5:45`.
pub type Offset = (Timestamp, i32, String);

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

/// A time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// In the time zone database of the IANA.
    name: String,
    /// Each holds until the next begins, and the first also before it begins. UTC has none.
    offsets: Vec<Offset>,
}

/// UTC.
impl Default for Zone {
    fn default() -> Self {
        Self {
            name: "UTC".to_owned(),
            offsets: Vec::new(),
        }
    }
}

impl Zone {
    /// A zone with these offsets, in the order of time; UTC if there are none.
    pub fn new(name: String, offsets: Vec<Offset>) -> Self {
        if offsets.is_empty() {
            return Self::default();
        }
        Self { name, offsets }
    }

    pub const fn is_utc(&self) -> bool {
        self.offsets.is_empty()
    }

    /// The name in the time zone database of the IANA, like `Europe/Berlin`.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn offset(&self, at: Timestamp) -> Option<&Offset> {
        let begun = self.offsets.partition_point(|(from, ..)| *from <= at);
        self.offsets.get(begun.saturating_sub(1))
    }

    /// The offset from UTC at a time, in minutes: 60 where clocks are an hour ahead.
    pub fn offset_minutes(&self, at: Timestamp) -> i32 {
        self.offset(at).map_or(0, |(_, minutes, _)| *minutes)
    }

    /// The short name of the offset at a time, like `CET`.
    pub fn short_name(&self, at: Timestamp) -> &str {
        self.offset(at).map_or("UTC", |(_, _, name)| name)
    }

    /// What the clocks of the zone show at a time, as if they were clocks of UTC.
    fn shown(&self, at: Timestamp) -> Timestamp {
        at.plus_ms(i64::from(self.offset_minutes(at)) * MINUTE_MS)
    }

    /// The date and time of the zone at a time, for tables: `2026-11-21 05:04:31`.
    pub fn to_table(&self, at: Timestamp) -> String {
        self.shown(at).to_table()
    }

    /// The day of the zone's calendar at a time, counted since 1970-01-01.
    pub fn day(&self, at: Timestamp) -> i64 {
        self.shown(at).day()
    }

    /// The time at which a day of the zone's calendar, counted since 1970-01-01, begins.
    /// That is later than midnight where clocks skip midnight. A day that the calendar skips begins
    /// with the next one.
    pub fn start_of_day(&self, day: i64) -> Timestamp {
        let midnight = day.saturating_mul(DAY_MS);
        let mut start = Timestamp::from_unix_ms(midnight);
        // The offset under which the zone's clocks show midnight or later for the first time.
        for (place, (from, minutes, _)) in self.offsets.iter().enumerate() {
            let at = Timestamp::from_unix_ms(midnight - i64::from(*minutes) * MINUTE_MS);
            start = if place > 0 { at.max(*from) } else { at };
            let next = self.offsets.get(place + 1);
            if next.is_none_or(|(next, ..)| start < *next) {
                break;
            }
        }
        start
    }

    /// When an hour of a day's clocks begins and ends. Where the clocks show the hour twice it has
    /// both; where they skip it, it ends as it begins. Clocks are changed by whole quarter hours.
    pub fn hour(&self, day: i64, hour: i64) -> (Timestamp, Timestamp) {
        let end = self.start_of_day(day + 1);
        let from = |mut at: Timestamp, is_reached: &dyn Fn(i64) -> bool| {
            while at < end && !is_reached(self.shown(at).unix_ms().rem_euclid(DAY_MS) / HOUR_MS) {
                at = at.plus_ms(QUARTER_MS);
            }
            at
        };
        let begin = from(self.start_of_day(day), &|shown| shown >= hour);
        (begin, from(begin, &|shown| shown > hour))
    }

    /// The parts of a range of time within which the clocks aren't changed, each with its offset
    /// from UTC in minutes.
    pub fn parts(&self, from: Timestamp, below: Timestamp) -> Vec<(Timestamp, Timestamp, i32)> {
        let changes = self.offsets.iter().map(|(at, ..)| *at);
        let inner = changes.filter(|at| (from..below).contains(at) && *at > from);
        let mut begins: Vec<_> = std::iter::once(from).chain(inner).collect();
        begins.push(below);
        let parts = begins.windows(2).filter(|part| part[0] < part[1]);
        parts
            .map(|part| (part[0], part[1], self.offset_minutes(part[0])))
            .collect()
    }
}
