//! Calendar months in UTC.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;

const NAMES: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A calendar month in UTC, from 1970-01 to 9998-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Month {
    year: u16,
    /// 1 to 12.
    month: u8,
}

impl Month {
    /// Returns the month of a time.
    pub fn of(at: Timestamp) -> Self {
        let date = at.to_date();
        date.get(..7).and_then(Self::parse).unwrap_or(Self { year: 1970, month: 1 })
    }

    /// Parses a month like `2026-10`.
    pub fn parse(text: &str) -> Option<Self> {
        let (year, month) = text.split_once('-')?;
        let is_number = |text: &str, length| {
            text.len() == length && text.bytes().all(|byte| byte.is_ascii_digit())
        };
        if !is_number(year, 4) || !is_number(month, 2) {
            return None;
        }
        let (year, month) = (year.parse().ok()?, month.parse().ok()?);
        let is_month = (1970..=9998).contains(&year) && (1..=12).contains(&month);
        is_month.then_some(Self { year, month })
    }

    pub fn start(self) -> Timestamp {
        let day = Timestamp::parse_typed(&format!("{self}-01"));
        day.unwrap_or(Timestamp::from_unix_ms(0))
    }

    pub const fn next(self) -> Self {
        let Self { year, month } = self;
        match month {
            12 => Self { year: year + 1, month: 1 },
            _ => Self { year, month: month + 1 },
        }
    }

    pub const fn previous(self) -> Self {
        let Self { year, month } = self;
        match month {
            1 => Self { year: year - 1, month: 12 },
            _ => Self { year, month: month - 1 },
        }
    }

    /// Returns the name, like `October 2026`.
    pub fn name(self) -> String {
        let name = NAMES.get(usize::from(self.month).wrapping_sub(1));
        format!("{} {}", name.unwrap_or(&""), self.year)
    }
}

/// Displays the month like `2026-10`.
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}
