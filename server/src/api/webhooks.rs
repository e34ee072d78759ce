//! `/sms/webhooks`: endpoints to which events are delivered.

use axum::extract::{Request, State};
use domain::webhook::{AttemptRecord, DisabledReason, WebhookRecord};
use domain::{EventId, EventType, Reason, WebhookId};
use serde::Serialize;
use serde_json::{Value, json};
use service::{Refusal, WebhookChange};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::events::types;
use super::get::{Get, GetParameters};
use super::listing::{self, time};
use super::parameters::Parameters;
use super::post::{self, Posted};
use super::{Api, SharedApi, shared_parameters};
use crate::json::{DateTime, shown};
use crate::openapi::refusals::{OneRefusals, WebhookRefusals};
use crate::openapi::schemas;

/// The parameters of a new endpoint.
const KNOWN_OF_NEW: [&str; 2] = ["url", "events"];
/// The parameters of a change. A request has exactly one of them.
const KNOWN_OF_CHANGE: [&str; 8] =
    ["url", "events", "enable", "remove", "rotate", "test", "replay", "replay_from"];
/// A body may be as large as that of a send with this many pages of text.
const BODY_PAGES: usize = 10;

shown! {
    /// An endpoint that gets events.
    #[derive(ToSchema)]
    struct Webhook from record: WebhookRecord {
        #[schema(value_type = schemas::WebhookId)]
        webhookid: String = record.webhookid.to_string(),
        url: String = record.url,
        /// The types of events that the endpoint gets. Null means all types except
        /// message.submitted.
        #[schema(value_type = Option<Vec<schemas::EventType>>, required)]
        events: Option<Vec<&'static str>> = record.events.map(codes),
        #[schema(value_type = schemas::WebhookStatus)]
        status: &'static str = if record.disabled.is_some() { "disabled" } else { "active" },
        #[schema(value_type = Option<schemas::DisabledReason>, required)]
        disabled_reason: Option<&'static str> = record.disabled.map(DisabledReason::as_str),
        created_at: DateTime = DateTime(record.created_at),
    }
}

fn codes(types: Vec<EventType>) -> Vec<&'static str> {
    types.into_iter().map(EventType::as_str).collect()
}

shown! {
    /// An attempt to deliver an event.
    #[derive(ToSchema)]
    #[schema(as = Attempt)]
    struct Attempt from attempt: AttemptRecord {
        #[schema(value_type = schemas::EventId)]
        event: String = attempt.event,
        #[serde(rename = "type")]
        #[schema(value_type = schemas::EventType)]
        kind: &'static str = attempt.kind.as_str(),
        at: DateTime = DateTime(attempt.at),
        /// The HTTP status. Null if there was no answer.
        #[schema(required)]
        status: Option<i64> = attempt.status,
        latency_ms: i64 = attempt.latency_ms,
        /// Why the attempt failed, for people.
        #[schema(required)]
        error: Option<String> = attempt.error,
        /// When the event is attempted again. Null if it isn't.
        #[schema(required)]
        next_attempt_at: Option<DateTime> = attempt.next_attempt_at.map(DateTime),
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Webhooks)]
struct ListAnswer {
    #[serde(flatten)]
    head: Head,
    webhooks: Vec<Webhook>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OneWebhook)]
struct OneAnswer {
    #[serde(flatten)]
    head: Head,
    webhook: Webhook,
    /// The newest attempts, newest first.
    attempts: Vec<Attempt>,
}

/// A new or changed endpoint.
#[derive(Serialize, ToSchema)]
#[schema(as = ChangedWebhook)]
struct ChangedAnswer {
    #[serde(flatten)]
    head: Head,
    webhook: Webhook,
    /// Signs the deliveries. Only a new endpoint and rotate=1 return it, once: a replayed response
    /// has null.
    #[schema(value_type = Option<schemas::WebhookSecret>, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    secret: Option<Value>,
    /// The attempt to deliver the event that test=1 sent.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<Attempt>,
}

/// The parameters of a new endpoint in a body.
#[derive(ToSchema)]
#[schema(as = WebhookParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct NewBody {
    url: schemas::WebhookUrl,
    #[schema(required = false)]
    events: schemas::EventTypes,
}

/// The parameters of a change in a body. Give one of them.
#[derive(ToSchema)]
#[schema(as = WebhookChangeParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct ChangeBody {
    #[schema(required = false)]
    url: schemas::WebhookUrl,
    #[schema(required = false)]
    events: schemas::EventTypes,
    /// Enables the endpoint. It then gets the events that it missed in the last three days.
    #[schema(required = false)]
    enable: schemas::OnlyOne,
    #[schema(required = false)]
    remove: schemas::OnlyOne,
    /// Makes a new secret. The old one also signs for 24 hours.
    #[schema(required = false)]
    rotate: schemas::OnlyOne,
    /// Delivers a webhook.test event and returns the attempt.
    #[schema(required = false)]
    test: schemas::OnlyOne,
    /// Delivers this event again.
    #[schema(required = false)]
    replay: schemas::EventId,
    /// Delivers all events since then that the endpoint hasn't taken.
    #[schema(required = false)]
    replay_from: schemas::Since,
}

