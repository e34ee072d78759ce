//! The cookie with the language of the programs that the quick start shows.

use axum::http::HeaderMap;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-language";
/// As long as browsers keep a cookie at most.
const KEPT: Duration = Duration::days(400);

pub fn make(language: &str, is_https: bool) -> Cookie<'static> {
    cookies::make(NAME, language.to_owned(), KEPT, is_https)
}

/// The language that a request brings.
pub fn of(headers: &HeaderMap, is_https: bool) -> Option<String> {
    cookies::brought(headers, NAME, is_https)
}
