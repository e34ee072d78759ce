//! A connection as its operators see it.

use tokio::time::Instant;

/// Deliveries that may wait to be acknowledged; at that many the link isn't read.
pub const UNACKNOWLEDGED_LIMIT: usize = 1000;

/// Where a connection stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Under way to being bound.
    Connecting,
    /// All its links are bound.
    Bound,
    /// Waits before the next attempt.
    Waiting,
    /// Closed for good.
    Closed,
}

/// A snapshot of a connection.
#[derive(Debug, Clone)]
pub struct Status {
    /// Where it stands.
    pub state: State,
    /// Since when it stands there.
    pub since: Instant,
    /// Submits written, or being written, and not answered.
    pub in_flight: usize,
    /// Bound of `in_flight` and `queued` together.
    pub window: usize,
    /// Submits weren't answered, and none has been since: whatever the window, one is taken at a
    /// time until one is answered. It outlasts the link, since a bind and answers to enquire_links
    /// say nothing about submits.
    pub probing: bool,
    /// Submits taken and not begun to be written.
    pub queued: usize,
    /// Answers that said to slow down, ever.
    pub throttled: u64,
    /// Nothing is written before this.
    pub throttled_until: Option<Instant>,
    /// Answers that the peer gave to submits, ever.
    pub answered: u64,
    /// Deliveries, ever.
    pub delivered: u64,
    /// Binds that the peer accepted, ever.
    pub binds: u64,
    /// Why the last link or attempt ended.
    pub last_error: Option<String>,
    /// Deliveries that wait to be acknowledged.
    pub unacknowledged: usize,
}
