//! Logging.
//!
//! Log lines go to standard error. An access line has method, route template, status, latency and
//! request id: never a path, a query, a key, a number or a text. A reader of logs must not be able
//! to send in a customer's name or read what a customer wrote.

mod lines;

use std::io;
use std::panic::PanicHookInfo;

use tracing::Level;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt as _;

use lines::{GATHER, Lines};

/// Writes the waiting log lines when it is dropped.
pub struct Logging(Lines);

impl Drop for Logging {
    /// Writes the lines that wait.
    fn drop(&mut self) {
        self.0.flush();
    }
}

/// Starts logging.
pub fn start(level: Level) -> io::Result<Logging> {
    let lines = Lines::start(io::stderr(), GATHER)?;
    // Libraries log URIs and headers on their lower levels, which are therefore never switched on.
    // `Targets` rather than `EnvFilter`, which takes a lock at each span that all requests share.
    let filter = Targets::new()
        .with_default(LevelFilter::WARN)
        .with_targets(["heliograph", "service", "app"].map(|target| (target, level)));
    let format = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(lines.clone());
    let subscriber = tracing_subscriber::registry().with(filter).with(format);
    // Fails only if logging was started before, and then that one goes on.
    let _ = tracing::subscriber::set_global_default(subscriber);
    let at_panic = lines.clone();
    std::panic::set_hook(Box::new(move |info| {
        log_panic(info);
        // The panic may end the process.
        at_panic.flush();
    }));
    Ok(Logging(lines))
}

/// A panic's message may quote a text or a key: only the place in the source is logged.
fn log_panic(info: &PanicHookInfo<'_>) {
    let place = info
        .location()
        .map_or_else(|| "an unknown place".to_owned(), ToString::to_string);
    tracing::error!("panic at {place}");
}

/// The methods that are registered.
const METHODS: [&str; 9] = [
    "GET", "POST", "HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT",
];

/// The method's name if it is a registered one; any other name could be any text.
pub fn method_name(method: &axum::http::Method) -> &'static str {
    let registered = METHODS.into_iter().find(|name| method == name);
    registered.unwrap_or("other")
}
