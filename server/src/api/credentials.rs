//! The key of a request: in the path, else in the header.

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;

use super::route::PathKey;

/// The text that should be a key. It has no `Debug`: it must not get into a log.
pub struct KeyText(Option<String>);

impl KeyText {
    /// A key in the path wins, even over a better one in the header.
    pub fn find(in_path: &PathKey, headers: &HeaderMap) -> Self {
        Self(match in_path {
            // What isn't UTF-8 is no key, and must not fall back to the header.
            PathKey::Given(text) => Some(text.clone().unwrap_or_default()),
            PathKey::Absent => bearer(headers).map(str::to_owned),
        })
    }

    /// `None` when the request has no key at all.
    pub fn as_deref(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// The token of `Authorization: Bearer …` (RFC 6750 §2.1; the scheme in any case, RFC 9110 §11.1).
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
