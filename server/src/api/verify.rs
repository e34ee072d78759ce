//! `/sms/verify/start` and `/sms/verify/check`: one-time codes.

use axum::extract::{Request, State};
use domain::verify::{CODE_DIGITS, DEFAULT_DIGITS, DEFAULT_TTL_S, Locale, TTL_S, TypedCode};
use domain::{ApiKey, NumberWarning, Reason, SenderName, VerifyId};
use serde::Serialize;
use service::{IdempotencyKey, Refusal, SendError, Sent, StartError, StartOf, StartRequest};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head, Recipient};
use super::frames::body_if;
use super::parameters::Parameters;
use super::post::{self, Posted};
use super::{Api, SharedApi, body, listing, shared_parameters};
use crate::json::{Amount, DateTime};
use crate::openapi::refusals::{CheckRefusals, StartRefusals};
use crate::openapi::schemas;

const START: [&str; 6] = ["number", "locale", "length", "ttl", "name", "verifyid"];
const CHECK: [&str; 2] = ["verifyid", "otp"];
/// The size of a body, in pages of a message. All values are short.
const BODY_PAGES: usize = 1;
/// The valid form of an otp, for error messages.
const OTP_ALLOWED: &str = "the digits of the code, 4 to 10 of them";

/// The parameters of a verification: number, or verifyid alone to send a code again.
#[derive(ToSchema)]
#[schema(as = StartParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct StartBody {
    #[schema(required = false)]
    number: schemas::Number,
    #[schema(required = false)]
    locale: schemas::CodeLocale,
    #[schema(required = false)]
    length: schemas::CodeLength,
    #[schema(required = false)]
    ttl: schemas::CodeTtl,
    #[schema(required = false)]
    name: schemas::CodeName,
    /// Sends the code of this verification again. Only without the other parameters.
    #[schema(required = false)]
    verifyid: schemas::VerifyId,
}

/// A verification whose code was sent.
#[derive(Serialize, ToSchema)]
struct Started<'a> {
    #[serde(flatten)]
    head: Head,
    /// The balance that is left to spend.
    balance: Amount,
    #[schema(value_type = schemas::Transid)]
    transid: String,
    #[schema(value_type = schemas::Positive)]
    pages: usize,
    cost: Amount,
    #[schema(value_type = schemas::Currency)]
    currency: &'a str,
    #[schema(value_type = Vec<schemas::Warning>)]
    warnings: Vec<&'static str>,
    #[schema(value_type = schemas::VerifyId)]
    verifyid: String,
    /// When the code expires.
    expires_at: DateTime,
}

/// The parameters of a check.
#[derive(ToSchema)]
#[schema(as = CheckParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct CheckBody {
    verifyid: schemas::VerifyId,
    otp: schemas::Otp,
}

/// The outcome of an attempt.
#[derive(Serialize, ToSchema)]
struct Checked {
    #[serde(flatten)]
    head: Head,
    /// Whether the code is right. A code is accepted once.
    verified: bool,
    /// How many of the five attempts are left.
    #[schema(minimum = 0, maximum = 5)]
    tries_left: u32,
    /// Null for an unknown verification.
    #[schema(required)]
    expires_at: Option<DateTime>,
    /// Only if verified is false.
    #[schema(value_type = schemas::CheckFailure, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'static str>,
}

/// Sends a code to a number.
#[utoipa::path(
    post,
    path = "/sms/verify/start/{key}",
    operation_id = "verifyStart",
    summary = "Send a one-time code",
    description = "Sends a code to a number, as a message that costs what any other costs. With \
        verifyid instead of number, the same code is sent again: 30, 60 and 120 seconds after the \
        code was last sent, at the earliest, and three times at most. An application can start one \
        verification of a number within 30 seconds. The message isn't submitted to a carrier after \
        expires_at. Reports show its text with •••••• instead of the code. With a test key, the \
        code is always 9876543210, cut to its length.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "The parameters can also be in the query.",
        content(
            (StartBody = "application/x-www-form-urlencoded"),
            (StartBody = "application/json", example = json!({"number": "58001234"})),
        ),
    ),
    responses(
        (status = 200, description = "The code is on its way.", body = Started,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "balance": 9.95,
            "transid": "m_0000000000000", "pages": 1, "cost": 0.05, "currency": "USD",
            "warnings": [], "verifyid": "v_0000000000000",
            "expires_at": "2026-11-21T08:40:00.000Z"
         })),
        StartRefusals,
    ),
)]
pub async fn start(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, take_start(&api, &address, request).await)
}

