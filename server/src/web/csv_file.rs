//! CSV files (RFC 4180) of whole lists. They can be long, so they are never completely in memory.

use std::iter;
use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use domain::records::Paged;
use domain::{Timestamp, Zone};
use futures_util::stream::try_unfold;

use super::signed_in::{Refused, SignedIn};
use crate::report_csv;

/// The number of lines per read.
pub const LINES_AT_ONCE: i64 = 1000;

/// The length of a date such as 2026-11-21.
const DAY_CHARS: usize = 10;

/// An error in the middle of a file.
type Fault = Box<dyn std::error::Error + Send + Sync>;

/// The columns with times, and those with amounts. They look different in spreadsheets.
const TIMES: [&str; 5] = ["at", "created_at", "submitted_at", "final_at", "received_at"];
const AMOUNTS: [&str; 7] =
    ["cost", "released", "amount", "balance", "money_in", "money_out", "margin"];
/// Spreadsheets take a file with this mark for UTF-8.
const BYTE_ORDER_MARK: &str = "\u{feff}";

pub struct CsvFile {
    name: String,
    /// The zone of the times, if the file is for spreadsheets. `None` for the form that the API
    /// uses, too.
    zone: Option<Zone>,
}

impl CsvFile {
    /// Returns the file that a request asks for. The file's name contains the account, the kind of
    /// file, and the days in the address, or today. `zone` is the zone of times in spreadsheets.
    pub fn of(signed_in: &SignedIn, kind: &str, zone: Zone, now: Timestamp) -> Self {
        let days = ["month", "day", "from", "to"].into_iter();
        let days = days.filter_map(|name| signed_in.parameter(name)).map(|day| {
            let is_plain = |c: &char| c.is_ascii_digit() || *c == '-';
            day.chars().filter(is_plain).take(DAY_CHARS).collect::<String>()
        });
        let days: Vec<_> = days.filter(|day| !day.is_empty()).collect();
        let days = if days.is_empty() { now.to_date() } else { days.join("_") };
        let account = signed_in.account.email.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let is_for_spreadsheets = signed_in.parameter("for").as_deref() == Some("spreadsheets");
        Self::named(&format!("{kind}_{account}_{days}"), is_for_spreadsheets.then_some(zone))
    }

    pub fn named(name: &str, zone: Option<Zone>) -> Self {
        Self { name: name.to_owned(), zone }
    }

    /// Returns the line with the names of the columns.
    pub fn header<const N: usize>(&self, columns: [&str; N]) -> Result<Vec<u8>, csv::Error> {
        let Some(zone) = &self.zone else {
            return report_csv::file(columns, iter::empty());
        };
        let names = columns.map(|name| match name {
            name if TIMES.contains(&name) => format!("{name} ({})", zone.name()),
            name => name.to_owned(),
        });
        let line = report_csv::write(iter::once(names))?;
        Ok([BYTE_ORDER_MARK.as_bytes(), &line].concat())
    }

    /// Returns a line in the file's form: in spreadsheets with local times, and with amounts of two
    /// to six decimals.
    pub fn cells<const N: usize>(&self, columns: [&str; N], mut line: [String; N]) -> [String; N] {
        let Some(zone) = &self.zone else {
            return line;
        };
        for (name, cell) in columns.into_iter().zip(&mut line) {
            if TIMES.contains(&name) {
                if let Some(at) = Timestamp::parse(cell) {
                    *cell = zone.to_table(at);
                }
            } else if AMOUNTS.contains(&name) && !cell.is_empty() {
                let (units, decimals) = cell.split_once('.').unwrap_or((cell.as_str(), ""));
                *cell = format!("{units}.{decimals:0<2}");
            }
        }
        line
    }

    /// Returns a response that a browser saves as this file.
    pub fn attachment(&self, body: Body) -> Response {
        let disposition = format!("attachment; filename=\"{}.csv\"", self.name);
        let headers = [
            (CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()),
            (CONTENT_DISPOSITION, disposition),
        ];
        (headers, body).into_response()
    }
}

/// Returns a CSV file with a line for each record. `read` returns the records at a cursor, and the
/// first call gets `cursor`. The first records are read before the response begins, because an
/// error after that can't change the status.
pub async fn csv_file<T, F, const N: usize>(
    file: CsvFile,
    columns: [&'static str; N],
    cursor: Option<String>,
    read: impl Fn(Option<String>) -> F + Send + Sync + 'static,
    row: impl Fn(T) -> [String; N] + Send + Sync + 'static,
) -> Result<Response, Refused>
where
    T: Send + 'static,
    F: Future<Output = service::Result<Paged<T>>> + Send + 'static,
{
    let first = read(cursor).await?;
    let header = file.header(columns)?;
    let file = Arc::new(file);
    let shaped = Arc::clone(&file);
    let row = move |record| shaped.cells(columns, row(record));
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
    Ok(file.attachment(Body::from_stream(chunks)))
}
