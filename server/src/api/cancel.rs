//! `/sms/cancel`: cancels a message or a batch.

use axum::extract::{Request, State};
use domain::{BatchId, Reason, Timestamp, Transid};
use serde::Serialize;
use service::{CancelTarget, Cancelled, Refusal, StopAuthor};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::parameters::Parameters;
use super::post::{self, Posted};
use super::{Api, SharedApi, shared_parameters};
use crate::json::Amount;
use crate::openapi::refusals::StopRefusals;
use crate::openapi::schemas;

/// The parameters of a cancellation.
const KNOWN: [&str; 2] = ["transid", "batchid"];

#[derive(Serialize, ToSchema)]
#[schema(as = Cancelled)]
struct CancelledAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    /// The number of cancelled messages.
    cancelled: i64,
    /// The amount that is released for them.
    released: Amount,
    #[schema(value_type = schemas::Currency)]
    currency: &'a str,
}

/// What to cancel, in a body.
#[derive(ToSchema)]
#[schema(as = CancelParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct CancelBody {
    #[schema(required = false)]
    transid: schemas::Transid,
    #[schema(required = false)]
    batchid: schemas::BatchId,
}

/// Cancels a message or a batch.
#[utoipa::path(
    post,
    path = "/sms/cancel/{key}",
    operation_id = "cancel",
    summary = "Cancel a message or a batch",
    description = "Give transid or batchid. Cancels all messages that no carrier has or may have: \
        those that are scheduled or queued, and those that wait for another attempt. Their price \
        is released. For a batch, the response has the final numbers, even if some messages become \
        cancelled only in the seconds after it.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("transid" = Option<schemas::Transid>, Query),
        ("batchid" = Option<schemas::BatchId>, Query),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "Optional if all parameters are in the query. multipart/form-data is \
            accepted too, with the same fields.",
        content(
            (Option<CancelBody> = "application/json", example = json!({"transid": "m_0000000000000"})),
            (Option<CancelBody> = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = CancelledAnswer,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "cancelled": 1, "released": 0.05,
            "currency": "USD"
        })),
        StopRefusals,
    ),
)]
pub async fn post(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, take(&api, &address, request).await)
}

async fn take(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let posted = post::read(api, address, &KNOWN, 1, request, target).await?;
    let Posted { access, wanted, once } = posted;
    let messages = api.service.messages();
    let cancelled = messages.cancel(&access, wanted, StopAuthor::Program, once.as_ref()).await;
    let Cancelled { messages, released, replayed } =
        cancelled.map_err(|error| failure(error, api.service.clock().now()))?;
    let response = answer::json(&CancelledAnswer {
        head: Head::success(),
        cancelled: messages,
        released: Amount(released),
        currency: &api.currency,
    });
    Ok(shared_parameters::answered(response, replayed))
}

fn target(parameters: &Parameters) -> Result<CancelTarget, Failure> {
    match (parameters.has("transid"), parameters.has("batchid")) {
        (true, false) => {
            let text = parameters.required("transid", Reason::InvalidParameter)?;
            let id = Transid::parse(text).ok_or_else(|| not_found(&Refusal::NoSuchMessage))?;
            Ok(CancelTarget::Message(id))
        }
        (false, true) => {
            let text = parameters.required("batchid", Reason::InvalidParameter)?;
            let id = BatchId::parse(text).ok_or_else(|| not_found(&Refusal::NoSuchBatch))?;
            Ok(CancelTarget::Batch(id))
        }
        (false, false) => Err(parameters.missing("transid")),
        (true, true) => {
            let detail = "Give transid or batchid, but not both.";
            Err(Failure::with_detail(Reason::InvalidParameter, detail))
        }
    }
}

fn not_found(refusal: &Refusal) -> Failure {
    Failure::with_detail(Reason::NotFound, refusal.to_string())
}

/// Converts the error at this time of a verb that cancels, pauses or resumes.
pub fn failure(error: service::Error, now: Timestamp) -> Failure {
    match error.refusal() {
        Some(refusal @ (Refusal::NoSuchMessage | Refusal::NoSuchBatch)) => not_found(refusal),
        Some(Refusal::NotCancellable) => Reason::NotCancellable.into(),
        Some(refusal @ Refusal::TooManyWithdrawn) => {
            let failure = Failure::with_detail(Reason::RateLimited, refusal.to_string());
            failure.retry_after(shared_parameters::seconds_until_tomorrow(now))
        }
        Some(Refusal::BatchEnded) => Reason::BatchEnded.into(),
        Some(Refusal::IdempotencyMismatch) => Reason::IdempotencyMismatch.into(),
        _ => error.into(),
    }
}
