//! How a server function's problem reaches a form, with and without JavaScript.

use app::client::STATUS_OF_REFUSALS;
use axum::extract::Request;
use axum::http::header::REFERER;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use leptos::server_fn::error::SERVER_FN_ERROR_HEADER;

/// Without JavaScript a problem goes back to the page in the page's address; an older problem in
/// the address is taken out, since the page would show that one. With JavaScript the problem is the
/// answer, with the status of refusals.
pub async fn return_problems(mut request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with("/fn/") {
        return next.run(request).await;
    }
    remove_old_problem(request.headers_mut());
    let mut response = next.run(request).await;
    let refused = response.headers().contains_key(SERVER_FN_ERROR_HEADER);
    if refused
        && response.status() == StatusCode::INTERNAL_SERVER_ERROR
        && let Ok(status) = StatusCode::from_u16(STATUS_OF_REFUSALS)
    {
        *response.status_mut() = status;
    }
    response
}

fn remove_old_problem(headers: &mut HeaderMap) {
    let Some(referer) = headers.get(REFERER).and_then(|value| value.to_str().ok()) else {
        return;
    };
    if let Ok(referer) = HeaderValue::from_str(&without_problem(referer)) {
        headers.insert(REFERER, referer);
    }
}

fn without_problem(address: &str) -> String {
    let Some((path, query)) = address.split_once('?') else {
        return address.to_owned();
    };
    let kept: Vec<_> = query
        .split('&')
        .filter(|pair| !pair.starts_with("__path=") && !pair.starts_with("__err="))
        .collect();
    if kept.is_empty() {
        path.to_owned()
    } else {
        format!("{path}?{}", kept.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::without_problem;

    #[test]
    fn only_the_old_problem_is_removed() {
        for (address, expected) in [
            ("http://a/login", "http://a/login"),
            (
                "http://a/login?__path=%2Ffn%2Fx&__err=e30=",
                "http://a/login",
            ),
            (
                "http://a/login?next=%2Fa&__path=x&__err=y",
                "http://a/login?next=%2Fa",
            ),
        ] {
            assert_eq!(without_problem(address), expected);
        }
    }
}
