//! `/sms/limits`: the limits that the owner of an application has set.

use axum::extract::{Request, State};
use domain::limits::LimitsChange;
use domain::{Guard, KeyKind, LimitField, Reason, SendLimits};
use serde::Serialize;
use service::{KeyAccess, LimitsAuthor, Refusal};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::frames::body_if;
use super::get::{Get, GetParameters};
use super::parameters::Parameters;
use super::{Api, SharedApi, body, shared_parameters};
use crate::json::{Amount, shown};
use crate::openapi::refusals::{LimitRefusals, LimitsRefusals};
use crate::openapi::schemas;

/// The parameters of a change.
const KNOWN: [&str; LimitField::ALL.len()] = {
    let mut names = [""; LimitField::ALL.len()];
    let mut index = 0;
    while index < names.len() {
        names[index] = LimitField::ALL[index].as_str();
        index += 1;
    }
    names
};
/// The size of a body in pages of a message. The lists may have 100 entries each.
const BODY_PAGES: usize = 60;
/// The error detail for a test key.
const NEEDS_LIVE_KEY: &str = "Use the live key to read and change limits.";

/// The error detail for a request that changes nothing.
const NOTHING_TO_CHANGE: &str = "Give at least one limit. An empty text turns a limit off; null \
    leaves it as it is.";

/// A part of each day. It includes midnight if `from` is later than `to`.
#[derive(Serialize, ToSchema)]
#[schema(as = QuietHours)]
struct Quiet {
    /// The time of day at which messages begin to wait.
    #[schema(example = "21:00", pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    from: String,
    /// The time of day at which the waiting messages are sent.
    #[schema(example = "08:00", pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$")]
    to: String,
}

shown! {
    /// An application's limits. A limit that is off is null.
    #[derive(ToSchema)]
    struct Limits from limits: &SendLimits {
        #[schema(value_type = schemas::International)]
        international: &'static str = if limits.local_only { "off" } else { "allowed" },
        /// The digits that international numbers must begin with.
        #[schema(required)]
        prefixes: Option<Vec<String>> = list(&limits.prefixes),
        /// The maximum number of messages to a recipient within 60 minutes.
        #[schema(required)]
        per_recipient_hour: Option<u32> = limits.per_recipient_hour,
        /// The maximum number of messages to a recipient within 24 hours.
        #[schema(required)]
        per_recipient_day: Option<u32> = limits.per_recipient_day,
        /// The maximum price of the messages that are accepted on a day of the account's time zone.
        #[schema(required)]
        spend_per_day: Option<Amount> = limits.spend_per_day.map(Amount),
        /// The addresses and networks that may use the keys.
        #[schema(required)]
        addresses: Option<Vec<String>> = list(&limits.addresses),
        /// True if numbers with a warning are refused.
        #[schema(required)]
        refuse_doubtful: Option<bool> = limits.refuse_doubtful.then_some(true),
        /// The part of each day, in the account's time zone, in which messages wait.
        #[schema(required)]
        quiet_hours: Option<Quiet> =
            limits.quiet_hours.map(|hours| Quiet { from: hours.begin(), to: hours.end() }),
        #[schema(value_type = schemas::LimitMode)]
        traffic_pumping: &'static str = Guard::as_str(limits.traffic_pumping),
        /// More messages than this to similar numbers within 10 minutes are suspicious.
        #[schema(minimum = 1)]
        traffic_pumping_messages: u32 = limits.traffic_pumping_messages,
        #[schema(value_type = schemas::LimitMode)]
        leaked_key: &'static str = Guard::as_str(limits.leaked_key),
    }
}

/// Returns the texts of a limit's entries, or `None` if the limit is off.
fn list<T: ToString>(entries: &[T]) -> Option<Vec<String>> {
    (!entries.is_empty()).then(|| entries.iter().map(T::to_string).collect())
}

