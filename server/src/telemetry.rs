//! What is logged, and what never is.
//!
//! Log lines go to standard error. An access line has method, route template, status, latency and
//! request id: never a path, a query, a key, a number or a text, for whoever reads logs must not be
//! able to send in a customer's name or read what a customer wrote.

use std::io::{self, BufWriter};
use std::time::Duration;

use tracing::Level;
use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;

/// Lines that may wait for a slow terminal before requests wait too: losing lines would hide what an
/// operator looks for.
const LINES_WAITING_MAX: usize = 16_384;

/// Starts logging. Lines still waiting are written when the guard is dropped.
pub fn start(level: Level) -> WorkerGuard {
    let (writer, guard) = NonBlockingBuilder::default()
        .lossy(false)
        .buffered_lines_limit(LINES_WAITING_MAX)
        .finish(BufWriter::new(io::stderr()));
    // Libraries log URIs and headers on their lower levels, so that these are never switched on.
    let filter = EnvFilter::new(format!(
        "warn,heliograph={level},service={level},app={level}"
    ));
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer)
        .with_ansi(false)
        .finish();
    // Fails only when logging was started before, which then goes on.
    let _ = tracing::subscriber::set_global_default(subscriber);
    std::panic::set_hook(Box::new(log_panic));
    guard
}

/// A panic's words may quote what it worked on, a text or a key: only its place is logged.
fn log_panic(info: &std::panic::PanicHookInfo<'_>) {
    let place = info
        .location()
        .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    tracing::error!("panic at {place}");
}

/// One request.
pub struct Access<'a> {
    pub method: &'static str,
    pub route: &'a str,
    /// 0 when the connection was closed without an answer.
    pub status: u16,
    pub latency: Duration,
    pub request_id: &'a str,
}

/// Writes the access line.
pub fn log_access(access: &Access<'_>) {
    let latency_ms = access.latency.as_secs_f64() * 1000.0;
    tracing::info!(
        target: "heliograph::access",
        method = access.method,
        route = access.route,
        status = access.status,
        latency_ms = format_args!("{latency_ms:.2}"),
        request_id = access.request_id,
    );
}

/// The method's name when it is a registered one; anything else could be any text.
pub fn method_name(method: &axum::http::Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "TRACE" => "TRACE",
        "CONNECT" => "CONNECT",
        _ => "other",
    }
}
