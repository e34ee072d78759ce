//! The portal's files: styles, scripts, the icon.

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

/// Lists the hashes in the files' names, in the folder of the site. `make build` names files by
/// their content and writes it; cargo-leptos, while developing, does neither.
const HASHES: &str = "hash.txt";

/// Where the build put the portal's files, and what it called them.
pub fn options(site: &Path) -> LeptosOptions {
    // Read from the environment, which cargo-leptos sets while developing.
    let mut options = match get_configuration(None) {
        Ok(file) => file.leptos_options,
        Err(_) => LeptosOptions::builder().output_name("heliograph").build(),
    };
    options.site_root = site.to_string_lossy().into();
    let hashes = site.join(HASHES);
    options.hash_files = hashes.is_file();
    // A relative path would be looked for beside the program.
    options.hash_file = absolute(&hashes).unwrap_or(hashes).to_string_lossy().into();
    options
}

/// Serves the files that the build made, compressed as it left them.
pub fn router(options: &LeptosOptions) -> Router {
    // A name with a hash in it never gets another content; without one, browsers ask whether the
    // file changed, and are told by its date.
    let cache = if options.hash_files {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let files = Router::new()
        .route_service(
            &site_pkg_dir_service_route_path(options),
            site_pkg_dir_service(options),
        )
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
    let kind = headers
        .get(CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok());
    if let Some(kind) = kind.filter(|kind| kind.starts_with("text/") && !kind.contains(';'))
        && let Ok(kind) = HeaderValue::from_str(&format!("{kind}; charset=utf-8"))
    {
        headers.insert(CONTENT_TYPE, kind);
    }
    response
}

async fn icon() -> impl IntoResponse {
    (
        [
            (CONTENT_TYPE, "image/svg+xml"),
            (CACHE_CONTROL, "public, max-age=86400"),
        ],
        ICON,
    )
}
