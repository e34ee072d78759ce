//! A connection's state and counts, for operators.

use tokio::time::Instant;

use crate::Fault;

/// The maximum number of unacknowledged deliveries per link. At this limit, the link stops reading.
pub const UNACKNOWLEDGED_LIMIT: usize = 1000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Connecting or binding.
    Connecting,
    /// All links are bound.
    Bound,
    /// Backing off before the next attempt.
    Waiting,
    /// Closed for good.
    Closed,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LastError {
    pub fault: Fault,
    /// When it was last seen.
    pub at: Instant,
}

/// A snapshot of a connection.
#[derive(Debug, Clone)]
pub struct Status {
    pub state: State,
    /// Since when the connection has been bound, or down. Attempts to bind don't change this time.
    /// While the connection accepts one submit at a time, since when it does so.
    pub since: Instant,
    /// Submits that the link has taken from the queue to write, and that aren't answered yet.
    pub in_flight: usize,
    /// The limit of `in_flight` and `queued` together.
    pub window: usize,
    /// Whether submits were left unanswered and none has been answered since. Until one is
    /// answered, the connection accepts one submit at a time, whatever its window. This outlasts
    /// the link, because a bind or a response to an enquire_link proves nothing about submits.
    pub probing: bool,
    /// Since when the peer has answered no submit although some are unanswered.
    pub unanswered_since: Option<Instant>,
    /// Whether `unanswered_since` is at least [`crate::Timers::silent`] ago. If so, the connection
    /// accepts no submits.
    pub silent: bool,
    /// Accepted submits that the link hasn't taken from the queue yet.
    pub queued: usize,
    /// The number of answers since the start that asked us to slow down.
    pub throttled: u64,
    /// The end of the pause that the peer asked for.
    pub throttled_until: Option<Instant>,
    /// Whether the peer refused submits for a reason that concerns all submits. Until it accepts
    /// one, the connection accepts one submit at a time. This outlasts the link.
    pub held: bool,
    /// The end of the pause after such a refusal.
    pub held_until: Option<Instant>,
    /// The number of submits that the peer answered since the start.
    pub answered: u64,
    pub delivered: u64,
    /// The number of binds that the peer accepted since the start.
    pub binds: u64,
    /// How often the connection was lost since the start.
    pub lost: u64,
    /// Why the last link or attempt ended.
    pub last_error: Option<LastError>,
    /// Deliveries that aren't acknowledged yet.
    pub unacknowledged: usize,
}
