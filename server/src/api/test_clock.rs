//! `/sms/test/clock`: moves the clock of an application's test key.

use axum::extract::{Request, State};
use domain::Reason;
use domain::test_clock::DAYS_AHEAD_MAX;
use domain::timestamp::DAY_MS;
use serde::Serialize;
use service::{ClockChange, Refusal};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::parameters::Parameters;
use super::post::{self, Posted};
use super::{Api, SharedApi, listing, shared_parameters};
use crate::json::DateTime;
use crate::openapi::refusals::TestClockRefusals;
use crate::openapi::schemas;

const KNOWN: [&str; 2] = ["advance", "reset"];

/// Exactly one of these.
#[derive(ToSchema)]
#[schema(as = TestClockParameters)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct Wanted {
    /// By how many seconds the clock goes ahead. In all, it can be up to 35 days ahead.
    #[schema(required = false, pattern = "^[0-9]+$", example = "172800")]
    advance: String,
    /// 1: the clock goes back to real time.
    #[schema(required = false)]
    reset: schemas::OnlyOne,
}

#[derive(Serialize, ToSchema)]
#[schema(as = TestClock)]
struct MovedAnswer {
    #[serde(flatten)]
    head: Head,
    /// The clock's time.
    now: DateTime,
    /// How far the clock is ahead of real time, in seconds.
    offset: i64,
}

/// Moves the clock of the test key.
#[utoipa::path(
    post,
    path = "/sms/test/clock/{key}",
    operation_id = "testClock",
    summary = "Move the test clock",
    description = "Moves the clock of the application's test messages and test endpoints ahead, so \
        that a test needn't wait. Scheduled messages, expiries, receipts and attempts to deliver \
        events that are due by then follow at once. sendat counts by this clock. Live messages, \
        test money, daily limits and webhook-timestamp keep to real time, and so do the times of \
        what has happened, such as created_at.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "The parameters can also be in the query.",
        content(
            (Wanted = "application/x-www-form-urlencoded",
             example = json!({ "advance": "172800" })),
            (Wanted = "application/json", example = json!({ "advance": "172800" })),
        ),
    ),
    responses(
        (status = 200, description = "The clock was moved.", body = MovedAnswer,
         headers(("Idempotency-Replayed")), example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS",
            "now": "2026-11-23T08:30:00.000Z", "offset": 172_800
        })),
        TestClockRefusals,
    ),
)]
pub async fn post(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    address.answer(&api, take(&api, &address, request).await)
}

async fn take(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let Posted { access, wanted, once } =
        post::read(api, address, &KNOWN, 1, request, change).await?;
    let moved = api.service.messages().move_clock(&access, wanted, once.as_ref()).await;
    let moved = moved.map_err(|error| match error.refusal() {
        Some(Refusal::IdempotencyMismatch) => Reason::IdempotencyMismatch.into(),
        _ => Failure::from(error),
    })?;
    let moved = moved.map_err(|reason| match reason {
        Reason::InvalidParameter => invalid_advance(),
        _ => reason.into(),
    })?;
    let (now, offset) = (DateTime(moved.now), moved.offset_s);
    let response = answer::json(&MovedAnswer { head: Head::success(), now, offset });
    Ok(shared_parameters::answered(response, moved.replayed))
}

fn change(parameters: &Parameters) -> Result<ClockChange, Failure> {
    let advance = listing::read(parameters, "advance", &allowed(), |text| {
        let plain = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|seconds: &i64| plain && *seconds > 0)
    })?;
    match (advance, post::is_asked(parameters, "reset")?) {
        (Some(seconds), false) => Ok(ClockChange::Advance(seconds)),
        (None, true) => Ok(ClockChange::Reset),
        (None, false) => Err(parameters.missing("advance")),
        (Some(_), true) => Err(Failure::invalid("reset", "1 or true, without advance")),
    }
}

fn allowed() -> String {
    let seconds_max = DAYS_AHEAD_MAX * DAY_MS / 1000;
    format!("a whole number of seconds from 1; in all advances at most {seconds_max}")
}

fn invalid_advance() -> Failure {
    Failure::invalid("advance", &allowed())
}
