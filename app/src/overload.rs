//! Requests refused because the service is busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use leptos::prelude::use_context;

/// The `Retry-After` of a response to such a request, in seconds. Hashing a password takes about 20
/// ms, so the queue of passwords to hash is empty after this time.
pub const RETRY_AFTER_S: &str = "2";

/// Whether a request was refused because the service is busy. The server puts it into the request's
/// extensions, and sets the response's status from it.
#[derive(Clone, Debug, Default)]
pub struct Overload(Arc<AtomicBool>);

impl Overload {
    /// Marks the current request as refused.
    pub(crate) fn note() {
        if let Some(parts) = use_context::<Parts>()
            && let Some(overload) = parts.extensions.get::<Self>()
        {
            overload.0.store(true, Ordering::Relaxed);
        }
    }

    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
