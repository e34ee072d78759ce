//! The cookie with the name of the browser's time zone: pages show times in it from their first byte
//! on, unless the account chose another one.

use axum::http::HeaderMap;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-time-zone";
/// As long as browsers keep a cookie at most.
const KEPT: Duration = Duration::days(400);

pub fn make(name: &str, is_https: bool) -> Cookie<'static> {
    cookies::make(NAME, name.to_owned(), KEPT, is_https)
}

/// The name that a request brings.
pub fn of(headers: &HeaderMap, is_https: bool) -> Option<String> {
    cookies::brought(headers, NAME, is_https)
}
