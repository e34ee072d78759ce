//! The id of the request that is being answered, by which it is found in the log.

use std::sync::Arc;

use http::request::Parts;
use leptos::prelude::use_context;

/// The id of a request of the portal. The server puts it into the request's extensions.
#[derive(Clone, Debug)]
pub struct PortalRequestId(pub Arc<str>);

/// The id of the request that is being answered.
pub(crate) fn request_id() -> Option<String> {
    let parts = use_context::<Parts>()?;
    let id = parts.extensions.get::<PortalRequestId>()?;
    Some(id.0.to_string())
}
