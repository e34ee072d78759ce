//! `/sms/bulk`: a file of messages, or one message to a file of numbers.

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue};
use domain::ids::REQUESTID_CHARS_MAX;
use domain::message::PAGE_CHARS;
use domain::{BulkMode, Reason, RequestId};
use serde::Serialize;
use service::{
    BatchRequest, SendError, Spooled, TEST_UPLOADS_MAX, UPLOADS_PER_APPLICATION, UploadPermit,
};
use utoipa::ToSchema;

use super::address::Address;
use super::answer::{self, Answer, Failure, Head};
use super::frames::drop_rest;
use super::parameters::Parameters;
use super::upload::{self, Fields, File};
use super::{Api, SharedApi, shared_parameters};
use crate::json::{Amount, DateTime};
use crate::openapi::refusals::BulkRefusals;
use crate::openapi::schemas;

/// An accepted upload.
#[derive(Serialize, ToSchema)]
struct Accepted<'a> {
    #[serde(flatten)]
    head: Head,
    #[schema(value_type = schemas::RequestId, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    requestid: Option<&'a str>,
    /// Null for a dry run.
    #[schema(value_type = Option<schemas::BatchId>, required)]
    batchid: Option<String>,
    #[schema(value_type = schemas::Positive)]
    rows: u64,
    #[schema(value_type = schemas::Positive)]
    pages: u64,
    cost: Amount,
    #[schema(value_type = schemas::Currency)]
    currency: &'a str,
    /// Only if the batch is scheduled, or waits for the end of the quiet hours.
    #[schema(required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    send_at: Option<DateTime>,
    /// One entry for each kind of warning.
    warnings: Vec<Warning>,
    #[schema(value_type = schemas::OnlyTrue, required = false)]
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dryrun: bool,
}

/// A probable mistake in the rows, or rows that aren't sent.
#[derive(Serialize, ToSchema)]
#[schema(as = CountedWarning)]
struct Warning {
    #[schema(value_type = schemas::BulkWarning)]
    warning: &'static str,
    /// The number of rows with this warning.
    #[schema(value_type = schemas::Positive)]
    count: u64,
}

/// A number, a comma and a message in each row.
#[derive(ToSchema)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct OneToOne {
    /// UTF-8, with lines that end with LF or CRLF and without a header line. Each row is a number,
    /// a comma and a message. Everything after the first comma belongs to the message. A message
    /// that starts with a quote is an RFC 4180 quoted field and may contain line breaks. In a
    /// URL-encoded form, write a leading + as %2B. A leading space there is read as +.
    #[schema(example = "57000001,Hello\n57000002,\"Two\nlines\"")]
    bulksms: String,
    #[schema(required = false)]
    requestid: schemas::RequestId,
    #[schema(required = false)]
    sendat: schemas::SendAt,
    #[schema(required = false)]
    validity: schemas::Validity,
    #[schema(required = false)]
    dryrun: schemas::DryRun,
}

/// One number in each row. All of them get the same message.
#[derive(ToSchema)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct OneToMany {
    /// UTF-8, with lines that end with LF or CRLF and without a header line.
    #[schema(example = "57000001\n57000002")]
    numbers: String,
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

/// Either kind of upload.
#[derive(ToSchema)]
#[schema(as = BulkParameters)]
#[serde(untagged)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
enum Uploaded {
    OneToOne(OneToOne),
    OneToMany(OneToMany),
}

