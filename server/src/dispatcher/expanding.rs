//! Uploads become messages, a bit of each in turn: a small one doesn't wait for a large one.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use domain::BatchId;
use service::Service;
use tokio_util::sync::CancellationToken;

use super::{RETRY, pause};

/// How often to look for uploads that nobody announced.
const POLL: Duration = Duration::from_secs(2);

/// Expands until the token is cancelled.
pub(super) async fn run(service: Service, shutdown: CancellationToken) {
    let mut last = None;
    // An upload that can't be read now is left alone for a while; the others go on.
    let mut failed: HashMap<BatchId, Instant> = HashMap::new();
    let mut advanced = false;
    while !shutdown.is_cancelled() {
        // Taken before the look, so that what is accepted during it wakes the wait below.
        let accepted = service.batch_accepted().notified();
        match service.next_unexpanded(last).await {
            Ok(Some(batch)) => {
                last = Some(batch);
                if failed.get(&batch).is_none_or(|at| at.elapsed() >= RETRY) {
                    advanced |= expand(&service, batch, &mut failed).await;
                }
                continue;
            }
            // The end of a round in which something was done: the next one begins.
            Ok(None) if advanced => {}
            Ok(None) => {
                let wait = if failed.is_empty() { POLL } else { RETRY };
                tokio::select! {
                    () = accepted => {}
                    () = tokio::time::sleep(wait) => {}
                    () = shutdown.cancelled() => return,
                }
            }
            Err(error) => {
                tracing::error!(detail = ?error, "uploads can't be looked up; trying again");
                pause(RETRY, &shutdown).await;
            }
        }
        (last, advanced) = (None, false);
    }
}

/// Turns a bit of an upload into messages; false when that failed, or another process does it.
async fn expand(service: &Service, batch: BatchId, failed: &mut HashMap<BatchId, Instant>) -> bool {
    match service.expand(batch).await {
        Ok(stored) => {
            failed.remove(&batch);
            stored
        }
        Err(error) => {
            let id = batch.to_string();
            tracing::error!(id, detail = ?error, "an upload can't be turned into messages; trying again");
            failed.insert(batch, Instant::now());
            false
        }
    }
}
