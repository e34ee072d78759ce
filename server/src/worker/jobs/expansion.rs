//! Expands uploads into messages. Each upload is expanded a part at a time, so that a small upload
//! doesn't wait for a large one.

use std::collections::HashMap;
use std::time::Instant;

use async_trait::async_trait;
use domain::BatchId;
use service::{Result, Service};

use super::work::{Next, Work};
use crate::worker::context::{Context, RETRY};

/// Each run expands a part of every upload.
#[derive(Default)]
pub(super) struct Expansion {
    /// Uploads that couldn't be expanded, and when. They are retried after [`RETRY`]. The others
    /// continue meanwhile.
    failed: HashMap<BatchId, Instant>,
}

#[async_trait]
impl Work for Expansion {
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        let (mut last, mut advanced) = (None, false);
        while let Some(batch) = context.service.messages().next_unexpanded(last).await? {
            if context.shutdown.is_cancelled() {
                break;
            }
            last = Some(batch);
            if self.failed.get(&batch).is_none_or(|at| at.elapsed() >= RETRY) {
                advanced |= self.expand(&context.service, batch).await;
            }
        }
        // The rows of batches that were cancelled or resumed.
        advanced |= context.service.messages().follow_stops().await?;
        Ok(match (advanced, self.failed.is_empty()) {
            (true, _) => Next::AtOnce,
            (false, false) => Next::Soon,
            (false, true) => match context.service.messages().next_start().await? {
                Some(after) => Next::Within(after),
                None => Next::AfterInterval,
            },
        })
    }
}

impl Expansion {
    /// Expands a part of an upload. Returns false if that failed, or if another process does it.
    async fn expand(&mut self, service: &Service, batch: BatchId) -> bool {
        match service.messages().expand(batch).await {
            Ok(stored) => {
                self.failed.remove(&batch);
                stored
            }
            Err(error) => {
                let id = batch.to_string();
                tracing::error!(id, detail = ?error, "an upload can't be expanded; trying again");
                self.failed.insert(batch, Instant::now());
                false
            }
        }
    }
}
