//! The parameters that all lists of the API share: limit and cursor.

use domain::Reason;

use super::answer::{CURSOR_ALLOWED, Failure};
use super::parameters::Parameters;

/// The default number of rows per response.
const LIMIT_DEFAULT: i64 = 100;
/// The maximum number of rows per response.
const LIMIT_MAX: i64 = 1000;

/// Returns the requested number of rows, or the default.
pub fn limit(parameters: &Parameters) -> Result<i64, Failure> {
    let allowed = format!("a whole number from 1 to {LIMIT_MAX}");
    Ok(read(parameters, "limit", &allowed, rows)?.unwrap_or(LIMIT_DEFAULT))
}

/// Returns the cursor, which comes from the previous response.
pub fn cursor(parameters: &Parameters) -> Result<Option<String>, Failure> {
    read(parameters, "cursor", CURSOR_ALLOWED, |text| (!text.is_empty()).then(|| text.to_owned()))
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

/// Parses plain digits from 1 to 1000.
fn rows(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|limit| plain && (1..=LIMIT_MAX).contains(limit))
}
