//! The responses other than 200 of each call.

use std::collections::{BTreeMap, BTreeSet};

use domain::Reason::{
    self, AddressNotAllowed, AmbiguousBulk, ApiInvalid, ApiNotApplicable, ApiPending, ApiSuspended,
    BatchEnded, DoubtfulNumber, DuplicateParameter, IdempotencyInProgress, IdempotencyMismatch,
    InsufficientFunds, Internal, InternationalDisabled, InvalidEncoding, InvalidFile,
    InvalidMessage, InvalidNumber, InvalidParameter, InvalidRequestid, InvalidUrl, LeakedKey,
    LimitsLocked, MessageTooLong, MethodNotAllowed, MissingParameter, NotCancellable, NotFound,
    OptedOut, RateLimited, RecipientFlooded, SenderPending, SenderRejected, SpendCapReached,
    TestKeyRequired, Timeout, TooLarge, TooManyWebhooks, TrafficPumping, Unavailable,
    UnsupportedMediaType, VerifyEnded,
};
use serde_json::{Value, json};
use utoipa::IntoResponses;
use utoipa::openapi::{ContentBuilder, Ref, RefOr, Response, ResponseBuilder};

/// The reasons that every call can respond with.
const ALWAYS: [Reason; 11] = [
    InvalidParameter,
    ApiInvalid,
    ApiNotApplicable,
    AddressNotAllowed,
    LeakedKey,
    NotFound,
    MethodNotAllowed,
    TooLarge,
    RateLimited,
    Internal,
    Unavailable,
];
/// The reasons of the calls that send messages, in addition to [`ALWAYS`].
const SENDING: [Reason; 13] = [
    MissingParameter,
    DuplicateParameter,
    InvalidMessage,
    MessageTooLong,
    InvalidRequestid,
    InvalidEncoding,
    InsufficientFunds,
    ApiPending,
    ApiSuspended,
    SenderPending,
    SenderRejected,
    SpendCapReached,
    IdempotencyMismatch,
];
/// The reasons by which an application's limits refuse a recipient.
const LIMITED: [Reason; 4] =
    [InternationalDisabled, DoubtfulNumber, RecipientFlooded, TrafficPumping];

