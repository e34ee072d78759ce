//! Ends claims whose time is over, and matches what crossed.

use std::time::Duration;

use service::{Leases, Service};
use tokio_util::sync::CancellationToken;

use super::pause;

/// How often; a claim holds for a minute.
const INTERVAL: Duration = Duration::from_secs(5);

/// Ends them until the token is cancelled.
pub(super) async fn run(service: Service, shutdown: CancellationToken) {
    while !pause(INTERVAL, &shutdown).await {
        match service.end_leases(Leases::Over).await {
            Ok(0) => {}
            Ok(count) => tracing::warn!(count, "claims ended without a result"),
            Err(error) => tracing::error!(detail = ?error, "claims can't be ended"),
        }
        match service.match_crossed().await {
            Ok(0) => {}
            Ok(count) => tracing::info!(count, "receipts crossed the answers to their submits"),
            Err(error) => tracing::error!(detail = ?error, "receipts can't be matched"),
        }
    }
}
