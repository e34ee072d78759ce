//! A connection to a carrier: claims messages for it, hands them over, and records what the carrier
//! answers and reports.

mod claiming;
mod recording;

use std::sync::Arc;

use domain::Timestamp;
use service::{Leases, Service};
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::retry::{RETRY, pause, supervise};
use crate::carrier::CarrierConnection;
use crate::carrier::sandbox::Sandbox;

/// Messages that are read at once when a start looks for receipts that are still to come.
const OUTSTANDING_CHUNK: i64 = 1000;

/// Serves a connection: claims for it, records its reports, and closes it in the end.
pub(super) async fn serve(
    service: Service,
    carrier: String,
    connection: Arc<dyn CarrierConnection>,
    open: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    let consumer = service.consume(&carrier);
    let credit = consumer.credit();
    let consumer = Arc::new(Mutex::new(consumer));
    let claiming = async {
        supervise(&shutdown, || {
            let (consumer, connection) = (Arc::clone(&consumer), Arc::clone(&connection));
            claiming::run(consumer, connection, open.clone(), shutdown.clone())
        })
        .await;
        // The messages that the turn handed to the consumer, and that nobody submits any more, go
        // back to the queue.
        drop(consumer);
        connection.close().await;
    };
    let recording = supervise(&shutdown, || {
        let (service, carrier, connection) =
            (service.clone(), carrier.clone(), Arc::clone(&connection));
        let (credit, open, shutdown) = (credit.clone(), open.clone(), shutdown.clone());
        recording::run(service, carrier, connection, credit, open, shutdown)
    });
    let claiming = claiming.instrument(tracing::error_span!("claiming"));
    let recording = recording.instrument(tracing::error_span!("recording"));
    tokio::join!(claiming, recording);
}

/// How many messages a connection would take now; none while its carrier is drained.
fn free(connection: &dyn CarrierConnection, is_open: bool) -> usize {
    if is_open { connection.free() } else { 0 }
}

/// Ends the leases of an earlier process; to be called where no other process uses the database.
pub(super) async fn end_old_leases(service: &Service, shutdown: &CancellationToken) {
    loop {
        match service.end_leases(Leases::All).await {
            Ok(0) => return,
            Ok(count) => {
                tracing::info!(count, "an earlier process had claimed messages");
                return;
            }
            Err(error) => {
                tracing::error!(detail = ?error, "old leases can't be ended; trying again");
            }
        }
        if pause(RETRY, shutdown).await {
            return;
        }
    }
}

/// Tells a sandbox which messages were submitted to it before a time, by a process that ended
/// before it reported their receipts. New messages needn't wait for that.
pub(super) async fn recover(
    service: Service,
    carrier: String,
    connection: Arc<Sandbox>,
    before: Timestamp,
    shutdown: CancellationToken,
) {
    let mut after = None;
    while !shutdown.is_cancelled() {
        let outstanding = service.outstanding(&carrier, before, after, OUTSTANDING_CHUNK);
        match outstanding.await {
            Ok(found) => {
                let Some(last) = found.last() else { return };
                after = Some(last.id);
                connection.expect_receipts(&found);
            }
            Err(error) => {
                tracing::error!(
                    carrier,
                    detail = ?error,
                    "messages that await receipts can't be read; trying again"
                );
                pause(RETRY, &shutdown).await;
            }
        }
    }
}
