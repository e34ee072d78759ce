//! `/sms/send`: one message.

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::request::Parts;
use domain::{ApiKey, NumberWarning, Reason, RequestId};
use serde::Serialize;
use serde_json::json;
use service::{SendError, SendRequest};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head, Recipient};
use super::frames::body_if;
use super::parameters::Parameters;
use super::{Api, SharedApi, body, shared_parameters};
use crate::json::{Amount, DateTime};
use crate::openapi::refusals::{PostRefusals, SendRefusals};
use crate::openapi::schemas;

/// The parameters of a send.
const KNOWN: [&str; 6] = ["number", "message", "requestid", "sendat", "validity", "dryrun"];

/// An accepted message.
#[derive(Serialize, ToSchema)]
#[schema(as = Sent)]
struct Accepted<'a> {
    #[serde(flatten)]
    head: Head,
    #[schema(value_type = schemas::RequestId, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    requestid: Option<&'a str>,
    /// The balance that is left to spend.
    balance: Amount,
    /// Null for a dry run.
    #[schema(value_type = Option<schemas::Transid>, required)]
    transid: Option<String>,
    #[schema(value_type = schemas::Positive)]
    pages: usize,
    cost: Amount,
    #[schema(value_type = schemas::Currency)]
    currency: &'a str,
    /// The time at which a scheduled message is sent. Also present if quiet hours delay the
    /// message.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    send_at: Option<DateTime>,
    #[schema(value_type = Vec<schemas::Warning>)]
    warnings: Vec<&'static str>,
    #[schema(value_type = schemas::OnlyTrue, required = false)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dryrun: bool,
}

/// The parameters of a send in a body.
#[derive(ToSchema)]
#[schema(as = SendParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct SendParametersBody {
    number: schemas::Number,
    message: schemas::Message,
    #[schema(required = false)]
    requestid: schemas::RequestId,
    #[schema(required = false)]
    sendat: schemas::SendAt,
    #[schema(required = false)]
    validity: schemas::Validity,
    #[schema(required = false)]
    dryrun: schemas::DryRun,
}

/// Sends a message by GET. If the parameters are valid, the handler makes a single call of the
/// service, which also checks key, status and sender. If a parameter is invalid, the handler checks
/// key, status and sender before it reports the parameter, because their errors take precedence.
#[utoipa::path(
    get,
    path = "/sms/send/{key}",
    operation_id = "send",
    summary = "Send one message",
    description = "200 means that the message is stored and charged once. Any other response means \
        that nothing was stored or charged. Until an account has made a deposit, its test key can \
        send only a limited number of messages a day, including messages of uploads. After that, \
        sends are refused as rate_limited until the next day (UTC).",
    params(
        ("key" = schemas::ApiKey, Path),
        ("number" = schemas::Number, Query),
        ("message" = schemas::Message, Query),
        ("requestid" = Option<schemas::RequestId>, Query),
        ("sendat" = Option<schemas::SendAt>, Query),
        ("validity" = Option<schemas::Validity>, Query),
        ("dryrun" = Option<schemas::DryRun>, Query),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    responses(
        (status = 200, description = "Done.", body = Accepted, headers(("Idempotency-Replayed")),
         example = json!(example())),
        SendRefusals,
    ),
)]
pub async fn get(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    let (head, _) = request.into_parts();
    address.answer(&api, send_query(&api, &address, &head).await)
}

/// Returns an example of a response for the OpenAPI document.
fn example() -> serde_json::Value {
    json!({
        "code": 200, "message": "SUCCESS", "text": "SUCCESS", "requestid": "login-81", "balance": 9.95,
        "transid": "m_0000000000000", "pages": 1, "cost": 0.05, "currency": "USD", "warnings": []
    })
}

async fn send_query(api: &Api, address: &Address, head: &Parts) -> Result<Answer, Failure> {
    let parameters = Parameters::of_query(&KNOWN, head.uri.query());
    let failure = match read(api, address, &parameters, &head.headers) {
        Ok(request) => return submission(api, request).await,
        Err(failure) => failure,
    };
    let idempotency = shared_parameters::idempotency(&head.headers).ok().flatten();
    let messages = api.service.messages();
    let authorized = messages.authorize_send(address.presented(), idempotency.as_ref());
    let failure = match authorized.await {
        Ok(access) => shared_parameters::refused(api, address, &access, &parameters, failure).await,
        Err(reason) => reason.into(),
    };
    Err(failure.about(requestid(&parameters)).to(recipient(&parameters)))
}

