//! Claims as many messages as a connection has slots for, and submits them.

use std::sync::Arc;
use std::time::Duration;

use service::Consumer;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;

use super::free;
use crate::carrier::CarrierConnection;

/// How often a connection's free slots are counted again. The end of a pause and the progress of a
/// rate limit free slots without any event.
const REFRESH: Duration = Duration::from_millis(100);

/// Submits messages until the token is cancelled. Submits none while the carrier is drained.
pub(super) async fn run(
    consumer: Arc<Mutex<Consumer>>,
    connection: Arc<dyn CarrierConnection>,
    mut open: watch::Receiver<bool>,
    shutdown: CancellationToken,
) {
    let mut consumer = consumer.lock().await;
    let credit = consumer.credit();
    loop {
        let is_open = *open.borrow_and_update();
        let free = || free(connection.as_ref(), is_open);
        credit.refresh(free);
        tokio::select! {
            (lease, messages) = consumer.next() => {
                consumer.submit(messages.len(), || connection.submit(lease, messages), free);
            }
            () = connection.until_free(), if is_open && connection.free() == 0 => {}
            () = tokio::time::sleep(REFRESH), if is_open => {}
            // An error means that nothing can drain or resume the carrier any more.
            Ok(()) = open.changed() => {}
            () = shutdown.cancelled() => return,
        }
    }
}
