//! `/sms/bulk`: many messages, or one message to many numbers, as a file.

use axum::http::header::CONNECTION;
use axum::http::{HeaderMap, HeaderValue, Request};
use domain::ids::REQUESTID_CHARS_MAX;
use domain::message::PAGE_CHARS;
use domain::{BulkMode, MessageText, Reason, RequestId};
use hyper::body::Incoming;
use serde::Serialize;
use service::{AcceptedBatch, BatchRequest, SendError, Spooled, UploadPermit};

use super::answer::{Answer, Failure, Head, json};
use super::credentials::KeyText;
use super::parameters::Parameters;
use super::upload::{self, Fields, File};
use super::{Api, body, shared_parameters};
use crate::json::Amount;

#[derive(Serialize)]
struct Accepted<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    requestid: Option<&'a str>,
    /// Null for a dry run.
    batchid: Option<String>,
    rows: u64,
    pages: u64,
    cost: Amount,
    currency: &'a str,
    warnings: Vec<Warning>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dryrun: bool,
}

/// Something about the rows that was probably not meant.
#[derive(Serialize)]
struct Warning {
    warning: &'static str,
    /// Rows that it is about.
    count: u64,
}

/// An upload: whoever may not send is told so before the body is read.
pub async fn post(api: &Api, key: &KeyText, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let query = head.uri.query();
    let asked = Parameters::of_query(&["requestid", "dryrun"], query);
    // That a dry run is asked for in the body comes too late: by then the key was looked up and
    // held.
    let idempotency = match shared_parameters::dry_run(&asked) {
        Ok(true) => Ok(None),
        _ => shared_parameters::idempotency(&head.headers),
    };
    let known_key = idempotency.as_ref().ok().cloned().flatten();
    let answered = match api.service.begin_bulk(key.as_deref(), known_key).await {
        Ok(permit) => {
            let bad_key = idempotency.err();
            let answered = upload(api, key, &permit, &head.headers, query, body, bad_key).await;
            permit.end().await;
            answered
        }
        Err(reason) => {
            body::drop_rest(body);
            let requestid = shared_parameters::requestid(&asked).ok().flatten();
            Err(not_begun(api, reason).about(requestid))
        }
    };
    let mut response = answered.unwrap_or_else(Failure::into_response);
    // Parts of the body may still be on their way.
    let close = HeaderValue::from_static("close");
    response.headers_mut().insert(CONNECTION, close);
    response
}

/// The refusal of an upload that was not begun. Requests per second are counted later: what there
/// are too many of are uploads.
fn not_begun(api: &Api, reason: Reason) -> Failure {
    if reason != Reason::RateLimited {
        return reason.into();
    }
    let uploads_max = api.service.limits().uploads_max;
    let detail = format!(
        "The application has as many uploads under way as it may, {uploads_max}; wait until one of them is answered."
    );
    Failure::with_detail(reason, detail)
}

/// Reads the upload and hands it over.
async fn upload(
    api: &Api,
    key: &KeyText,
    permit: &UploadPermit,
    headers: &HeaderMap,
    query: Option<&str>,
    body: Incoming,
    bad_key: Option<Failure>,
) -> Result<Answer, Failure> {
    let characters_max = api.message_pages_max.saturating_mul(PAGE_CHARS);
    let mut fields = Fields::new(permit, characters_max.max(REQUESTID_CHARS_MAX));
    let bytes_max = api.service.limits().bulk_bytes_max;
    let read = upload::read(headers, query, body, bytes_max, &mut fields).await;
    let (file, small) = fields.finish();
    let requestid = shared_parameters::requestid(&small).ok().flatten();
    let read = read.and_then(|()| UploadParameters::read(api, file, &small, bad_key));
    let answered = match read {
        Ok(upload) => upload.hand_over(api, permit).await,
        Err(failure) => {
            let access = permit.access();
            Err(shared_parameters::refused(api, key, access, &small, failure).await)
        }
    };
    answered.map_err(|failure| failure.about(requestid))
}

/// What an upload asks for.
struct UploadParameters {
    rows: Spooled,
    message: Option<MessageText>,
    requestid: Option<RequestId>,
    dry_run: bool,
}

impl UploadParameters {
    /// The first fault wins: what is missing, the file, message, requestid, dryrun, the idempotency
    /// key, which a dry run has no use for.
    fn read(
        api: &Api,
        file: Option<File>,
        small: &Parameters,
        bad_key: Option<Failure>,
    ) -> Result<Self, Failure> {
        let Some(file) = file else {
            return Err(missing("bulksms, or numbers and message,"));
        };
        let to_many = file.mode == BulkMode::OneToMany;
        if to_many && !small.has("message") {
            return Err(missing("message"));
        }
        let rows = file.rows.map_err(Failure::of_file)?;
        let message = if to_many {
            Some(shared_parameters::message(small, api.message_pages_max)?)
        } else {
            None
        };
        let requestid = shared_parameters::requestid(small)?;
        let dry_run = shared_parameters::dry_run(small)?;
        match bad_key {
            Some(failure) if !dry_run => Err(failure),
            _ => Ok(Self {
                rows,
                message,
                requestid,
                dry_run,
            }),
        }
    }

    /// Hands it to the service and words the outcome.
    async fn hand_over(self, api: &Api, permit: &UploadPermit) -> Result<Answer, Failure> {
        let dry_run = self.dry_run;
        let requestid = self.requestid.clone();
        let request = BatchRequest {
            message: self.message,
            requestid: self.requestid,
            dry_run,
        };
        let accepted = match api.service.accept_batch(permit, self.rows, request).await {
            Ok(accepted) => accepted,
            Err(SendError::Refused(reason)) => return Err(reason.into()),
            Err(SendError::Lost) => return Err(Failure::unanswered()),
        };
        let response = json(&Accepted {
            head: Head::success(),
            requestid: requestid.as_ref().map(RequestId::as_str),
            batchid: accepted.batchid.map(|id| id.to_string()),
            rows: accepted.rows,
            pages: accepted.pages,
            cost: Amount(accepted.cost),
            currency: &api.currency,
            warnings: warnings(&accepted),
            dryrun: dry_run,
        });
        Ok(shared_parameters::answered(response, accepted.replayed))
    }
}

fn warnings(accepted: &AcceptedBatch) -> Vec<Warning> {
    if accepted.looks_local == 0 {
        return Vec::new();
    }
    vec![Warning {
        warning: shared_parameters::LOOKS_LOCAL,
        count: accepted.looks_local,
    }]
}

fn missing(names: &str) -> Failure {
    Failure::with_detail(Reason::MissingParameter, format!("{names} must be given."))
}
