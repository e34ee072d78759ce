//! The codes of delivery errors that customers see.

use domain::DeliveryError;

/// The maximum length of a carrier's own code. An SMPP error number has two octets (SMPP 3.4,
/// 5.3.2.31), and some carriers write a longer one.
const CODE_CHARS_MAX: usize = 8;

/// Returns a stable code, followed by the carrier's own if there is one. Anything else that a
/// carrier writes there is left out.
pub(super) fn with_number(error: DeliveryError, code: Option<&str>) -> String {
    let is_code = |text: &&str| {
        text.len() <= CODE_CHARS_MAX
            && text.bytes().all(|b| b.is_ascii_alphanumeric())
            && text.bytes().any(|b| b != b'0')
    };
    let error = error.as_str();
    match code.filter(is_code) {
        Some(code) => format!("{error}_{code}"),
        None => error.to_owned(),
    }
}
