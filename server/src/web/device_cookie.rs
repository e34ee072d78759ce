//! The cookie by which a browser is known to an account that was signed in there.

use axum::http::HeaderMap;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-device";
/// How long a browser stays known after a sign-in.
const KEPT: Duration = Duration::days(180);

/// The cookie that a sign-in makes.
pub fn make(text: String, is_https: bool) -> Cookie<'static> {
    cookies::make(NAME, text, KEPT, is_https)
}

/// The cookie that a request brings.
pub fn of(headers: &HeaderMap, is_https: bool) -> Option<String> {
    cookies::brought(headers, NAME, is_https)
}
