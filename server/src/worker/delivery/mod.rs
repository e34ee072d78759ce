//! Delivery over a connection to a carrier: claims messages, submits them, and records the
//! carrier's responses and receipts.

mod claiming;
mod recording;

use std::sync::Arc;

use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use super::context::Context;
use crate::carrier::CarrierConnection;

/// Serves a connection: claims messages for it until `stop` is cancelled, records its reports, and
/// closes it at the end. The carrier's answers are recorded even after `stop`, unless the process
/// ends.
pub(super) async fn serve(
    context: Context,
    stop: CancellationToken,
    carrier: String,
    connection: Arc<dyn CarrierConnection>,
    open: watch::Receiver<bool>,
) {
    let consumer = context.service.delivery().consume(&carrier);
    let credit = consumer.credit();
    let consumer = Arc::new(Mutex::new(consumer));
    let claiming = async {
        let context = Context { shutdown: stop, ..context.clone() };
        context
            .supervise(|context| {
                let (consumer, connection) = (Arc::clone(&consumer), Arc::clone(&connection));
                claiming::run(consumer, connection, open.clone(), context.shutdown)
            })
            .await;
        // A commit group may have given messages to the consumer that nobody will submit any more.
        // Dropping the consumer returns them to the queue.
        drop(consumer);
        connection.close().await;
    };
    let recording = context.supervise(|context| {
        let (carrier, connection) = (carrier.clone(), Arc::clone(&connection));
        recording::run(context, carrier, connection, credit.clone(), open.clone())
    });
    let claiming = claiming.instrument(tracing::error_span!("claiming"));
    let recording = recording.instrument(tracing::error_span!("recording"));
    tokio::join!(claiming, recording);
}

/// Returns the number of messages that the connection can take now, or 0 while its carrier is
/// drained.
fn free(connection: &dyn CarrierConnection, is_open: bool) -> usize {
    if is_open { connection.free() } else { 0 }
}
