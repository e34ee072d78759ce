//! Other ways for messages whose carrier can't take them.

use std::time::Duration;

use service::{Result, Service};
use tokio_util::sync::CancellationToken;

use super::{RETRY, pause};

/// How often to look for messages that no route is for.
const POLL: Duration = Duration::from_secs(1);

/// Looks until the token is cancelled.
pub(super) async fn run(service: Service, shutdown: CancellationToken) {
    // Carriers that an earlier process knew.
    let mut carriers = retried(&shutdown, || service.unknown_carriers()).await;
    while !shutdown.is_cancelled() {
        for carrier in carriers {
            retried(&shutdown, || service.reroute(&carrier)).await;
        }
        // The empty name stands for no route.
        carriers = tokio::select! {
            () = service.routes_changed().notified() => {
                let mut carriers = service.unusable_carriers();
                carriers.push(String::new());
                carriers
            }
            () = tokio::time::sleep(POLL) => vec![String::new()],
            () = shutdown.cancelled() => return,
        };
    }
}

async fn retried<T: Default, F: Future<Output = Result<T>>>(
    shutdown: &CancellationToken,
    look: impl Fn() -> F,
) -> T {
    loop {
        match look().await {
            Ok(found) => return found,
            Err(error) => {
                tracing::error!(detail = ?error, "messages can't be given another way; trying again");
                if pause(RETRY, shutdown).await {
                    return T::default();
                }
            }
        }
    }
}
