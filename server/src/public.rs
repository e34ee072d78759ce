//! The public address: the SMS API under `/sms`, and the portal everywhere else. Adds the request
//! ID, the common headers, the access log and the response to a panic.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use app::request_id::PortalRequestId;
use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, MatchedPath};
use axum::http::header::{
    CONTENT_SECURITY_POLICY, HOST, STRICT_TRANSPORT_SECURITY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse as _;
use bytes::Bytes;
use domain::AddressRange;
use futures_util::FutureExt as _;
use hyper::body::{Body as _, Incoming};
use tower::Service as _;
use tracing::Instrument as _;

use crate::api::frames::{ReadToEnd, drop_rest};
use crate::api::{self, Api, RouteTemplate};
use crate::client_address::ClientAddress;
use crate::http::{Handler, NoAnswer};
use crate::metrics::Metrics;
use crate::telemetry::method_name;
use crate::web::{self, ErrorPages};

/// How long the portal may take to begin its response, including the time to read a form. Dropping
/// a request after that is safe, because the service finishes what it has begun.
const PORTAL_TIMEOUT: Duration = Duration::from_secs(30);
/// The same limit for a bank statement. It is longer, because the lines are stored a few at a time,
/// so that sends don't wait.
const IMPORT_TIMEOUT: Duration = Duration::from_mins(10);

/// The route template for requests that match no route.
const UNMATCHED: &str = "unmatched";

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Browsers must not guess another content type.
const NO_SNIFFING: HeaderValue = HeaderValue::from_static("nosniff");
/// The policy of responses that aren't pages: they load nothing, and no frame shows them. Pages
/// have policies of their own.
const NO_PAGE: HeaderValue =
    HeaderValue::from_static("default-src 'none'; base-uri 'none'; frame-ancestors 'none'");
/// For a year, browsers use only HTTPS for this host and its subdomains.
const HTTPS_ALONE: HeaderValue = HeaderValue::from_static("max-age=31536000; includeSubDomains");

/// The status in logs and metrics of a request that got no response.
const UNANSWERED: u16 = 0;

/// The method in logs and metrics of data that isn't a valid request.
const UNKNOWN_METHOD: &str = "other";

/// Handles all requests to the public address.
#[derive(Clone)]
pub struct PublicAddress(Arc<Inner>);

struct Inner {
    api: Router,
    portal: Router,
    error_pages: ErrorPages,
    metrics: Arc<Metrics>,
    trusted_proxies: Vec<AddressRange>,
    is_https: bool,
    request_ids: RequestIds,
}

impl PublicAddress {
    pub fn new(
        api: Api,
        portal: Router,
        error_pages: ErrorPages,
        metrics: Arc<Metrics>,
        trusted_proxies: Vec<AddressRange>,
        is_https: bool,
    ) -> Result<Self, getrandom::Error> {
        Ok(Self(Arc::new(Inner {
            api: api::router(api),
            portal: portal.layer(from_fn(note_route)),
            error_pages,
            metrics,
            trusted_proxies,
            is_https,
            request_ids: RequestIds::new()?,
        })))
    }
}

/// Adds the matched route to the response. Only axum knows the portal's routes, and only while it
/// routes a request.
async fn note_route(request: axum::extract::Request, next: Next) -> Response<Body> {
    let route = request.extensions().get::<MatchedPath>().cloned();
    let mut response = next.run(request).await;
    if let Some(route) = route {
        let template = RouteTemplate(route.as_str().to_owned().into());
        response.extensions_mut().insert(template);
    }
    response
}

/// Generates the request IDs for the log: a random prefix for each process, and a counter.
struct RequestIds {
    process: u32,
    next: AtomicU64,
}

impl RequestIds {
    fn new() -> Result<Self, getrandom::Error> {
        Ok(Self { process: getrandom::u32()?, next: AtomicU64::new(1) })
    }

    fn next(&self) -> String {
        let count = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{:08x}-{count}", self.process)
    }
}

impl Handler for PublicAddress {
    async fn handle(
        self,
        peer: SocketAddr,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, NoAnswer> {
        let site = &*self.0;
        let mut entry = Entry::begin(site, method_name(request.method()));
        let span = tracing::info_span!("request", id = entry.request_id);
        let answer = site.answer(peer, request, &entry.request_id);
        let mut response = answer.instrument(span).await;
        if let Some(template) = response.extensions_mut().remove::<RouteTemplate>() {
            entry.route = template.0;
        }
        if let Some(no_answer) = response.extensions_mut().remove::<NoAnswer>() {
            return Err(no_answer);
        }
        entry.end(&mut response);
        Ok(response)
    }

    fn refuse(&self, status: StatusCode) -> Option<Response<Bytes>> {
        let entry = Entry::begin(&self.0, UNKNOWN_METHOD);
        let mut response = api::unreadable(status);
        entry.end(&mut response);
        Some(response)
    }
}

/// A request's line in the access log, and its metrics. Both are written on drop, even if the
/// client has disconnected before.
struct Entry<'a> {
    site: &'a Inner,
    request_id: String,
    method: &'static str,
    route: Cow<'static, str>,
    status: u16,
    started: Instant,
}

impl<'a> Entry<'a> {
    fn begin(site: &'a Inner, method: &'static str) -> Self {
        Self {
            site,
            request_id: site.request_ids.next(),
            method,
            route: Cow::Borrowed(UNMATCHED),
            status: UNANSWERED,
            started: Instant::now(),
        }
    }

    /// Adds the common headers to the response and records its status.
    fn end<B>(mut self, response: &mut Response<B>) {
        let headers = response.headers_mut();
        if let Ok(value) = HeaderValue::from_str(&self.request_id) {
            headers.insert(REQUEST_ID, value);
        }
        headers.insert(X_CONTENT_TYPE_OPTIONS, NO_SNIFFING);
        headers.entry(CONTENT_SECURITY_POLICY).or_insert(NO_PAGE);
        if self.site.is_https {
            headers.insert(STRICT_TRANSPORT_SECURITY, HTTPS_ALONE);
        }
        self.status = response.status().as_u16();
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        let latency = self.started.elapsed();
        let latency_ms = latency.as_secs_f64() * 1000.0;
        tracing::info!(
            target: "heliograph::access",
            method = self.method,
            route = &*self.route,
            status = self.status,
            latency_ms = format_args!("{latency_ms:.2}"),
            request_id = self.request_id,
        );
        let route = std::mem::take(&mut self.route);
        self.site.metrics.request(self.method, route, self.status, latency);
    }
}

/// Returns true if the request names its host exactly once, as HTTP/1.1 requires. An older version
/// may omit the host.
fn names_host(request: &Request<Incoming>) -> bool {
    let mut hosts = request.headers().get_all(HOST).iter();
    let first = hosts.next();
    hosts.next().is_none() && (first.is_some() || request.version() < Version::HTTP_11)
}

impl Inner {
    /// Responds to a request, even if its handler panics.
    async fn answer(
        &self,
        peer: SocketAddr,
        request: Request<Incoming>,
        request_id: &str,
    ) -> Response<Body> {
        let path = request.uri().path();
        if !path.starts_with('/') {
            drop_rest(Body::new(request.into_body()));
            return api::without_path();
        }
        let is_api = api::is_in(path);
        let names_host = names_host(&request);
        let asked_for = (!is_api).then(|| self.error_pages.asked_for(request.headers())).flatten();
        let answered = async {
            if names_host && is_api {
                return self.answer_api(peer, request).await;
            }
            let request = request.map(|body| ReadToEnd::body(Body::new(body)));
            if names_host {
                return self.answer_portal(peer, request, request_id).await;
            }
            if is_api {
                return api::without_host();
            }
            let words = "The request must name one host.";
            (StatusCode::BAD_REQUEST, words).into_response()
        };
        let answered = AssertUnwindSafe(answered).catch_unwind().await;
        let response = answered.unwrap_or_else(|_| {
            if is_api {
                return api::internal();
            }
            let words = "Something went wrong on our side. Try again in a few seconds.";
            (StatusCode::INTERNAL_SERVER_ERROR, words).into_response()
        });
        self.error_pages.apply(asked_for, request_id, response).await
    }

    /// Responds to an API request. Only POST reads its body. Any other body is discarded once the
    /// response is ready, so that the client sees the response.
    async fn answer_api(&self, peer: SocketAddr, request: Request<Incoming>) -> Response<Body> {
        let (mut head, body) = request.into_parts();
        let client = ClientAddress::find(peer.ip(), &head.headers, &self.trusted_proxies);
        head.extensions.insert(client);
        if !self.trusted_proxies.iter().any(|network| network.contains(peer.ip())) {
            // Only a proxy knows how the client reached it.
            head.headers.remove("x-forwarded-proto");
        }
        let (taken, rest) = match head.method {
            _ if body.is_end_stream() => (Body::empty(), None),
            Method::POST => (Body::new(body), None),
            _ => (Body::empty(), Some(body)),
        };
        let request = Request::from_parts(head, taken);
        // The router would take an empty segment for a key.
        let response = if request.uri().path().contains("//") {
            api::not_found(request).await
        } else {
            run(&self.api, request).await
        };
        if let Some(rest) = rest {
            drop_rest(Body::new(rest));
        }
        response
    }

    async fn answer_portal(
        &self,
        peer: SocketAddr,
        mut request: Request<Body>,
        request_id: &str,
    ) -> Response<Body> {
        let client = ClientAddress::find(peer.ip(), request.headers(), &self.trusted_proxies);
        request.extensions_mut().insert(client);
        request.extensions_mut().insert(PortalRequestId(request_id.into()));
        request.extensions_mut().insert(ConnectInfo(peer));
        let takes_file = web::takes_file(request.uri().path());
        let limit = if takes_file { IMPORT_TIMEOUT } else { PORTAL_TIMEOUT };
        let answer = run(&self.portal, request);
        let answer = tokio::time::timeout(limit, answer);
        answer.await.unwrap_or_else(|_| {
            let words = "The request took too long to arrive. Try again.";
            (StatusCode::REQUEST_TIMEOUT, words).into_response()
        })
    }
}

/// Calls a router, which never fails.
async fn run(router: &Router, request: Request<Body>) -> Response<Body> {
    let Ok(response) = router.clone().call(request).await;
    response
}

#[cfg(test)]
mod tests;