/// A query for all endpoints or for one.
pub enum Webhooks {
    List,
    One(WebhookId, i64),
}

impl GetParameters for Webhooks {
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        let Some(id) = id else {
            Parameters::of_query(&[], query).refuse_unknown()?;
            return Ok(Self::List);
        };
        let id = WebhookId::parse(id).ok_or_else(not_found)?;
        let parameters = Parameters::of_query(&["limit"], query);
        let limit = listing::limit(&parameters)?;
        parameters.refuse_unknown()?;
        Ok(Self::One(id, limit))
    }
}

/// Lists the endpoints.
#[utoipa::path(
    get,
    path = "/sms/webhooks/{key}",
    operation_id = "webhooks",
    summary = "List the endpoints that get events",
    description = "A test key manages the endpoints for test events, a live key those for live ones.",
    params(("key" = schemas::ApiKey, Path)),
    responses(
        (status = 200, description = "Done.", body = ListAnswer, example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "webhooks": [example()]
        })),
        OneRefusals,
    ),
)]
pub async fn list(State(api): State<SharedApi>, request: Get<Webhooks>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

/// Returns an endpoint and its newest attempts.
#[utoipa::path(
    get,
    path = "/sms/webhooks/{key}/{webhookid}",
    operation_id = "webhook",
    summary = "Get one endpoint with its attempts",
    params(
        ("key" = schemas::ApiKey, Path),
        ("webhookid" = schemas::WebhookId, Path),
        ("limit" = Option<schemas::Limit>, Query),
    ),
    responses(
        (status = 200, description = "Done.", body = OneAnswer, example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "webhook": example(),
            "attempts": [{
                "event": "e_0000000000000482913l", "type": "message.delivered",
                "at": "2026-11-21T08:30:00.000Z", "status": 503, "latency_ms": 81,
                "error": "The endpoint answered with status 503.",
                "next_attempt_at": "2026-11-21T08:30:05.000Z"
            }]
        })),
        OneRefusals,
    ),
)]
pub async fn one(State(api): State<SharedApi>, request: Get<Webhooks>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

async fn find(api: &Api, request: &Get<Webhooks>) -> Result<Answer, Failure> {
    let webhooks = api.service.webhooks();
    match request.parameters {
        Webhooks::List => {
            let found = webhooks.endpoints(&request.access).await.map_err(failure)?;
            let webhooks = found.into_iter().map(Webhook::from).collect();
            Ok(answer::json(&ListAnswer { head: Head::success(), webhooks }))
        }
        Webhooks::One(id, limit) => {
            let found = webhooks.endpoint(&request.access, id, limit).await.map_err(failure)?;
            Ok(answer::json(&OneAnswer {
                head: Head::success(),
                webhook: found.0.into(),
                attempts: found.1.into_iter().map(Attempt::from).collect(),
            }))
        }
    }
}

/// Creates an endpoint.
#[utoipa::path(
    post,
    path = "/sms/webhooks/{key}",
    operation_id = "createWebhook",
    summary = "Create an endpoint that gets events",
    description = "At most 10 for each key. The response has the secret that signs the deliveries, \
        once. Deliveries follow Standard Webhooks: verify the header webhook-signature, answer \
        with any 2xx within 15 seconds, and use webhook-id to recognise a repeated delivery.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("url" = Option<schemas::WebhookUrl>, Query),
        ("events" = Option<schemas::EventTypes>, Query),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "Optional if all parameters are in the query. multipart/form-data is \
            accepted too, with the same fields.",
        content(
            (Option<NewBody> = "application/json"),
            (Option<NewBody> = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = ChangedAnswer,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "webhook": example(),
            "secret": "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
        })),
        WebhookRefusals,
    ),
)]
pub async fn create(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, change(&api, &address, request).await)
}

/// Changes an endpoint.
#[utoipa::path(
    post,
    path = "/sms/webhooks/{key}/{webhookid}",
    operation_id = "changeWebhook",
    summary = "Change, test, replay to or remove an endpoint",
    description = "Give exactly one parameter.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("webhookid" = schemas::WebhookId, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        content(
            (Option<ChangeBody> = "application/json", example = json!({"test": "1"})),
            (Option<ChangeBody> = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = ChangedAnswer,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "webhook": example()
        })),
        WebhookRefusals,
    ),
)]
pub async fn change_one(
    State(api): State<SharedApi>,
    address: Address,
    request: Request,
) -> Answer {
    address.answer(&api, change(&api, &address, request).await)
}

