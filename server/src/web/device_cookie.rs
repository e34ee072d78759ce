//! The cookie by which a browser is known to an account that was signed in there.

use std::sync::{Arc, Mutex, PoisonError};

use axum::extract::Request;
use axum::http::header::{COOKIE, SET_COOKIE};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use time::Duration;
use tower_sessions::cookie::{Cookie, SameSite};

/// How long a browser stays known after a sign-in.
const KEPT: Duration = Duration::days(180);

/// What the cookie of an answer is to be; a request carries it as an extension.
#[derive(Clone, Default)]
pub struct NewDeviceCookie(Arc<Mutex<Option<String>>>);

impl NewDeviceCookie {
    pub fn set(&self, text: String) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(text);
    }

    fn take(&self) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Hands the cookie out that a sign-in made, behind the session's.
pub async fn hand_out(is_https: bool, mut request: Request, next: Next) -> Response {
    let new = NewDeviceCookie::default();
    request.extensions_mut().insert(new.clone());
    let mut response = next.run(request).await;
    let cookie = new.take().map(|text| {
        Cookie::build((name(is_https), text))
            .path("/")
            .http_only(true)
            .same_site(SameSite::Lax)
            .secure(is_https)
            .max_age(KEPT)
            .build()
            .to_string()
    });
    if let Some(Ok(cookie)) = cookie.map(|text| HeaderValue::from_str(&text)) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// The cookie that a request brings.
pub fn of(headers: &HeaderMap, is_https: bool) -> Option<String> {
    headers
        .get_all(COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(Cookie::split_parse)
        .filter_map(Result::ok)
        .find(|cookie| cookie.name() == name(is_https))
        .map(|cookie| cookie.value().to_owned())
}

/// With the prefix, browsers take it from this very host alone, and only with HTTPS.
fn name(is_https: bool) -> &'static str {
    if is_https {
        "__Host-heliograph-device"
    } else {
        "heliograph-device"
    }
}
