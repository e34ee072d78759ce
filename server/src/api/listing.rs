//! What the lists of the API have in common: how many, from where on, and no parameter that isn't
//! known.

use domain::Reason;

use super::answer::Failure;
use super::parameters::Parameters;

/// Rows per answer unless asked otherwise.
const LIMIT_DEFAULT: i64 = 100;
/// Most rows per answer.
const LIMIT_MAX: i64 = 1000;

/// Longest unknown name that is repeated: longer than any parameter's name, misspelt or not.
const NAME_BYTES_MAX: usize = 32;

/// Most rows of the answer.
pub fn limit(parameters: &Parameters) -> Result<i64, Failure> {
    Ok(read(parameters, "limit", rows)?.unwrap_or(LIMIT_DEFAULT))
}

/// Where the answer before ended.
pub fn cursor(parameters: &Parameters) -> Result<Option<String>, Failure> {
    read(parameters, "cursor", |text| {
        (!text.is_empty()).then(|| text.to_owned())
    })
}

/// A parameter that may be absent, in its own type.
pub fn read<T>(
    parameters: &Parameters,
    name: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    match parameters.optional(name, Reason::InvalidParameter)? {
        None => Ok(None),
        Some(text) => parse(text).map(Some).ok_or_else(|| Failure::invalid(name)),
    }
}

/// A misspelt filter would show too much, so that a parameter that isn't known is refused, by its
/// name and with the names that are known.
pub fn refuse_unknown(parameters: &Parameters) -> Result<(), Failure> {
    let Some(name) = parameters.unknown() else {
        return Ok(());
    };
    // What could be anything else than a misspelt parameter isn't repeated.
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    let quoted = if (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_word) {
        format!("{name} is no parameter here")
    } else {
        "There is a parameter that isn't known here".to_owned()
    };
    let known = match parameters.known() {
        [] => "there are none".to_owned(),
        names => format!("known are {}", names.join(", ")),
    };
    let detail = format!("{quoted}; {known}. Check the spelling.");
    Err(Failure::with_detail(Reason::InvalidParameter, detail))
}

/// Plain digits, 1 to 1000.
fn rows(text: &str) -> Option<i64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|limit| plain && (1..=LIMIT_MAX).contains(limit))
}
