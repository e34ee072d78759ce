//! The cookie with the theme of the account that is or was signed in: a page has its colours before
//! anybody is asked who that is, and the sign-in page has them too.

use axum::http::HeaderMap;
use domain::Theme;
use time::Duration;
use tower_sessions::cookie::Cookie;

use super::cookies;

const NAME: &str = "heliograph-theme";
/// As long as browsers keep a cookie at most.
const KEPT: Duration = Duration::days(400);

/// The cookie of a theme; the browser has none for the theme of its system.
pub fn make(theme: Theme, is_https: bool) -> Cookie<'static> {
    let (text, kept) = match theme {
        Theme::System => ("", Duration::ZERO),
        Theme::Light | Theme::Dark => (theme.as_str(), KEPT),
    };
    cookies::make(NAME, text.to_owned(), kept, is_https)
}

/// The theme that a request brings.
pub fn of(headers: &HeaderMap, is_https: bool) -> Theme {
    let text = cookies::brought(headers, NAME, is_https);
    text.and_then(|text| Theme::parse(&text))
        .unwrap_or_default()
}
