//! `/sms/events`: what happened to an application and its messages.

use axum::extract::State;
use domain::{EventType, Reason};
use serde::Serialize;
use service::{EventFilter, KeyAccess};
use utoipa::ToSchema;

use super::answer::{self, Answer, Failure, Head};
use super::event::Event;
use super::get::{Get, GetParameters};
use super::listing::{self, time};
use super::parameters::Parameters;
use super::{Api, SharedApi};
use crate::json::DateTime;
use crate::openapi::refusals::OneRefusals;
use crate::openapi::schemas;

/// The parameters of the list.
const KNOWN: [&str; 5] = ["type", "from", "to", "limit", "cursor"];

#[derive(Serialize, ToSchema)]
#[schema(as = Events)]
struct ListAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    events: Vec<Event<'a>>,
    /// Pass it as cursor to get the events that follow. At the end of the list it stays valid and
    /// returns what has happened since.
    #[schema(value_type = schemas::EventId)]
    next: String,
    /// Since when events of messages and batches are stored: from the first call of this operation
    /// or the first endpoint.
    since: DateTime,
}

impl GetParameters for EventFilter {
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        if id.is_some() {
            return Err(Failure::of(Reason::NotFound));
        }
        let parameters = Parameters::of_query(&KNOWN, query);
        let filter = Self {
            types: types(&parameters, "type")?,
            from: time(&parameters, "from")?,
            to: time(&parameters, "to")?,
            limit: listing::limit(&parameters)?,
            cursor: listing::cursor(&parameters)?,
        };
        parameters.refuse_unknown()?;
        Ok(filter)
    }
}

/// Parses a comma-separated list of types.
pub fn types(parameters: &Parameters, name: &str) -> Result<Option<Vec<EventType>>, Failure> {
    let allowed = EventType::NAMED.map(EventType::as_str).join(", ");
    let allowed = format!("a comma-separated list of {allowed}");
    listing::read(parameters, name, &allowed, |text| {
        let parse = |name: &str| {
            EventType::parse(name.trim()).filter(|kind| EventType::NAMED.contains(kind))
        };
        text.split(',').map(parse).collect()
    })
}

/// Lists events, oldest first.
#[utoipa::path(
    get,
    path = "/sms/events/{key}",
    operation_id = "events",
    summary = "List events, oldest first",
    description = "For programs that can't receive webhooks: call it again with the cursor of the \
        last response, and no event is missing or repeated. A test key sees the events of test \
        messages. Both keys see the events of the application itself. Events of messages and \
        batches are stored from the first call or the first endpoint on. Events are deleted after \
        30 days, unless the operator has set another time. An event whose message has been deleted \
        is left out.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("type" = Option<schemas::EventTypes>, Query),
        ("from" = Option<schemas::Since>, Query, description = "Events at this time or later."),
        ("to" = Option<schemas::Since>, Query, description = "Events before this time."),
        ("limit" = Option<schemas::Limit>, Query),
        ("cursor" = Option<schemas::EventId>, Query,
            description = "The value of next in the previous response."),
    ),
    responses(
        (status = 200, description = "Done.", body = ListAnswer, example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "events": [{
                "id": "e_0000000000000482913l", "type": "deposit.received",
                "timestamp": "2026-11-21T08:30:00.000Z", "application": "482913", "test": false,
                "data": {"amount": 50, "balance": 59.95, "currency": "USD"}
            }],
            "next": "e_0000000000000482913l", "since": "2026-11-20T08:30:00.000Z"
        })),
        OneRefusals,
    ),
)]
pub async fn list(State(api): State<SharedApi>, request: Get<EventFilter>) -> Answer {
    request.address.answer(&api, find(&api, &request.access, &request.parameters).await)
}

async fn find(api: &Api, access: &KeyAccess, filter: &EventFilter) -> Result<Answer, Failure> {
    let page = api.service.webhooks().events(access, filter).await?;
    let events = page.events.into_iter().map(|event| Event::new(event, &api.currency));
    let events = events.collect::<Result<Vec<_>, _>>().map_err(|error| {
        tracing::error!(%error, "an event's data isn't JSON");
        Failure::of(Reason::Internal)
    })?;
    let (next, since) = (page.next, DateTime(page.since));
    Ok(answer::json(&ListAnswer { head: Head::success(), events, next, since }))
}
