//! Claims messages for a connection, as many as it has room for, and hands them over.

use std::sync::Arc;
use std::time::Duration;

use service::{BATCHES_SHARE, Service};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::{RETRY, pause};
use crate::carrier::Line;

/// Messages of one claim.
const CLAIM_MAX: usize = 512;
/// How long to wait after a claim that took all there was: claims and results cost a commit each, and a
/// moment lets more of them share one. Sends, which wait at the same gate, have it to themselves meanwhile.
const GATHER: Duration = Duration::from_millis(10);
/// How long to wait when only a small part of the window is free, for the same reason.
const GATHER_PLACES: Duration = Duration::from_millis(2);
/// How often to look for messages that nobody announced: the command line writes beside us.
const POLL: Duration = Duration::from_secs(2);

/// Claims until the token is cancelled, while the carrier is open.
pub(super) async fn run<L: Line>(
    service: Service,
    carrier: String,
    line: Arc<L>,
    mut open: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    while let Some(places) = places(line.as_ref(), &mut open, &shutdown).await {
        let limit = i64::try_from(places).unwrap_or(i64::MAX);
        match service.claim(&carrier, limit).await {
            Ok((_, messages)) if messages.is_empty() => {
                until_due(&service, &carrier, &shutdown).await;
            }
            Ok((lease, messages)) => {
                // A part of a claim is left to uploads, even when there are none.
                let all = messages.len() < places - places / BATCHES_SHARE;
                // After a call to stop, closing the line gives them back.
                line.submit(lease, messages);
                if all {
                    pause(GATHER, &shutdown).await;
                }
            }
            Err(error) => {
                tracing::error!(carrier, detail = ?error, "messages can't be claimed; trying again");
                pause(RETRY, &shutdown).await;
            }
        }
    }
}

/// How many messages may be claimed, waiting for some; `None` when the process is to stop.
async fn places<L: Line>(
    line: &L,
    open: &mut watch::Receiver<bool>,
    shutdown: &CancellationToken,
) -> Option<usize> {
    loop {
        tokio::select! {
            () = async {
                // An error says that nobody opens or closes it any more.
                let _ = open.wait_for(|open| *open).await;
                line.until_free().await;
            } => {}
            () = shutdown.cancelled() => return None,
        }
        if line.free().min(CLAIM_MAX) * 4 < line.state().window.min(CLAIM_MAX) {
            pause(GATHER_PLACES, shutdown).await;
        }
        let places = line.free().min(CLAIM_MAX);
        if places > 0 && *open.borrow() && !shutdown.is_cancelled() {
            return Some(places);
        }
    }
}

/// Waits until a message is due. Only reads: most of what is queued is for other carriers, and whoever sends
/// waits at the gate that a claim goes through.
async fn until_due(service: &Service, carrier: &str, shutdown: &CancellationToken) {
    while !shutdown.is_cancelled() {
        // Taken before the look, so that what is queued during it ends the wait.
        let queued = service.queued().notified();
        let wait = match service.next_due(carrier).await {
            Ok(Some(due)) => match due.ms_since(service.clock().now()) {
                ..=0 => return,
                ms => POLL.min(Duration::from_millis(ms.unsigned_abs())),
            },
            Ok(None) => POLL,
            // The claim will say what is wrong.
            Err(_) => {
                pause(RETRY, shutdown).await;
                return;
            }
        };
        tokio::select! {
            () = queued => {}
            () = tokio::time::sleep(wait) => {}
            () = shutdown.cancelled() => {}
        }
    }
}
