//! `/sms/reports`: messages and their statuses.

use axum::extract::State;
use domain::{BatchId, MessageStatus, Reason, Transid};
use serde::Serialize;
use serde_json::json;
use service::{KeyAccess, MessageFilter};
use utoipa::ToSchema;

use super::answer::{self, Answer, Failure, Head};
use super::csv_report;
use super::get::{Get, GetParameters};
use super::listing::{self, read, time, wants_csv};
use super::parameters::Parameters;
use super::record::{Charge, Report, Step};
use super::{Api, SharedApi, shared_parameters};
use crate::openapi::refusals::{OneRefusals, ReportsRefusals};
use crate::openapi::schemas;

/// The parameters of the list.
const KNOWN: [&str; 10] = [
    "transid",
    "requestid",
    "batchid",
    "number",
    "status",
    "from",
    "to",
    "limit",
    "cursor",
    "format",
];
/// The parameters of a single report.
const KNOWN_OF_ONE: [&str; 1] = ["format"];
/// Descriptions of a valid transid and of a valid batchid, for error messages.
const TRANSID: &str = "the transid from the answer to a send: m_ and 13 characters";
const BATCHID: &str = "the batchid from the answer to an upload: b_ and 13 characters";

#[derive(Serialize, ToSchema)]
#[schema(as = Reports)]
struct ListAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    reports: Vec<Report<'a>>,
    /// Pass it as cursor to get the next messages. Null on the last page. If several filters are
    /// combined and few messages match, a response can have fewer messages than limit, or none,
    /// although next isn't null. The search then took too long, and the next request continues it.
    #[schema(value_type = Option<schemas::Transid>, required)]
    next: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = OneReport)]
struct OneAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    report: Detailed<'a>,
}

/// A message with its timeline and an explanation of its charge.
#[derive(Serialize, ToSchema)]
#[schema(as = DetailedReport)]
struct Detailed<'a> {
    #[serde(flatten)]
    report: Report<'a>,
    timeline: Vec<Step>,
    charge: Charge,
}

/// A query for a list of messages or for one message, as JSON or as a CSV file.
pub enum Reports {
    List { filter: MessageFilter, as_csv: bool },
    One { transid: Transid, as_csv: bool },
}

impl GetParameters for Reports {
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        let Some(id) = id else {
            let parameters = Parameters::of_query(&KNOWN, query);
            let filter = filter(&parameters)?;
            let as_csv = wants_csv(&parameters)?;
            return Ok(Self::List { filter, as_csv });
        };
        let transid = Transid::parse(id).ok_or_else(not_found)?;
        let parameters = Parameters::of_query(&KNOWN_OF_ONE, query);
        parameters.refuse_unknown()?;
        let as_csv = wants_csv(&parameters)?;
        Ok(Self::One { transid, as_csv })
    }
}

/// Lists matching messages, newest first. If the key's segment holds a transid, returns that
/// message.
#[utoipa::path(
    get,
    path = "/sms/reports/{key}",
    operation_id = "reports",
    summary = "List messages, newest first",
    description = "Lists only messages sent with the same kind of key, live or test.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("transid" = Option<schemas::Transid>, Query, description = "One message."),
        ("requestid" = Option<schemas::RequestId>, Query,
            description = "Messages sent with this requestid."),
        ("batchid" = Option<schemas::BatchId>, Query, description = "Messages of a batch."),
        ("number" = Option<schemas::Number>, Query, description = "Messages to this number, with the country code or without it."),
        ("status" = Option<schemas::Status>, Query, description = "Messages in this status."),
        ("from" = Option<schemas::Since>, Query, description = "Accepted at this time or later."),
        ("to" = Option<schemas::Since>, Query, description = "Accepted before this time."),
        ("limit" = Option<schemas::Limit>, Query),
        ("cursor" = Option<schemas::Transid>, Query,
            description = "The value of next in the previous response."),
        ("format" = Option<schemas::Format>, Query),
    ),
    responses(
        (status = 200, description = "Done.",
         headers(("Content-Disposition"), ("X-Next-Cursor")), content(
            (ListAnswer = "application/json", example = json!({
                "code": 200, "message": "SUCCESS", "text": "SUCCESS", "reports": [example()], "next": null
            })),
            (schemas::Table = "text/csv"),
        )),
        ReportsRefusals,
    ),
)]
pub async fn list(State(api): State<SharedApi>, request: Get<Reports>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

/// Returns one message with its timeline and an explanation of its charge.
#[utoipa::path(
    get,
    path = "/sms/reports/{key}/{transid}",
    operation_id = "report",
    summary = "Get one message with its timeline and its charge",
    params(
        ("key" = schemas::ApiKey, Path),
        ("transid" = schemas::Transid, Path),
        ("format" = Option<schemas::Format>, Query),
    ),
    responses(
        (status = 200, description = "Done.", headers(("Content-Disposition")), content(
            (OneAnswer = "application/json", example = json!({
                "code": 200, "message": "SUCCESS", "text": "SUCCESS", "report": detailed_example()
            })),
            (schemas::Table = "text/csv"),
        )),
        OneRefusals,
    ),
)]
pub async fn one(State(api): State<SharedApi>, request: Get<Reports>) -> Answer {
    request.address.answer(&api, find(&api, &request).await)
}

