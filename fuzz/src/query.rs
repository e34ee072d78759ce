//! Queries and URL-encoded forms.

use heliograph::fuzzing::pairs;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};

use crate::pieces::{option, pieces};
use crate::upload::upload;

const FORM: &[u8] = b"application/x-www-form-urlencoded";

/// Pairs that are encoded again are the same pairs, and a form says the same in the query, in the
/// body, and in any pieces.
pub fn query(data: &[u8]) {
    let (seed, text) = option(data);
    let decoded = pairs(text);
    let encode = |bytes: &[u8]| percent_encode(bytes, NON_ALPHANUMERIC).to_string();
    let encoded = decoded.iter().map(|(name, value)| format!("{}={}", encode(name), encode(value)));
    assert_eq!(pairs(encoded.collect::<Vec<_>>().join("&").as_bytes()), decoded);

    let whole = (!text.is_empty()).then_some(text);
    let in_body = upload(FORM, None, whole.as_slice());
    assert_eq!(upload(FORM, None, &pieces(text, seed)), in_body);
    if let Ok(text) = str::from_utf8(text) {
        assert_eq!(upload(FORM, Some(text), &[]), in_body);
    }
}