#[derive(Serialize, ToSchema)]
#[schema(as = LimitsAnswer)]
struct LimitsAnswer {
    #[serde(flatten)]
    head: Head,
    limits: Limits,
}

/// The limits to change. An empty value turns a limit off.
#[derive(ToSchema)]
#[schema(as = LimitParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct ChangeBody {
    #[schema(required = false)]
    international: schemas::International,
    /// The digits that international numbers must begin with, comma-separated.
    #[schema(required = false, example = "27,49")]
    prefixes: String,
    /// The maximum number of messages to a recipient within 60 minutes.
    #[schema(required = false, example = "3")]
    per_recipient_hour: String,
    /// The maximum number of messages to a recipient within 24 hours.
    #[schema(required = false, example = "10")]
    per_recipient_day: String,
    /// The maximum price of the messages that are accepted on a day of the account's time zone.
    #[schema(required = false, example = "25.5")]
    spend_per_day: String,
    /// The addresses and networks that may use the keys, comma-separated.
    #[schema(required = false, example = "192.0.2.7,2001:db8::/32")]
    addresses: String,
    /// 1 refuses numbers with a warning.
    #[schema(required = false, example = "1")]
    refuse_doubtful: String,
    /// The part of each day, in the account's time zone, in which messages wait, as HH:MM-HH:MM.
    #[schema(required = false, example = "21:00-08:00")]
    quiet_hours: String,
    #[schema(required = false)]
    traffic_pumping: schemas::LimitMode,
    /// More messages than this to similar numbers within 10 minutes are suspicious.
    #[schema(required = false, example = "50")]
    traffic_pumping_messages: String,
    #[schema(required = false)]
    leaked_key: schemas::LimitMode,
}

/// A query for the limits.
pub struct GetLimits;

impl GetParameters for GetLimits {
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        if id.is_some() {
            return Err(Failure::of(Reason::NotFound));
        }
        Parameters::of_query(&[], query).refuse_unknown()?;
        Ok(Self)
    }
}

#[utoipa::path(
    get,
    path = "/sms/limits/{key}",
    operation_id = "limits",
    summary = "Get the limits",
    description = "The owner of an application can limit what its keys may do. A limit that \
        refuses a send costs nothing. The counters of the live key and of the test key are separate.",
    params(("key" = schemas::ApiKey, Path)),
    responses(
        (status = 200, description = "Done.", body = LimitsAnswer, example = json!(example())),
        LimitsRefusals,
    ),
)]
pub async fn get(State(api): State<SharedApi>, request: Get<GetLimits>) -> Answer {
    request.address.answer(&api, find(&api, &request.access).await)
}

async fn find(api: &Api, access: &KeyAccess) -> Result<Answer, Failure> {
    needs_live_key(access)?;
    let limits = api.service.applications().send_limits(access.reference).await?;
    Ok(answer(&limits))
}

fn answer(limits: &SendLimits) -> Answer {
    answer::json(&LimitsAnswer { head: Head::success(), limits: limits.into() })
}

fn needs_live_key(access: &KeyAccess) -> Result<(), Failure> {
    match access.kind {
        KeyKind::Live => Ok(()),
        KeyKind::Test => Err(Failure::with_detail(Reason::LimitsLocked, NEEDS_LIVE_KEY)),
    }
}

/// Returns an example of a response for the OpenAPI document.
fn example() -> serde_json::Value {
    serde_json::json!({
        "code": 200, "message": "SUCCESS", "text": "SUCCESS", "limits": {
            "international": "allowed", "prefixes": ["27", "49"], "per_recipient_hour": 3,
            "per_recipient_day": null, "spend_per_day": 25.5, "addresses": null,
            "refuse_doubtful": null, "quiet_hours": {"from": "21:00", "to": "08:00"},
            "traffic_pumping": "alarm", "traffic_pumping_messages": 50, "leaked_key": "alarm"
        }
    })
}

