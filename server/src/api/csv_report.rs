//! Reports as a CSV file.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use domain::Reason;
use domain::records::MessageRecord;

use super::answer::{Answer, Failure, guarded};
use crate::report_csv;

/// Returns the messages as a CSV response.
pub fn response(messages: &[MessageRecord], currency: &str) -> Result<Answer, Failure> {
    let rows = messages.iter().map(|message| report_csv::row(message, currency));
    let lines = report_csv::file(report_csv::names(), rows).map_err(|error| {
        tracing::error!(%error, "a CSV report can't be written");
        Failure::of(Reason::Internal)
    })?;
    let content_type = HeaderValue::from_static("text/csv; charset=utf-8");
    let mut response = guarded(lines, content_type);
    let disposition = HeaderValue::from_static("attachment; filename=\"reports.csv\"");
    response.headers_mut().insert(CONTENT_DISPOSITION, disposition);
    Ok(response)
}
