//! What the lists of the API have in common: how many, and from where on.

use domain::Reason;

use super::answer::{CURSOR_ALLOWED, Failure};
use super::parameters::Parameters;

/// Rows per answer unless asked otherwise.
const LIMIT_DEFAULT: i64 = 100;
/// Most rows per answer.
const LIMIT_MAX: i64 = 1000;

/// Most rows of the answer.
pub fn limit(parameters: &Parameters) -> Result<i64, Failure> {
    let allowed = format!("a whole number from 1 to {LIMIT_MAX}");
    Ok(read(parameters, "limit", &allowed, rows)?.unwrap_or(LIMIT_DEFAULT))
}

/// Where the answer before ended.
pub fn cursor(parameters: &Parameters) -> Result<Option<String>, Failure> {
    read(parameters, "cursor", CURSOR_ALLOWED, |text| {
        (!text.is_empty()).then(|| text.to_owned())
    })
}

/// A parameter that may be absent, in its own type; `allowed` says which values there are.
pub fn read<T>(
    parameters: &Parameters,
    name: &str,
    allowed: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    match parameters.optional(name, Reason::InvalidParameter)? {
        None => Ok(None),
        Some(text) => parse(text)
            .map(Some)
            .ok_or_else(|| Failure::invalid(name, allowed)),
    }
}

/// Plain digits, 1 to 1000.
fn rows(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|limit| plain && (1..=LIMIT_MAX).contains(limit))
}
