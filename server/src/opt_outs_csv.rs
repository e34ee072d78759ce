//! Opt-outs as CSV. The API and the portal write the same columns.

use domain::OptOutRecord;

/// The names of the columns, in the order of the fields in JSON.
pub const NAMES: [&str; 3] = ["number", "source", "created_at"];

/// Returns an opt-out's cells.
pub fn row(record: OptOutRecord) -> [String; NAMES.len()] {
    [
        record.number.unwrap_or_default(),
        record.source.as_str().to_owned(),
        record.created_at.to_string(),
    ]
}
