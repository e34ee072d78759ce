//! Events for integrators' programs: a list to poll, and endpoints to which they are delivered.

pub mod address;
pub(crate) mod attempts;
pub(crate) mod cleanup;
pub(crate) mod delivery;
pub(crate) mod endpoints;
pub(crate) mod events;
pub mod secret;

use domain::{EventStream, KeyKind};

use crate::admission::KeyAccess;

/// Returns the stream whose events a key sees.
const fn stream_of(access: &KeyAccess) -> EventStream {
    EventStream {
        application_id: access.application_id,
        test: matches!(access.kind, KeyKind::Test),
    }
}
