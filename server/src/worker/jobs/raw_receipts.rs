//! Stores receipts as carriers sent them.

use async_trait::async_trait;
use service::Result;

use super::work::{Next, Work};
use crate::worker::context::Context;

pub(super) struct StoreRawReceipts;

#[async_trait]
impl Work for StoreRawReceipts {
    /// Stores all receipts with pauses between the transactions. At shutdown, the service stores
    /// the rest.
    async fn run(&mut self, context: &Context, _woken: bool) -> Result<Next> {
        while let Some(pause) = context.service.delivery().store_raw_receipts().await? {
            if context.pause(pause).await {
                break;
            }
        }
        Ok(Next::AfterInterval)
    }
}
