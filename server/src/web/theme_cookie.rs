//! The cookie with the theme of the account that is or was signed in. Pages use it before the
//! account is read, and the sign-in page uses it without an account.

use axum::http::HeaderMap;
use domain::Theme;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-theme";
/// The longest time that browsers keep a cookie.
const KEPT: Duration = Duration::days(400);

/// Makes the cookie of a theme. For the system's theme, removes the cookie.
pub fn make(theme: Theme, is_https: bool) -> Cookie<'static> {
    let (text, kept) = match theme {
        Theme::System => ("", Duration::ZERO),
        Theme::Light | Theme::Dark => (theme.as_str(), KEPT),
    };
    cookies::make(NAME, text.to_owned(), kept, is_https)
}

/// Returns the theme in the cookie of a request.
pub fn of(headers: &HeaderMap, is_https: bool) -> Theme {
    let text = cookies::brought(headers, NAME, is_https);
    text.and_then(|text| Theme::parse(&text)).unwrap_or_default()
}
