//! The cookie with the browser's time zone. Pages show times in that zone from the start, unless
//! the account chose another zone.

use axum::http::HeaderMap;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-time-zone";
/// The longest time that browsers keep a cookie.
const KEPT: Duration = Duration::days(400);

pub fn make(name: &str, is_https: bool) -> Cookie<'static> {
    cookies::make(NAME, name.to_owned(), KEPT, is_https)
}

/// Returns the time zone in the cookie of a request.
pub fn of(headers: &HeaderMap, is_https: bool) -> Option<String> {
    cookies::brought(headers, NAME, is_https)
}