// A oneOf would be more exact, but client generators can't use one here.
/// Either kind of upload in a multipart body: bulksms, or numbers and message.
#[derive(ToSchema)]
#[schema(as = BulkMultipart)]
#[expect(dead_code, reason = "bodies are read by hand; this documents them")]
struct UploadedParts {
    /// A number, a comma and a message in each row.
    #[schema(required = false)]
    bulksms: String,
    /// One number in each row. All of them get the same message.
    #[schema(required = false)]
    numbers: String,
    #[schema(required = false)]
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

/// Accepts an upload. A caller that isn't allowed to send is refused before the body is read.
#[utoipa::path(
    post,
    path = "/sms/bulk/{key}",
    operation_id = "bulk",
    summary = "Send a file of messages",
    description = "All or nothing: one bad row refuses the file. The response lists the first 20 \
        bad rows and gives their total. Correct them and upload the file with dryrun=1 until no \
        bad row is left. A file that costs more than the balance is refused too. Otherwise the \
        whole price is reserved and the response comes at once, while the rows become messages. \
        Rows to numbers that have opted out become rejected messages, whose price is released; \
        warnings has their number. The number of concurrent uploads is limited for each \
        application, with its live and test keys together. A test key can have two, including dry \
        runs. Further ones are refused before their bodies are read.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("message" = Option<schemas::Message>, Query,
            description = "With numbers: the message to all of them."),
        ("requestid" = Option<schemas::RequestId>, Query),
        ("sendat" = Option<schemas::SendAt>, Query),
        ("validity" = Option<schemas::Validity>, Query),
        ("dryrun" = Option<schemas::DryRun>, Query,
            description = "With an Idempotency-Key, request a dry run here. In the body it comes \
            too late, after the key was looked up."),
        ("Idempotency-Key" = Option<schemas::IdempotencyKey>, Header),
    ),
    request_body(
        description = "The small parameters can also be in the query. Give each parameter once, \
            in any order. A multipart body has at most 32 parts. The body may take a minute, and \
            a second more for every 64 KiB.",
        content(
            (UploadedParts = "multipart/form-data"),
            (Uploaded = "application/x-www-form-urlencoded"),
        ),
    ),
    responses(
        (status = 200, description = "Done.", body = Accepted, headers(("Idempotency-Replayed"), ("Connection")),
         example = json!({
            "code": 200, "message": "SUCCESS", "text": "SUCCESS", "batchid": "b_0000000000000", "rows": 2,
            "pages": 2, "cost": 0.1, "currency": "USD", "warnings": [{"warning": "looks_local", "count": 1}]
        })),
        BulkRefusals,
    ),
)]
pub async fn post(State(api): State<SharedApi>, address: Address, request: Request) -> Answer {
    let answered = take(&api, &address, request).await;
    let mut answer = address.answer(&api, answered);
    // Parts of the body may still be in transit.
    let close = HeaderValue::from_static("close");
    answer.headers_mut().insert(CONNECTION, close);
    answer
}

async fn take(api: &Api, address: &Address, request: Request) -> Result<Answer, Failure> {
    let (head, body) = request.into_parts();
    let query = head.uri.query();
    let asked = Parameters::of_query(&["requestid", "dryrun"], query);
    // A dry run requested in the body comes too late: by then, the idempotency key has been looked
    // up and reserved.
    let idempotency = match shared_parameters::dry_run(&asked) {
        Ok(true) => Ok(None),
        _ => shared_parameters::idempotency(&head.headers),
    };
    let known_key = idempotency.as_ref().ok().cloned().flatten();
    match api.service.messages().begin_bulk(address.presented(), known_key).await {
        Ok(permit) => {
            let bad_key = idempotency.err();
            let answered = upload(api, address, &permit, &head.headers, query, body, bad_key).await;
            permit.end().await;
            answered
        }
        Err(reason) => {
            drop_rest(body);
            let requestid = shared_parameters::requestid(&asked).ok().flatten();
            Err(not_begun(reason).about(requestid))
        }
    }
}

/// Returns the refusal of an upload that couldn't begin. Here, `rate_limited` means too many
/// concurrent uploads. Requests per second are counted later.
fn not_begun(reason: Reason) -> Failure {
    if reason != Reason::RateLimited {
        return reason.into();
    }
    let detail = format!(
        "The application has reached its limit of {UPLOADS_PER_APPLICATION} concurrent uploads; a \
         test key has a limit of {TEST_UPLOADS_MAX}. Wait until one of them completes."
    );
    Failure::with_detail(reason, detail)
}

