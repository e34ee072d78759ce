//! The values of a message for an HTTP request to a carrier.

use tokio::time::Instant;

/// The values of one message for the carrier's request.
#[derive(Clone, Debug)]
pub struct HttpSubmit {
    /// The deadline for sending it.
    pub not_after: Instant,
    pub transid: String,
    /// The application's reference.
    pub application: String,
    /// With country code, without `+`.
    pub number: String,
    pub sender: String,
    pub message: String,
    /// Whether the message contains a one-time code. Then nothing of an answer's body is quoted.
    pub is_secret: bool,
    /// Seconds until the message expires.
    pub validity_s: u64,
}
