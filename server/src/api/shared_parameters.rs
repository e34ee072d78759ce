//! The parameters that single sends and uploads share: message, requestid, sendat, validity, dryrun
//! and the idempotency key.

use axum::http::{HeaderMap, HeaderValue};
use domain::message::{InvalidMessage, PAGE_CHARS};
use domain::schedule::{DAYS_AHEAD_MAX, MINUTES_LATE_MAX, VALIDITY_MINUTES_MAX};
use domain::timestamp::DAY_MS;
use domain::{ApiKey, KeyKind, MessageText, Reason, RequestId, Schedule, Timestamp, Validity};
use service::{IDEMPOTENCY_KEY_CHARS_MAX, IdempotencyKey, Refusal, SendAccess};

use super::Api;
use super::address::Address;
use super::answer::{Answer, Failure};
use super::listing;
use super::parameters::Parameters;

/// The request header that makes a request safe to repeat.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// The response header that marks a replayed response.
const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";

/// Returns the text of the message, which is required.
pub fn message(api: &Api, parameters: &Parameters) -> Result<MessageText, Failure> {
    let text = parameters.required("message", Reason::InvalidMessage)?;
    let pages_max = api.service.limits().message_pages_max;
    MessageText::parse(text.to_owned(), pages_max).map_err(|error| match error {
        InvalidMessage::Empty | InvalidMessage::Nul => Reason::InvalidMessage.into(),
        InvalidMessage::TooLong { max_pages } => Failure::with_detail(
            Reason::MessageTooLong,
            format!(
                "The message is longer than {} characters, which are {max_pages} pages; shorten it \
                 or send it in parts.",
                max_pages * PAGE_CHARS
            ),
        ),
    })
}

/// Returns the identifier that the caller chose for the request.
pub fn requestid(parameters: &Parameters) -> Result<Option<RequestId>, Failure> {
    parameters
        .optional("requestid", Reason::InvalidRequestid)?
        .map(RequestId::parse)
        .transpose()
        .map_err(|_| Reason::InvalidRequestid.into())
}

/// Returns when the messages are to be sent, and how long they are valid. The service checks
/// whether the time is allowed, because it may have passed when an earlier request is repeated.
pub fn schedule(parameters: &Parameters) -> Result<Schedule, Failure> {
    let send_at = listing::read(parameters, "sendat", &sendat_allowed(), |text| {
        Schedule::parse_time(&listing::with_plus(text))
    })?;
    let allowed = format!("a whole number of minutes from 1 to {VALIDITY_MINUTES_MAX}");
    let validity = listing::read(parameters, "validity", &allowed, Validity::parse)?;
    Ok(Schedule { send_at, validity })
}

fn sendat_allowed() -> String {
    format!(
        "a time in RFC 3339 with its offset, such as 2026-11-21T08:30:00+02:00, at most \
         {DAYS_AHEAD_MAX} days ahead and at most {MINUTES_LATE_MAX} minutes in the past"
    )
}

/// Returns true if the request is a dry run.
pub fn dry_run(parameters: &Parameters) -> Result<bool, Failure> {
    if let Some(yes) = parameters.json_boolean("dryrun") {
        return Ok(yes);
    }
    let allowed = "1, true, 0 or false; in JSON as a string, or true or false as they are";
    let invalid = || Failure::invalid("dryrun", allowed);
    match parameters.optional("dryrun", Reason::InvalidParameter) {
        Ok(None | Some("0" | "false")) => Ok(false),
        Ok(Some("1" | "true")) => Ok(true),
        Ok(Some(_)) => Err(invalid()),
        Err(failure) if failure.reason() == Reason::InvalidParameter => Err(invalid()),
        Err(failure) => Err(failure),
    }
}

/// Returns the idempotency key if the request has one.
pub fn idempotency(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Failure> {
    let mut values = headers.get_all(IDEMPOTENCY_KEY).iter();
    let key = match (values.next(), values.next()) {
        (None, _) => return Ok(None),
        (Some(value), None) => value
            .to_str()
            .ok()
            .filter(|text| !text.contains(char::is_control))
            .and_then(IdempotencyKey::parse),
        (Some(_), Some(_)) => None,
    };
    key.map(Some).ok_or_else(|| {
        Failure::with_detail(
            Reason::InvalidParameter,
            format!(
                "The header Idempotency-Key must be given once, with 1 to \
                 {IDEMPOTENCY_KEY_CHARS_MAX} visible characters."
            ),
        )
    })
}

/// Returns the failure of an invalid request, which still counts towards the rate limit.
///
/// If the request's idempotency key is known, the failure is `idempotency_mismatch`, because an
/// invalid request can't be the one that was accepted under the key. `authorize_send` doesn't check
/// the application's status if it knows the key. A dry run ignores the key, so this function checks
/// the status.
pub async fn refused(
    api: &Api,
    address: &Address,
    access: &SendAccess,
    parameters: &Parameters,
    failure: Failure,
) -> Failure {
    // The result doesn't matter: the request's own error takes precedence over the rate limit.
    let _ = api.service.messages().take_request(&access.access).await;
    if !access.known || !failure.is_about_the_request() {
        return failure;
    }
    if !matches!(dry_run(parameters), Ok(true)) {
        return Reason::IdempotencyMismatch.into();
    }
    match api.service.messages().authorize_send(address.presented(), None).await {
        Ok(_) => failure,
        Err(reason) => reason.into(),
    }
}

/// Returns the response, marked if it is a replay.
pub fn answered(mut response: Answer, replayed: bool) -> Answer {
    if replayed {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, yes);
    }
    response
}

/// Returns the failure of messages that the charging transaction refused. Adds the allowed times,
/// when a limit ends, or an explanation if a test key has used up its messages of the day.
pub async fn not_charged(api: &Api, key: &ApiKey, messages: u64, reason: Reason) -> Failure {
    if reason == Reason::InvalidParameter {
        return Failure::invalid("sendat", &sendat_allowed());
    }
    if matches!(reason, Reason::SpendCapReached | Reason::RecipientFlooded) {
        return match api.service.messages().limit_ends_in_s(key, reason).await {
            Ok(seconds) => Failure::of(reason).retry_after(seconds),
            Err(error) => error.into(),
        };
    }
    if reason != Reason::RateLimited {
        return reason.into();
    }
    let now = api.service.clock().now();
    match api.service.messages().has_withdrawals_left(key).await {
        Ok(true) => {}
        Ok(false) => {
            let failure = Failure::with_detail(reason, Refusal::TooManyWithdrawn.to_string());
            return failure.retry_after(seconds_until_tomorrow(now));
        }
        Err(error) => return error.into(),
    }
    if key.kind() != KeyKind::Test {
        return reason.into();
    }
    let left = match api.service.messages().test_messages_left(key).await {
        Ok(left) => left,
        Err(error) => return error.into(),
    };
    let Some(left) = left.filter(|left| left.unsigned_abs() < messages) else {
        return reason.into();
    };
    let max = api.service.limits().unpaid_test_messages;
    let detail = format!(
        "An account without a deposit can send {max} test messages a day (UTC), and {left} are \
         left today. Make a deposit, or try again tomorrow."
    );
    Failure::with_detail(reason, detail).retry_after(seconds_until_tomorrow(now))
}

/// Returns the seconds until the next day begins in UTC.
pub fn seconds_until_tomorrow(now: Timestamp) -> i64 {
    let tomorrow = Timestamp::from_unix_ms((now.day() + 1) * DAY_MS);
    tomorrow.ms_since(now).max(1000) / 1000 + 1
}