/// Defines a type for the refusals of each call.
macro_rules! refusals {
    ($($(#[$about:meta])* $name:ident = [$($reasons:expr),*], $large:expr;)*) => {
        $(
            $(#[$about])*
            pub enum $name {}

            impl IntoResponses for $name {
                fn responses() -> BTreeMap<String, RefOr<Response>> {
                    let reasons: [&[Reason]; _] = [&ALWAYS, $(&$reasons),*];
                    responses(&reasons.concat(), $large)
                }
            }
        )*
    };
}

/// The HTTP statuses of `too_large`: for the head of a request, and for its body.
const HEAD: &[u16] = &[431];
const HEAD_AND_BODY: &[u16] = &[413, 431];

refusals! {
    SendRefusals = [SENDING, LIMITED, [InvalidNumber, OptedOut]], HEAD;
    PostRefusals = [
        SENDING,
        LIMITED,
        [InvalidNumber, OptedOut, Timeout, UnsupportedMediaType]
    ], HEAD_AND_BODY;
    BulkRefusals = [
        SENDING,
        [AmbiguousBulk, InvalidFile, IdempotencyInProgress, Timeout, UnsupportedMediaType]
    ], HEAD_AND_BODY;
    ReportsRefusals = [[DuplicateParameter, InvalidNumber, InvalidRequestid, InvalidEncoding]], HEAD;
    BatchesRefusals = [[DuplicateParameter, InvalidRequestid, InvalidEncoding]], HEAD;
    InboundRefusals = [[DuplicateParameter, InvalidNumber, InvalidEncoding]], HEAD;
    OneRefusals = [[DuplicateParameter, InvalidEncoding]], HEAD;
    WebhookRefusals = [
        [
            MissingParameter, DuplicateParameter, InvalidEncoding, InvalidUrl, TooManyWebhooks,
            IdempotencyMismatch, Timeout, UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    StopRefusals = [
        [
            MissingParameter, DuplicateParameter, InvalidEncoding, NotCancellable, BatchEnded,
            IdempotencyMismatch, Timeout, UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    OptOutsRefusals = [[DuplicateParameter, InvalidNumber, InvalidEncoding]], HEAD;
    OptOutRefusals = [
        [
            MissingParameter, DuplicateParameter, InvalidNumber, InvalidEncoding, InvalidFile,
            IdempotencyMismatch, Timeout, UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    TestClockRefusals = [
        [
            MissingParameter, DuplicateParameter, InvalidEncoding, TestKeyRequired,
            IdempotencyMismatch, Timeout, UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    TestInboundRefusals = [
        [
            MissingParameter, DuplicateParameter, InvalidNumber, InvalidMessage, MessageTooLong,
            InvalidEncoding, TestKeyRequired, IdempotencyMismatch, Timeout, UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    StartRefusals = [
        LIMITED,
        [
            MissingParameter, DuplicateParameter, InvalidNumber, InvalidEncoding, OptedOut,
            InsufficientFunds, ApiPending, ApiSuspended, SenderPending, SenderRejected,
            SpendCapReached, IdempotencyMismatch, VerifyEnded, Timeout, UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    CheckRefusals = [
        [
            MissingParameter, DuplicateParameter, InvalidEncoding, IdempotencyMismatch, Timeout,
            UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    LimitsRefusals = [[LimitsLocked]], HEAD;
    LimitRefusals = [
        [
            DuplicateParameter, MissingParameter, InvalidEncoding, LimitsLocked,
            IdempotencyMismatch, Timeout, UnsupportedMediaType
        ]
    ], HEAD_AND_BODY;
    BalanceRefusals = [], HEAD;
    PricesRefusals = [[DuplicateParameter, InvalidNumber, InvalidEncoding]], HEAD;
}

/// Returns a response for each HTTP status, with its reasons.
fn responses(reasons: &[Reason], too_large: &[u16]) -> BTreeMap<String, RefOr<Response>> {
    let mut by_status = BTreeMap::<u16, Vec<Reason>>::new();
    for &reason in reasons {
        let own = [reason.http_status()];
        let statuses = if reason == TooLarge { too_large } else { &own };
        for &status in statuses {
            by_status.entry(status).or_default().push(reason);
        }
    }
    by_status
        .into_iter()
        .map(|(status, reasons)| (status.to_string(), response(status, &reasons).into()))
        .collect()
}

fn response(status: u16, reasons: &[Reason]) -> Response {
    let words: Vec<&str> = reasons.iter().map(|reason| reason.as_str()).collect();
    let codes: BTreeSet<u16> = reasons.iter().map(|reason| reason.code()).collect();
    let examples = words
        .iter()
        .map(|word| (*word, RefOr::Ref(Ref::new(format!("#/components/examples/{word}")))));
    // All responses share one schema, so that a generated client has a single type for refusals.
    // The examples show which reasons this response can have.
    let content = ContentBuilder::new()
        .schema(Some(Ref::from_schema_name("Error")))
        .examples_from_iter(examples);
    let codes: Vec<String> = codes.iter().map(u16::to_string).collect();
    let description = format!("Code {}: {}.", codes.join(", "), words.join(", "));
    let mut response = ResponseBuilder::new()
        .description(description)
        .content("application/json", content.build());
    for name in headers(status, reasons) {
        let place = format!("#/components/headers/{name}");
        response = response.header_ref(name, Ref::new(place));
    }
    response.build()
}

/// Returns the headers that only some refusals have.
fn headers(status: u16, reasons: &[Reason]) -> Vec<&'static str> {
    let mut headers = Vec::new();
    if reasons.contains(&ApiInvalid) {
        headers.push("WWW-Authenticate");
    }
    if reasons.contains(&MethodNotAllowed) {
        headers.push("Allow");
    }
    if matches!(status, 429 | 503) || reasons.contains(&IdempotencyInProgress) {
        headers.push("Retry-After");
    }
    headers
}

/// Returns the body of a refusal with this reason, as an example.
pub fn example(reason: Reason) -> Value {
    let words = reason.sentence();
    json!({"code": reason.code(), "message": words, "text": words, "reason": reason.as_str()})
}
