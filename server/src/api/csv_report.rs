//! Reports as CSV (RFC 4180), for spreadsheets.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use domain::Reason;

use super::answer::{Answer, Failure, guarded};
use super::record::Report;
use crate::csv_cell::safe;
use crate::json::Moment;

const HEADER: [&str; 16] = [
    "transid",
    "requestid",
    "batchid",
    "number",
    "kind",
    "sender",
    "message",
    "status",
    "pages",
    "segments",
    "cost",
    "currency",
    "error",
    "created_at",
    "submitted_at",
    "final_at",
];

/// The whole answer. Absent values are empty cells.
pub fn response(reports: &[Report<'_>]) -> Result<Answer, Failure> {
    let text = write(reports).map_err(|error| {
        tracing::error!(%error, "a CSV report can't be written");
        Failure::of(Reason::Internal)
    })?;
    let content_type = HeaderValue::from_static("text/csv; charset=utf-8");
    let mut response = guarded(text, content_type);
    let disposition = HeaderValue::from_static("attachment; filename=\"reports.csv\"");
    response
        .headers_mut()
        .insert(CONTENT_DISPOSITION, disposition);
    Ok(response)
}

fn write(reports: &[Report<'_>]) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let mut writer = csv::WriterBuilder::new()
        .terminator(csv::Terminator::CRLF)
        .from_writer(Vec::new());
    writer.write_record(HEADER)?;
    for report in reports {
        writer.write_record(cells(report))?;
    }
    Ok(writer.into_inner()?)
}

fn cells(report: &Report<'_>) -> [String; 16] {
    let text = |text: &Option<String>| text.as_deref().map(safe).unwrap_or_default();
    let moment = |at: &Option<Moment>| at.map(|at| at.0.to_string()).unwrap_or_default();
    [
        report.transid.clone(),
        text(&report.requestid),
        text(&report.batchid),
        report.number.clone(),
        report.kind.to_owned(),
        text(&report.sender),
        safe(&report.message),
        report.status.to_owned(),
        report.pages.to_string(),
        report.segments.to_string(),
        report.cost.0.to_string(),
        report.currency.to_owned(),
        text(&report.error),
        report.created_at.0.to_string(),
        moment(&report.submitted_at),
        moment(&report.final_at),
    ]
}
