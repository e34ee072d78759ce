//! Claim, submit, record.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use domain::{Timestamp, Transid};
use service::{Claimed, Lease, Outstanding, Service};
use tokio_util::sync::CancellationToken;

use super::{RETRY, pause};
use crate::carrier::Carrier;

/// Messages of one claim.
const CLAIM_MAX: i64 = 512;
/// How long to wait after a claim that took all there was: claims and results cost a commit each, and a
/// moment lets more of them share one. Sends, which wait at the same gate, have it to themselves meanwhile.
const GATHER: Duration = Duration::from_millis(10);
/// How often to look for messages that nobody announced: the command line writes beside us.
const POLL: Duration = Duration::from_secs(2);

/// Sends until the token is cancelled.
pub(super) async fn run<C: Carrier>(
    service: Service,
    carrier: Arc<C>,
    default_sender: String,
    shutdown: CancellationToken,
) {
    while !shutdown.is_cancelled() {
        // Taken before the claim, so that what is queued during it wakes the wait below.
        let queued = service.queued().notified();
        match service.claim(carrier.name(), CLAIM_MAX).await {
            Ok((_, messages)) if messages.is_empty() => {
                let wait = until_due(&service, carrier.name()).await;
                tokio::select! {
                    () = queued => {}
                    () = tokio::time::sleep(wait) => {}
                    () = shutdown.cancelled() => return,
                }
            }
            Ok((lease, mut messages)) => {
                let all = i64::try_from(messages.len()).unwrap_or(CLAIM_MAX) < CLAIM_MAX;
                for message in &mut messages {
                    message.sender.get_or_insert_with(|| default_sender.clone());
                }
                hand_over(&service, carrier.as_ref(), &lease, messages, &shutdown).await;
                if all {
                    pause(GATHER, &shutdown).await;
                }
            }
            Err(error) => {
                tracing::error!(detail = ?error, "messages can't be claimed; trying again");
                pause(RETRY, &shutdown).await;
            }
        }
    }
}

/// How long until a queued message is due, at most the polling interval.
async fn until_due(service: &Service, carrier: &str) -> Duration {
    match service.next_due(carrier).await {
        Ok(Some(due)) => {
            let ms = due.ms_since(service.clock().now()).max(1);
            POLL.min(Duration::from_millis(ms.unsigned_abs()))
        }
        _ => POLL,
    }
}

async fn hand_over(
    service: &Service,
    carrier: &impl Carrier,
    lease: &Lease,
    messages: Vec<Claimed>,
    shutdown: &CancellationToken,
) {
    if shutdown.is_cancelled() {
        let ids: Vec<_> = messages.iter().map(|message| message.id).collect();
        if let Err(error) = service.put_back(lease, &ids).await {
            tracing::error!(detail = ?error, "claimed messages can't be put back; their lease will end");
        }
        return;
    }
    let results = carrier.submit(&messages).await;
    // The carrier has them: this is recorded as long as the lease holds, and tried at least once more when
    // the process is asked to stop meanwhile. After that, whoever claims them next decides.
    while service.clock().now() < lease.until {
        match service
            .record_submitted(carrier.name(), lease, results.clone())
            .await
        {
            Ok(taken) => {
                carrier.expect_receipts(outstanding(messages, &taken, service.clock().now()));
                return;
            }
            Err(error) => {
                tracing::error!(detail = ?error, "submits can't be recorded; trying again");
                if shutdown.is_cancelled() {
                    return;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

/// What is known of the messages that are stored as taken.
fn outstanding(
    messages: Vec<Claimed>,
    taken: &[Transid],
    submitted_at: Timestamp,
) -> Vec<Outstanding> {
    let taken: HashSet<_> = taken.iter().collect();
    messages
        .into_iter()
        .filter(|message| taken.contains(&message.id))
        .map(|message| Outstanding {
            id: message.id,
            application_id: message.application_id,
            number: message.number,
            submitted_at,
        })
        .collect()
}
