//! Lists of the portal as CSV files.

use app::applications::{InboxFilter, StatementQuery, inbound_filter};
use app::opt_outs::OptOutsQuery;
use app::portal_request::PortalRequest as _;
use app::problem::Problem;
use app::reports::ReportFilter;
use app::support::AuditAddress;
use axum::extract::{Path, State};
use axum::response::Response;
use domain::ledger::TransferKind;
use domain::records::StatementLine;
use domain::support::AuditRecord;
use domain::{Money, Reference, Zone};
use service::{AuditFilter, InboundFilter, MessageFilter, OptOutFilter, StatementFilter};

use super::csv_file::{CsvFile, LINES_AT_ONCE, csv_file};
use super::portal_request::Portal;
use super::signed_in::{Refused, SignedIn, Staff};
use crate::report_csv::safe;
use crate::{inbound_csv, opt_outs_csv, report_csv};

const OF_STATEMENTS: [&str; 6] =
    ["created_at", "type", "reference", "amount", "balance", "currency"];
const OF_THE_AUDIT_LOG: [&str; 9] =
    ["id", "at", "who", "address", "action", "subject", "before", "after", "detail"];

/// `GET /reports/messages.csv`, with the filters of the page.
pub async fn messages(
    State(Portal { service, site, .. }): State<Portal>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let zone = zone(&signed_in).await;
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

/// `GET /applications/{reference}/inbound.csv`, with the filters of the page.
pub async fn inbound(
    State(Portal { service, .. }): State<Portal>,
    Path(reference): Path<String>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let reference = Reference::parse(&reference).map_err(Problem::from)?;
    let zone = zone(&signed_in).await;
    let filter = InboxFilter::read(|name| signed_in.parameter(name));
    let filter = inbound_filter(&filter, LINES_AT_ONCE, &zone)?;
    let kind = format!("inbound-{reference}");
    let file = CsvFile::of(&signed_in, &kind, zone, service.clock().now());
    let (account_id, first) = (signed_in.account.id, filter.cursor.clone());
    let read = move |cursor| {
        let (service, filter) = (service.clone(), InboundFilter { cursor, ..filter.clone() });
        async move { service.messages().account_inbound(account_id, reference, &filter).await }
    };
    let row = |message| inbound_csv::row(&message);
    csv_file(file, inbound_csv::NAMES, first, read, row).await
}

/// `GET /applications/{reference}/optouts.csv`: the whole list of the key in the page's query.
pub async fn opt_outs(
    State(Portal { service, .. }): State<Portal>,
    Path(reference): Path<String>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let reference = Reference::parse(&reference).map_err(Problem::from)?;
    let kind = OptOutsQuery::read(|name| signed_in.parameter(name)).kind();
    let access = service.webhooks().access_of(signed_in.account.id, reference, kind).await?;
    let zone = zone(&signed_in).await;
    let kind = format!("opt-outs-{}-{reference}", kind.as_str());
    let file = CsvFile::of(&signed_in, &kind, zone, service.clock().now());
    let read = move |cursor| {
        let service = service.clone();
        let filter = OptOutFilter { number: None, limit: LINES_AT_ONCE, cursor };
        async move { service.applications().opt_outs(&access, &filter).await }
    };
    csv_file(file, opt_outs_csv::NAMES, None, read, opt_outs_csv::row).await
}

/// `GET /applications/{reference}/statement.csv`, with the parameters of the page's lists.
pub async fn statement(
    State(Portal { service, site, .. }): State<Portal>,
    Path(reference): Path<String>,
    signed_in: SignedIn,
) -> Result<Response, Refused> {
    let reference = Reference::parse(&reference).map_err(Problem::from)?;
    let query = StatementQuery::read(|name| signed_in.parameter(name));
    query.filter(LINES_AT_ONCE)?;
    let zone = zone(&signed_in).await;
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
    let row = move |line| statement_row(&line, &site.currency);
    csv_file(file, OF_STATEMENTS, None, read, row).await
}

/// `GET /support/audit.csv`, with the filters of the page.
pub async fn audit(
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
    csv_file(file, OF_THE_AUDIT_LOG, first, read, audit_row).await
}

/// Returns the zone of the times in the file, which are those of the page.
async fn zone(signed_in: &SignedIn) -> Zone {
    signed_in.current.zone(signed_in.current.browser_zone()).await
}

fn statement_row(line: &StatementLine, currency: &str) -> [String; OF_STATEMENTS.len()] {
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

fn audit_row(entry: AuditRecord) -> [String; OF_THE_AUDIT_LOG.len()] {
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
