//! What ends by itself: messages after 48 hours, sessions, counts of attempts, kept answers, and
//! old messages altogether.

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
        if let Err(error) = service.make_days().await {
            tracing::error!(detail = ?error, "the tables of the days to come can't be made");
        }
        if let Err(error) = service.fold_days().await {
            tracing::error!(detail = ?error, "the counts of days that are over can't be put together");
        }
        if let Err(error) = service.drop_history().await {
            tracing::error!(detail = ?error, "old messages can't be dropped");
        }
        if pause(INTERVAL, &shutdown).await {
            return;
        }
    }
}