async fn take_start(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    let mut parameters = Parameters::of_query(&START, head.uri.query());
    let idempotency = shared_parameters::idempotency(&head.headers).ok().flatten();
    let messages = api.service.messages();
    let authorized = messages.authorize_start(address.presented(), idempotency.as_ref());
    let ((access, defaults), body) = body_if(authorized.await, body)?;
    let taken = body::read_parameters(&head.headers, body, &mut parameters, BODY_PAGES).await;
    let wanted = taken.and_then(|()| {
        let of = start_of(&parameters)?;
        parameters.refuse_unknown()?;
        Ok((of, shared_parameters::idempotency(&head.headers)?))
    });
    let (of, idempotency) = match wanted {
        Ok(wanted) => wanted,
        Err(failure) => {
            // The result doesn't matter: the request's own error takes precedence.
            let _ = messages.take_request(&access.access).await;
            let mismatch = access.known && failure.is_about_the_request();
            return Err(if mismatch { Reason::IdempotencyMismatch.into() } else { failure });
        }
    };
    let key = address.key.as_deref().and_then(|text| ApiKey::parse(text).ok());
    let key = key.ok_or(Reason::ApiInvalid)?;
    let (warnings, recipient) = match &of {
        StartOf::New { number, .. } => {
            let warnings = number.warnings(&api.country_code).map(NumberWarning::as_str);
            (warnings.collect(), Some(number.masked()))
        }
        StartOf::Again(_) => (Vec::new(), None),
    };
    let origin = address.origin();
    let request = StartRequest { key: key.clone(), of, idempotency, origin };
    let sent = match messages.start_verification(&access.access, &defaults, request).await {
        Ok(sent) => sent,
        Err(error) => {
            // A start that is refused counts as a request, like an accepted one.
            if error != StartError::Send(SendError::Lost) {
                let _ = messages.take_request(&access.access).await;
            }
            return Err(not_started(api, &key, error).await.to(recipient));
        }
    };
    if !sent.replayed {
        api.metrics.send_accepted();
    }
    let mut response = started(api, &sent, warnings)?;
    if let Some(recipient) = recipient {
        response.extensions_mut().insert(Recipient(recipient));
    }
    Ok(shared_parameters::answered(response, sent.replayed))
}

fn started(api: &Api, sent: &Sent, warnings: Vec<&'static str>) -> Result<Answer, Failure> {
    let (transid, code) = sent.transid.zip(sent.code).ok_or(Reason::Internal)?;
    Ok(answer::json(&Started {
        head: Head::success(),
        balance: Amount(sent.balance),
        transid: transid.to_string(),
        pages: sent.pages,
        cost: Amount(sent.cost),
        currency: &api.currency,
        warnings,
        verifyid: code.id.to_string(),
        expires_at: DateTime(code.expires_at),
    }))
}

/// Returns the failure of a code that wasn't sent.
async fn not_started(api: &Api, key: &ApiKey, error: StartError) -> Failure {
    match error {
        StartError::Send(SendError::Refused(Reason::NotFound)) => {
            Failure::with_detail(Reason::NotFound, "There is no such verification.")
        }
        StartError::Send(SendError::Refused(reason)) => {
            shared_parameters::not_charged(api, key, 1, reason).await
        }
        StartError::Send(SendError::Lost) => Failure::unanswered(),
        StartError::TooEarly(at) => {
            let left_ms = at.ms_since(api.service.clock().now()).max(1);
            let detail = "This number had a code a short time ago; wait as long as Retry-After \
                          says.";
            let failure = Failure::with_detail(Reason::RateLimited, detail);
            failure.retry_after((left_ms + 999) / 1000)
        }
    }
}

