//! Messages of an application that was suspended go on once it is reinstated.

use std::time::Duration;

use service::Service;
use tokio_util::sync::CancellationToken;

/// How often to look for reinstatements that nobody announced: the command line writes beside us.
const POLL: Duration = Duration::from_secs(2);

/// Looks until the token is cancelled.
pub(super) async fn run(service: Service, shutdown: CancellationToken) {
    while !shutdown.is_cancelled() {
        let reinstated = service.reinstated().notified();
        if let Err(error) = service.resume_put_aside().await {
            tracing::error!(detail = ?error, "messages that were put aside don't go on yet");
        }
        tokio::select! {
            () = reinstated => {}
            () = tokio::time::sleep(POLL) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
