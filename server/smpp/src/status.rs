//! A connection's state and counts, for operators.

use tokio::time::Instant;

/// Most deliveries that may wait to be acknowledged. A link that has so many isn't read.
pub const UNACKNOWLEDGED_LIMIT: usize = 1000;

/// State of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Connects and binds.
    Connecting,
    /// All its links are bound.
    Bound,
    /// Backs off before the next attempt.
    Waiting,
    /// Closed for good.
    Closed,
}

/// A snapshot of a connection.
#[derive(Debug, Clone)]
pub struct Status {
    /// The connection's state.
    pub state: State,
    /// Since when it has been in this state.
    pub since: Instant,
    /// Submits written, or being written, and not answered.
    pub in_flight: usize,
    /// Bound of `in_flight` and `queued` together.
    pub window: usize,
    /// Whether submits were left unanswered, and none was answered since: until one is answered,
    /// the connection takes one at a time, whatever its window. That outlasts the link, since a
    /// bind and the responses to enquire_links prove nothing about submits.
    pub probing: bool,
    /// Submits taken of which nothing is written yet.
    pub queued: usize,
    /// Answers since the start that asked for a slower pace.
    pub throttled: u64,
    /// End of the pause that the peer asked for.
    pub throttled_until: Option<Instant>,
    /// The peer's answers to submits since the start.
    pub answered: u64,
    /// Deliveries since the start.
    pub delivered: u64,
    /// Binds that the peer accepted since the start.
    pub binds: u64,
    /// Why the last link or attempt ended.
    pub last_error: Option<String>,
    /// Deliveries that wait to be acknowledged.
    pub unacknowledged: usize,
}
