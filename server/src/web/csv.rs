//! The messages of the reports page as a CSV file (RFC 4180).

use std::sync::Arc;

use app::overload::RETRY_AFTER_S;
use app::portal_request::{PortalRequest as _, SiteSettings};
use app::problem::{Cause, Problem};
use app::reports::{CSV_PATH, ReportFilter};
use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE, RETRY_AFTER};
use axum::response::{IntoResponse as _, Redirect, Response};
use domain::Reference;
use domain::records::{MessageRecord, Paged};
use futures_util::stream::try_unfold;
use service::{MessageFilter, Refusal, Service};

use super::portal_request::{Portal, ServedRequest};
use crate::report_csv;

/// The number of messages per read. The file can be as long as the list, so it is never in memory
/// as a whole.
const MESSAGES_AT_ONCE: i64 = 1000;

/// `GET /reports/messages.csv`, with the filters of the page.
pub async fn download(State(portal): State<Portal>, request: Request) -> Response {
    let filter = match Query::<Vec<(String, String)>>::try_from_uri(request.uri()) {
        Ok(Query(pairs)) => ReportFilter::read(|name| value_of(&pairs, name)),
        Err(_) => return (StatusCode::BAD_REQUEST, "The filters can't be read.").into_response(),
    };
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    let account = match current.account().await {
        Ok(Some(account)) => account,
        Ok(None) => {
            let next = filter.address(CSV_PATH, &[]);
            return match current.way_in(&next).await {
                Ok(way_in) => Redirect::to(&way_in).into_response(),
                Err(problem) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
            };
        }
        Err(problem) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
    };
    let zone = current.zone(current.browser_zone()).await;
    let (reference, filter) = match filter.parse(MESSAGES_AT_ONCE, &zone) {
        Ok(parsed) => parsed,
        Err(problem) => return refuse(StatusCode::BAD_REQUEST, &problem),
    };
    let list = List {
        service: portal.service,
        site: portal.site,
        account_id: account.id,
        reference,
        filter,
    };
    // Reads the first messages before the response begins. An error after that can't change the
    // status.
    match list.read().await {
        Ok(page) => file(list, page),
        Err(error) => refused(&error),
    }
}

pub(super) fn refused(error: &service::Error) -> Response {
    if let Some(refusal) = error.refusal() {
        let status = match refusal {
            Refusal::InvalidCursor => StatusCode::BAD_REQUEST,
            _ => StatusCode::NOT_FOUND,
        };
        return (status, refusal.to_string()).into_response();
    }
    tracing::error!(detail = ?error, "a CSV file can't be started");
    if error.is_busy() {
        return busy(Refusal::Busy.to_string());
    }
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}

pub(super) fn value_of(pairs: &[(String, String)], name: &str) -> Option<String> {
    pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.clone())
}

pub(super) fn refuse(status: StatusCode, problem: &Problem) -> Response {
    let sentence = problem.sentence().into_owned();
    if problem.cause == Cause::Refused(Refusal::Busy) {
        return busy(sentence);
    }
    (status, sentence).into_response()
}

fn busy(sentence: String) -> Response {
    let retry_after = [(RETRY_AFTER, RETRY_AFTER_S)];
    (StatusCode::SERVICE_UNAVAILABLE, retry_after, sentence).into_response()
}

/// The messages of a file.
struct List {
    service: Service,
    site: Arc<SiteSettings>,
    account_id: i64,
    reference: Option<Reference>,
    filter: MessageFilter,
}

/// The rest of a file: the list, and messages that were read but not written yet.
type Rest = (List, Option<Paged<MessageRecord>>);

fn file(list: List, first: Paged<MessageRecord>) -> Response {
    let chunks = try_unfold(Some((list, Some(first))), |rest| async move {
        let Some((list, first)) = rest else {
            return Ok(None);
        };
        let chunk = list.chunk(first).await.map(Some);
        chunk.inspect_err(|error| tracing::error!(%error, "a CSV file ended early"))
    });
    let headers = [
        (CONTENT_TYPE, "text/csv; charset=utf-8"),
        (CONTENT_DISPOSITION, "attachment; filename=\"messages.csv\""),
    ];
    (headers, Body::from_stream(chunks)).into_response()
}

pub(super) type Fault = Box<dyn std::error::Error + Send + Sync>;

impl List {
    async fn read(&self) -> service::Result<Paged<MessageRecord>> {
        self.service
            .messages()
            .account_messages(self.account_id, self.reference, &self.filter)
            .await
    }

    /// Returns the next part of the file, and the rest after it. The first part has the header.
    async fn chunk(
        mut self,
        first: Option<Paged<MessageRecord>>,
    ) -> Result<(Vec<u8>, Option<Rest>), Fault> {
        let (mut chunk, page) = match first {
            Some(page) => (report_csv::header()?, page),
            None => (Vec::new(), self.read().await?),
        };
        chunk.extend(report_csv::rows(&page.items, &self.site.currency)?);
        self.filter.cursor = page.next;
        let rest = self.filter.cursor.is_some().then_some((self, None));
        Ok((chunk, rest))
    }
}
