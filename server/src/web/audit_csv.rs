//! The audit log as a CSV file (RFC 4180), for staff.

use app::portal_request::PortalRequest as _;
use app::problem::Cause;
use app::support::{AUDIT_CSV_PATH, AuditAddress};
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::records::Paged;
use domain::support::AuditRecord;
use futures_util::stream::try_unfold;
use service::{AuditFilter, Service};

use super::csv::{Fault, refuse, refused, value_of};
use super::portal_request::{Portal, ServedRequest};
use crate::report_csv::{safe, write};

/// The number of entries per read. The file can be as long as the list, so it is never in memory as
/// a whole.
const ENTRIES_AT_ONCE: i64 = 1000;

/// `GET /support/audit.csv`, with the filters of the page.
pub async fn download(State(portal): State<Portal>, request: Request) -> Response {
    let Ok(Query(pairs)) = Query::<Vec<(String, String)>>::try_from_uri(request.uri()) else {
        return (StatusCode::BAD_REQUEST, "The filters can't be read.").into_response();
    };
    let address = AuditAddress::read(|name| value_of(&pairs, name));
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    match current.account().await {
        Ok(Some(account)) if account.staff => {}
        Ok(Some(account)) => {
            let accounts = portal.service.accounts();
            let denied = accounts.record_denied(account.id, AUDIT_CSV_PATH);
            return match denied.await {
                Ok(()) => refuse(StatusCode::NOT_FOUND, &Cause::NotFound.into()),
                Err(error) => refused(&error),
            };
        }
        Ok(None) => {
            return match current.way_in(&address.address(AUDIT_CSV_PATH, "")).await {
                Ok(way_in) => Redirect::to(&way_in).into_response(),
                Err(problem) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
            };
        }
        Err(problem) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
    }
    let filter = match address.parse(ENTRIES_AT_ONCE) {
        Ok(filter) => filter,
        Err(problem) => return refuse(StatusCode::BAD_REQUEST, &problem),
    };
    // Reads the first entries before the response begins. An error after that can't change the
    // status.
    match portal.service.support().audit(&filter).await {
        Ok(page) => file(portal.service, filter, page),
        Err(error) => refused(&error),
    }
}

fn file(service: Service, filter: AuditFilter, first: Paged<AuditRecord>) -> Response {
    let rest = Some((service, filter, Some(first)));
    let chunks = try_unfold(rest, |rest| async move {
        let Some((service, mut filter, first)) = rest else {
            return Ok::<_, Fault>(None);
        };
        let (mut chunk, page) = match first {
            Some(page) => (header()?, page),
            None => (Vec::new(), service.support().audit(&filter).await?),
        };
        chunk.extend(write(page.items.into_iter().map(row))?);
        filter.cursor = page.next;
        let rest = filter.cursor.is_some();
        Ok(Some((chunk, rest.then_some((service, filter, None)))))
    });
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"audit.csv\""),
    ];
    (headers, Body::from_stream(chunks)).into_response()
}

fn header() -> Result<Vec<u8>, csv::Error> {
    let names = ["id", "at", "who", "address", "action", "subject", "before", "after", "detail"];
    write([names.map(str::to_owned)].into_iter())
}

fn row(entry: AuditRecord) -> [String; 9] {
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
