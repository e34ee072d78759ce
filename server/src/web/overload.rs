//! What is answered to a form while too many passwords wait to be hashed: 503 with `Retry-After`.

use app::overload::Overload;
use axum::extract::Request;
use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use domain::Refusal;

/// A hash takes some 20 ms: after this time the queue is empty again.
const RETRY_AFTER_S: &str = "2";

/// With JavaScript the page reads the problem in the answer; without it the answer is a page of its
/// own, to go back from to the form.
pub async fn answer(mut request: Request, next: Next) -> Response {
    let overload = Overload::default();
    request.extensions_mut().insert(overload.clone());
    let accept = request.headers().get(ACCEPT);
    let wants_page = accept.is_some_and(|kinds| kinds.as_bytes().starts_with(b"text/html"));
    let mut response = next.run(request).await;
    if !overload.is_noted() {
        return response;
    }
    if wants_page {
        let sentence = Refusal::Busy;
        let page = format!(
            "<!DOCTYPE html><html lang=\"en\"><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <title>Busy · Heliograph</title><h1>The service is busy</h1><p>{sentence}</p>\
             <p>Go back in your browser to come to the form again.</p></html>"
        );
        response = page.into_response();
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, html);
    }
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    response
}
