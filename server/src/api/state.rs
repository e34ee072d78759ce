//! The state that the API's handlers share.

use std::sync::Arc;

use bytes::Bytes;
use service::Service;

use crate::metrics::Metrics;
use crate::webhook::Sender;

/// The services and values that handlers need.
pub struct Api {
    pub service: Service,
    pub metrics: Arc<Metrics>,
    /// ISO 4217 code.
    pub currency: Arc<str>,
    /// The country code, for recognising numbers that were probably meant to be local.
    pub country_code: Arc<str>,
    /// The OpenAPI document as JSON text.
    pub document: Bytes,
    /// Delivers test events to endpoints.
    pub sender: Arc<Sender>,
}

/// The state as handlers receive it.
pub type SharedApi = Arc<Api>;
