//! CSV files (RFC 4180) that are as long as a list, and so are never in memory as a whole.

use std::iter;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use domain::records::Paged;
use futures_util::stream::try_unfold;

use super::signed_in::Refused;
use crate::report_csv;

/// The number of lines per read.
pub const LINES_AT_ONCE: i64 = 1000;

/// An error in the middle of a file.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Returns a CSV file with a line for each record. `read` returns the records at a cursor, and the
/// first call gets `cursor`. The first records are read before the response begins, because an
/// error after that can't change the status.
pub async fn csv_file<T, F, const N: usize>(
    name: &str,
    columns: [&str; N],
    cursor: Option<String>,
    read: impl Fn(Option<String>) -> F + Send + Sync + 'static,
    row: impl Fn(T) -> [String; N] + Send + Sync + 'static,
) -> Result<Response, Refused>
where
    T: Send + 'static,
    F: Future<Output = service::Result<Paged<T>>> + Send + 'static,
{
    let first = read(cursor).await?;
    let header = report_csv::file(columns, iter::empty())?;
    let rest = (header, Some(first), read, row);
    let chunks = try_unfold(rest, |(mut chunk, page, read, row)| async move {
        let Some(page) = page else {
            return Ok(None);
        };
        let written = async {
            chunk.extend(report_csv::write(page.items.into_iter().map(&row))?);
            let next = match page.next {
                Some(cursor) => Some(read(Some(cursor)).await?),
                None => None,
            };
            Ok::<_, Fault>((chunk, next))
        };
        let (chunk, next) =
            written.await.inspect_err(|error| tracing::error!(%error, "a CSV file ended early"))?;
        Ok::<_, Fault>(Some((chunk, (Vec::new(), next, read, row))))
    });
    Ok(attachment(name, Body::from_stream(chunks)))
}

/// Returns a response that a browser saves as a CSV file.
pub fn attachment(name: &str, body: Body) -> Response {
    let disposition = format!("attachment; filename=\"{name}.csv\"");
    let headers =
        [(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, disposition)];
    (headers, body).into_response()
}
