//! Uploads become messages, a bit of each in turn: a small one doesn't wait for a large one.

use std::time::Duration;

use service::Service;
use tokio_util::sync::CancellationToken;

use super::{RETRY, pause};

/// How often to look for uploads that nobody announced.
const POLL: Duration = Duration::from_secs(2);

/// Expands until the token is cancelled.
pub(super) async fn run(service: Service, shutdown: CancellationToken) {
    let mut last = None;
    while !shutdown.is_cancelled() {
        // Taken before the look, so that what is accepted during it wakes the wait below.
        let accepted = service.batch_accepted().notified();
        let expanded = match service.next_unexpanded(last).await {
            Ok(None) if last.is_none() => {
                tokio::select! {
                    () = accepted => {}
                    () = tokio::time::sleep(POLL) => {}
                    () = shutdown.cancelled() => return,
                }
                continue;
            }
            Ok(next) => {
                last = next;
                match next {
                    Some(batch) => service.expand(batch).await,
                    None => Ok(()),
                }
            }
            Err(error) => Err(error),
        };
        if let Err(error) = expanded {
            tracing::error!(detail = ?error, "an upload can't be turned into messages; trying again");
            pause(RETRY, &shutdown).await;
        }
    }
}
