//! The headers of the portal's responses.

use axum::extract::Request;
use axum::http::HeaderValue;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, HeaderName, LOCATION, REFERRER_POLICY, REFRESH,
    SET_COOKIE,
};
use axum::middleware::Next;
use axum::response::Response;
use leptos::nonce::use_nonce;
use leptos::prelude::use_context;
use leptos_axum::ResponseOptions;

/// The maximum size of a header that repeats text from the browser, in bytes. Such a header is a
/// redirect or a cookie. Browsers drop larger cookies, and a proxy has its own limit for all
/// headers (deploy/nginx.conf).
const REPEATED_BYTES_MAX: usize = 4096;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Allows a page to load scripts, styles and data from this site only. Call it when a page is about
/// to be rendered and its nonce is known.
pub fn provide_policy() {
    let (Some(nonce), Some(response)) = (use_nonce(), use_context::<ResponseOptions>()) else {
        return;
    };
    // During development, a socket on another port notifies the page of changes.
    let reload = if std::env::var_os("LEPTOS_WATCH").is_some() { " ws:" } else { "" };
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; \
         style-src 'self'; img-src 'self'; connect-src 'self'{reload}; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(CONTENT_SECURITY_POLICY, policy);
    }
}

/// Adds the headers that every response of the portal has, unless the response has its own.
/// `public.rs` adds the headers of all responses on the public address.
pub async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    bound(&mut response);
    let always = [
        // Pages show balances, numbers and, once, keys.
        (CACHE_CONTROL, "no-store"),
        // Without scripts, a form comes back to the page that the Referer header names.
        (REFERRER_POLICY, "same-origin"),
        (OPENER_POLICY, "same-origin"),
        (RESOURCE_POLICY, "same-origin"),
    ];
    for (name, value) in always {
        let value = HeaderValue::from_static(value);
        response.headers_mut().entry(name).or_insert(value);
    }
    response
}

/// If the address of a redirect is too long, redirects to the home page instead. Drops cookies that
/// are too long.
fn bound(response: &mut Response) {
    let headers = response.headers_mut();
    let fits = |value: &HeaderValue| value.len() <= REPEATED_BYTES_MAX;
    for (name, first_page) in [(LOCATION, "/"), (REFRESH, "0; url=/")] {
        if headers.get(&name).is_some_and(|value| !fits(value)) {
            headers.insert(name, HeaderValue::from_static(first_page));
        }
    }
    if !headers.get_all(SET_COOKIE).iter().all(fits) {
        let cookies: Vec<_> = headers.get_all(SET_COOKIE).iter().cloned().collect();
        headers.remove(SET_COOKIE);
        for cookie in cookies.into_iter().filter(fits) {
            headers.append(SET_COOKIE, cookie);
        }
    }
}
