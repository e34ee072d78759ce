//! Events for integrators' programs: a list to poll, and endpoints to which they are delivered.

pub mod address;
pub(crate) mod attempts;
pub(crate) mod cleanup;
pub(crate) mod delivery;
pub(crate) mod endpoints;
pub(crate) mod events;
pub mod secret;
