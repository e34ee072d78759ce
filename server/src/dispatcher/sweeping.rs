//! What ends by itself: messages after 48 hours, sessions, counts of attempts, kept answers.

use std::time::Duration;

use service::Service;
use tokio_util::sync::CancellationToken;

use super::pause;

/// How often; a message is final at latest ten minutes after its time.
const INTERVAL: Duration = Duration::from_mins(1);

/// Sweeps at once, for what ran out while nothing was running, and then again and again.
pub(super) async fn run(service: Service, shutdown: CancellationToken) {
    loop {
        match service.expire().await {
            Ok(0) => {}
            Ok(expired) => tracing::info!(expired, "messages expired"),
            Err(error) => tracing::error!(detail = ?error, "messages can't be expired"),
        }
        if let Err(error) = service.session_sweep().await {
            tracing::error!(detail = ?error, "sessions can't be swept");
        }
        if let Err(error) = service.forget_segments().await {
            tracing::error!(detail = ?error, "what carriers called old messages can't be swept");
        }
        if let Err(error) = service.forget_answers().await {
            tracing::error!(detail = ?error, "old idempotency keys can't be swept");
        }
        if pause(INTERVAL, &shutdown).await {
            return;
        }
    }
}
