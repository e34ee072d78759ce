//! Takes over from processes that ended: the messages that they had claimed, and the receipts that
//! their sandboxes still owe.

use std::sync::Arc;

use domain::Timestamp;
use futures_util::future::join_all;
use parking_lot::RwLock;
use service::Leases;

use super::context::{Context, RETRY};
use crate::carrier::sandbox::Sandbox;

/// The number of messages without receipts that are read at once.
const OUTSTANDING_CHUNK: i64 = 1000;

/// The sandboxes of this process, with their names. A reload of the settings may add some.
#[derive(Clone, Default)]
pub(super) struct Sandboxes(Arc<RwLock<Vec<NamedSandbox>>>);

type NamedSandbox = (String, Arc<Sandbox>);

impl Sandboxes {
    pub(super) fn list(&self) -> Vec<NamedSandbox> {
        self.0.read().clone()
    }

    /// Returns the sandbox with this name. Opens it if there is none yet.
    pub(super) fn open(&self, name: &str, open: impl FnOnce() -> Sandbox) -> Arc<Sandbox> {
        let mut sandboxes = self.0.write();
        if let Some((_, sandbox)) = sandboxes.iter().find(|(known, _)| known == name) {
            return Arc::clone(sandbox);
        }
        let sandbox = Arc::new(open());
        sandboxes.push((name.to_owned(), Arc::clone(&sandbox)));
        sandbox
    }
}

/// Ends the leases of an earlier process. Must be called before this process claims anything, and
/// only if no other process uses the database.
pub(super) async fn end_leases(context: &Context) {
    loop {
        let ending = async {
            context.service.webhooks().end_leases().await?;
            context.service.delivery().end_leases(Leases::All).await
        };
        match ending.await {
            Ok(0) => return,
            Ok(count) => {
                tracing::warn!(
                    count,
                    "an earlier process died while it submitted messages, and nobody knows whether \
                     their carriers have them. They are unknown until a receipt comes, or are sent \
                     again if their application wants that. `heliograph message unknown` lists them"
                );
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

/// Passes messages to the sandboxes, so that the sandboxes report the receipts that are still due.
/// These are the messages that a sandbox accepted before the given time and that aren't final: the
/// process that submitted them ended before it reported their receipts. New messages don't wait for
/// this.
pub(super) async fn recover(context: Context, sandboxes: Sandboxes, before: Timestamp) {
    let sandboxes = sandboxes.list();
    let recovering =
        sandboxes.iter().map(|(carrier, sandbox)| recover_one(&context, carrier, sandbox, before));
    join_all(recovering).await;
}

async fn recover_one(context: &Context, carrier: &str, sandbox: &Sandbox, before: Timestamp) {
    let mut after = None;
    while !context.shutdown.is_cancelled() {
        let service = &context.service;
        let delivery = service.delivery();
        let outstanding = delivery.outstanding(carrier, before, after, OUTSTANDING_CHUNK);
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
