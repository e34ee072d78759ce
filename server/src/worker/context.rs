//! The context of the worker's tasks. They retry after failures until the process stops.

use std::time::Duration;

use service::Service;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument as _;

use super::trials::Trials;

/// The pause before a retry.
pub(super) const RETRY: Duration = Duration::from_secs(1);

#[derive(Clone)]
pub(super) struct Context {
    pub(super) service: Service,
    pub(super) shutdown: CancellationToken,
    /// The tasks that deliver events to endpoints.
    pub(super) deliveries: TaskTracker,
    pub(super) trials: Trials,
}

impl Context {
    /// Runs a loop in a task of its own, under the caller's tracing span. Restarts it after a
    /// panic, because delivery must continue.
    pub(super) async fn supervise<F: Future<Output = ()> + Send + 'static>(
        &self,
        start: impl Fn(Self) -> F,
    ) {
        while let Err(error) = tokio::spawn(start(self.clone()).in_current_span()).await {
            tracing::error!(%error, "a worker task panicked; restarting it");
            if self.pause(RETRY).await {
                return;
            }
        }
    }

    /// Pauses. Returns true if the process must stop.
    pub(super) async fn pause(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.shutdown.cancelled()).await.is_ok()
    }
}
