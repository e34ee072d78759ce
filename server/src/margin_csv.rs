//! Margins as CSV (RFC 4180), for spreadsheets.

use domain::Timestamp;
use domain::records::MarginLine;

/// The names of the columns.
const NAMES: [&str; 12] = [
    "day",
    "application",
    "prefix",
    "messages",
    "pages",
    "segments",
    "segments_per_page",
    "segments_without_cost",
    "money_in",
    "money_out",
    "margin",
    "currency",
];

/// A line with the names, and a line for each day, application and prefix.
///
/// # Errors
/// When a line can't be written.
pub fn file(lines: &[MarginLine], currency: &str) -> Result<Vec<u8>, csv::Error> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    writer.write_record(NAMES)?;
    for line in lines {
        let figures = &line.figures;
        writer.write_record([
            Timestamp::of_day(line.day).to_date(),
            line.reference.to_string(),
            line.rule.clone(),
            figures.messages.to_string(),
            figures.pages.to_string(),
            figures.segments.to_string(),
            figures.ratio(),
            figures.unpriced.to_string(),
            figures.charged.to_string(),
            figures.cost.to_string(),
            figures.margin().to_string(),
            currency.to_owned(),
        ])?;
    }
    writer
        .into_inner()
        .map_err(|error| error.into_error().into())
}
