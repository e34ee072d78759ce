//! Rate limit headers (draft-ietf-httpapi-ratelimit-headers).

use axum::http::{HeaderValue, StatusCode};
use domain::ApiKey;
use service::Service;

use super::answer::Answer;

/// Adds the headers to a response if requests are limited. A 401 response gets none.
pub fn note(service: &Service, key: Option<&str>, response: &mut Answer) {
    if response.status() == StatusCode::UNAUTHORIZED {
        return;
    }
    let key = key.and_then(|text| ApiKey::parse(text).ok());
    let Some(state) = key.and_then(|key| service.messages().rate_state(&key)) else {
        return;
    };
    let (limit, remaining) = (state.limit, state.remaining);
    // Rounded up to whole seconds, so that a client that waits this long finds the limit reset.
    let reset_s = (state.reset_ms + 999) / 1000;
    let policy = format!("\"requests\";q={limit};w=1");
    let rate = format!("\"requests\";r={remaining};t={reset_s}");
    for (name, value) in [("ratelimit-policy", policy), ("ratelimit", rate)] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
}
