//! `/sms/reports`: what became of messages.

use axum::http::HeaderValue;
use domain::records::MessageRecord;
use domain::{BatchId, MessageStatus, Number, Reason, RequestId, Timestamp, Transid};
use serde::Serialize;
use service::{Error, MessageFilter, Refusal};

use super::Api;
use super::answer::{Answer, Failure, Head, json};
use super::credentials::KeyText;
use super::csv_report;
use super::listing::{self, invalid, read, refuse_unknown};
use super::parameters::Parameters;
use super::rate;
use super::record::{Charge, Report, Step};

/// The parameters of a list. Others are refused: a misspelt filter would show too much.
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
/// The parameters of one message.
const KNOWN_OF_ONE: [&str; 1] = ["format"];
/// Bytes of a date, such as 2026-11-21.
const DATE_BYTES: usize = 10;
/// Where a CSV report, which has no other place for it, carries the cursor.
const NEXT_CURSOR: &str = "x-next-cursor";

#[derive(Serialize)]
struct ListAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    reports: Vec<Report<'a>>,
    next: Option<String>,
}

#[derive(Serialize)]
struct OneAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    report: Detailed<'a>,
}

#[derive(Serialize)]
struct Detailed<'a> {
    #[serde(flatten)]
    report: Report<'a>,
    timeline: Vec<Step>,
    charge: Charge,
}

/// Messages that match, newest first.
pub async fn list(api: &Api, key: &KeyText, query: Option<&str>) -> Result<Answer, Failure> {
    let access = api.service.authorize(key.as_deref()).await?;
    let parameters = Parameters::of_query(&KNOWN, query);
    let asked = filter(&parameters).and_then(|filter| Ok((filter, wants_csv(&parameters)?)));
    let (filter, as_csv) = rate::counted(api, &access, asked).await?;
    let page = match api.service.messages(&access, &filter).await {
        Ok(page) => page,
        Err(Error::Refused(Refusal::InvalidCursor)) => return Err(invalid("cursor")),
        Err(error) => return Err(error.into()),
    };
    if as_csv {
        let mut response = csv_report::response(&page.items, &api.currency)?;
        if let Some(next) = page.next.and_then(|next| HeaderValue::from_str(&next).ok()) {
            response.headers_mut().insert(NEXT_CURSOR, next);
        }
        return Ok(response);
    }
    Ok(json(&ListAnswer {
        head: Head::success(),
        reports: reports(api, page.items),
        next: page.next,
    }))
}

/// One message with its timeline and its explained charge.
pub async fn one(
    api: &Api,
    key: &KeyText,
    transid: &str,
    query: Option<&str>,
) -> Result<Answer, Failure> {
    let access = api.service.authorize(key.as_deref()).await?;
    let (transid, as_csv) = rate::counted(api, &access, one_asked_for(transid, query)).await?;
    let detail = api
        .service
        .message(&access, transid)
        .await?
        .ok_or_else(not_found)?;
    if as_csv {
        return csv_report::response(&[detail.record], &api.currency);
    }
    let report = Report::new(detail.record, &api.currency);
    Ok(json(&OneAnswer {
        head: Head::success(),
        report: Detailed {
            report,
            timeline: detail.timeline.into_iter().map(Step::from).collect(),
            charge: detail.charge.into(),
        },
    }))
}

fn one_asked_for(transid: &str, query: Option<&str>) -> Result<(Transid, bool), Failure> {
    let transid = Transid::parse(transid).ok_or_else(not_found)?;
    let parameters = Parameters::of_query(&KNOWN_OF_ONE, query);
    refuse_unknown(&parameters)?;
    Ok((transid, wants_csv(&parameters)?))
}

fn not_found() -> Failure {
    Failure::with_detail(Reason::NotFound, "There is no such message.")
}

fn reports(api: &Api, records: Vec<MessageRecord>) -> Vec<Report<'_>> {
    records
        .into_iter()
        .map(|record| Report::new(record, &api.currency))
        .collect()
}

fn wants_csv(parameters: &Parameters) -> Result<bool, Failure> {
    match parameters.optional("format", Reason::InvalidParameter)? {
        None | Some("json") => Ok(false),
        Some("csv") => Ok(true),
        Some(_) => Err(invalid("format")),
    }
}

fn filter(parameters: &Parameters) -> Result<MessageFilter, Failure> {
    let number = parameters
        .optional("number", Reason::InvalidNumber)?
        .map(Number::parse)
        .transpose()
        .map_err(|_| Reason::InvalidNumber)?;
    let requestid = parameters
        .optional("requestid", Reason::InvalidRequestid)?
        .map(RequestId::parse)
        .transpose()
        .map_err(|_| Reason::InvalidRequestid)?;
    let filter = MessageFilter {
        transid: read(parameters, "transid", Transid::parse)?,
        requestid: requestid.map(|id| id.as_str().to_owned()),
        batchid: read(parameters, "batchid", BatchId::parse)?,
        number: number.map(|number| number.digits().to_owned()),
        status: read(parameters, "status", MessageStatus::parse)?,
        from: moment(parameters, "from")?,
        to: moment(parameters, "to")?,
        limit: listing::limit(parameters)?,
        cursor: listing::cursor(parameters)?,
    };
    refuse_unknown(parameters)?;
    Ok(filter)
}

/// A moment in RFC 3339, or a date, which begins at midnight UTC.
fn moment(parameters: &Parameters, name: &str) -> Result<Option<Timestamp>, Failure> {
    let Some(text) = parameters.optional(name, Reason::InvalidParameter)? else {
        return Ok(None);
    };
    let found = if text.len() == DATE_BYTES {
        Timestamp::parse(&format!("{text}T00:00:00Z"))
    } else {
        // The `+` of an offset that wasn't escaped came as a space.
        Timestamp::parse(&text.replace(' ', "+"))
    };
    found.map(Some).ok_or_else(|| {
        let detail = format!(
            "{name} must be a moment in RFC 3339, such as 2026-11-21T08:30:00Z, or a date in UTC, such as 2026-11-21."
        );
        Failure::with_detail(Reason::InvalidParameter, detail)
    })
}