/// Sends a message by POST. If the key isn't allowed to send, the handler refuses the request
/// before it reads the body.
#[utoipa::path(
    post,
    path = "/sms/send/{key}",
    operation_id = "sendPost",
    summary = "Send one message",
    description = "Like GET, with parameters in the body, in the query or in both. Give each \
        parameter once.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("number" = Option<schemas::Number>, Query),
        ("message" = Option<schemas::Message>, Query),
        ("requestid" = Option<schemas::RequestId>, Query),
        ("sendat" = Option<schemas::SendAt>, Query),
        ("validity" = Option<schemas::Validity>, Query),
        ("dryrun" = Option<schemas::DryRun>, Query),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    // Client generators tell bodies apart by their schemas. If a third body had the schema of these
    // two, the generated clients would send each parameter twice or not compile.
    request_body(
        description = "Optional if all parameters are in the query. multipart/form-data is \
            accepted too, with the same fields.",
        content(
            (Option<SendParametersBody> = "application/json"),
            (Option<SendParametersBody> = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = Accepted, headers(("Idempotency-Replayed")),
         example = json!(example())),
        PostRefusals,
    ),
)]
pub async fn post(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, send_body(&api, &address, request).await)
}

async fn send_body(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    let mut parameters = Parameters::of_query(&KNOWN, head.uri.query());
    let idempotency = shared_parameters::idempotency(&head.headers).ok().flatten();
    let messages = api.service.messages();
    let authorized = messages.authorize_send(address.presented(), idempotency.as_ref());
    let (access, body) = body_if(authorized.await, body).map_err(|reason| {
        Failure::of(reason).about(requestid(&parameters)).to(recipient(&parameters))
    })?;
    let pages_max = api.service.limits().message_pages_max;
    let taken = body::read_parameters(&head.headers, body, &mut parameters, pages_max).await;
    match taken.and_then(|()| read(api, address, &parameters, &head.headers)) {
        Ok(request) => submission(api, request).await,
        Err(failure) => {
            let failure =
                shared_parameters::refused(api, address, &access, &parameters, failure).await;
            Err(failure.about(requestid(&parameters)).to(recipient(&parameters)))
        }
    }
}

/// Returns the requestid if it is valid. Error responses contain it, so that the caller can assign
/// them.
fn requestid(parameters: &Parameters) -> Option<RequestId> {
    shared_parameters::requestid(parameters).ok().flatten()
}

/// Returns the number, masked, if it is valid. The application's list of calls shows it.
fn recipient(parameters: &Parameters) -> Option<String> {
    let number = parameters.number("number").ok().flatten()?;
    Some(number.masked())
}

/// Returns the request that the parameters describe. If there are several errors, reports the first
/// one in this order: the API key, number, message, requestid, sendat, validity, dryrun, unknown
/// parameters, the idempotency key. A dry run ignores the idempotency key.
fn read(
    api: &Api,
    address: &Address,
    parameters: &Parameters,
    headers: &HeaderMap,
) -> Result<SendRequest, Failure> {
    let key = address.key.as_deref().and_then(|text| ApiKey::parse(text).ok());
    let key = key.ok_or(Reason::ApiInvalid)?;
    let number = parameters.number("number")?;
    let number = number.ok_or_else(|| parameters.missing("number"))?;
    let message = shared_parameters::message(api, parameters)?;
    let requestid = shared_parameters::requestid(parameters)?;
    let schedule = shared_parameters::schedule(parameters)?;
    let dry_run = shared_parameters::dry_run(parameters)?;
    parameters.refuse_unknown()?;
    let idempotency = if dry_run { None } else { shared_parameters::idempotency(headers)? };
    let origin = address.origin();
    Ok(SendRequest { key, number, message, requestid, schedule, idempotency, dry_run, origin })
}

/// Passes a message to the service and builds the response.
async fn submission(api: &Api, request: SendRequest) -> Result<Answer, Failure> {
    let warnings = request.number.warnings(&api.country_code);
    let warnings = warnings.map(NumberWarning::as_str).collect();
    let (requestid, dry_run) = (request.requestid.clone(), request.dry_run);
    let recipient = request.number.masked();
    let key = request.key.clone();
    let sent = match api.service.messages().send(request).await {
        Ok(sent) => sent,
        Err(SendError::Refused(reason)) => {
            let failure = shared_parameters::not_charged(api, &key, 1, reason).await;
            return Err(failure.about(requestid).to(Some(recipient)));
        }
        Err(SendError::Lost) => return Err(Failure::unanswered().to(Some(recipient))),
    };
    if !dry_run && !sent.replayed {
        api.metrics.send_accepted();
    }
    let mut response = answer::json(&Accepted {
        head: Head::success(),
        requestid: requestid.as_ref().map(RequestId::as_str),
        balance: Amount(sent.balance),
        transid: sent.transid.map(|id| id.to_string()),
        pages: sent.pages,
        cost: Amount(sent.cost),
        currency: &api.currency,
        send_at: sent.send_at.map(DateTime),
        warnings,
        dryrun: dry_run,
    });
    response.extensions_mut().insert(Recipient(recipient));
    Ok(shared_parameters::answered(response, sent.replayed))
}