/// Returns an example of an endpoint for the OpenAPI document.
fn example() -> serde_json::Value {
    json!({
        "webhookid": "w_0000000000000", "url": "https://example.com/sms-events", "events": null,
        "status": "active", "disabled_reason": null, "created_at": "2026-11-21T08:30:00.000Z"
    })
}

async fn change(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    // If the key is in a header, both calls have the same route. Only the ID tells them apart.
    let known: &'static [&'static str] =
        if address.id.is_some() { &KNOWN_OF_CHANGE } else { &KNOWN_OF_NEW };
    let posted = post::read(api, address, known, BODY_PAGES, request, |parameters| {
        wanted(api, address.id.as_deref(), parameters)
    });
    let Posted { access, wanted, once } = posted.await?;
    let has_secret = matches!(wanted, WebhookChange::Create { .. } | WebhookChange::Rotate(_));
    let changed = match wanted {
        WebhookChange::Test(id) => api.sender.test(&access, id, once.as_ref()).await,
        change => api.service.webhooks().change(&access, change, once.as_ref()).await,
    };
    let changed = changed.map_err(failure)?;
    let secret = changed.secret.as_ref().map(service::WebhookSecret::expose);
    let response = answer::json(&ChangedAnswer {
        head: Head::success(),
        webhook: changed.record.into(),
        secret: has_secret.then(|| Value::from(secret)),
        attempt: changed.attempt.map(Attempt::from),
    });
    Ok(shared_parameters::answered(response, changed.replayed))
}

/// Reads the change that a POST requests.
fn wanted(api: &Api, id: Option<&str>, parameters: &Parameters) -> Result<WebhookChange, Failure> {
    let Some(id) = id else {
        let url = parameters.required("url", Reason::InvalidParameter)?;
        let url = api.service.webhooks().endpoint_url(url).map_err(failure)?;
        let types = types(parameters, "events")?;
        parameters.refuse_unknown()?;
        return Ok(WebhookChange::Create { url, types });
    };
    let id = WebhookId::parse(id).ok_or_else(not_found)?;
    parameters.refuse_unknown()?;
    let given: Vec<&str> =
        KNOWN_OF_CHANGE.into_iter().filter(|name| parameters.has(name)).collect();
    let [name] = given[..] else {
        let names = KNOWN_OF_CHANGE.join(", ");
        return Err(match given.len() {
            0 => Failure::with_detail(Reason::MissingParameter, format!("Give one of {names}.")),
            _ => Failure::with_detail(
                Reason::InvalidParameter,
                format!("Give exactly one of {names}."),
            ),
        });
    };
    let text = match name {
        "enable" | "remove" | "rotate" | "test" if parameters.json_boolean(name) == Some(true) => {
            "1"
        }
        _ => parameters.required(name, Reason::InvalidParameter)?,
    };
    let change = match name {
        "url" => {
            let url = api.service.webhooks().endpoint_url(text).map_err(failure)?;
            WebhookChange::Url(id, url)
        }
        "events" => WebhookChange::Types(id, types(parameters, name)?),
        "replay" => {
            let event = EventId::parse(text);
            let allowed = "the id of an event: e_ and 20 characters";
            let event = event.ok_or_else(|| Failure::invalid(name, allowed))?;
            WebhookChange::Replay(id, event)
        }
        "replay_from" => match time(parameters, name)? {
            Some(from) => WebhookChange::ReplayFrom(id, from),
            None => return Err(parameters.missing(name)),
        },
        _ if text != "1" && text != "true" => return Err(Failure::invalid(name, "1 or true")),
        "enable" => WebhookChange::Enable(id),
        "remove" => WebhookChange::Remove(id),
        "rotate" => WebhookChange::Rotate(id),
        _ => WebhookChange::Test(id),
    };
    Ok(change)
}

fn not_found() -> Failure {
    Failure::with_detail(Reason::NotFound, "There is no such endpoint.")
}

/// Converts the error of a verb about endpoints.
fn failure(error: service::Error) -> Failure {
    let Some(refusal) = error.refusal() else {
        return error.into();
    };
    let reason = match refusal {
        Refusal::NoSuchWebhook => return not_found(),
        Refusal::NoSuchEvent => Reason::NotFound,
        Refusal::TooManyWebhooks => Reason::TooManyWebhooks,
        Refusal::WebhookUrl { .. } => Reason::InvalidUrl,
        Refusal::IdempotencyMismatch => return Reason::IdempotencyMismatch.into(),
        _ => return error.into(),
    };
    Failure::with_detail(reason, refusal.to_string())
}
