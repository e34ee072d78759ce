//! Lists as CSV files.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use domain::Reason;
use domain::records::MessageRecord;

use super::answer::{Answer, Failure, guarded};
use super::listing::NEXT_CURSOR;
use crate::report_csv;

/// Returns messages as a CSV response.
pub fn response(
    messages: &[MessageRecord],
    currency: &str,
    next: Option<&str>,
) -> Result<Answer, Failure> {
    let rows = messages.iter().map(|message| report_csv::row(message, currency));
    file("reports", report_csv::names(), rows, next)
}

/// Returns rows as a CSV response. `next` is the cursor of the next page.
pub fn file<const N: usize>(
    name: &str,
    columns: [&'static str; N],
    rows: impl Iterator<Item = [String; N]>,
    next: Option<&str>,
) -> Result<Answer, Failure> {
    let lines = report_csv::file(columns, rows).map_err(|error| {
        tracing::error!(%error, "a CSV file can't be written");
        Failure::of(Reason::Internal)
    })?;
    let content_type = HeaderValue::from_static("text/csv; charset=utf-8");
    let mut response = guarded(lines, content_type);
    let headers = response.headers_mut();
    let disposition = format!("attachment; filename=\"{name}.csv\"");
    if let Ok(disposition) = HeaderValue::from_str(&disposition) {
        headers.insert(CONTENT_DISPOSITION, disposition);
    }
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(next).ok()) {
        headers.insert(NEXT_CURSOR, next);
    }
    Ok(response)
}
