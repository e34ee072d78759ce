//! A carrier as the worker sees it: whether it may get messages, and the states of its connections.

use std::sync::Arc;

use parking_lot::RwLock;
use tokio::sync::watch;

use crate::carrier::pace::Paces;
use crate::carrier::{CarrierConnection, ConnectionStatus};
use crate::config::carriers::HealthSettings;

/// A carrier and its connections.
pub(super) struct WatchedCarrier {
    pub(super) carrier: String,
    pub(super) health: HealthSettings,
    /// False while the carrier is drained. Also false until the drained carriers have been read
    /// once, so that a drained carrier gets no messages at startup.
    pub(super) open: watch::Sender<bool>,
    pub(super) connections: Vec<ReadState>,
    pub(super) links: Vec<Arc<dyn CarrierConnection>>,
    /// The rates that the connections share with those of other processes.
    pub(super) paces: Paces,
}

pub(super) type ReadState = Box<dyn Fn() -> ConnectionStatus + Send + Sync>;

/// The carriers that the worker serves now. A reload of the settings changes them.
#[derive(Clone, Default)]
pub(super) struct WatchedCarriers(Arc<RwLock<Vec<Arc<WatchedCarrier>>>>);

impl WatchedCarriers {
    pub(super) fn list(&self) -> Vec<Arc<WatchedCarrier>> {
        self.0.read().clone()
    }

    pub(super) fn add(&self, carrier: Arc<WatchedCarrier>) {
        self.0.write().push(carrier);
    }

    pub(super) fn remove(&self, name: &str) {
        self.0.write().retain(|watched| watched.carrier != name);
    }
}

impl WatchedCarrier {
    /// Opens the carrier for messages, or closes it if it is one of the drained carriers.
    pub(super) fn update(&self, drained: &[String]) {
        let open = !drained.contains(&self.carrier);
        self.open.send_if_modified(|was| std::mem::replace(was, open) != open);
    }

    pub(super) fn is_open(&self) -> bool {
        *self.open.borrow()
    }
}
