//! The figures of the margin page as a CSV file, for staff.

use app::portal_request::PortalRequest as _;
use app::problem::Cause;
use app::support::{MARGIN_CSV_PATH, margin_days};
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Redirect, Response};
use service::Error;

use super::csv::{refuse, refused};
use super::portal_request::{Portal, ServedRequest};
use crate::margin_csv;

/// `GET /support/margin.csv`, with the days of the page.
pub async fn download(State(portal): State<Portal>, request: Request) -> Response {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let (parts, _) = request.into_parts();
    let current = ServedRequest::new(portal.clone(), &parts);
    match current.account().await {
        Ok(Some(account)) if account.staff => {}
        Ok(Some(account)) => {
            if let Err(error) =
                portal.service.accounts().record_denied(account.id, MARGIN_CSV_PATH).await
            {
                tracing::error!(detail = ?error, "a denied access can't be recorded");
            }
            return (StatusCode::NOT_FOUND, "There is nothing here.").into_response();
        }
        Ok(None) => {
            return match current.way_in(MARGIN_CSV_PATH).await {
                Ok(way_in) => Redirect::to(&way_in).into_response(),
                Err(problem) => refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
            };
        }
        Err(problem) => return refuse(StatusCode::INTERNAL_SERVER_ERROR, &problem),
    }
    let Ok(Query(pairs)) = pairs else {
        return (StatusCode::BAD_REQUEST, "The days can't be read.").into_response();
    };
    let value = |name: &str| {
        let found = pairs.iter().find(|(key, text)| key == name && !text.is_empty());
        found.map(|(_, text)| text.as_str())
    };
    let now = portal.service.clock().now();
    let days = match margin_days(now, value("from"), value("to")) {
        Ok(days) => days,
        Err(problem) => return refuse(StatusCode::BAD_REQUEST, &problem),
    };
    let lines = match portal.service.messages().margin_lines(days).await {
        Ok(lines) => lines,
        Err(Error::Refused(refusal)) => {
            return (StatusCode::BAD_REQUEST, refusal.to_string()).into_response();
        }
        Err(error) => return refused(&error),
    };
    match margin_csv::file(&lines, &portal.site.currency) {
        Ok(bytes) => {
            let headers = [
                (CONTENT_TYPE, "text/csv; charset=utf-8"),
                (CONTENT_DISPOSITION, "attachment; filename=\"margin.csv\""),
            ];
            (headers, bytes).into_response()
        }
        Err(error) => {
            tracing::error!(%error, "the margins can't be written as CSV");
            (StatusCode::INTERNAL_SERVER_ERROR, Cause::Failed.sentence()).into_response()
        }
    }
}
