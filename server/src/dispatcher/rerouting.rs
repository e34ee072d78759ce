//! Other ways for messages whose carrier can't take them.

use std::time::Duration;

use service::{Result, Service};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{RETRY, pause};

/// How often to look for messages that no route is for.
const POLL: Duration = Duration::from_secs(1);

/// How long after a carrier became unusable its messages are looked at once more: some were being
/// queued for it, or came back from it, meanwhile.
const ONCE_MORE: Duration = Duration::from_secs(5);

/// Looks until the token is cancelled.
pub(super) async fn run(service: Service, shutdown: CancellationToken) {
    // Carriers that an earlier process knew.
    let mut carriers = retried(&shutdown, || service.unknown_carriers()).await;
    let mut once_more = None;
    while !shutdown.is_cancelled() {
        for carrier in carriers {
            retried(&shutdown, || service.reroute(&carrier)).await;
        }
        // The empty name stands for no route.
        carriers = vec![String::new()];
        tokio::select! {
            () = service.routes_changed().notified() => {
                carriers.extend(service.unusable_carriers());
                once_more = Some(Instant::now() + ONCE_MORE);
            }
            () = tokio::time::sleep(POLL) => {
                if once_more.is_some_and(|at| at <= Instant::now()) {
                    carriers.extend(service.unusable_carriers());
                    once_more = None;
                }
            }
            () = shutdown.cancelled() => return,
        }
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
