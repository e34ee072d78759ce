//! Refuses forms of other sites (CSRF). Such a form would act for the person who is signed in.

use std::sync::Arc;

use app::portal_request::SiteSettings;
use axum::extract::{Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

/// Refuses a request that changes something, unless it comes from our own pages. Browsers send
/// headers that say where a request comes from, and pages can't change these headers. A program
/// that sends none of them has no person's cookie either.
pub async fn refuse_foreign(
    State(site): State<Arc<SiteSettings>>,
    request: Request,
    next: Next,
) -> Response {
    let reads = matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS);
    if reads || is_our_own(request.headers(), &site.base_url) {
        return next.run(request).await;
    }
    let sentence = "This form was sent from another site, and nothing was changed. Open the page \
                    on this site and try again.";
    (StatusCode::FORBIDDEN, sentence).into_response()
}

fn is_our_own(headers: &HeaderMap, base_url: &str) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or("unreadable"));
    if let Some(site) = text("sec-fetch-site") {
        return matches!(site, "same-origin" | "none");
    }
    let Some(origin) = text(ORIGIN.as_str()) else {
        return true;
    };
    is_ours(origin, text(HOST.as_str()), base_url)
}

/// Whether an origin is this site, according to the settings or to the host of the request.
pub fn is_ours(origin: &str, host: Option<&str>, base_url: &str) -> bool {
    let named = origin.split_once("://").map(|(_, host)| host);
    origin == base_url || (named.is_some() && named == host)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::is_our_own;

    #[test]
    fn only_our_own_pages_and_programs_that_name_no_site_pass() {
        let cases: [(&[(&str, &str)], bool); 9] = [
            (&[], true),
            (&[("sec-fetch-site", "same-origin")], true),
            (&[("sec-fetch-site", "none")], true),
            (&[("sec-fetch-site", "same-site")], false),
            (&[("sec-fetch-site", "cross-site"), ("origin", "https://sms.example")], false),
            (&[("origin", "https://sms.example")], true),
            (&[("origin", "http://127.0.0.1:3000"), ("host", "127.0.0.1:3000")], true),
            (&[("origin", "https://evil.example"), ("host", "127.0.0.1:3000")], false),
            (&[("origin", "null"), ("host", "127.0.0.1:3000")], false),
        ];
        for (headers, passes) in cases {
            let map: HeaderMap = headers
                .iter()
                .map(|(name, value)| {
                    (HeaderName::from_static(name), HeaderValue::from_static(value))
                })
                .collect();
            assert_eq!(is_our_own(&map, "https://sms.example"), passes, "{headers:?}");
        }
    }
}