/// Reads the upload and submits it to the service.
async fn upload(
    api: &Api,
    address: &Address,
    permit: &UploadPermit,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Body,
    bad_key: Option<Failure>,
) -> Result<Answer, Failure> {
    let limits = api.service.limits();
    let characters_max = limits.message_pages_max.saturating_mul(PAGE_CHARS);
    let mut fields = Fields::new(permit, characters_max.max(REQUESTID_CHARS_MAX));
    let read = upload::read(headers, query, body, limits.bulk_bytes_max, &mut fields).await;
    let (file, small) = fields.finish();
    let requestid = shared_parameters::requestid(&small).ok().flatten();
    let answered = match read.and_then(|()| request(api, file, &small, bad_key)) {
        Ok((rows, request)) => submission(api, permit, rows, request).await,
        Err(failure) => {
            let access = permit.access();
            Err(shared_parameters::refused(api, address, access, &small, failure).await)
        }
    };
    answered.map_err(|failure| failure.about(requestid))
}

/// Returns the rows of an upload and the parameters of the batch. Reports the first error in this
/// order: a missing parameter, the file, message, requestid, sendat, validity, dryrun, unknown
/// parameters, and the idempotency key unless this is a dry run.
fn request(
    api: &Api,
    file: Option<File<Spooled>>,
    small: &Parameters,
    bad_key: Option<Failure>,
) -> Result<(Spooled, BatchRequest), Failure> {
    let Some(file) = file else {
        let mut files = ["bulksms", "numbers"].into_iter();
        return Err(match files.find(|name| small.is_misspelt(name)) {
            Some(name) => small.missing(name),
            None => Failure::with_detail(
                Reason::MissingParameter,
                "bulksms, or numbers and message, must be given.",
            ),
        });
    };
    let to_many = file.mode == BulkMode::OneToMany;
    if to_many && !small.has("message") {
        return Err(small.missing("message"));
    }
    let rows = file.rows.map_err(Failure::of_file)?;
    let message = if to_many { Some(shared_parameters::message(api, small)?) } else { None };
    let requestid = shared_parameters::requestid(small)?;
    let schedule = shared_parameters::schedule(small)?;
    let dry_run = shared_parameters::dry_run(small)?;
    small.refuse_unknown()?;
    let request = BatchRequest { message, requestid, schedule, dry_run };
    match bad_key {
        Some(failure) if !dry_run => Err(failure),
        _ => Ok((rows, request)),
    }
}

/// Submits the rows to the service and builds the response.
async fn submission(
    api: &Api,
    permit: &UploadPermit,
    rows: Spooled,
    request: BatchRequest,
) -> Result<Answer, Failure> {
    let (requestid, dry_run) = (request.requestid.clone(), request.dry_run);
    let count = rows.rows();
    let accepted = match api.service.messages().accept_batch(permit, rows, request).await {
        Ok(accepted) => accepted,
        Err(SendError::Refused(reason)) => {
            return Err(shared_parameters::not_charged(api, permit.key(), count, reason).await);
        }
        Err(SendError::Lost) => return Err(Failure::unanswered()),
    };
    let warnings = accepted
        .warnings
        .present()
        .map(|(warning, count)| Warning { warning: warning.as_str(), count });
    let opted_out = Warning { warning: Reason::OptedOut.as_str(), count: accepted.opted_out };
    let warnings = warnings.chain((opted_out.count > 0).then_some(opted_out));
    let limited = accepted.limited.present();
    let limited = limited.map(|(reason, count)| Warning { warning: reason.as_str(), count });
    let warnings = warnings.chain(limited);
    let response = answer::json(&Accepted {
        head: Head::success(),
        requestid: requestid.as_ref().map(RequestId::as_str),
        batchid: accepted.batchid.map(|id| id.to_string()),
        rows: accepted.rows,
        pages: accepted.pages,
        cost: Amount(accepted.cost),
        currency: &api.currency,
        send_at: accepted.send_at.map(DateTime),
        warnings: warnings.collect(),
        dryrun: dry_run,
    });
    Ok(shared_parameters::answered(response, accepted.replayed))
}
