//! What the API's handlers share.

use std::sync::Arc;

use bytes::Bytes;
use service::Service;

use crate::metrics::Metrics;

/// What the API's handlers need.
pub struct Api {
    pub service: Service,
    pub metrics: Arc<Metrics>,
    /// ISO 4217 code.
    pub currency: Arc<str>,
    /// To recognise numbers that were probably meant to be local.
    pub country_code: Arc<str>,
    /// The OpenAPI document, as it is served.
    pub document: Bytes,
}

/// As the handlers get it.
pub type SharedApi = Arc<Api>;
