//! Changes of a batch while it is being sent.

use std::time::Duration;

use axum::extract::{Path, Request, State};
use axum::response::Response;
use domain::BatchId;
use domain::records::{AccountRecord, BatchRecord, BatchStatus};
use service::Service;

use super::{Subject, answer};
use crate::web::portal_request::Portal;

/// A batch of an account.
struct Batch {
    account_id: i64,
    batchid: BatchId,
}

impl Subject for Batch {
    type State = BatchRecord;
    const READ_EVERY: Duration = Duration::from_millis(500);

    fn is_open_to(&self, account: &AccountRecord) -> bool {
        account.id == self.account_id
    }

    async fn read(&self, service: &Service) -> service::Result<Option<BatchRecord>> {
        let found = service.messages().account_batch(self.account_id, self.batchid).await?;
        Ok(found.map(|(_, batch)| batch))
    }

    fn event(&self, batch: &BatchRecord) -> serde_json::Result<(String, bool)> {
        let text = serde_json::to_string(batch)?;
        Ok((text, batch.status != BatchStatus::Done))
    }
}

/// `GET /reports/{batchid}/events`: the current batch, and then each change until it is done.
pub async fn events(
    State(portal): State<Portal>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let batch = |account: &AccountRecord| {
        let (account_id, batchid) = (account.id, BatchId::parse(&id)?);
        Some(Batch { account_id, batchid })
    };
    answer(portal, request, batch, "There is no such batch.").await
}
