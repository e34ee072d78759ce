//! The limit of changes: a server function that changes something is refused, before it runs, to a
//! signed-in account that has changed as much as it may.

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

/// A refusal, as a server function answers it, and the seconds to wait.
struct Limited {
    problem: Problem,
    retry_after_s: i64,
}

/// Refuses a POST to a server function where the account's bucket is empty. Functions that only
/// read are asked by GET.
pub async fn limit(request: Request, next: Next) -> Response {
    let path = request.uri().path();
    if request.method() == Method::POST && path.starts_with("/fn/") {
        let current = request.extensions().get::<CurrentRequest>();
        let account = match current {
            // Where the account can't be read, the function says so itself.
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

/// Takes a change out of an account's bucket; the refusal where it is empty.
fn limited(current: &dyn PortalRequest, account: &AccountRecord) -> Option<Limited> {
    let error = current.service().take_change(account).err()?;
    let retry_after_s = match error.refusal() {
        Some(Refusal::TooManyChanges { retry_after_s }) => *retry_after_s,
        _ => 1,
    };
    Some(Limited {
        problem: error.into(),
        retry_after_s,
    })
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

/// The refusal of a file that an account sends, as a sentence; `None` where the account may change
/// something.
pub fn refuse_file(current: &dyn PortalRequest, account: &AccountRecord) -> Option<Response> {
    let limited = limited(current, account)?;
    let sentence = limited.problem.cause.sentence().into_owned();
    Some(refused(limited.retry_after_s, Body::from(sentence)))
}

fn refused(retry_after_s: i64, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
    response
        .headers_mut()
        .insert(RETRY_AFTER, HeaderValue::from(retry_after_s));
    response
}
