//! The portal: serves the pages of crate `app`, with sessions, headers and files.

mod assets;
mod changes;
mod check_file;
mod cookies;
mod counted_text;
mod csv;
mod csv_file;
mod error_pages;
mod export;
mod follow;
mod forms;
mod guard;
mod headers;
mod import;
mod margin_csv;
mod opt_outs;
mod overload;
mod portal_request;
mod seal;
mod session_store;
mod signed_in;

use std::sync::{Arc, LazyLock};

use app::account::{EXPORT_PATH, NUMBER_EXPORT_PATH};
use app::applications::{
    FIRST_STEPS_EVENTS_PATH, INBOUND_CSV_PATH, INBOUND_EVENTS_PATH, STATEMENT_CSV_PATH,
};
use app::counter::COUNT_PATH;
use app::document::PartFiles;
use app::file_check::CHECK_FILE_PATH;
use app::opt_outs::{FILE_PATH, OPT_OUTS_CSV_PATH};
use app::portal_request::{CurrentRequest, SiteSettings};
use app::reports::{BATCH_EVENTS_PATH, CSV_PATH, REPORT_EVENTS_PATH};
use app::support::{AUDIT_CSV_PATH, CARRIER_EVENTS_PATH, IMPORT_FILE_PATH, MARGIN_CSV_PATH};
use app::time_zone::PageZone;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{Extensions, HeaderMap, HeaderValue, StatusCode, Version};
use axum::middleware::{Next, from_fn, from_fn_with_state};
use axum::response::Response;
use axum::routing::{MethodRouter, get, post};
use domain::HomeCountry;
use leptos::prelude::{LeptosOptions, provide_context, use_context};
use leptos::server_fn::axum::server_fn_paths;
use leptos_axum::{
    AxumRouteListing, LeptosRoutes as _, generate_route_list, render_app_async_with_context,
};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use tower_http::CompressionLevel;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{Predicate, SizeAbove};
use tower_http::limit::RequestBodyLimitLayer;
use tower_sessions::SessionManagerLayer;
use tower_sessions::cookie::SameSite;

use crate::config::Settings;
use crate::webhook::Sender;
use cookies::cookie_name;
pub use cookies::is_https;
pub use error_pages::{ErrorPages, wants_page};
use follow::followers::Followers;
pub use forms::Knock;
use forms::{FORM_BYTES_MAX, Forms};
use portal_request::{Portal, ServedRequest};
use session_store::ServiceSessions;

/// The name of the session's cookie.
const COOKIE: &str = "heliograph";

/// Returns the router for the pages, their server functions and their files. Responses with events
/// end when `stop` is cancelled. The API reference is built from the OpenAPI `document`. `form_key`
/// seals the cookies that bring forms back. `sender` has the service and calls customers'
/// endpoints.
pub fn router(
    sender: Arc<Sender>,
    settings: &Settings,
    base_url: &str,
    document: &Value,
    form_key: &str,
    stop: CancellationToken,
) -> Router {
    let service = sender.service.clone();
    let site = SiteSettings {
        version: crate::VERSION,
        base_url: base_url.to_owned(),
        currency: settings.currency.clone(),
        home: HomeCountry::of_code(&settings.country_code),
        payment_instructions: settings.payment_instructions.clone(),
        deposit_time: settings.deposit_time.clone(),
        operator_details: settings.operator_details.clone(),
        footer: settings.footer.clone(),
        message_pages_max: settings.limits.message_pages_max,
        reference: app::docs::chapters(document, base_url),
    };
    let is_https = is_https(base_url);
    let forms = Forms { service: service.clone(), key: form_key.into(), base_url: base_url.into() };
    let portal = Portal {
        service,
        site: Arc::new(site),
        followers: Followers::new(stop),
        sender,
        data_dir: settings.data_dir.as_path().into(),
    };
    let options = assets::options(&settings.site_root);
    let assets = assets::router(&options);
    let parts = PartFiles::read(&options);

    let files = files()
        .into_iter()
        .fold(Router::new(), |router, (path, receiving)| router.route(path, receiving))
        .layer(DefaultBodyLimit::disable())
        .layer(RequestBodyLimitLayer::new(import::FILE_BYTES_MAX))
        .with_state(portal.clone());

    pages(&portal, options.clone(), parts.clone())
        .layer(from_fn_with_state(forms, forms::return_forms))
        .layer(RequestBodyLimitLayer::new(FORM_BYTES_MAX))
        .merge(files)
        .merge(file_check(&portal, options, parts))
        .layer(sessions(&portal, is_https))
        .layer(from_fn(cookies::hand_out))
        .layer(from_fn(overload::answer))
        .layer(from_fn_with_state(Arc::clone(&portal.site), guard::refuse_foreign))
        // Compression comes after all layers that read a response.
        .layer(compression())
        .merge(assets)
        .layer(from_fn(headers::protect))
}

/// Returns the pages for errors outside the portal's own pages.
pub fn error_pages(settings: &Settings, base_url: &str) -> ErrorPages {
    ErrorPages::new(
        assets::options(&settings.site_root),
        is_https(base_url),
        settings.footer.clone(),
    )
}

fn pages(portal: &Portal, options: LeptosOptions, parts: PartFiles) -> Router {
    let routes = pages_listed();
    let shell = {
        let options = options.clone();
        move || app::document::shell(options.clone(), &parts)
    };
    let others = others()
        .into_iter()
        .fold(Router::new(), |router, (path, handler)| router.route(path, handler))
        .with_state(portal.clone());
    let counted = post(render_app_async_with_context(provide_request, shell.clone()))
        .layer(from_fn(counted_text::read));
    Router::new()
        .route(COUNT_PATH, counted)
        .leptos_routes_with_context(&options, routes, provide_request, shell.clone())
        .fallback(render_app_async_with_context(provide_request, shell))
        .layer(from_fn(changes::limit))
        .layer(from_fn_with_state(portal.clone(), bring_request))
        .with_state(options)
        .merge(others)
}

