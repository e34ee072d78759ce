//! Applies the clocks of test keys to waiting rows, and to the receipts that wait in the sandboxes
//! of this process.

use std::collections::HashMap;
use std::time::Duration;

use async_trait::async_trait;
use domain::{ApplicationId, TestClock};
use service::Result;

use super::work::{Next, Work};
use crate::worker::context::Context;
use crate::worker::ended::Sandboxes;

pub(super) struct Clocks {
    sandboxes: Sandboxes,
    /// The clocks that don't show real time, as the sandboxes have them.
    known: HashMap<ApplicationId, TestClock>,
    /// Whether messages may have expired by a clock that was just moved.
    expires: bool,
}

/// The wait before messages expire by a clock that was moved. Receipts that are due earlier by that
/// clock come first.
const RECEIPTS_FIRST: Duration = Duration::from_secs(1);

impl Clocks {
    pub(super) fn new(sandboxes: Sandboxes) -> Self {
        Self { sandboxes, known: HashMap::new(), expires: false }
    }
}

#[async_trait]
impl Work for Clocks {
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        let moved = context.service.messages().follow_clocks().await?;
        let moved: HashMap<_, _> = moved.into_iter().collect();
        if moved != self.known {
            for (_, sandbox) in self.sandboxes.list() {
                sandbox.follow(&moved);
            }
            self.known = moved;
            self.expires = true;
            return Ok(Next::Within(RECEIPTS_FIRST));
        }
        if std::mem::take(&mut self.expires) {
            context.service.delivery().expire_tests().await?;
        }
        Ok(Next::AfterInterval)
    }
}
