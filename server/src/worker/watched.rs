//! A carrier as the worker watches it: whether it may be handed messages, and how its connections
//! are.

use tokio::sync::watch;

use crate::carrier::ConnectionStatus;

/// A carrier and its connections.
pub(super) struct WatchedCarrier {
    pub(super) carrier: String,
    /// False while the carrier is drained, and until that was read once: a drained carrier must not
    /// be handed anything at a start.
    pub(super) open: watch::Sender<bool>,
    pub(super) connections: Vec<ReadState>,
}

/// Reads how a connection is.
pub(super) type ReadState = Box<dyn Fn() -> ConnectionStatus + Send + Sync>;

impl WatchedCarrier {
    pub(super) fn new(carrier: String, connections: Vec<ReadState>) -> Self {
        Self {
            carrier,
            open: watch::Sender::new(false),
            connections,
        }
    }

    /// Opens the carrier to messages, or closes it if it is among the drained ones.
    pub(super) fn update(&self, drained: &[String]) {
        let open = !drained.contains(&self.carrier);
        self.open
            .send_if_modified(|was| std::mem::replace(was, open) != open);
    }

    pub(super) fn is_open(&self) -> bool {
        *self.open.borrow()
    }
}
