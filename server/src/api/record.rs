//! Messages and batches, as answers and events show them.

use domain::InboundRecord;
use domain::opt_out::Command;
use domain::records::{BatchRecord, ChargeRecord, MessageRecord, StatusCounts, TimelineEntry};
use serde::Serialize;
use utoipa::ToSchema;

use crate::json::{Amount, DateTime, shown};
use crate::openapi::schemas;

/// A message in a report.
#[derive(Serialize, ToSchema)]
pub struct Report<'a> {
    #[schema(value_type = schemas::Transid)]
    pub transid: String,
    #[schema(value_type = Option<schemas::RequestId>, required)]
    pub requestid: Option<String>,
    #[schema(value_type = Option<schemas::BatchId>, required)]
    pub batchid: Option<String>,
    #[schema(value_type = schemas::Recipient)]
    pub number: String,
    #[schema(value_type = schemas::MessageKind)]
    pub kind: &'static str,
    /// Null if the default sender was used.
    #[schema(required)]
    pub sender: Option<String>,
    /// Events leave it out. It is empty once it was erased.
    #[schema(value_type = String, required)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[schema(value_type = schemas::Status)]
    pub status: &'static str,
    #[schema(value_type = schemas::Positive)]
    pub pages: i64,
    #[schema(value_type = schemas::Positive)]
    pub segments: i64,
    /// The price of the message.
    pub cost: Amount,
    /// The part of the cost that was released: all of it if no carrier accepted the message.
    pub released: Amount,
    #[schema(value_type = schemas::Currency)]
    pub currency: &'a str,
    /// True if the message was sent with the test key.
    pub test: bool,
    #[schema(value_type = Option<schemas::DeliveryError>, required)]
    pub error: Option<String>,
    pub created_at: DateTime,
    /// When it was scheduled for. Null if it was due at once.
    #[schema(required)]
    pub send_at: Option<DateTime>,
    #[schema(required)]
    pub submitted_at: Option<DateTime>,
    #[schema(required)]
    pub final_at: Option<DateTime>,
}

impl<'a> Report<'a> {
    /// Returns the report of an event, which leaves out the text.
    pub fn without_text(record: MessageRecord, currency: &'a str) -> Self {
        Self { message: None, ..Self::new(record, currency) }
    }

    pub fn new(record: MessageRecord, currency: &'a str) -> Self {
        let kind = record.shown_kind();
        Self {
            transid: record.transid.to_string(),
            requestid: record.requestid,
            batchid: record.batchid.map(|id| id.to_string()),
            number: record.number,
            kind,
            sender: record.sender,
            message: Some(record.message),
            status: record.status.as_str(),
            pages: record.pages,
            segments: record.segments,
            cost: Amount(record.cost),
            released: Amount(record.released),
            currency,
            test: record.test,
            error: record.error,
            created_at: DateTime(record.created_at),
            send_at: record.send_at.map(DateTime),
            submitted_at: record.submitted_at.map(DateTime),
            final_at: record.final_at.map(DateTime),
        }
    }
}

shown! {
    /// A step in a message's timeline.
    #[derive(ToSchema)]
    pub struct Step from entry: TimelineEntry {
        #[schema(value_type = schemas::Status)]
        pub status: &'static str = entry.status.as_str(),
        pub at: DateTime = DateTime(entry.at),
        #[schema(required)]
        pub detail: Option<String> = entry.detail,
    }
}

shown! {
    /// How the price of a message was calculated, and how much of it was released.
    #[derive(ToSchema)]
    pub struct Charge from charge: ChargeRecord {
        rule: String = charge.rule,
        #[schema(value_type = schemas::Positive)]
        pages: i64 = charge.pages,
        unit_price: Amount = Amount(charge.unit_price),
        charged: Amount = Amount(charge.charged),
        released: Amount = Amount(charge.released),
        pub why: String = charge.why,
    }
}

/// A batch and the statuses of its messages.
#[derive(Serialize, ToSchema)]
pub struct Batch<'a> {
    #[schema(value_type = schemas::BatchId)]
    batchid: String,
    #[schema(value_type = Option<schemas::RequestId>, required)]
    requestid: Option<String>,
    #[schema(value_type = schemas::Positive)]
    rows: i64,
    #[schema(value_type = schemas::Positive)]
    pages: i64,
    cost: Amount,
    #[schema(value_type = schemas::Currency)]
    currency: &'a str,
    #[schema(value_type = schemas::BatchStatus)]
    status: &'static str,
    #[schema(value_type = schemas::Counts)]
    counts: StatusCounts,
    created_at: DateTime,
    /// When it was scheduled for. Null if it was due at once.
    #[schema(required)]
    send_at: Option<DateTime>,
    #[schema(required)]
    done_at: Option<DateTime>,
}

impl<'a> Batch<'a> {
    pub fn new(record: BatchRecord, currency: &'a str) -> Self {
        Self {
            batchid: record.batchid.to_string(),
            requestid: record.requestid,
            rows: record.rows,
            pages: record.pages,
            cost: Amount(record.cost),
            currency,
            status: record.status.as_str(),
            counts: record.counts,
            created_at: DateTime(record.created_at),
            send_at: record.send_at.map(DateTime),
            done_at: record.done_at.map(DateTime),
        }
    }
}

shown! {
    /// A message from a handset.
    #[derive(ToSchema)]
    #[schema(as = InboundMessage)]
    pub struct Inbound from record: InboundRecord {
        #[schema(value_type = schemas::InboundId)]
        pub inboundid: String = record.inboundid.to_string(),
        /// The handset's number, with country code. It can be a name if another service sent the
        /// message.
        pub number: String = record.number,
        /// Your number, with country code.
        pub recipient: String = record.recipient,
        /// The text. […] stands for parts that didn't arrive. A binary message is in hexadecimal.
        /// The text is empty once it was erased.
        pub message: String = record.message,
        #[schema(value_type = schemas::Positive)]
        pub segments: i64 = record.segments,
        /// The keyword by which a shared number assigned the message to the application.
        #[schema(required)]
        pub keyword: Option<String> = record.keyword,
        /// stop, start or help if the message is such a command, otherwise null.
        #[schema(required)]
        pub optout: Option<&'static str> = record.optout.map(Command::as_str),
        /// True if it was simulated with the test key.
        pub test: bool = record.test,
        pub received_at: DateTime = DateTime(record.received_at),
    }
}
