//! The ID of the current request. Staff use it to find the request in the log.

use std::sync::Arc;

use http::request::Parts;
use leptos::prelude::use_context;

/// The ID of a portal request. The server puts it into the request's extensions.
#[derive(Clone, Debug)]
pub struct PortalRequestId(pub Arc<str>);

/// Returns the ID of the current request.
pub(crate) fn request_id() -> Option<String> {
    let parts = use_context::<Parts>()?;
    let id = parts.extensions.get::<PortalRequestId>()?;
    Some(id.0.to_string())
}
