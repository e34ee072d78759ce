//! Timestamps: stored as Unix milliseconds, written as RFC 3339 in UTC.

use std::fmt;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// The number of milliseconds in a day.
pub const DAY_MS: i64 = 86_400_000;

impl Timestamp {
    pub const fn from_unix_ms(ms: i64) -> Self {
        Self(ms)
    }

    pub const fn unix_ms(self) -> i64 {
        self.0
    }

    /// Returns the time `ms` milliseconds later.
    pub const fn plus_ms(self, ms: i64) -> Self {
        Self(self.0.saturating_add(ms))
    }

    /// Returns the milliseconds since `earlier`. Negative if this time is before it.
    pub const fn ms_since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the day in UTC, counted since 1970-01-01.
    pub const fn day(self) -> i64 {
        self.0.div_euclid(DAY_MS)
    }

    /// Returns the start of a day in UTC, counted since 1970-01-01.
    pub const fn of_day(day: i64) -> Self {
        Self(day.saturating_mul(DAY_MS))
    }

    /// Returns the date in UTC, like `2026-11-21`.
    pub fn to_date(self) -> String {
        let text = self.to_string();
        text.get(..10).unwrap_or(&text).to_owned()
    }

    /// Parses RFC 3339 with any offset, rounding down to milliseconds. Requires a `T` or a space
    /// between date and time: the library would accept any byte there, even a digit.
    pub fn parse(text: &str) -> Option<Self> {
        if !matches!(text.as_bytes().get(10), Some(b'T' | b't' | b' ')) {
            return None;
        }
        let time = OffsetDateTime::parse(text, &Rfc3339).ok()?;
        i64::try_from(time.unix_timestamp_nanos().div_euclid(1_000_000)).ok().map(Self)
    }

    /// Parses a time as people type it. This is RFC 3339, or a date in UTC with optional hours and
    /// minutes after a space or a `T`. A date alone means midnight.
    pub fn parse_typed(text: &str) -> Option<Self> {
        let text = text.trim();
        let rest = match text.len() {
            10 => "T00:00:00Z",
            16 => ":00Z",
            _ => return Self::parse(text),
        };
        Self::parse(&format!("{}{rest}", text.replacen(' ', "T", 1)))
    }

    /// Formats the time for tables, in UTC: `2026-11-21 05:04:31`.
    pub fn to_table(self) -> String {
        let text = self.to_string();
        text.get(..19).unwrap_or(&text).replace('T', " ")
    }
}

/// Displays the time like `2026-11-21T05:04:31.123Z`.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // RFC 3339 can't express years after 9999, which our clocks never reach.
        let time = OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH);
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
            time.year(),
            u8::from(time.month()),
            time.day(),
            time.hour(),
            time.minute(),
            time.second(),
            time.millisecond()
        )
    }
}
