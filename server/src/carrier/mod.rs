//! Carriers: the worker's interface to a connection, and the kinds of carriers.

pub mod http;
pub mod pace;
pub mod refused;
pub mod sandbox;
pub mod smpp;
mod unanswered;

use std::time::Duration;

use async_trait::async_trait;
use domain::Transid;
use domain::records::ConnectionState;
use service::{
    CarrierReceipt, Claimed, InboundDelivery, Lease, RawReceipt, Receipt, SubmitOutcome, Submitted,
};
use tokio::sync::mpsc;
use tokio::time::Instant;

use refused::Refused;

/// A connection to a carrier, over any protocol.
///
/// The worker calls `submit` with messages that are claimed for the carrier, stores what `report`
/// returns, and then calls `stored`. The connection acknowledges receipts only after that.
#[async_trait]
pub trait CarrierConnection: Send + Sync + 'static {
    /// Returns how many messages the connection can accept now.
    fn free(&self) -> usize;

    /// Waits until the connection can accept a message.
    async fn until_free(&self);

    /// Accepts messages to submit, without waiting. Reports the outcome of each message once. No
    /// submit begins after the lease's `not_after`; such a message is reported as not sent.
    fn submit(&self, lease: Lease, messages: Vec<Claimed>);

    /// Waits for answers and receipts, and returns those that came since the last report. Returns
    /// `None` once the connection is closed and everything is reported.
    async fn report(&self) -> Option<CarrierReport>;

    /// Notifies the connection that a report is stored, except its messages from handsets. `taken`
    /// lists the messages that are stored as accepted. The report still has the submitted messages
    /// and the deliveries to acknowledge, but no longer its receipts.
    fn stored(&self, report: CarrierReport, taken: &[Transid]);

    /// Notifies the connection that the messages from handsets in these deliveries are stored.
    fn acknowledge(&self, deliveries: Vec<::smpp::DeliveryHandle>);

    /// Returns the connection's state and counts, for operators.
    fn state(&self) -> ConnectionStatus;

    /// Copies the connection's PDUs to a channel. Returns false if it has none. `source` is the
    /// connection's number.
    fn trace(&self, _source: usize, _to: &mpsc::Sender<::smpp::trace::TracedPdu>) -> bool {
        false
    }

    /// Accepts no more messages, reports the unsubmitted ones as not sent, and waits a short time
    /// for answers.
    async fn close(&self);
}

/// The answers and receipts of a carrier.
#[derive(Default)]
pub struct CarrierReport {
    pub submitted: Vec<Submitted>,
    /// Accepted segments of messages that still miss other answers. The messages are reported in
    /// `submitted` later.
    pub early: Vec<Submitted>,
    /// Receipts that identify a message by our ID.
    pub receipts: Vec<Receipt>,
    /// Receipts that identify a message by the carrier message ID.
    pub carrier_receipts: Vec<CarrierReceipt>,
    /// Receipts, and answers to submits, as the carrier sent them, for staff.
    pub raw_receipts: Vec<RawReceipt>,
    /// SMPP deliveries to acknowledge once the report is durable.
    pub deliveries: Vec<::smpp::DeliveryHandle>,
    pub inbound: InboundReport,
    /// Receipts of the sandbox for messages whose recipients answer.
    pub answered: Vec<Receipt>,
}

/// Messages from handsets.
#[derive(Default)]
pub struct InboundReport {
    pub messages: Vec<InboundDelivery>,
    /// SMPP deliveries to acknowledge once these messages are durable.
    pub deliveries: Vec<::smpp::DeliveryHandle>,
}

/// Returns the value of the placeholder `{application}`. Empty for a test message by staff.
fn application(message: &Claimed) -> String {
    message.reference.map_or_else(String::new, |reference| reference.to_string())
}

/// Returns the outcome of a message that isn't submitted because its sender has used up its rate.
fn later(wait: Duration) -> SubmitOutcome {
    SubmitOutcome::Later { after_ms: i64::try_from(wait.as_millis()).unwrap_or(i64::MAX) }
}

/// Returns the beginning of a text, with backslashes and bytes other than printable ASCII escaped.
fn escaped(text: &[u8], chars_max: usize) -> String {
    let text = &text[..text.len().min(chars_max)];
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && *byte != b'\\';
    if text.iter().all(is_plain) {
        // The usual case, which has to be cheap.
        return String::from_utf8_lossy(text).into_owned();
    }
    let escaped = text.escape_ascii().to_string().replace("\\\"", "\"").replace("\\'", "'");
    escaped.chars().take(chars_max).collect()
}

/// Returns the last time at which a submit may begin, so that its answer comes before the lease
/// ends even if it takes `answer`.
fn last_start(lease: Lease, answer: Duration) -> Instant {
    let not_after = Instant::from_std(lease.not_after);
    not_after.checked_sub(answer).unwrap_or(not_after)
}

/// Whether to log something now that is logged at most once in an interval. `last` is the time of
/// the last log line.
fn is_due(last: &mut Option<Instant>, interval: Duration) -> bool {
    let is_due = last.is_none_or(|at| at.elapsed() >= interval);
    if is_due {
        *last = Some(Instant::now());
    }
    is_due
}

/// A fault in words, and when it was last seen if that is known.
type SeenFault = Option<(String, Option<Instant>)>;

/// Returns both faults of a connection as one, with the time of the first one. Each message renews
/// the second fault, so on its own it would hide the first one.
fn with_both(first: SeenFault, second: SeenFault) -> SeenFault {
    match (first, second) {
        (Some((first, seen)), Some((second, at))) => {
            Some((format!("{first} Besides: {second}"), seen.or(at)))
        }
        (first, second) => first.or(second),
    }
}

/// The state and counts of a connection.
#[derive(Clone, Debug)]
pub struct ConnectionStatus {
    pub state: ConnectionState,
    pub since: Instant,
    pub in_flight: usize,
    /// The maximum number of unanswered submits.
    pub window: usize,
    /// Since when the carrier has answered nothing although submits are unanswered.
    pub unanswered_since: Option<Instant>,
    pub answered: u64,
    /// The number of answers since the start that asked us to slow down.
    pub throttled: u64,
    /// The end of the pause that the carrier asked for.
    pub throttled_until: Option<Instant>,
    /// Whether a connection in the state [`ConnectionState::Probing`] can accept its single message
    /// now.
    pub takes_probe: bool,
    /// How often the connection was lost since the start. 0 without a lasting connection.
    pub lost: u64,
    /// Refusals since the start.
    pub refused: Refused,
    /// The fault, and the operator's next step.
    pub last_error: Option<String>,
    /// When the last error was last seen, if that is known.
    pub last_error_at: Option<Instant>,
    /// Why the carrier refuses every submit, from such a refusal until it accepts one.
    pub held: Option<String>,
}
