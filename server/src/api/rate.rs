//! How many requests a key may still make, in header fields (draft-ietf-httpapi-ratelimit-headers).

use axum::http::{HeaderValue, StatusCode};
use domain::ApiKey;
use service::RateState;

use super::Api;
use super::address::KeyText;
use super::answer::Answer;

/// Says it on an answer, where requests are limited. An answer that the key isn't known says
/// nothing.
pub fn note(api: &Api, key: &KeyText, response: &mut Answer) {
    if response.status() == StatusCode::UNAUTHORIZED {
        return;
    }
    let key = key.as_deref().and_then(|text| ApiKey::parse(text).ok());
    let Some(state) = key.and_then(|key| api.service.rate_state(&key)) else {
        return;
    };
    let RateState {
        limit,
        remaining,
        reset_ms,
    } = state;
    // Whole seconds, rounded up: whoever waits so long finds what was promised.
    let reset_s = (reset_ms + 999) / 1000;
    for (name, value) in [
        ("ratelimit-policy", format!("\"requests\";q={limit};w=1")),
        (
            "ratelimit",
            format!("\"requests\";r={remaining};t={reset_s}"),
        ),
    ] {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response.headers_mut().insert(name, value);
        }
    }
}
