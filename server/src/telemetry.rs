//! Logging.
//!
//! Log lines go to standard error. An access line has the method, route template, status, latency
//! and request ID. It never has a path, a query, a key, a number or a text. A reader of logs must
//! not be able to send in a customer's name or to read what a customer wrote.

mod json;
mod lines;

use std::io;
use std::panic::PanicHookInfo;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

use json::Json;
use lines::{GATHER, Lines};

/// Writes the pending log lines when dropped.
pub struct Logging(Lines);

impl Drop for Logging {
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

pub fn start(level: Level, format: LogFormat) -> io::Result<Logging> {
    let lines = Lines::start(io::stderr(), GATHER)?;
    // Libraries log URIs and headers on their lower levels, so those levels are never enabled. The
    // filter isn't an `EnvFilter`, because an `EnvFilter` takes a lock at each span, and all
    // requests would share that lock.
    let filter = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_targets(["heliograph", "service", "app"].map(|target| (target, level)));
    let text = || tracing_subscriber::fmt::layer().with_ansi(false).with_writer(lines.clone());
    let subscriber = tracing_subscriber::registry()
        .with(filter)
        .with((format == LogFormat::Text).then(text))
        .with((format == LogFormat::Json).then(|| Json(lines.clone())));
    // Fails only if logging was started before. The earlier logger then stays.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let at_panic = lines.clone();
    std::panic::set_hook(Box::new(move |info| {
        log_panic(info);
        // The panic may end the process.
        at_panic.flush();
    }));
    Ok(Logging(lines))
}

/// Logs only the source location of a panic, because the message may quote a text or a key.
fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info.location().map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    tracing::error!("panic at {place}");
}

/// The registered HTTP methods.
const METHODS: [&str; 9] =
    ["GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT"];

/// Returns the name of a registered method, or `other`, because an unregistered name could be any
/// text.
pub fn method_name(method: &axum::http::Method) -> &'static str {
    let registered = METHODS.into_iter().find(|name| method == name);
    registered.unwrap_or("other")
}
