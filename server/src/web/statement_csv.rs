//! The lines of an application's statement as a CSV file.

use app::applications::StatementQuery;
use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::ledger::TransferKind;
use domain::records::StatementLine;
use domain::{Money, Reference};
use service::StatementFilter;

use super::csv_file::{CsvFile, LINES_AT_ONCE, csv_file};
use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn};
use crate::report_csv::safe;

const COLUMNS: [&str; 6] = ["created_at", "type", "reference", "amount", "balance", "currency"];

/// `GET /applications/{reference}/statement.csv`, with the parameters of the page's lists.
pub async fn download(
    State(Portal { service, site, .. }): State<Portal>,
    Path(reference): Path<String>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let reference = Reference::parse(&reference).map_err(Problem::from)?;
    let query = StatementQuery::read(|name| signed_in.parameter(name));
    query.filter(LINES_AT_ONCE)?;
    let current = &signed_in.current;
    let zone = current.zone(current.browser_zone()).await;
    let kind = format!("statement-{reference}");
    let file = CsvFile::of(&signed_in, &kind, zone, service.clock().now());
    let account_id = signed_in.account.id;
    let read = move |cursor: Option<String>| {
        let (service, query) = (service.clone(), query.clone());
        async move {
            // The days were checked above.
            let filter = query.filter(LINES_AT_ONCE).unwrap_or_default();
            let filter = StatementFilter { cursor: cursor.as_deref(), ..filter };
            service.applications().statement(account_id, reference, filter).await
        }
    };
    let row = move |line| row(&line, &site.currency);
    csv_file(file, COLUMNS, None, read, row).await
}

fn row(line: &StatementLine, currency: &str) -> [String; COLUMNS.len()] {
    // Charges are negative, so that the sum of the column is the change of the balance.
    let amount = match line.kind {
        TransferKind::Charge => Money::from_micros(-line.amount.micros()),
        TransferKind::Deposit
        | TransferKind::Unmatched
        | TransferKind::Settle
        | TransferKind::Return
        | TransferKind::Release => line.amount,
    };
    [
        line.at.to_string(),
        line.kind.to_string(),
        safe(line.subject.clone()),
        amount.to_string(),
        line.balance_after.to_string(),
        currency.to_owned(),
    ]
}
