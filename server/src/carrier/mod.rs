//! Who takes messages from us.

#[allow(
    dead_code,
    reason = "the dispatcher doesn't send to carriers of the settings yet"
)]
pub mod http;
pub mod sandbox;

use service::{Claimed, Outstanding, Receipt, Submitted};

/// A carrier, whatever it speaks.
///
/// The dispatcher calls `submit` with messages that are claimed for it, stores the outcomes, and says with
/// `expect_receipts` which of them are stored as taken; only then can their receipts be recorded.
pub trait Carrier: Send + Sync {
    /// As it stands in the queue and on messages.
    fn name(&self) -> &'static str;

    /// Hands messages over; an outcome for each.
    fn submit(&self, messages: &[Claimed]) -> impl Future<Output = Vec<Submitted>> + Send;

    /// These messages are stored as taken and await a receipt: after a submit, and after a restart.
    fn expect_receipts(&self, messages: Vec<Outstanding>);

    /// The receipts that came, waiting for at least one.
    fn receipts(&self) -> impl Future<Output = Vec<Receipt>> + Send;
}
