//! The lines of an application's statement as a CSV file (RFC 4180).

use std::sync::Arc;

use app::applications::StatementQuery;
use app::portal_request::{PortalRequest as _, SiteSettings};
use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::ledger::TransferKind;
use domain::records::{Paged, StatementLine};
use domain::{Money, Reference};
use futures_util::stream::try_unfold;
use service::{Service, StatementFilter};

use super::csv::{Fault, refuse, refused, value_of};
use super::portal_request::{Portal, ServedRequest};
use crate::report_csv::{safe, write};

/// The number of lines per read. The file can be as long as the list, so it is never in memory as a
/// whole.
const LINES_AT_ONCE: i64 = 1000;

const COLUMNS: [&str; 6] = ["created_at", "type", "reference", "amount", "balance", "currency"];

/// `GET /applications/{reference}/statement.csv`, with the parameters of the page's lists.
pub async fn download(
    State(portal): State<Portal>,
    Path(reference): Path<String>,
    request: Request,
) -> Response {
    let query = match Query::<Vec<(String, String)>>::try_from_uri(request.uri()) {
        Ok(Query(pairs)) => StatementQuery::read(|name| value_of(&pairs, name)),
        Err(_) => return (StatusCode::BAD_REQUEST, "The filters can't be read.").into_response(),
    };
    let page = request.uri().path().to_owned();
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    let account = match current.account().await {
        Ok(Some(account)) => account,
        Ok(None) => {
            return match current.way_in(&query.address(&page)).await {
                Ok(way_in) => Redirect::to(&way_in).into_response(),
                Err(problem) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
            };
        }
        Err(problem) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
    };
    let Ok(reference) = Reference::parse(&reference) else {
        return (StatusCode::NOT_FOUND, "There is nothing here.").into_response();
    };
    if let Err(problem) = query.filter(LINES_AT_ONCE) {
        return refuse(StatusCode::BAD_REQUEST, &problem);
    }
    let lines = Lines {
        service: portal.service,
        site: portal.site,
        account_id: account.id,
        reference,
        query,
    };
    // Reads the first lines before the response begins. An error after that can't change the
    // status.
    match lines.read(None).await {
        Ok(first) => file(lines, first),
        Err(error) => refused(&error),
    }
}

/// The lines of a file.
struct Lines {
    service: Service,
    site: Arc<SiteSettings>,
    account_id: i64,
    reference: Reference,
    query: StatementQuery,
}

/// The rest of a file.
enum Rest {
    All(Paged<StatementLine>),
    From(String),
}

fn file(lines: Lines, first: Paged<StatementLine>) -> Response {
    let disposition = format!("attachment; filename=\"statement-{}.csv\"", lines.reference);
    let chunks = try_unfold(Some((lines, Rest::All(first))), |rest| async move {
        let Some((lines, rest)) = rest else {
            return Ok(None);
        };
        let chunk = lines.chunk(rest).await.map(Some);
        chunk.inspect_err(|error| tracing::error!(%error, "a CSV file ended early"))
    });
    let headers =
        [(CONTENT_TYPE, "text/csv; charset=utf-8".to_owned()), (CONTENT_DISPOSITION, disposition)];
    (headers, Body::from_stream(chunks)).into_response()
}

impl Lines {
    async fn read(&self, cursor: Option<&str>) -> service::Result<Paged<StatementLine>> {
        // The caller has already checked the days.
        let filter = self.query.filter(LINES_AT_ONCE).unwrap_or_default();
        let filter = StatementFilter { cursor, ..filter };
        self.service.applications().statement(self.account_id, self.reference, filter).await
    }

    /// Returns the next part of the file, and the rest after it.
    async fn chunk(self, rest: Rest) -> Result<(Vec<u8>, Option<(Self, Rest)>), Fault> {
        let (mut chunk, page) = match rest {
            Rest::All(first) => (write([COLUMNS.map(str::to_owned)].into_iter())?, first),
            Rest::From(cursor) => (Vec::new(), self.read(Some(&cursor)).await?),
        };
        let currency = &self.site.currency;
        chunk.extend(write(page.items.iter().map(|line| row(line, currency)))?);
        Ok((chunk, page.next.map(|next| (self, Rest::From(next)))))
    }
}

fn row(line: &StatementLine, currency: &str) -> [String; COLUMNS.len()] {
    // Charges are negative, so that the sum of the column is the change of the balance.
    let amount = match line.kind {
        TransferKind::Charge => Money::from_micros(-line.amount.micros()),
        _ => line.amount,
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
