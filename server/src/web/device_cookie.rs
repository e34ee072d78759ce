//! The cookie that identifies a browser to the accounts that signed in there.

use axum::http::HeaderMap;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-device";
/// How long a browser stays known after a sign-in.
const KEPT: Duration = Duration::days(180);

/// Makes the cookie after a sign-in.
pub fn make(text: String, is_https: bool) -> Cookie<'static> {
    cookies::make(NAME, text, KEPT, is_https)
}

/// Returns the cookie of a request.
pub fn of(headers: &HeaderMap, is_https: bool) -> Option<String> {
    cookies::brought(headers, NAME, is_https)
}
