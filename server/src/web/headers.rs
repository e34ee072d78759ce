//! The headers of the portal's answers.

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

/// Most bytes of one header that repeats what the browser sent: where it is led, or a cookie, of
/// which browsers keep no more. A proxy takes heads of a size of its own (deploy/nginx.conf).
const REPEATED_BYTES_MAX: usize = 4096;

const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Allows a page the scripts, styles and calls of this site, and nothing of others. Called where a
/// page is about to be rendered and its nonce is known.
pub fn provide_policy() {
    let (Some(nonce), Some(response)) = (use_nonce(), use_context::<ResponseOptions>()) else {
        return;
    };
    // During development a page is told of changes over a socket at another port.
    let reload = if std::env::var_os("LEPTOS_WATCH").is_some() {
        " ws:"
    } else {
        ""
    };
    let policy = format!(
        "default-src 'none'; script-src 'self' 'nonce-{nonce}' 'wasm-unsafe-eval'; \
         style-src 'self'; img-src 'self'; connect-src 'self'{reload}; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'"
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        response.insert_header(CONTENT_SECURITY_POLICY, policy);
    }
}

/// Adds the headers of every answer of the portal, unless the answer has its own. What every answer
/// of the public address has is added in `public.rs`.
pub async fn protect(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    bound(&mut response);
    let always = [
        // Pages show balances, numbers and, once, keys.
        (CACHE_CONTROL, "no-store"),
        // Without scripts a form comes back to the page that the header Referer names.
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

/// Leads to the first page instead of an address that is too long, and drops a cookie that is.
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
