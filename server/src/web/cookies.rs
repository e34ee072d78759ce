//! The portal's cookies: their names, and how a request's new cookies get into its response.

use std::sync::Arc;

use axum::extract::Request;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use domain::Theme;
use parking_lot::Mutex;
use time::Duration;
use tower_sessions::cookie::{Cookie, SameSite};

/// The prefix of cookie names under HTTPS. Browsers accept such a cookie only from this exact host,
/// and only with the attribute Secure.
const HOST_PREFIX: &str = "__Host-";

/// A cookie that outlives the session.
pub struct Kept {
    name: &'static str,
    days: i64,
}

/// Identifies a browser to the accounts that signed in there.
pub const DEVICE: Kept = Kept { name: "heliograph-device", days: 180 };
/// The programming language that the quick start shows.
pub const LANGUAGE: Kept = Kept { name: "heliograph-language", days: KEPT_DAYS_MAX };
/// The browser's time zone. Pages show times in that zone from the start, unless the account chose
/// another zone.
pub const TIME_ZONE: Kept = Kept { name: "heliograph-time-zone", days: KEPT_DAYS_MAX };
/// The theme of the account that is or was signed in. Pages use it before the account is read, and
/// the sign-in page uses it without an account.
const THEME: Kept = Kept { name: "heliograph-theme", days: KEPT_DAYS_MAX };
/// The longest time that browsers keep a cookie.
const KEPT_DAYS_MAX: i64 = 400;

impl Kept {
    pub fn make(&self, text: &str, is_https: bool) -> Cookie<'static> {
        make(self.name, text.to_owned(), Duration::days(self.days), is_https)
    }

    /// Returns the value of a request's cookie.
    pub fn of(&self, headers: &HeaderMap, is_https: bool) -> Option<String> {
        brought(headers, self.name, is_https)
    }
}

/// Makes the cookie of a theme. For the system's theme, removes the cookie.
pub fn make_theme(theme: Theme, is_https: bool) -> Cookie<'static> {
    match theme {
        Theme::System => make(THEME.name, String::new(), Duration::ZERO, is_https),
        Theme::Light | Theme::Dark => THEME.make(theme.as_str(), is_https),
    }
}

/// Returns the theme in the cookie of a request.
pub fn theme(headers: &HeaderMap, is_https: bool) -> Theme {
    THEME.of(headers, is_https).and_then(|text| Theme::parse(&text)).unwrap_or_default()
}

/// The cookies to add to the response, besides the session's. A request carries them as an
/// extension.
#[derive(Clone, Default)]
pub struct NewCookies(Arc<Mutex<Vec<Cookie<'static>>>>);

impl NewCookies {
    /// Adds a cookie. It replaces a cookie with the same name.
    pub fn add(&self, cookie: Cookie<'static>) {
        let mut cookies = self.0.lock();
        cookies.retain(|other| other.name() != cookie.name());
        cookies.push(cookie);
    }

    fn take(&self) -> Vec<Cookie<'static>> {
        std::mem::take(&mut *self.0.lock())
    }
}

/// Adds the request's new cookies to the response, after the session's cookie.
pub async fn hand_out(mut request: Request, next: Next) -> Response {
    let new = NewCookies::default();
    request.extensions_mut().insert(new.clone());
    let mut response = next.run(request).await;
    for cookie in new.take() {
        if let Ok(cookie) = HeaderValue::from_str(&cookie.to_string()) {
            response.headers_mut().append(SET_COOKIE, cookie);
        }
    }
    response
}

/// Makes a cookie that scripts can't read and that browsers don't send with forms of other sites.
pub fn make(
    name: &'static str,
    text: String,
    max_age: Duration,
    is_https: bool,
) -> Cookie<'static> {
    Cookie::build((cookie_name(name, is_https), text))
        .path("/")
        .http_only(true)
        .same_site(SameSite::Lax)
        .secure(is_https)
        .max_age(max_age)
        .build()
}

/// Returns the value of a request's cookie.
pub fn brought(headers: &HeaderMap, name: &str, is_https: bool) -> Option<String> {
    let name = cookie_name(name, is_https);
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(Cookie::split_parse)
        .filter_map(Result::ok)
        .find(|cookie| cookie.name() == name)
        .map(|cookie| cookie.value().to_owned())
}

/// Whether browsers reach the portal by HTTPS, either directly or through a proxy.
pub fn is_https(base_url: &str) -> bool {
    base_url.starts_with("https://")
}

/// Returns a cookie's full name, which has a prefix under HTTPS.
pub fn cookie_name(name: &str, is_https: bool) -> String {
    let prefix = if is_https { HOST_PREFIX } else { "" };
    format!("{prefix}{name}")
}
