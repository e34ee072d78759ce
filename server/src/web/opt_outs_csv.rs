//! The opt-outs of an application's key as a CSV file.

use app::opt_outs::OptOutsQuery;
use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::Reference;
use service::OptOutFilter;

use super::csv_file::{CsvFile, LINES_AT_ONCE, csv_file};
use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn};
use crate::opt_outs_csv;

/// `GET /applications/{reference}/optouts.csv`: the whole list of the key in the page's query.
pub async fn download(
    State(Portal { service, .. }): State<Portal>,
    Path(reference): Path<String>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let reference = Reference::parse(&reference).map_err(Problem::from)?;
    let kind = OptOutsQuery::read(|name| signed_in.parameter(name)).kind();
    let access = service.webhooks().access_of(signed_in.account.id, reference, kind).await?;
    let zone = signed_in.current.zone(signed_in.current.browser_zone()).await;
    let name = format!("opt-outs-{}-{reference}", kind.as_str());
    let file = CsvFile::of(&signed_in, &name, zone, service.clock().now());
    let read = move |cursor| {
        let service = service.clone();
        let filter = OptOutFilter { number: None, limit: LINES_AT_ONCE, cursor };
        async move { service.applications().opt_outs(&access, &filter).await }
    };
    csv_file(file, opt_outs_csv::NAMES, None, read, opt_outs_csv::row).await
}
