//! The parameters that lists of the API share: limit, cursor and times.

use domain::{Reason, Timestamp};

use super::answer::{CURSOR_ALLOWED, Failure};
use super::parameters::Parameters;

/// The default number of rows per response.
const LIMIT_DEFAULT: i64 = 100;
/// The maximum number of rows per response.
const LIMIT_MAX: i64 = 1000;
/// The length in bytes of a date such as 2026-11-21.
const DATE_BYTES: usize = 10;

/// The header with the cursor of a CSV file. CSV has no other place for it.
pub const NEXT_CURSOR: &str = "x-next-cursor";

/// Returns the requested number of rows, or the default.
pub fn limit(parameters: &Parameters) -> Result<i64, Failure> {
    let allowed = format!("a whole number from 1 to {LIMIT_MAX}");
    Ok(read(parameters, "limit", &allowed, rows)?.unwrap_or(LIMIT_DEFAULT))
}

/// Returns the cursor, which comes from the previous response.
pub fn cursor(parameters: &Parameters) -> Result<Option<String>, Failure> {
    read(parameters, "cursor", CURSOR_ALLOWED, |text| (!text.is_empty()).then(|| text.to_owned()))
}

/// Returns whether the response is to be a CSV file.
pub fn wants_csv(parameters: &Parameters) -> Result<bool, Failure> {
    match parameters.optional("format", Reason::InvalidParameter)? {
        None | Some("json") => Ok(false),
        Some("csv") => Ok(true),
        Some(_) => Err(Failure::invalid("format", "json or csv")),
    }
}

/// Parses an optional parameter. `allowed` describes the valid values in the error message.
pub fn read<T>(
    parameters: &Parameters,
    name: &str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    match parameters.optional(name, Reason::InvalidParameter)? {
        None => Ok(None),
        Some(text) => parse(text).map(Some).ok_or_else(|| Failure::invalid(name, allowed)),
    }
}

/// Restores the `+` of a time's offset. A form without an escaped `+` decodes it to a space.
pub fn with_plus(time: &str) -> String {
    let (before, after) = time.split_at_checked(DATE_BYTES + 1).unwrap_or((time, ""));
    format!("{before}{}", after.replace(' ', "+"))
}

/// Parses plain digits from 1 to 1000.
fn rows(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|limit| plain && (1..=LIMIT_MAX).contains(limit))
}

/// Parses a time in RFC 3339, or a date, which means midnight UTC.
pub fn time(parameters: &Parameters, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = parameters.optional(name, Reason::InvalidParameter)? else {
        return Ok(None);
    };
    let found = if text.len() == DATE_BYTES {
        Timestamp::parse(&format!("{text}T00:00:00Z"))
    } else {
        Timestamp::parse(&with_plus(text))
    };
    found.map(Some).ok_or_else(|| {
        let detail = format!(
            "{name} must be a time in RFC 3339, such as 2026-11-21T08:30:00Z, or a date in UTC, \
             such as 2026-11-21."
        );
        Failure::with_detail(Reason::InvalidParameter, detail)
    })
}
