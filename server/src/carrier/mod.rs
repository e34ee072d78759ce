//! Carriers: what the worker needs of a connection to one, and the kinds of carriers.

pub mod http;
pub mod refused;
pub mod sandbox;
pub mod smpp;

use std::time::Duration;

use async_trait::async_trait;
use domain::Transid;
use domain::records::ConnectionState;
use service::{CarrierReceipt, Claimed, Lease, Receipt, Submitted};
use tokio::time::Instant;

use refused::Refused;

/// A connection to a carrier, whatever it speaks.
///
/// The worker calls `submit` with messages that are claimed for the carrier, stores what
/// `report` returns, and confirms with `stored`; only then are receipts acknowledged.
#[async_trait]
pub trait CarrierConnection: Send + Sync + 'static {
    /// How many messages the connection would take now.
    fn free(&self) -> usize;

    /// Waits until the connection would take a message.
    async fn until_free(&self);

    /// Takes messages to submit; never waits. The outcome of each is reported once. No submit
    /// begins after the lease's time: such a message is reported as not sent.
    fn submit(&self, lease: Lease, messages: Vec<Claimed>);

    /// Waits for answers and receipts, and returns those that came since the last report; `None`
    /// once the connection is closed and everything is reported.
    async fn report(&self) -> Option<CarrierReport>;

    /// Notes that a report is stored, and which of its messages are stored as taken. Its receipts
    /// were taken out of it; what was submitted and the deliveries to acknowledge are left.
    fn stored(&self, report: CarrierReport, taken: &[Transid]);

    /// The connection's state and counts, for operators.
    fn state(&self) -> ConnectionStatus;

    /// Takes no more messages, reports the unsubmitted ones as not sent, and waits a short time for
    /// answers.
    async fn close(&self);
}

/// Answers and receipts of a carrier.
#[derive(Default)]
pub struct CarrierReport {
    pub submitted: Vec<Submitted>,
    /// Receipts that name a message by its own id.
    pub receipts: Vec<Receipt>,
    /// Receipts that name a message by the carrier's id.
    pub carrier_receipts: Vec<CarrierReceipt>,
    /// SMPP deliveries to be acknowledged when the report is durable.
    pub deliveries: Vec<::smpp::DeliveryHandle>,
}

/// The last time to begin a submit whose answer may take `answer`, so that the answer comes
/// before the lease ends.
fn last_start(lease: Lease, answer: Duration) -> Instant {
    let not_after = Instant::from_std(lease.not_after);
    not_after.checked_sub(answer).unwrap_or(not_after)
}

/// How a connection is.
#[derive(Clone, Debug)]
pub struct ConnectionStatus {
    pub state: ConnectionState,
    pub since: Instant,
    /// Submits that wait for an answer.
    pub in_flight: usize,
    /// The most submits that may wait for an answer.
    pub window: usize,
    /// Answers since the start.
    pub answered: u64,
    /// Answers since the start that asked for a slower pace.
    pub throttled: u64,
    /// It is asked to pause until then.
    pub throttled_until: Option<Instant>,
    /// Whether a connection that is [`ConnectionState::Probing`] would take the one message now.
    pub takes_probe: bool,
    /// Refusals since the start.
    pub refused: Refused,
    pub last_error: Option<String>,
}