/// Returns an example of a message for the OpenAPI document.
fn example() -> serde_json::Value {
    json!({
        "transid": "m_0000000000000", "requestid": "login-81", "batchid": null, "number": "57000001",
        "kind": "local", "sender": null, "message": "Your code is 4711", "status": "delivered",
        "pages": 1, "segments": 1, "cost": 0.05, "released": 0, "currency": "USD", "test": false,
        "error": null, "created_at": "2026-11-21T08:30:00.000Z", "send_at": null,
        "submitted_at": "2026-11-21T08:30:00.081Z", "final_at": "2026-11-21T08:30:01.440Z"
    })
}

/// Returns the same message with its timeline and charge.
fn detailed_example() -> serde_json::Value {
    let mut message = example();
    message["timeline"] = json!([
        {"status": "queued", "at": "2026-11-21T08:30:00.000Z", "detail": null},
        {"status": "submitted", "at": "2026-11-21T08:30:00.081Z", "detail": "taken by sandbox"},
        {"status": "delivered", "at": "2026-11-21T08:30:01.440Z", "detail": null}
    ]);
    message["charge"] = json!({
        "rule": "local_8_digits", "pages": 1, "unit_price": 0.05, "charged": 0.05, "released": 0,
        "why": "1 page to a local number (8 digits) at 0.05 each. The charge stands, because a carrier accepted the message."
    });
    message
}

async fn find(api: &Api, request: &Get<Reports>) -> Result<Answer, Failure> {
    let access = &request.access;
    match &request.parameters {
        Reports::List { filter, as_csv } => find_list(api, access, filter, *as_csv).await,
        Reports::One { transid, as_csv } => find_one(api, access, *transid, *as_csv).await,
    }
}

async fn find_list(
    api: &Api,
    access: &KeyAccess,
    filter: &MessageFilter,
    as_csv: bool,
) -> Result<Answer, Failure> {
    let page = api.service.messages().list(access, filter).await?;
    if as_csv {
        return csv_report::response(&page.items, &api.currency, page.next.as_deref());
    }
    let records = page.items.into_iter();
    Ok(answer::json(&ListAnswer {
        head: Head::success(),
        reports: records.map(|record| Report::new(record, &api.currency)).collect(),
        next: page.next,
    }))
}

async fn find_one(
    api: &Api,
    access: &KeyAccess,
    transid: Transid,
    as_csv: bool,
) -> Result<Answer, Failure> {
    let detail = api.service.messages().message(access, transid).await?.ok_or_else(not_found)?;
    if as_csv {
        return csv_report::response(&[detail.record], &api.currency, None);
    }
    let report = Report::new(detail.record, &api.currency);
    Ok(answer::json(&OneAnswer {
        head: Head::success(),
        report: Detailed {
            report,
            timeline: detail.timeline.into_iter().map(Step::from).collect(),
            charge: detail.charge.into(),
        },
    }))
}

fn not_found() -> Failure {
    Failure::with_detail(Reason::NotFound, "There is no such message.")
}

fn filter(parameters: &Parameters) -> Result<MessageFilter, Failure> {
    let number = parameters.number("number")?;
    let requestid = shared_parameters::requestid(parameters)?;
    let statuses = MessageStatus::ALL.map(MessageStatus::as_str).join(", ");
    let statuses = format!("one of {statuses}");
    let filter = MessageFilter {
        transid: read(parameters, "transid", TRANSID, Transid::parse)?,
        requestid: requestid.map(|id| id.as_str().to_owned()),
        batchid: read(parameters, "batchid", BATCHID, BatchId::parse)?,
        number,
        status: read(parameters, "status", &statuses, MessageStatus::parse)?,
        from: time(parameters, "from")?,
        to: time(parameters, "to")?,
        limit: listing::limit(parameters)?,
        cursor: listing::cursor(parameters)?,
        key: None,
    };
    parameters.refuse_unknown()?;
    Ok(filter)
}
