//! Answers a form with 503 and `Retry-After` while too many passwords wait to be hashed.

use app::overload::{Overload, RETRY_AFTER_S};
use axum::extract::Request;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use domain::Refusal;

use super::wants_page;

/// Sets the status and the header. With JavaScript, the page reads the problem in the response.
/// Without JavaScript, the response is a page of its own, and the person goes back to the form.
pub async fn answer(mut request: Request, next: Next) -> Response {
    let overload = Overload::default();
    request.extensions_mut().insert(overload.clone());
    let wants_page = wants_page(request.headers());
    let mut response = next.run(request).await;
    if !overload.is_noted() {
        return response;
    }
    if wants_page {
        let back = "Go back in your browser to return to the form.";
        response = format!("{} {back}", Refusal::Busy).into_response();
    }
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    let headers = response.headers_mut();
    headers.insert(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
    response
}
