//! Limits the number of changes by an account. A server function that changes something doesn't run
//! if the account has no changes left.

use app::portal_request::{CurrentRequest, PortalRequest};
use app::problem::Problem;
use axum::body::Body;
use axum::extract::Request;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::Response;
use domain::Refusal;
use domain::records::AccountRecord;
use leptos::server_fn::error::{FromServerFnError as _, SERVER_FN_ERROR_HEADER};

/// A refusal in the form of a server function's answer, and the seconds to wait.
struct Limited {
    problem: Problem,
    retry_after_s: i64,
}

/// Refuses a POST to a server function if the account's bucket is empty. Functions that only read
/// are called by GET.
pub async fn limit(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if request.method() == Method::POST && path.starts_with("/fn/") {
        let current = request.extensions().get::<CurrentRequest>();
        let account = match current {
            // If the account can't be read, the function reports that itself.
            Some(current) => current.session_account().await.ok().flatten(),
            None => None,
        };
        if let (Some(current), Some(account)) = (current, account)
            && let Some(limited) = limited(&**current, &account)
        {
            return answer(&limited, path);
        }
    }
    next.run(request).await
}

/// Takes a change out of an account's bucket. Returns the refusal if the bucket is empty.
fn limited(current: &dyn PortalRequest, account: &AccountRecord) -> Option<Limited> {
    let error = current.service().accounts().take_change(account).err()?;
    let retry_after_s = match error.refusal() {
        Some(Refusal::TooManyChanges { retry_after_s }) => *retry_after_s,
        _ => 1,
    };
    Some(Limited { problem: error.into(), retry_after_s })
}

fn answer(limited: &Limited, function: &str) -> Response {
    let mut response = refused(limited.retry_after_s, Body::from(limited.problem.ser()));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(function) = HeaderValue::from_str(function) {
        headers.insert(SERVER_FN_ERROR_HEADER, function);
    }
    response
}

/// Takes a change out of an account's bucket for a file. Returns the refusal as a sentence if the
/// bucket is empty.
pub fn refuse_file(current: &dyn PortalRequest, account: &AccountRecord) -> Option<Response> {
    let limited = limited(current, account)?;
    let sentence = limited.problem.cause.sentence().into_owned();
    Some(refused(limited.retry_after_s, Body::from(sentence)))
}

fn refused(retry_after_s: i64, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
    response
}
