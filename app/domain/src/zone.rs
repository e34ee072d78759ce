//! Time zones for pages. Each has a name, and its offsets from UTC with the times at which they
//! begin. The server takes the offsets from its time zone database, so browsers don't need one.

use serde::{Deserialize, Serialize};

use crate::quarter::QUARTER_MS;
use crate::timestamp::{DAY_MS, Timestamp};

/// An offset from UTC: the time at which it begins, its minutes (positive in the east), and its
/// short name, like `CET` or `UTC+5:45`.
pub type Offset = (Timestamp, i32, String);

const MINUTE_MS: i64 = 60_000;
const HOUR_MS: i64 = 60 * MINUTE_MS;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Zone {
    /// The name in the IANA time zone database.
    name: String,
    /// Each offset holds until the next one begins. The first one also holds before it begins.
    /// Empty for UTC.
    offsets: Vec<Offset>,
}

/// UTC is the default.
impl Default for Zone {
    fn default() -> Self {
        Self { name: "UTC".to_owned(), offsets: Vec::new() }
    }
}

impl Zone {
    /// Creates a zone from offsets in chronological order. Returns UTC if there are none.
    pub fn new(name: String, offsets: Vec<Offset>) -> Self {
        if offsets.is_empty() {
            return Self::default();
        }
        Self { name, offsets }
    }

    pub const fn is_utc(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Returns the name in the IANA time zone database, like `Europe/Berlin`.
    pub fn name(&self) -> &str {
        &self.name
    }

    fn offset(&self, at: Timestamp) -> Option<&Offset> {
        let begun = self.offsets.partition_point(|(from, ..)| *from <= at);
        self.offsets.get(begun.saturating_sub(1))
    }

    /// Returns the offset from UTC at a time, in minutes: 60 if clocks are an hour ahead.
    pub fn offset_minutes(&self, at: Timestamp) -> i32 {
        self.offset(at).map_or(0, |(_, minutes, _)| *minutes)
    }

    /// Returns the short name of the offset at a time, like `CET`.
    pub fn short_name(&self, at: Timestamp) -> &str {
        self.offset(at).map_or("UTC", |(_, _, name)| name)
    }

    /// Returns the local time of the zone as if it were a time in UTC.
    fn shown(&self, at: Timestamp) -> Timestamp {
        at.plus_ms(i64::from(self.offset_minutes(at)) * MINUTE_MS)
    }

    /// Formats a time for tables, in the zone: `2026-11-21 05:04:31`.
    pub fn to_table(&self, at: Timestamp) -> String {
        self.shown(at).to_table()
    }

    /// Returns the day in the zone's calendar at a time, counted since 1970-01-01.
    pub fn day(&self, at: Timestamp) -> i64 {
        self.shown(at).day()
    }

    /// Returns the time at which a day begins in the zone's calendar. Days are counted since
    /// 1970-01-01. If clocks skip midnight, the day begins later. A day that the calendar skips
    /// begins when the next one does.
    pub fn start_of_day(&self, day: i64) -> Timestamp {
        let midnight = day.saturating_mul(DAY_MS);
        let mut start = Timestamp::from_unix_ms(midnight);
        // Find the first offset under which the zone's clocks reach midnight.
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

    /// Returns the time at which the zone's clocks show `local`, which is written as if it were a
    /// time in UTC. Returns the earlier time if the clocks show it twice, and a time close to the
    /// change if they skip it.
    pub fn time_of(&self, local: Timestamp) -> Timestamp {
        let at = |minutes: i32| local.plus_ms(-i64::from(minutes) * MINUTE_MS);
        let offsets = self.offsets.iter().map(|(_, minutes, _)| at(*minutes));
        let shown = offsets.filter(|at| self.shown(*at) == local).min();
        shown.unwrap_or_else(|| at(self.offset_minutes(local)))
    }

    /// Returns the times at which an hour of a day begins and ends, by the zone's clocks. An hour
    /// that clocks repeat includes both passes. An hour that they skip ends when it begins. Clocks
    /// change by whole quarter hours.
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

    /// Splits a time range where clocks change. Returns each part with its offset from UTC in
    /// minutes.
    pub fn parts(&self, from: Timestamp, below: Timestamp) -> Vec<(Timestamp, Timestamp, i32)> {
        let changes = self.offsets.iter().map(|(at, ..)| *at);
        let inner = changes.filter(|at| (from..below).contains(at) && *at > from);
        let mut begins: Vec<_> = std::iter::once(from).chain(inner).collect();
        begins.push(below);
        let parts = begins.windows(2).filter(|part| part[0] < part[1]);
        parts.map(|part| (part[0], part[1], self.offset_minutes(part[0]))).collect()
    }
}
