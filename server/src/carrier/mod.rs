//! Who takes messages from us.

pub mod http;
pub mod refused;
pub mod sandbox;
pub mod smpp;

use std::time::Duration;

use domain::Transid;
use domain::records::ConnectionState;
use service::{CarrierReceipt, Claimed, Lease, Receipt, Submitted};
use tokio::time::Instant;

use refused::Refused;

/// A connection to a carrier, whatever it speaks.
///
/// The worker calls `submit` with messages that are claimed for the carrier, stores what
/// `report` returns, and confirms with `stored`; only then are receipts acknowledged.
pub trait Line: Send + Sync + 'static {
    /// How many messages it would take now.
    fn free(&self) -> usize;

    /// Waits until it would take some.
    fn until_free(&self) -> impl Future<Output = ()> + Send;

    /// Takes messages to hand over; never waits. The outcome of each is reported once. No hand-over
    /// begins after the lease's time: such a message is reported as never left.
    fn submit(&self, lease: Lease, messages: Vec<Claimed>);

    /// Waits for answers and receipts, and returns those that came since the last report; `None`
    /// once the line is closed and everything is reported.
    fn report(&self) -> impl Future<Output = Option<CarrierReport>> + Send;

    /// The report is durable: the answers for these messages, of which some are stored as taken.
    fn stored(&self, answered: &[Transid], taken: &[Transid], confirmation: Confirmation);

    /// How it is, for operators.
    fn state(&self) -> LineState;

    /// Takes nothing more, gives back what isn't handed over, waits a moment for answers.
    fn close(&self) -> impl Future<Output = ()> + Send;
}

/// What a carrier said.
#[derive(Default)]
pub struct CarrierReport {
    pub submitted: Vec<Submitted>,
    /// By the message's own id.
    pub receipts: Vec<Receipt>,
    /// By the carrier's names.
    pub carrier_receipts: Vec<CarrierReceipt>,
    pub confirmation: Confirmation,
}

/// What a line needs to know when its report is durable.
#[derive(Default)]
pub struct Confirmation {
    /// Deliveries to be acknowledged.
    pub deliveries: Vec<::smpp::DeliveryHandle>,
}

/// The last moment to begin what a carrier may take so long to answer, so that its answer comes
/// under the lease.
fn last_start(lease: Lease, answer: Duration) -> Instant {
    let not_after = Instant::from_std(lease.not_after);
    not_after.checked_sub(answer).unwrap_or(not_after)
}

/// How a line is.
#[derive(Clone, Debug)]
pub struct LineState {
    pub state: ConnectionState,
    pub since: Instant,
    /// Submits that wait for an answer.
    pub in_flight: usize,
    /// The most of them at a time.
    pub window: usize,
    /// Answers since the start.
    pub answered: u64,
    /// Those of them that asked for a slower pace.
    pub throttled: u64,
    /// It is asked to pause until then.
    pub throttled_until: Option<Instant>,
    /// While it is [`ConnectionState::Probing`]: it has a place for the one message.
    pub takes_probe: bool,
    /// Since the start.
    pub refused: Refused,
    pub last_error: Option<String>,
}
