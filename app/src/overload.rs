//! Requests that are refused because the service is busy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::request::Parts;
use leptos::prelude::use_context;

/// What such an answer says in `Retry-After`, in seconds. A hash takes some 20 ms: after this time
/// the queue of passwords is empty again.
pub const RETRY_AFTER_S: &str = "2";

/// Whether a request was refused because the service is busy. The server puts it into the request's
/// extensions, and answers by it.
#[derive(Clone, Debug, Default)]
pub struct Overload(Arc<AtomicBool>);

impl Overload {
    /// Notes it on the request that is being served.
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
