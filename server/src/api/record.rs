//! A message as reports show it.

use domain::records::{ChargeRecord, MessageRecord, TimelineEntry};
use serde::Serialize;

use crate::json::{Amount, Moment};

/// One row of a report.
#[derive(Serialize)]
pub struct Report<'a> {
    pub transid: String,
    pub requestid: Option<String>,
    pub batchid: Option<String>,
    pub number: String,
    pub kind: &'static str,
    pub sender: Option<String>,
    pub message: String,
    pub status: &'static str,
    pub pages: i64,
    pub segments: i64,
    pub cost: Amount,
    pub released: Amount,
    pub currency: &'a str,
    pub test: bool,
    pub error: Option<String>,
    pub created_at: Moment,
    pub submitted_at: Option<Moment>,
    pub final_at: Option<Moment>,
}

impl<'a> Report<'a> {
    pub fn new(record: MessageRecord, currency: &'a str) -> Self {
        Self {
            transid: record.transid.to_string(),
            requestid: record.requestid,
            batchid: record.batchid.map(|id| id.to_string()),
            number: record.number,
            kind: record.kind.as_str(),
            sender: record.sender,
            message: record.message,
            status: record.status.as_str(),
            pages: record.pages,
            segments: record.segments,
            cost: Amount(record.cost),
            released: Amount(record.released),
            currency,
            test: record.test,
            error: record.error,
            created_at: Moment(record.created_at),
            submitted_at: record.submitted_at.map(Moment),
            final_at: record.final_at.map(Moment),
        }
    }
}

/// A step in a message's life.
#[derive(Serialize)]
pub struct Step {
    status: &'static str,
    at: Moment,
    detail: Option<String>,
}

impl From<TimelineEntry> for Step {
    fn from(entry: TimelineEntry) -> Self {
        Self {
            status: entry.status.as_str(),
            at: Moment(entry.at),
            detail: entry.detail,
        }
    }
}

/// How a message's price came about and what became of it.
#[derive(Serialize)]
pub struct Charge {
    rule: String,
    pages: i64,
    unit_price: Amount,
    charged: Amount,
    released: Amount,
    why: String,
}

impl From<ChargeRecord> for Charge {
    fn from(charge: ChargeRecord) -> Self {
        Self {
            rule: charge.rule,
            pages: charge.pages,
            unit_price: Amount(charge.unit_price),
            charged: Amount(charge.charged),
            released: Amount(charge.released),
            why: charge.why,
        }
    }
}
