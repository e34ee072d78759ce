//! The portal's files: styles, scripts and the icon.

use std::path::{Path, absolute};

use axum::Router;
use axum::extract::Request;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use leptos::prelude::{LeptosOptions, get_configuration};
use leptos_axum::{site_pkg_dir_service, site_pkg_dir_service_route_path};

const ICON: &str = include_str!("icon.svg");

/// A file in the site's folder that lists the hashes in the files' names, and the files of each part
/// of the WebAssembly. `make build` adds the hashes and writes this file. During development,
/// cargo-leptos does neither.
const HASHES: &str = "hash.txt";

/// Returns the folder of the portal's files, and their names.
pub fn options(site: &Path) -> LeptosOptions {
    // Reads the environment variables that cargo-leptos sets during development.
    let mut options = match get_configuration(None) {
        Ok(file) => file.leptos_options,
        Err(_) => LeptosOptions::builder().output_name("heliograph").build(),
    };
    options.site_root = site.to_string_lossy().into();
    let hashes = site.join(HASHES);
    options.hash_files = hashes.is_file();
    // leptos resolves a relative path against the program's folder.
    options.hash_file = absolute(&hashes).unwrap_or(hashes).to_string_lossy().into();
    options
}

/// Serves the build's files. Clients that accept compressed files get the compressed copies that
/// the build made.
pub fn router(options: &LeptosOptions) -> Router {
    // The content of a file with a hash in its name never changes. For other files, browsers ask
    // whether the file changed since its date.
    let cache = if options.hash_files { "public, max-age=31536000, immutable" } else { "no-cache" };
    let files = Router::new()
        .route_service(&site_pkg_dir_service_route_path(options), site_pkg_dir_service(options))
        .layer(from_fn(move |request, next| keep(cache, request, next)));
    Router::new().route("/favicon.svg", get(icon)).merge(files)
}

async fn keep(cache: &'static str, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let is_found = response.status() != StatusCode::NOT_FOUND;
    let headers = response.headers_mut();
    if is_found {
        headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache));
    }
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    if let Some(kind) = kind.filter(|kind| kind.starts_with("text/") && !kind.contains(';'))
        && let Ok(kind) = HeaderValue::from_str(&format!("{kind}; charset=utf-8"))
    {
        headers.insert(CONTENT_TYPE, kind);
    }
    response
}

async fn icon() -> impl IntoResponse {
    ([(CONTENT_TYPE, "image/svg+xml"), (CACHE_CONTROL, "public, max-age=86400")], ICON)
}
