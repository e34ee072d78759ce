//! The audit log as a CSV file, for staff.

use app::support::AuditAddress;
use axum::extract::State;
use axum::response::Response;
use domain::Zone;
use domain::support::AuditRecord;
use service::AuditFilter;

use super::csv_file::{CsvFile, LINES_AT_ONCE, csv_file};
use super::portal_request::Portal;
use super::signed_in::{Refused, Staff};
use crate::report_csv::safe;

const COLUMNS: [&str; 9] =
    ["id", "at", "who", "address", "action", "subject", "before", "after", "detail"];

/// `GET /support/audit.csv`, with the filters of the page.
pub async fn download(
    State(Portal { service, .. }): State<Portal>,
    Staff(staff): Staff,
) -> Result<Response, Refused> {
    let filter = AuditAddress::read(|name| staff.parameter(name)).parse(LINES_AT_ONCE)?;
    let file = CsvFile::of(&staff, "audit", Zone::default(), service.clock().now());
    let first = filter.cursor.clone();
    let read = move |cursor| {
        let (service, filter) = (service.clone(), AuditFilter { cursor, ..filter.clone() });
        async move { service.support().audit(&filter).await }
    };
    csv_file(file, COLUMNS, first, read, row).await
}

fn row(entry: AuditRecord) -> [String; COLUMNS.len()] {
    [
        entry.id.to_string(),
        entry.at.to_string(),
        entry.who,
        entry.address.unwrap_or_default(),
        entry.action,
        entry.subject,
        entry.before.unwrap_or_default(),
        entry.after.unwrap_or_default(),
        entry.detail.unwrap_or_default(),
    ]
    .map(safe)
}
