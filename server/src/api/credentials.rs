//! The key of a request: in the path, else in the header.

use axum::http::header::AUTHORIZATION;
use axum::http::{HeaderMap, HeaderValue};

use super::route::PathKey;

/// The text that should be a key. It has no `Debug`: it must not get into a log.
pub struct KeyText(Option<String>);

impl KeyText {
    /// A key in the path wins, even over a better one in the header.
    pub fn find(in_path: &PathKey, headers: &HeaderMap) -> Self {
        Self(match in_path {
            // What isn't UTF-8 is no key, and must not fall back to the header.
            PathKey::Given(text) => Some(text.clone().unwrap_or_default()),
            PathKey::Absent => in_header(headers),
        })
    }

    /// `None` when the request has no key at all.
    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// The key of the header. Of two headers, which may be of different customers, none is a key.
fn in_header(headers: &HeaderMap) -> Option<String> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => bearer(value).map(str::to_owned),
        (None, _) => None,
        (Some(_), Some(_)) => Some(String::new()),
    }
}

/// The token of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme in any case, RFC 9110 §11.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
