//! The dates of a receipt.

use time::{Date, Month, Time};

/// Parses `YYMMDDhhmm`, optionally with seconds and with a century, into Unix milliseconds. Returns
/// `None` if the text isn't a date.
pub(super) fn milliseconds(text: &str) -> Option<i64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let short = || read(2000 + text[..2].parse::<i32>().ok()?, &text[2..]);
    let long = || read(text[..4].parse().ok()?, &text[4..]);
    match text.len() {
        10 => short(),
        // Twelve digits are YYMMDDhhmmss or YYYYMMDDhhmm. If the second form is read as the first,
        // the last two digits of its year are read as the month. From 2013 on, that month is
        // invalid.
        12 => short().or_else(long),
        14 => long(),
        _ => None,
    }
}

fn read(year: i32, rest: &str) -> Option<i64> {
    let part = |at: usize| rest.get(at..at + 2).map_or(Some(0), |digits| digits.parse().ok());
    let month = Month::try_from(part(0)?).ok()?;
    let date = Date::from_calendar_date(year, month, part(2)?).ok()?;
    let time = Time::from_hms(part(4)?, part(6)?, part(8)?).ok()?;
    Some(date.with_time(time).assume_utc().unix_timestamp() * 1000)
}
