//! `/sms/batches`: uploads and the statuses of their messages, and pausing uploads.

use axum::extract::{Request, State};
use domain::{BatchId, Reason};
use serde::Serialize;
use serde_json::json;
use service::{BatchChange, BatchFilter, KeyAccess, StopAuthor};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::cancel;
use super::frames::drop_rest;
use super::get::{Get, GetParameters};
use super::listing;
use super::parameters::Parameters;
use super::post::{self, Posted};
use super::record::Batch;
use super::{Api, SharedApi, shared_parameters};
use crate::openapi::refusals::{BatchesRefusals, OneRefusals, StopRefusals};
use crate::openapi::schemas;

/// The parameters of the list.
const KNOWN: [&str; 3] = ["requestid", "limit", "cursor"];

#[derive(Serialize, ToSchema)]
#[schema(as = Batches)]
struct ListAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    batches: Vec<Batch<'a>>,
    /// Pass it as cursor to get the next batches. Null on the last page.
    #[schema(value_type = Option<schemas::BatchId>, required)]
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OneBatch)]
struct OneAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    batch: Batch<'a>,
}

/// A query for a list of batches or for one batch.
pub enum Batches {
    List(BatchFilter),
    One(BatchId),
}

impl GetParameters for Batches {
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        let Some(id) = id else {
            return filter(&Parameters::of_query(&KNOWN, query)).map(Self::List);
        };
        let batchid = BatchId::parse(id).ok_or_else(not_found)?;
        Parameters::of_query(&[], query).refuse_unknown()?;
        Ok(Self::One(batchid))
    }
}

/// Lists matching batches, newest first. If the key's segment holds a batchid, returns that batch.
#[utoipa::path(
    get,
    path = "/sms/batches/{key}",
    operation_id = "batches",
    summary = "List batches, newest first",
    params(
        ("key" = schemas::ApiKey, Path),
        ("requestid" = Option<schemas::RequestId>, Query, description = "Batches with this requestid."),
        ("limit" = Option<schemas::Limit>, Query),
        ("cursor" = Option<schemas::BatchId>, Query,
            description = "The value of next in the previous response."),
    ),
    responses(
        (status = 200, description = "Done.", body = ListAnswer, example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "batches": [example()], "next": null
        })),
        BatchesRefusals,
    ),
)]
pub async fn list(State(api): State<SharedApi>, request: Get<Batches>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

/// Returns one batch.
#[utoipa::path(
    get,
    path = "/sms/batches/{key}/{batchid}",
    operation_id = "batch",
    summary = "Get one batch with its counts by status",
    params(("key" = schemas::ApiKey, Path), ("batchid" = schemas::BatchId, Path)),
    responses(
        (status = 200, description = "Done.", body = OneAnswer, example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "batch": example()
        })),
        OneRefusals,
    ),
)]
pub async fn one(State(api): State<SharedApi>, request: Get<Batches>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

/// A change of a batch in a body.
#[derive(ToSchema)]
#[schema(as = BatchChangeParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct ChangeBody {
    /// No more rows are submitted to carriers until the batch is resumed.
    #[schema(required = false)]
    pause: schemas::OnlyOne,
    #[schema(required = false)]
    resume: schemas::OnlyOne,
}

/// Pauses or resumes a batch.
#[utoipa::path(
    post,
    path = "/sms/batches/{key}/{batchid}",
    operation_id = "changeBatch",
    summary = "Pause or resume a batch",
    description = "Give pause or resume, in the query or in the body. While a batch is paused, \
        none of its rows are submitted to carriers. Its rows expire all the same. Pausing a paused \
        batch and resuming one that isn't paused change nothing. A batch that support paused stays \
        paused until support resumes it.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("batchid" = schemas::BatchId, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        content(
            (Option<ChangeBody> = "application/json", example = json!({"pause": "1"})),
            (Option<ChangeBody> = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = OneAnswer,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "batch": example()
        })),
        StopRefusals,
    ),
)]
pub async fn change(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    if address.id.is_none() {
        drop_rest(request.into_body());
        return address.refuse_method(&api, "GET");
    }
    address.answer(&api, take_change(&api, &address, request).await)
}

async fn take_change(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let posted = post::read(api, address, &["pause", "resume"], 1, request, |parameters| {
        let batchid = address.id.as_deref().and_then(BatchId::parse).ok_or_else(not_found)?;
        let pause = post::is_asked(parameters, "pause")?;
        let change = match (pause, post::is_asked(parameters, "resume")?) {
            (true, false) => BatchChange::Pause,
            (false, true) => BatchChange::Resume,
            (false, false) => return Err(parameters.missing("pause")),
            (true, true) => {
                let detail = "Give pause or resume, but not both.";
                return Err(Failure::with_detail(Reason::InvalidParameter, detail));
            }
        };
        Ok((batchid, change))
    });
    let Posted { access, wanted: (batchid, change), once } = posted.await?;
    let (messages, author) = (api.service.messages(), StopAuthor::Program);
    let changed = messages.change_batch(&access, batchid, change, author, once.as_ref()).await;
    let changed = changed.map_err(|error| cancel::failure(error, api.service.clock().now()))?;
    let batch = Batch::new(changed.batch, &api.currency);
    let response = answer::json(&OneAnswer { head: Head::success(), batch });
    Ok(shared_parameters::answered(response, changed.replayed))
}

/// Returns an example of a batch for the OpenAPI document.
fn example() -> serde_json::Value {
    json!({
        "batchid": "b_0000000000000", "requestid": null, "rows": 2, "pages": 2, "cost": 0.1,
        "currency": "USD", "status": "done",
        "counts": {
            "scheduled": 0, "queued": 0, "sending": 0, "unknown": 0, "submitted": 0,
            "delivered": 2, "failed": 0, "expired": 0, "rejected": 0, "cancelled": 0
        },
        "created_at": "2026-11-21T08:30:00.000Z", "send_at": null, "done_at": "2026-11-21T08:30:09.120Z"
    })
}

async fn find(api: &Api, request: &Get<Batches>) -> Result<Answer, Failure> {
    match &request.parameters {
        Batches::List(filter) => find_list(api, &request.access, filter).await,
        Batches::One(batchid) => find_one(api, &request.access, *batchid).await,
    }
}

async fn find_list(api: &Api, access: &KeyAccess, filter: &BatchFilter) -> Result<Answer, Failure> {
    let page = api.service.messages().batches(access, filter).await?;
    let batches = page.items.into_iter();
    Ok(answer::json(&ListAnswer {
        head: Head::success(),
        batches: batches.map(|record| Batch::new(record, &api.currency)).collect(),
        next: page.next,
    }))
}

async fn find_one(api: &Api, access: &KeyAccess, batchid: BatchId) -> Result<Answer, Failure> {
    let record = api.service.messages().batch(access, batchid).await?.ok_or_else(not_found)?;
    Ok(answer::json(&OneAnswer { head: Head::success(), batch: Batch::new(record, &api.currency) }))
}

fn not_found() -> Failure {
    Failure::with_detail(Reason::NotFound, "There is no such batch.")
}

fn filter(parameters: &Parameters) -> Result<BatchFilter, Failure> {
    let requestid = shared_parameters::requestid(parameters)?;
    let filter = BatchFilter {
        requestid: requestid.map(|id| id.as_str().to_owned()),
        limit: listing::limit(parameters)?,
        cursor: listing::cursor(parameters)?,
        ..BatchFilter::default()
    };
    parameters.refuse_unknown()?;
    Ok(filter)
}
