//! A connection to a carrier: claims messages for it, hands them over, and records what the carrier
//! answers and reports.

mod claiming;
mod recording;

use std::sync::Arc;

use service::Service;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::retry::supervise;
use crate::carrier::CarrierConnection;

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
