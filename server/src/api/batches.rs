//! `/sms/batches`: what became of uploads.

use domain::records::{BatchRecord, StatusCounts};
use domain::{BatchId, Reason, RequestId};
use serde::Serialize;
use service::{BatchFilter, Error, Refusal};

use super::Api;
use super::answer::{Answer, Failure, Head, json};
use super::credentials::KeyText;
use super::listing;
use super::parameters::Parameters;
use super::rate;
use crate::json::{Amount, Moment};

/// The parameters of a list. Others are refused: a misspelt filter would show too much.
const KNOWN: [&str; 3] = ["requestid", "limit", "cursor"];

#[derive(Serialize)]
struct ListAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    batches: Vec<Batch<'a>>,
    next: Option<String>,
}

#[derive(Serialize)]
struct OneAnswer<'a> {
    #[serde(flatten)]
    head: Head,
    batch: Batch<'a>,
}

#[derive(Serialize)]
struct Batch<'a> {
    batchid: String,
    requestid: Option<String>,
    rows: i64,
    pages: i64,
    cost: Amount,
    currency: &'a str,
    status: &'static str,
    counts: StatusCounts,
    created_at: Moment,
    done_at: Option<Moment>,
}

impl<'a> Batch<'a> {
    fn new(record: BatchRecord, currency: &'a str) -> Self {
        Self {
            batchid: record.batchid.to_string(),
            requestid: record.requestid,
            rows: record.rows,
            pages: record.pages,
            cost: Amount(record.cost),
            currency,
            status: record.status.as_str(),
            counts: record.counts,
            created_at: Moment(record.created_at),
            done_at: record.done_at.map(Moment),
        }
    }
}

/// Uploads that match, newest first.
pub async fn list(api: &Api, key: &KeyText, query: Option<&str>) -> Result<Answer, Failure> {
    let access = api.service.authorize(key.as_deref()).await?;
    let asked = filter(&Parameters::of_query(&KNOWN, query));
    let filter = rate::counted(api, &access, asked).await?;
    let page = match api.service.batches(&access, &filter).await {
        Ok(page) => page,
        Err(Error::Refused(Refusal::InvalidCursor)) => return Err(listing::invalid("cursor")),
        Err(error) => return Err(error.into()),
    };
    let batches = page.items.into_iter();
    Ok(json(&ListAnswer {
        head: Head::success(),
        batches: batches
            .map(|record| Batch::new(record, &api.currency))
            .collect(),
        next: page.next,
    }))
}

/// One upload.
pub async fn one(
    api: &Api,
    key: &KeyText,
    batchid: &str,
    query: Option<&str>,
) -> Result<Answer, Failure> {
    let access = api.service.authorize(key.as_deref()).await?;
    let batchid = rate::counted(api, &access, one_asked_for(batchid, query)).await?;
    let record = api
        .service
        .batch(&access, batchid)
        .await?
        .ok_or_else(not_found)?;
    Ok(json(&OneAnswer {
        head: Head::success(),
        batch: Batch::new(record, &api.currency),
    }))
}

fn one_asked_for(batchid: &str, query: Option<&str>) -> Result<BatchId, Failure> {
    let batchid = BatchId::parse(batchid).ok_or_else(not_found)?;
    listing::refuse_unknown(&Parameters::of_query(&[], query))?;
    Ok(batchid)
}

fn not_found() -> Failure {
    Failure::with_detail(Reason::NotFound, "There is no such batch.")
}

fn filter(parameters: &Parameters) -> Result<BatchFilter, Failure> {
    let requestid = parameters
        .optional("requestid", Reason::InvalidRequestid)?
        .map(RequestId::parse)
        .transpose()
        .map_err(|_| Reason::InvalidRequestid)?;
    let filter = BatchFilter {
        requestid: requestid.map(|id| id.as_str().to_owned()),
        limit: listing::limit(parameters)?,
        cursor: listing::cursor(parameters)?,
    };
    listing::refuse_unknown(parameters)?;
    Ok(filter)
}
