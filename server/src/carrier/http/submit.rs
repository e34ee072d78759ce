//! A message as a request to the upstream has it.

use tokio::time::Instant;

/// The values of one message for the upstream's request.
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
    /// Whether the message brings a one-time code, which must not be quoted.
    pub is_secret: bool,
    /// Seconds until the message expires.
    pub validity_s: u64,
}
