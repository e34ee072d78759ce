//! Goes on after failures: the worker tries again until the process is to stop.

use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

/// Pause before something that failed is tried again.
pub(super) const RETRY: Duration = Duration::from_secs(1);

/// Runs a loop in a task of its own, under the caller's tracing span, and starts it again after a
/// panic: messages must go on.
pub(super) async fn supervise<F: Future<Output = ()> + Send + 'static>(
    shutdown: &CancellationToken,
    start: impl Fn() -> F,
) {
    while let Err(error) = tokio::spawn(start().in_current_span()).await {
        tracing::error!(%error, "a task of the worker panicked and starts again");
        if pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Pauses; true when the process is to stop.
pub(super) async fn pause(time: Duration, shutdown: &CancellationToken) -> bool {
    tokio::time::timeout(time, shutdown.cancelled())
        .await
        .is_ok()
}
