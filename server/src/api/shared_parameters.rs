//! What single sends and uploads are asked for in the same words: message, request id, dry run, and
//! the key that makes a repeated request safe.

use axum::http::{HeaderMap, HeaderValue};
use domain::message::{InvalidMessage, PAGE_CHARS};
use domain::timestamp::DAY_MS;
use domain::{ApiKey, KeyKind, MessageText, Reason, RequestId, Timestamp};
use service::{IDEMPOTENCY_KEY_CHARS_MAX, IdempotencyKey, SendAccess};

use super::Api;
use super::address::KeyText;
use super::answer::{Answer, Failure};
use super::parameters::Parameters;

/// Makes a request safe to repeat.
const IDEMPOTENCY_KEY: &str = "idempotency-key";
/// On an answer that was given before.
const IDEMPOTENCY_REPLAYED: &str = "idempotency-replayed";

/// The text, which must be there.
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

/// The caller's own words for the request.
pub fn requestid(parameters: &Parameters) -> Result<Option<RequestId>, Failure> {
    parameters
        .optional("requestid", Reason::InvalidRequestid)?
        .map(RequestId::parse)
        .transpose()
        .map_err(|_| Reason::InvalidRequestid.into())
}

/// Whether the request is only to be judged.
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

/// The idempotency key, when the request has one.
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

/// What is answered when the request itself is at fault; it counts as a request all the same. Where
/// its idempotency key is known, it can't be the request that was accepted under it, and the
/// application's status wasn't judged yet: a dry run, which doesn't read the key, is judged now.
pub async fn refused(
    api: &Api,
    key: &KeyText,
    access: &SendAccess,
    parameters: &Parameters,
    failure: Failure,
) -> Failure {
    // Whether it was one too many doesn't matter: its own fault is answered first.
    let _ = api.service.take_request(&access.access).await;
    if !access.known || !failure.is_about_the_request() {
        return failure;
    }
    if !matches!(dry_run(parameters), Ok(true)) {
        return Reason::IdempotencyMismatch.into();
    }
    match api.service.authorize_send(key.as_deref(), None).await {
        Ok(_) => failure,
        Err(reason) => reason.into(),
    }
}

/// The answer, marked when it was given before.
pub fn answered(mut response: Answer, replayed: bool) -> Answer {
    if replayed {
        let yes = HeaderValue::from_static("true");
        response.headers_mut().insert(IDEMPOTENCY_REPLAYED, yes);
    }
    response
}

/// The refusal of one send, or of an upload's rows, by the charging transaction: says so where a
/// test key has used up its day.
pub async fn not_charged(api: &Api, key: &ApiKey, messages: u64, reason: Reason) -> Failure {
    if reason != Reason::RateLimited || key.kind() != KeyKind::Test {
        return reason.into();
    }
    let left = match api.service.test_messages_left(key).await {
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
    let now = api.service.clock().now();
    let tomorrow = Timestamp::from_unix_ms((now.day() + 1) * DAY_MS);
    let seconds = tomorrow.ms_since(now).max(1000) / 1000 + 1;
    Failure::with_detail(reason, detail).retry_after(seconds)
}
