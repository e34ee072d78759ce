//! The messages of the reports page as a CSV file.

use app::portal_request::PortalRequest as _;
use app::reports::ReportFilter;
use axum::extract::State;
use axum::response::Response;
use service::MessageFilter;

use super::csv_file::{CsvFile, LINES_AT_ONCE, csv_file};
use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn};
use crate::report_csv;

/// `GET /reports/messages.csv`, with the filters of the page.
pub async fn download(
    State(Portal { service, site, .. }): State<Portal>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let current = &signed_in.current;
    let zone = current.zone(current.browser_zone()).await;
    let filter = ReportFilter::read(|name| signed_in.parameter(name));
    let (reference, filter) = filter.parse(LINES_AT_ONCE, &zone)?;
    let file = CsvFile::of(&signed_in, "messages", zone, service.clock().now());
    let (account_id, first) = (signed_in.account.id, filter.cursor.clone());
    let read = move |cursor| {
        let (service, filter) = (service.clone(), MessageFilter { cursor, ..filter.clone() });
        async move { service.messages().account_messages(account_id, reference, &filter).await }
    };
    let row = move |message| report_csv::row(&message, &site.currency);
    csv_file(file, report_csv::names(), first, read, row).await
}
