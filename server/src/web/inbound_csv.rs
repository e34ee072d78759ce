//! The inbound messages of an application as a CSV file.

use app::applications::{InboxFilter, inbound_filter};
use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::Reference;
use service::InboundFilter;

use super::csv_file::{CsvFile, LINES_AT_ONCE, csv_file};
use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn};
use crate::inbound_csv;

/// `GET /applications/{reference}/inbound.csv`, with the filters of the page.
pub async fn download(
    State(Portal { service, .. }): State<Portal>,
    Path(reference): Path<String>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let reference = Reference::parse(&reference).map_err(Problem::from)?;
    let current = &signed_in.current;
    let zone = current.zone(current.browser_zone()).await;
    let filter = InboxFilter::read(|name| signed_in.parameter(name));
    let filter = inbound_filter(&filter, LINES_AT_ONCE, &zone)?;
    let file =
        CsvFile::of(&signed_in, &format!("inbound-{reference}"), zone, service.clock().now());
    let (account_id, first) = (signed_in.account.id, filter.cursor.clone());
    let read = move |cursor| {
        let (service, filter) = (service.clone(), InboundFilter { cursor, ..filter.clone() });
        async move { service.messages().account_inbound(account_id, reference, &filter).await }
    };
    let row = |message| inbound_csv::row(&message);
    csv_file(file, inbound_csv::NAMES, first, read, row).await
}
