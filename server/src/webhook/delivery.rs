//! The content of the requests to an endpoint.

use bytes::Bytes;
use service::WebhookSecret;

/// One event for one endpoint.
///
/// It has no `Debug`, because the body contains the numbers and texts of messages.
#[derive(Clone)]
pub struct Delivery<'a> {
    pub url: &'a str,
    /// Goes into `webhook-id`. It stays the same in each attempt, so that the endpoint can ignore
    /// an event that it already has.
    pub event_id: &'a str,
    /// The time of this attempt, in Unix seconds.
    pub timestamp: i64,
    /// JSON.
    pub body: Bytes,
    /// The current secret, and during a rotation also the old one.
    pub secrets: &'a [WebhookSecret],
}
