//! The cookie with the programming language that the quick start shows.

use axum::http::HeaderMap;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-language";
/// The longest time that browsers keep a cookie.
const KEPT: Duration = Duration::days(400);

pub fn make(language: &str, is_https: bool) -> Cookie<'static> {
    cookies::make(NAME, language.to_owned(), KEPT, is_https)
}

/// Returns the language in the cookie of a request.
pub fn of(headers: &HeaderMap, is_https: bool) -> Option<String> {
    cookies::brought(headers, NAME, is_https)
}
