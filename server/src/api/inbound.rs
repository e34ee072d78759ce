//! `/sms/inbound`: messages from handsets.

use axum::extract::State;
use domain::Reason;
use serde::Serialize;
use service::{InboundFilter, KeyAccess};
use utoipa::ToSchema;

use super::answer::{self, Answer, Failure, Head};
use super::csv_report;
use super::get::{Get, GetParameters};
use super::listing::{self, time};
use super::parameters::Parameters;
use super::record::Inbound;
use super::{Api, SharedApi};
use crate::inbound_csv;
use crate::openapi::refusals::InboundRefusals;
use crate::openapi::schemas;

/// The parameters of the list.
const KNOWN: [&str; 7] = ["number", "recipient", "from", "to", "limit", "cursor", "format"];

#[derive(Serialize, ToSchema)]
#[schema(as = InboundMessages)]
struct ListAnswer {
    #[serde(flatten)]
    head: Head,
    inbound: Vec<Inbound>,
    /// Pass it as cursor to get the next messages. Null on the last page.
    #[schema(value_type = Option<schemas::InboundId>, required)]
    next: Option<String>,
}

/// A query for a list of messages, as JSON or as a CSV file.
pub struct List {
    filter: InboundFilter,
    as_csv: bool,
}

impl GetParameters for List {
    fn read(id: Option<&str>, query: Option<&str>) -> Result<Self, Failure> {
        if id.is_some() {
            return Err(Failure::of(Reason::NotFound));
        }
        let parameters = Parameters::of_query(&KNOWN, query);
        let filter = InboundFilter {
            number: parameters.number("number")?,
            recipient: parameters.number("recipient")?,
            text: String::new(),
            from: time(&parameters, "from")?,
            to: time(&parameters, "to")?,
            key: None,
            limit: listing::limit(&parameters)?,
            cursor: listing::cursor(&parameters)?,
        };
        let as_csv = listing::wants_csv(&parameters)?;
        parameters.refuse_unknown()?;
        Ok(Self { filter, as_csv })
    }
}

/// Lists messages from handsets, newest first.
#[utoipa::path(
    get,
    path = "/sms/inbound/{key}",
    operation_id = "inbound",
    summary = "List messages from handsets, newest first",
    description = "Lists the messages that handsets sent to the application's numbers.",
    params(
        ("key" = schemas::ApiKey, Path),
        ("number" = Option<schemas::Number>, Query,
            description = "Messages from this handset. A local number and the same number with the \
                country code are equal."),
        ("recipient" = Option<schemas::Number>, Query, description = "Messages to this number."),
        ("from" = Option<schemas::Since>, Query, description = "Received at this time or later."),
        ("to" = Option<schemas::Since>, Query, description = "Received before this time."),
        ("limit" = Option<schemas::Limit>, Query),
        ("cursor" = Option<schemas::InboundId>, Query,
            description = "The value of next in the previous response."),
        ("format" = Option<schemas::Format>, Query),
    ),
    responses(
        (status = 200, description = "Done.",
         headers(("Content-Disposition"), ("X-Next-Cursor")), content(
            (ListAnswer = "application/json", example = json!({
                "code": 200, "message": "SUCCESS", "text": "SUCCESS",
                "inbound": [{
                    "inboundid": "i_0000000000000", "number": "26657000001",
                    "recipient": "26650000009", "message": "Yes, please", "segments": 1,
                    "keyword": null, "optout": null, "test": false,
                    "received_at": "2026-11-21T08:30:00.000Z"
                }],
                "next": null
            })),
            (schemas::Table = "text/csv"),
        )),
        InboundRefusals,
    ),
)]
pub async fn list(State(api): State<SharedApi>, request: Get<List>) -> Answer {
    request.address.answer(&api, find(&api, &request.access, &request.parameters).await)
}

async fn find(api: &Api, access: &KeyAccess, list: &List) -> Result<Answer, Failure> {
    let page = api.service.messages().inbound(access, &list.filter).await?;
    if list.as_csv {
        let rows = page.items.iter().map(inbound_csv::row);
        return csv_report::file("inbound", inbound_csv::NAMES, rows, page.next.as_deref());
    }
    Ok(answer::json(&ListAnswer {
        head: Head::success(),
        inbound: page.items.into_iter().map(Inbound::from).collect(),
        next: page.next,
    }))
}
