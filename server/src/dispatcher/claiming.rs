//! Takes messages for a connection, as many as it has room for, and hands them over.

use std::sync::Arc;
use std::time::Duration;

use service::Service;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use crate::carrier::Line;

/// How often a connection with room says how much it has: a pace or a pause gives places without any event.
const REFRESH: Duration = Duration::from_millis(100);

/// Hands messages over until the token is cancelled, while the carrier is open. `answered` says that answers came,
/// which free places.
pub(super) async fn run<L: Line>(
    service: Service,
    carrier: String,
    line: Arc<L>,
    mut open: watch::Receiver<bool>,
    answered: Arc<Notify>,
    shutdown: CancellationToken,
) {
    // Dropped at the end, it gives back what it was handed and hasn't received.
    let mut consumer = service.consume(&carrier);
    loop {
        let is_open = *open.borrow_and_update();
        let credit = if is_open { line.free() } else { 0 };
        consumer.set_credit(credit);
        tokio::select! {
            (lease, messages) = consumer.next() => line.submit(lease, messages),
            () = answered.notified() => {}
            () = line.until_free(), if is_open && credit == 0 => {}
            () = tokio::time::sleep(REFRESH), if is_open && credit > 0 => {}
            // An error says that nobody opens or closes it any more.
            Ok(()) = open.changed() => {}
            () = shutdown.cancelled() => return,
        }
    }
}