/// Returns the route to which the page that checks files posts them. It has no limit on the size of
/// forms, because the check limits the size of files itself.
fn file_check(portal: &Portal, options: LeptosOptions, parts: PartFiles) -> Router {
    let shell = {
        let options = options.clone();
        move || app::document::shell(options.clone(), &parts)
    };
    let checked = post(render_app_async_with_context(provide_request, shell))
        .layer(from_fn_with_state(portal.clone(), check_file::read));
    Router::new()
        .route(CHECK_FILE_PATH, checked)
        .layer(from_fn_with_state(portal.clone(), bring_request))
        .with_state(options)
}

/// Provides the request that a page or a server function handles.
fn provide_request() {
    headers::provide_policy();
    let parts = use_context::<Parts>();
    if let Some(current) = parts.and_then(|parts| parts.extensions.get().cloned()) {
        provide_context::<CurrentRequest>(current);
    }
}

/// Adds the [`CurrentRequest`] to the request's extensions, where pages and server functions find
/// it. For a page, also adds the time zone, which has to be known before the page is rendered.
async fn bring_request(State(portal): State<Portal>, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let current: CurrentRequest = Arc::new(ServedRequest::new(portal, &parts));
    if !parts.uri.path().starts_with("/fn/") {
        let browser = current.browser_zone();
        let zone = current.zone(browser.clone()).await;
        parts.extensions.insert(PageZone { zone, browser });
    }
    parts.extensions.insert(current);
    next.run(Request::from_parts(parts, body)).await
}

/// Compresses pages and their data. Events are not compressed, so that they are sent at once. The
/// fastest level is enough: it reduces a page to a fifth of its size.
fn compression() -> CompressionLayer<impl Predicate> {
    let is_packed = |_: StatusCode, _: Version, headers: &HeaderMap, _: &Extensions| {
        let kind = headers.get(CONTENT_TYPE).map_or(&[][..], HeaderValue::as_bytes);
        kind.starts_with(b"text/html") || kind.starts_with(b"application/json")
    };
    CompressionLayer::new()
        .quality(CompressionLevel::Fastest)
        .compress_when(SizeAbove::default().and(is_packed))
}

/// Returns all pages. They are listed once per process: while leptos lists them, pages that other
/// threads render load no data and are never sent (`SuppressResourceLoad` in `leptos_server`).
fn pages_listed() -> Vec<AxumRouteListing> {
    static PAGES: LazyLock<Vec<AxumRouteListing>> = LazyLock::new(|| generate_route_list(app::App));
    PAGES.clone()
}

/// Returns the portal's routes: the method and the path template of each.
pub fn routes() -> Vec<(String, String)> {
    let pages = pages_listed().into_iter().map(|page| page.path().to_owned());
    let others = others().into_iter().map(|(path, _)| path.to_owned());
    let reads = pages.chain(others).map(|path| ("GET".to_owned(), path));
    let functions = server_fn_paths().map(|(path, method)| (method.to_string(), path.to_owned()));
    let posts = files().into_iter().map(|(path, _)| path);
    let posts = posts.chain([COUNT_PATH, CHECK_FILE_PATH]);
    let posts = posts.map(|path| ("POST".to_owned(), path.to_owned()));
    reads.chain(functions).chain(posts).collect()
}

/// Returns the routes other than pages and server functions.
fn others() -> [(&'static str, MethodRouter<Portal>); 13] {
    [
        (EXPORT_PATH, get(export::download)),
        (NUMBER_EXPORT_PATH, get(export::download_number)),
        (CSV_PATH, get(csv::messages)),
        (STATEMENT_CSV_PATH, get(csv::statement)),
        (INBOUND_CSV_PATH, get(csv::inbound)),
        (OPT_OUTS_CSV_PATH, get(csv::opt_outs)),
        (MARGIN_CSV_PATH, get(margin_csv::download)),
        (AUDIT_CSV_PATH, get(csv::audit)),
        (BATCH_EVENTS_PATH, get(follow::subjects::batch)),
        (REPORT_EVENTS_PATH, get(follow::subjects::reports)),
        (FIRST_STEPS_EVENTS_PATH, get(follow::subjects::first_steps)),
        (INBOUND_EVENTS_PATH, get(follow::subjects::inbound)),
        (CARRIER_EVENTS_PATH, get(follow::subjects::carriers)),
    ]
}

/// Returns the routes that accept files, which are larger than forms.
fn files() -> [(&'static str, MethodRouter<Portal>); 2] {
    [(IMPORT_FILE_PATH, post(import::upload)), (FILE_PATH, post(opt_outs::upload))]
}

/// Returns whether a path accepts files, which take longer to arrive than forms.
pub fn takes_file(path: &str) -> bool {
    path == IMPORT_FILE_PATH || path.ends_with("/optouts/file") || path.ends_with("/check-file")
}

/// Returns the layer for sessions. The session's cookie has no lifetime of its own and ends with
/// the browser at the latest. The service ends a session half an hour after its last use.
fn sessions(portal: &Portal, is_https: bool) -> SessionManagerLayer<ServiceSessions> {
    SessionManagerLayer::new(ServiceSessions(portal.service.clone()))
        .with_name(cookie_name(COOKIE, is_https))
        .with_http_only(true)
        .with_same_site(SameSite::Lax)
        .with_secure(is_https)
}

#[cfg(test)]
mod tests;
