//! Pages for errors outside the portal's own pages. If a browser asked for a page, the sentence of
//! the error becomes a page in the portal's design, with the request ID.

use app::document;
use app::footer::Footer;
use axum::body::{Body, to_bytes};
use axum::http::header::{ACCEPT, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;
use domain::Theme;
use leptos::prelude::LeptosOptions;

use super::cookies;

/// The maximum length of a sentence that becomes a page, in bytes.
const SENTENCE_MAX: usize = 4096;

/// The sentence for a response without one. The web framework sends such a response if an address
/// doesn't support the method.
const NO_SENTENCE: &str =
    "This address can't be used like this. Go back and use the links and forms of the page.";

/// An error page loads only the portal's styles and images.
const POLICY: HeaderValue = HeaderValue::from_static(
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'",
);

/// Turns error responses that consist of a sentence into pages.
#[derive(Clone)]
pub struct ErrorPages {
    options: LeptosOptions,
    is_https: bool,
    footer: Footer,
}

impl ErrorPages {
    pub fn new(options: LeptosOptions, is_https: bool, footer: Footer) -> Self {
        Self { options, is_https, footer }
    }

    /// Returns the theme of the page that a browser asks for. Returns `None` if the client didn't
    /// ask for a page.
    pub fn asked_for(&self, headers: &HeaderMap) -> Option<Theme> {
        wants_page(headers).then(|| cookies::theme(headers, self.is_https))
    }

    /// Returns the response to send: a page instead of the sentence if the client asked for a page.
    pub async fn apply(
        &self,
        asked_for: Option<Theme>,
        request_id: &str,
        response: Response<Body>,
    ) -> Response<Body> {
        let status = response.status();
        let is_error = status.is_client_error() || status.is_server_error();
        let Some(theme) = asked_for.filter(|_| is_error && is_sentence(response.headers())) else {
            return response;
        };
        let (mut head, body) = response.into_parts();
        let sentence = to_bytes(body, SENTENCE_MAX).await.unwrap_or_default();
        let sentence = match &*String::from_utf8_lossy(&sentence) {
            "" => NO_SENTENCE.to_owned(),
            sentence => sentence.to_owned(),
        };
        let (options, footer) = (&self.options, &self.footer);
        let page =
            document::error_page(options, footer, theme, title(status), &sentence, request_id);
        let html = HeaderValue::from_static("text/html; charset=utf-8");
        head.headers.insert(CONTENT_TYPE, html);
        head.headers.insert(CONTENT_SECURITY_POLICY, POLICY);
        head.headers.remove(CONTENT_LENGTH);
        Response::from_parts(head, Body::from(page))
    }
}

/// Whether a browser asks for a page. Scripts and programs accept other types, or any type.
pub fn wants_page(headers: &HeaderMap) -> bool {
    let accept = headers.get(ACCEPT).map_or(&[][..], HeaderValue::as_bytes);
    accept.starts_with(b"text/html")
}

fn is_sentence(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE);
    kind.is_none_or(|kind| kind.as_bytes().starts_with(b"text/plain"))
}

fn title(status: StatusCode) -> &'static str {
    match status {
        StatusCode::FORBIDDEN => "This is not allowed",
        StatusCode::NOT_FOUND => "Nothing here",
        StatusCode::METHOD_NOT_ALLOWED => "This address doesn't support the request",
        StatusCode::REQUEST_TIMEOUT => "The request took too long",
        StatusCode::PAYLOAD_TOO_LARGE => "This is too large",
        StatusCode::TOO_MANY_REQUESTS => "Too many requests",
        StatusCode::SERVICE_UNAVAILABLE => "The service is busy",
        status if status.is_server_error() => "Something went wrong",
        _ => "This request can't be answered",
    }
}
