//! What every task of the worker works with, and how it goes on after failures: it tries again
//! until the process is to stop.

use std::time::Duration;

use service::Service;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Pause before something that failed is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// The service, and the token that is cancelled when the process is to stop.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) service: Service,
    pub(super) shutdown: CancellationToken,
}

impl Context {
    /// Runs a loop in a task of its own, under the caller's tracing span, and starts it again after
    /// a panic: messages must go on.
    pub(super) async fn supervise<F: Future<Output = ()> + Send + 'static>(
        &self,
        start: impl Fn(Self) -> F,
    ) {
        while let Err(error) = tokio::spawn(start(self.clone()).in_current_span()).await {
            tracing::error!(%error, "a task of the worker panicked and starts again");
            if self.pause(RETRY).await {
                return;
            }
        }
    }

    /// Pauses; true when the process is to stop.
    pub(super) async fn pause(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.shutdown.cancelled())
            .await
            .is_ok()
    }
}