#[utoipa::path(
    post,
    path = "/sms/limits/{key}",
    operation_id = "changeLimits",
    summary = "Change the limits",
    description = "Changes the given limits and returns all of them. At least one must be given; \
        an empty text turns a limit off, and null leaves it as it is. In JSON, numbers and true or \
        false need no quotation marks. A list of addresses must include the address of the \
        request itself. The call is refused with limits_locked unless the owner allows changes by \
        API in the application's settings.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "The limits can also be in the query.",
        content(
            (ChangeBody = "application/json", example = json!({"per_recipient_hour": "3"})),
            (ChangeBody = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = LimitsAnswer,
         headers(("Idempotency-Replayed")), example = json!(example())),
        LimitRefusals,
    ),
)]
pub async fn change(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, take(&api, &address, request).await)
}

async fn take(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    let ((access, limits), body) = body_if(authorize(api, address).await, body)?;
    let mut parameters = Parameters::of_query(&KNOWN, head.uri.query());
    let taken = body::read_parameters(&head.headers, body, &mut parameters, BODY_PAGES).await;
    let wanted = taken.and_then(|()| {
        let wanted = wanted(&parameters)?;
        refuse_lockout(&limits, &wanted, address)?;
        Ok(wanted)
    });
    // Every request counts towards the limit, but its own error takes precedence.
    let allowed = api.service.messages().take_request(&access).await;
    let wanted = wanted?;
    let author = LimitsAuthor::Program(access, shared_parameters::idempotency(&head.headers)?);
    allowed?;
    let changed = api.service.applications().change_limits(access.reference, author, wanted).await;
    let changed = changed.map_err(|error| match error.refusal() {
        Some(Refusal::LimitsLocked) => Reason::LimitsLocked.into(),
        Some(Refusal::IdempotencyMismatch) => Reason::IdempotencyMismatch.into(),
        _ => Failure::from(error),
    })?;
    Ok(shared_parameters::answered(answer(&changed.limits), changed.replayed))
}

/// Checks whether the request may change limits, before its body is read. Also returns the limits.
async fn authorize(api: &Api, address: &Address) -> Result<(KeyAccess, SendLimits), Failure> {
    if address.id.is_some() {
        return Err(Reason::NotFound.into());
    }
    let access = api.service.messages().authorize(address.presented()).await?;
    needs_live_key(&access)?;
    let limits = api.service.applications().send_limits(access.reference).await?;
    if limits.changed_by_api { Ok((access, limits)) } else { Err(Reason::LimitsLocked.into()) }
}

fn wanted(parameters: &Parameters) -> Result<LimitsChange, Failure> {
    let mut change = LimitsChange::default();
    for field in LimitField::ALL {
        let name = field.as_str();
        if let Some(text) = parameters.scalar(name, Reason::InvalidParameter)? {
            change.add(field, text).map_err(|_| Failure::invalid(name, field.allowed()))?;
        }
    }
    parameters.refuse_unknown()?;
    if change.fields().is_empty() {
        return Err(Failure::with_detail(Reason::MissingParameter, NOTHING_TO_CHANGE));
    }
    Ok(change)
}

/// Refuses a change after which the key wouldn't work from where the request came from. Only the
/// portal could undo it.
fn refuse_lockout(
    limits: &SendLimits,
    change: &LimitsChange,
    address: &Address,
) -> Result<(), Failure> {
    let changes_addresses =
        change.fields().iter().any(|(field, _)| *field == LimitField::Addresses);
    let from = address.origin().address;
    if !changes_addresses || change.applied_to(limits).admits_address(from) {
        return Ok(());
    }
    let from = from.map_or_else(String::new, |from| format!(", {from}"));
    let detail = format!(
        "addresses doesn't include the address of this request{from}; the key wouldn't work from \
         it any more. Add it, or change the addresses in the portal."
    );
    Err(Failure::with_detail(Reason::InvalidParameter, detail))
}
