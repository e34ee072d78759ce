//! A carrier as the worker sees it: whether it may get messages, and the states of its connections.

use tokio::sync::watch;

use crate::carrier::ConnectionStatus;

/// A carrier and its connections.
pub(super) struct WatchedCarrier {
    pub(super) carrier: String,
    /// False while the carrier is drained. Also false until the drained carriers have been read
    /// once, so that a drained carrier gets no messages at startup.
    pub(super) open: watch::Sender<bool>,
    pub(super) connections: Vec<ReadState>,
}

/// Returns the status of a connection.
pub(super) type ReadState = Box<dyn Fn() -> ConnectionStatus + Send + Sync>;

impl WatchedCarrier {
    pub(super) fn new(carrier: String, connections: Vec<ReadState>) -> Self {
        Self { carrier, open: watch::Sender::new(false), connections }
    }

    /// Opens the carrier for messages, or closes it if it is one of the drained carriers.
    pub(super) fn update(&self, drained: &[String]) {
        let open = !drained.contains(&self.carrier);
        self.open.send_if_modified(|was| std::mem::replace(was, open) != open);
    }

    pub(super) fn is_open(&self) -> bool {
        *self.open.borrow()
    }
}
