//! The halt: stops all writes after a failed sync.

use tokio::sync::watch;

use crate::error::Error;

/// A flag that is set once written data may be missing on disk. From then on, nothing is written.
pub struct Halt(watch::Sender<bool>);

impl Halt {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    /// Sets the flag if the error is a failed sync of the disk.
    pub(crate) fn note(&self, error: &Error) {
        if error.is_failed_sync() {
            tracing::error!(%error, detail = ?error, "the database can't be synced to disk");
            self.set();
        }
    }

    pub(crate) fn set(&self) {
        self.0.send_replace(true);
    }

    pub(crate) fn is_set(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the flag is set.
    pub(crate) async fn wait(&self) {
        // The sender lives as long as the store.
        let _ = self.0.subscribe().wait_for(|halted| *halted).await;
    }
}
