//! Signals to the other processes that this one is running, and takes over from processes that
//! ended.

use std::time::Duration;

use async_trait::async_trait;
use service::Result;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::Instrument as _;

use super::work::{Next, Work, attempt};
use crate::worker::context::Context;
use crate::worker::ended::{self, Sandboxes};

/// A sandbox's receipt that is overdue by this much counts as lost: the sandbox's process has
/// ended.
const RECEIPT_LATE_MS: u64 = 45_000;

pub(super) struct Nodes {
    sandboxes: Sandboxes,
    /// How long after its submit a message's receipt counts as lost.
    late_ms: u64,
    /// When to look for receipts that ended processes owe. Also set at startup, because a process
    /// may have ended while no other was running.
    recover_at: Option<Instant>,
    recoveries: JoinSet<()>,
}

impl Nodes {
    pub(super) fn new(sandboxes: Sandboxes) -> Self {
        let delay_ms = sandboxes.list().iter().map(|(_, sandbox)| sandbox.delay_ms()).max();
        Self {
            late_ms: RECEIPT_LATE_MS + delay_ms.unwrap_or(0),
            sandboxes,
            recover_at: Some(Instant::now()),
            recoveries: JoinSet::new(),
        }
    }

    /// Recovers in a separate task, because a process that is late to renew its node counts as
    /// ended.
    fn recover(&mut self, context: &Context) {
        let now = context.service.clock().now();
        let before = now.plus_ms(-self.late_ms.cast_signed());
        let recovering = ended::recover(context.clone(), self.sandboxes.clone(), before);
        self.recoveries.spawn(recovering.in_current_span());
    }
}

#[async_trait]
impl Work for Nodes {
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        let service = &context.service;
        attempt("this process can't renew its node", service.operations().renew_node()).await;
        if attempt("processes that ended can't be found", service.operations().nodes_ended()).await
            == Some(true)
        {
            // By then, the receipts that the ended processes owe are late.
            self.recover_at = Some(Instant::now() + Duration::from_millis(self.late_ms));
        }
        if self.recover_at.is_some_and(|at| at <= Instant::now()) {
            self.recover_at = None;
            self.recover(context);
        }
        Ok(Next::AfterInterval)
    }
}
