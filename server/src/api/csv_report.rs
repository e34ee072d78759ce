//! Lists as CSV files.

use axum::http::HeaderValue;
use axum::http::header::CONTENT_DISPOSITION;
use domain::Reason;

use super::answer::{Answer, Failure, guarded};
use super::listing::NEXT_CURSOR;
use super::parameters::Parameters;
use crate::report_csv;

/// Returns true if the caller asks for a CSV file.
pub fn is_wanted(parameters: &Parameters) -> Result<bool, Failure> {
    match parameters.optional("format", Reason::InvalidParameter)? {
        None | Some("json") => Ok(false),
        Some("csv") => Ok(true),
        Some(_) => Err(Failure::invalid("format", "json or csv")),
    }
}

/// Returns rows as a CSV response, with the cursor of the next rows.
pub fn response<const N: usize>(
    disposition: &'static str,
    names: [&str; N],
    rows: impl Iterator<Item = [String; N]>,
    next: Option<String>,
) -> Result<Answer, Failure> {
    let lines = report_csv::file(names, rows).map_err(|error| {
        tracing::error!(%error, "a CSV report can't be written");
        Failure::of(Reason::Internal)
    })?;
    let content_type = HeaderValue::from_static("text/csv; charset=utf-8");
    let mut response = guarded(lines, content_type);
    let headers = response.headers_mut();
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static(disposition));
    if let Some(next) = next.and_then(|next| HeaderValue::from_str(&next).ok()) {
        headers.insert(NEXT_CURSOR, next);
    }
    Ok(response)
}
