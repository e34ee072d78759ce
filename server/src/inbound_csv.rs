//! Messages from handsets as CSV. The API and the portal write the same columns.

use domain::InboundRecord;
use domain::opt_out::Command;

use crate::report_csv::safe;

/// The names of the columns, in the order of the fields in JSON.
pub const NAMES: [&str; 9] = [
    "inboundid",
    "number",
    "recipient",
    "message",
    "segments",
    "keyword",
    "optout",
    "test",
    "received_at",
];

/// Returns a message's cells.
pub fn row(message: &InboundRecord) -> [String; NAMES.len()] {
    [
        message.inboundid.to_string(),
        message.number.clone(),
        message.recipient.clone(),
        message.message.clone(),
        message.segments.to_string(),
        message.keyword.clone().unwrap_or_default(),
        message.optout.map(Command::as_str).unwrap_or_default().to_owned(),
        message.test.to_string(),
        message.received_at.to_string(),
    ]
    .map(safe)
}
