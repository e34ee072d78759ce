//! Takes over what processes that ended left: messages that they had claimed, and receipts that
//! their sandboxes owe.

use std::sync::Arc;

use domain::Timestamp;
use futures_util::future::join_all;
use service::Leases;

use super::context::{Context, RETRY};
use crate::carrier::sandbox::Sandbox;

/// How many messages without their receipts are read at once.
const OUTSTANDING_CHUNK: i64 = 1000;

/// The sandboxes of this process, with their names.
pub(super) type Sandboxes = Arc<Vec<(String, Arc<Sandbox>)>>;

/// Ends the leases of an earlier process; to be called before this one claims anything, and where
/// no other process uses the database.
pub(super) async fn end_leases(context: &Context) {
    loop {
        match context.service.end_leases(Leases::All).await {
            Ok(0) => return,
            Ok(count) => {
                tracing::info!(count, "an earlier process had claimed messages");
                return;
            }
            Err(error) => {
                tracing::error!(detail = ?error, "old leases can't be ended; trying again");
            }
        }
        if context.pause(RETRY).await {
            return;
        }
    }
}

/// Tells sandboxes which messages were submitted to them before a time, by a process that ended
/// before it reported their receipts. New messages needn't wait for that.
pub(super) async fn recover(context: Context, sandboxes: Sandboxes, before: Timestamp) {
    let recovering = sandboxes
        .iter()
        .map(|(carrier, sandbox)| recover_one(&context, carrier, sandbox, before));
    join_all(recovering).await;
}

async fn recover_one(context: &Context, carrier: &str, sandbox: &Sandbox, before: Timestamp) {
    let mut after = None;
    while !context.shutdown.is_cancelled() {
        let service = &context.service;
        let outstanding = service.outstanding(carrier, before, after, OUTSTANDING_CHUNK);
        match outstanding.await {
            Ok(found) => {
                let Some(last) = found.last() else { return };
                after = Some(last.id);
                sandbox.expect_receipts(&found);
            }
            Err(error) => {
                tracing::error!(
                    carrier,
                    detail = ?error,
                    "messages that await receipts can't be read; trying again"
                );
                context.pause(RETRY).await;
            }
        }
    }
}
