//! The portal's cookies: what they are called, and how an answer gets those that a request makes.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tower_sessions::cookie::{Cookie, SameSite};

/// What a cookie's name begins with under HTTPS: browsers then take it from this very host alone,
/// and only with the attribute Secure.
const HOST_PREFIX: &str = "__Host-";

/// The cookies that an answer is to have beside the session's; a request carries them as an
/// extension.
#[derive(Clone, Default)]
pub struct NewCookies(Arc<Mutex<Vec<Cookie<'static>>>>);

impl NewCookies {
    /// Adds a cookie, in place of one that has its name.
    pub fn add(&self, cookie: Cookie<'static>) {
        let mut cookies = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cookies.retain(|other| other.name() != cookie.name());
        cookies.push(cookie);
    }

    fn take(&self) -> Vec<Cookie<'static>> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Hands out the cookies that the request made, behind the session's.
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

/// A cookie that the browser keeps from scripts and from other sites.
pub fn make(
    name: &'static str,
    text: String,
    max_age: time::Duration,
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

/// The cookie of this name that a request brings.
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

/// Whether browsers reach the portal by HTTPS, here or at a proxy before it.
pub fn is_https(base_url: &str) -> bool {
    base_url.starts_with("https://")
}

/// A cookie's name, as it is under HTTPS or without it.
pub fn cookie_name(name: &str, is_https: bool) -> String {
    let prefix = if is_https { HOST_PREFIX } else { "" };
    format!("{prefix}{name}")
}
