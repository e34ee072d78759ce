//! `/sms/test/inbound`: messages from handsets that a test key delivers itself.

use axum::extract::{Request, State};
use domain::{ApiKey, Reason};
use serde::Serialize;
use service::{Refusal, TestInbound};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::post::{self, Posted};
use super::record::Inbound;
use super::{Api, SharedApi, shared_parameters};
use crate::openapi::refusals::TestInboundRefusals;
use crate::openapi::schemas;

const KNOWN: [&str; 3] = ["number", "recipient", "message"];

/// A message from a handset.
#[derive(ToSchema)]
#[schema(as = TestInboundParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct Received {
    /// The handset's number.
    number: schemas::Number,
    /// The number that the handset sends to. It needs no assignment.
    recipient: schemas::Number,
    message: schemas::Message,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TestInbound)]
struct ReceivedAnswer {
    #[serde(flatten)]
    head: Head,
    inbound: Inbound,
}

/// Lets a test message arrive, as if a handset had sent it.
#[utoipa::path(
    post,
    path = "/sms/test/inbound/{key}",
    operation_id = "testInbound",
    summary = "Receive a test message",
    description = "Lets a message arrive, as if a handset had sent it. The test key's list of \
        inbound messages has it, and its endpoints get message.received. STOP and START change the \
        test key's opt-outs. It counts as one of the test key's messages of the day.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "The parameters can also be in the query.",
        content(
            (Received = "application/x-www-form-urlencoded"),
            (Received = "application/json"),
        ),
    ),
    responses(
        (status = 200, description = "It arrived.", body = ReceivedAnswer,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS",
            "inbound": {
                "inboundid": "i_0000000000000", "number": "26657000001",
                "recipient": "26650000009", "message": "STOP", "segments": 1,
                "keyword": null, "optout": "stop", "test": true,
                "received_at": "2026-11-21T08:30:00.000Z"
            }
        })),
        TestInboundRefusals,
    ),
)]
pub async fn post(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, take(&api, &address, request).await)
}

async fn take(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let pages = api.service.limits().message_pages_max;
    let posted = post::read(api, address, &KNOWN, pages, request, |parameters| {
        let number = |name| parameters.number(name)?.ok_or_else(|| parameters.missing(name));
        Ok(TestInbound {
            number: number("number")?,
            recipient: number("recipient")?,
            message: shared_parameters::message(api, parameters)?.as_str().to_owned(),
        })
    });
    let Posted { access, wanted, once } = posted.await?;
    let received = api.service.messages().receive_test(&access, wanted, once.as_ref()).await;
    let received = received.map_err(|error| match error.refusal() {
        Some(Refusal::IdempotencyMismatch) => Reason::IdempotencyMismatch.into(),
        _ => Failure::from(error),
    })?;
    let received = match received {
        Ok(received) => received,
        Err(reason) => {
            let key = address.key.as_deref().and_then(|key| ApiKey::parse(key).ok());
            let key = key.ok_or(Reason::ApiInvalid)?;
            return Err(shared_parameters::not_charged(api, &key, 1, reason).await);
        }
    };
    let replayed = received.replayed;
    let inbound = received.record.into();
    let response = answer::json(&ReceivedAnswer { head: Head::success(), inbound });
    Ok(shared_parameters::answered(response, replayed))
}
