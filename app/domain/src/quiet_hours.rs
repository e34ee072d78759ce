//! Quiet hours: the part of each day in which an application's messages wait.

use serde::{Deserialize, Serialize};

use crate::timestamp::DAY_MS;
use crate::words::serde_as_text;

const MINUTE_MS: i64 = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TimeOfDay {
    hour: u8,
    minute: u8,
}

/// A part of each day, by local clocks. It begins at `from` and ends before `to`. It can include
/// midnight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuietHours {
    from: TimeOfDay,
    to: TimeOfDay,
}

impl TimeOfDay {
    /// Parses `HH:MM`, from `00:00` to `23:59`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let digit = |index: usize| text.as_bytes()[index].checked_sub(b'0').filter(|n| *n < 10);
        let two = |index| Some(digit(index)? * 10 + digit(index + 1)?);
        if text.len() != 5 || text.as_bytes()[2] != b':' {
            return None;
        }
        let (hour, minute) = (two(0)?, two(3)?);
        (hour < 24 && minute < 60).then_some(Self { hour, minute })
    }

    /// Returns the milliseconds since midnight.
    pub(crate) const fn ms(self) -> i64 {
        (self.hour as i64 * 60 + self.minute as i64) * MINUTE_MS
    }
}

impl core::fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{:02}:{:02}", self.hour, self.minute)
    }
}

serde_as_text!(TimeOfDay, |text: &str| Self::parse(text).ok_or("not a time of day"));

impl QuietHours {
    /// Parses `HH:MM-HH:MM`. Returns `None` if both times are the same, because that could mean the
    /// whole day or no time at all.
    pub fn parse(text: &str) -> Option<Self> {
        let (from, to) = text.split_once('-')?;
        let time = |text: &str| TimeOfDay::parse(text.trim());
        let hours = Self { from: time(from)?, to: time(to)? };
        (hours.from != hours.to).then_some(hours)
    }

    /// Returns when the hours begin, as `HH:MM`.
    pub fn begin(self) -> String {
        self.from.to_string()
    }

    /// Returns when the hours end, as `HH:MM`.
    pub fn end(self) -> String {
        self.to.to_string()
    }

    /// Returns the milliseconds until the hours end, if local clocks show `day_ms` milliseconds
    /// since midnight. Returns `None` outside the hours.
    pub const fn ms_left(self, day_ms: i64) -> Option<i64> {
        let since = (day_ms - self.from.ms()).rem_euclid(DAY_MS);
        let length = (self.to.ms() - self.from.ms()).rem_euclid(DAY_MS);
        if since < length { Some(length - since) } else { None }
    }
}

/// The form that [`QuietHours::parse`] accepts.
impl core::fmt::Display for QuietHours {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}-{}", self.from, self.to)
    }
}
