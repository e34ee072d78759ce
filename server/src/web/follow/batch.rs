//! The changes of a batch while it is being sent.

use std::time::Duration;

use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use domain::BatchId;
use domain::records::{BatchRecord, BatchStatus};
use service::Service;

use super::{Subject, answer, failed, signed_out};
use crate::web::Portal;
use crate::web::portal_request::ServedRequest;

/// A batch of an account.
struct Batch {
    account_id: i64,
    batchid: BatchId,
}

impl Subject for Batch {
    type State = BatchRecord;
    const READ_EVERY: Duration = Duration::from_millis(500);

    async fn read(&self, service: &Service) -> service::Result<Option<BatchRecord>> {
        service.account_batch(self.account_id, self.batchid).await
    }

    fn event(&self, batch: &BatchRecord) -> serde_json::Result<(String, bool)> {
        let text = serde_json::to_string(batch)?;
        Ok((text, batch.status != BatchStatus::Done))
    }
}

/// `GET /reports/{batchid}/events`: the batch as it is, and then each change until it is done.
pub async fn events(
    State(portal): State<Portal>,
    Path(id): Path<String>,
    request: Request,
) -> Response {
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    match follow(portal, &current, &id).await {
        Ok(response) => response,
        Err(problem) => failed(&problem),
    }
}

async fn follow(portal: Portal, current: &ServedRequest, id: &str) -> Result<Response, Problem> {
    let (Some(account), Some(token)) = (current.account().await?, current.token()) else {
        return Ok(signed_out());
    };
    let not_found = || (StatusCode::NOT_FOUND, "There is no such batch.").into_response();
    let Some(batchid) = BatchId::parse(id) else {
        return Ok(not_found());
    };
    let batch = Batch {
        account_id: account.id,
        batchid,
    };
    Ok(match batch.read(&portal.service).await? {
        Some(state) => answer(portal, (account.id, token), batch, state),
        None => not_found(),
    })
}
