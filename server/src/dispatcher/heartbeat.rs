//! Says that this process lives, and takes care of what other processes left when they ended. Only
//! where several serve.

use std::sync::Arc;
use std::time::Duration;

use service::Service;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{pause, recover};
use crate::carrier::sandbox::Sandbox;

/// How often; who isn't seen for half a minute is given up.
const INTERVAL: Duration = Duration::from_secs(5);
/// A receipt of a sandbox that is so late is awaited by nobody any more: its process ended.
const RECEIPT_LATE_MS: u64 = 45_000;
/// Something keeps a transaction open for longer than anything of ours: what is deleted meanwhile
/// can't be removed.
const OLD_TRANSACTION_MS: i64 = 5 * 60 * 1000;
/// How often that is worth a word.
const ALARM_INTERVAL: Duration = Duration::from_mins(1);

/// Beats until the token is cancelled.
pub(super) async fn run(
    service: Service,
    sandboxes: Arc<Vec<(String, Arc<Sandbox>)>>,
    shutdown: CancellationToken,
) {
    let mut recoveries = JoinSet::new();
    let mut alarmed_at = None::<Instant>;
    // What an earlier process left, that ended while nobody else was there.
    let mut recover_at = Some(Instant::now());
    loop {
        if let Err(error) = service.renew_node().await {
            tracing::error!(detail = ?error, "the others can't be told that this process lives");
        }
        match service.nodes_ended().await {
            // Its last receipts are late by then.
            Ok(true) => recover_at = Some(Instant::now() + Duration::from_millis(RECEIPT_LATE_MS)),
            Ok(false) => {}
            Err(error) => tracing::error!(detail = ?error, "other processes can't be looked at"),
        }
        if recover_at.is_some_and(|at| at <= Instant::now()) {
            recover_at = None;
            let before = service
                .clock()
                .now()
                .plus_ms(-RECEIPT_LATE_MS.cast_signed());
            // Beside: whoever doesn't beat is given up.
            for (name, line) in sandboxes.iter() {
                let (service, line) = (service.clone(), Arc::clone(line));
                let recovering = recover(service, name.clone(), line, before, shutdown.clone());
                recoveries.spawn(recovering);
            }
        }
        if alarmed_at.is_none_or(|at| at.elapsed() >= ALARM_INTERVAL) {
            alarmed_at = Some(Instant::now());
            alarm(&service).await;
        }
        if pause(INTERVAL, &shutdown).await {
            return;
        }
    }
}

async fn alarm(service: &Service) {
    match service.oldest_transaction_ms().await {
        Ok(Some(age_ms)) if age_ms > OLD_TRANSACTION_MS => tracing::error!(
            age_ms,
            "a transaction has been open in the database for long: vacuum can't remove what was deleted since, and \
             claims get slower. Look for it in pg_stat_activity"
        ),
        Ok(_) => {}
        Err(error) => tracing::error!(detail = ?error, "open transactions can't be looked at"),
    }
}