/// Reads the verification to start. Reports the first error in this order: number, locale, length,
/// ttl, name.
fn start_of(parameters: &Parameters) -> Result<StartOf, Failure> {
    if let Some(text) = parameters.optional("verifyid", Reason::InvalidParameter)? {
        if let Some(name) = START[..5].iter().find(|name| parameters.has(name)) {
            let detail = format!("Give verifyid alone; {name} is for a new verification.");
            return Err(Failure::with_detail(Reason::InvalidParameter, detail));
        }
        let id = VerifyId::parse(text);
        return id.map(StartOf::Again).ok_or_else(|| {
            Failure::with_detail(Reason::NotFound, "There is no such verification.")
        });
    }
    let number = parameters.number("number")?.ok_or_else(|| parameters.missing("number"))?;
    let languages = Locale::ALL.map(Locale::as_str).join(", ");
    let allowed = format!("one of {languages}, with or without a region such as pt-BR");
    let locale = listing::read(parameters, "locale", &allowed, Locale::of_tag)?;
    let (from, to) = (CODE_DIGITS.start(), CODE_DIGITS.end());
    let allowed = format!("a whole number from {from} to {to}");
    let digits = listing::read(parameters, "length", &allowed, |text| {
        whole(text).filter(|digits| CODE_DIGITS.contains(digits))
    })?;
    let allowed = format!("a whole number of seconds from {} to {}", TTL_S.start(), TTL_S.end());
    let ttl_s = listing::read(parameters, "ttl", &allowed, |text| {
        whole(text).filter(|seconds| TTL_S.contains(seconds))
    })?;
    let name = listing::read(parameters, "name", "1 to 11 ASCII letters and digits", |text| {
        SenderName::parse(text).ok()
    })?;
    Ok(StartOf::New {
        number,
        locale,
        digits: digits.unwrap_or(DEFAULT_DIGITS),
        ttl_s: ttl_s.unwrap_or(DEFAULT_TTL_S),
        name,
    })
}

/// Parses plain digits.
fn whole<T: std::str::FromStr>(text: &str) -> Option<T> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain)
}

/// Checks a code that a person typed.
#[utoipa::path(
    post,
    path = "/sms/verify/check/{key}",
    operation_id = "verifyCheck",
    summary = "Check a one-time code",
    description = "All clients together have five attempts. A code is accepted once. \
        Spaces and hyphens in otp are ignored, and the digits of other scripts are read as 0 to 9. \
        An otp of another length than the verification's code is refused as invalid_parameter, and \
        costs no attempt.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "The parameters can also be in the query.",
        content(
            (CheckBody = "application/x-www-form-urlencoded"),
            (CheckBody = "application/json"),
        ),
    ),
    responses(
        (status = 200, description = "The code was checked.", body = Checked,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "verified": false,
            "tries_left": 4, "expires_at": "2026-11-21T08:40:00.000Z", "reason": "wrong_code"
         })),
        CheckRefusals,
    ),
)]
pub async fn check(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, take_check(&api, &address, request).await)
}

async fn take_check(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let posted = post::read(api, address, &CHECK, BODY_PAGES, request, |parameters| {
        let id = parameters.required("verifyid", Reason::InvalidParameter)?.to_owned();
        let typed = parameters.required("otp", Reason::InvalidParameter)?;
        let typed = TypedCode::parse(typed);
        Ok((id, typed.ok_or_else(|| Failure::invalid("otp", OTP_ALLOWED))?))
    });
    let Posted { access, wanted: (id, typed), once } = posted.await?;
    let once: Option<&IdempotencyKey> = once.as_ref();
    let checked = api.service.messages().check_code(&access, &id, typed, once).await;
    let checked = checked.map_err(|error| match error.refusal() {
        Some(Refusal::IdempotencyMismatch) => Reason::IdempotencyMismatch.into(),
        Some(Refusal::WrongCodeLength(digits)) => {
            Failure::invalid("otp", &format!("the {digits} digits of the code"))
        }
        _ => Failure::from(error),
    })?;
    let response = answer::json(&Checked {
        head: Head::success(),
        verified: checked.failure.is_none(),
        tries_left: checked.tries_left,
        expires_at: checked.expires_at.map(DateTime),
        reason: checked.failure.map(domain::verify::CheckFailure::as_str),
    });
    Ok(shared_parameters::answered(response, checked.replayed))
}
