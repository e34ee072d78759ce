//! The API's responses. Except for CSV reports, each is JSON with a code and a message.

use std::borrow::Cow;

use axum::body::Body;
use axum::http::header::{
    ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, REFERRER_POLICY, RETRY_AFTER, WWW_AUTHENTICATE,
};
use axum::http::{HeaderValue, Response, StatusCode};
use bytes::Bytes;
use domain::reason::CODE_SUCCESS;
use domain::{BadFile, BadRow, Reason, RequestId};
use serde::Serialize;
use service::Refusal;
use utoipa::ToSchema;

use crate::http::NoAnswer;
use crate::openapi::schemas;

/// The specification's message for code 200.
pub const SUCCESS: &str = "SUCCESS";
/// Describes a valid cursor in error messages.
pub const CURSOR_ALLOWED: &str = "the value of next in an earlier answer";
/// The seconds in `Retry-After`, unless something better is known.
const RETRY_AFTER_S: i64 = 1;

/// A response with its whole body in memory.
pub type Answer = Response<Body>;

/// A response extension with the template of the matched route. It never holds the path itself,
/// which may contain a key.
#[derive(Clone, Debug)]
pub struct RouteTemplate(pub Cow<'static, str>);

/// A response extension on sends with the recipient's masked number.
#[derive(Clone)]
pub struct Recipient(pub String);

/// The fields that every response begins with. The specification uses both message and text for the
/// same text.
#[derive(Serialize, ToSchema)]
#[schema(as = Success)]
pub struct Head {
    #[schema(value_type = schemas::CodeSuccess)]
    code: u16,
    #[schema(value_type = schemas::WordsSuccess)]
    message: &'static str,
    #[schema(value_type = schemas::WordsSuccess)]
    text: &'static str,
}

impl Head {
    pub const fn success() -> Self {
        Self { code: CODE_SUCCESS, message: SUCCESS, text: SUCCESS }
    }
}

/// A request that was refused or failed, and the reason.
#[derive(Debug)]
pub struct Failure {
    reason: Reason,
    /// More specific than the reason's own sentence. Quotes nothing from the request except
    /// parameter names.
    detail: Option<String>,
    requestid: Option<RequestId>,
    /// The recipient's masked number.
    recipient: Option<String>,
    file: Option<Box<BadFile>>,
    retry_after_s: i64,
    close: bool,
    unanswered: bool,
}

/// A response whose code isn't 200.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    #[schema(value_type = schemas::CodeFailure)]
    code: u16,
    /// What happened and what to do, for people. The wording may change.
    message: &'a str,
    /// The same text as message.
    text: &'a str,
    #[schema(value_type = schemas::Reason)]
    reason: &'static str,
    #[schema(value_type = schemas::RequestId, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    requestid: Option<&'a str>,
    /// The first 20 bad rows of a refused file. To find the others, correct these and upload the
    /// file with dryrun=1, which sends nothing. Repeat this until no bad row is left.
    #[schema(value_type = Vec<RowError>, required = false, min_items = 1, max_items = 20)]
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<RowError>>,
    /// The total number of bad rows in a refused file.
    #[schema(value_type = schemas::Positive, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    error_count: Option<u64>,
}

/// An error in a row of a file.
#[derive(Serialize, ToSchema)]
pub struct RowError {
    /// The physical line where the row starts.
    #[schema(minimum = 1)]
    line: u64,
    #[schema(value_type = schemas::RowReason)]
    reason: &'static str,
    detail: &'static str,
}

impl From<&BadRow> for RowError {
    fn from(row: &BadRow) -> Self {
        Self { line: row.line, reason: row.reason.as_str(), detail: row.detail }
    }
}

impl Failure {
    pub const fn of(reason: Reason) -> Self {
        Self {
            reason,
            detail: None,
            requestid: None,
            recipient: None,
            file: None,
            retry_after_s: RETRY_AFTER_S,
            close: false,
            unanswered: false,
        }
    }

    pub fn with_detail(reason: Reason, detail: impl Into<String>) -> Self {
        Self { detail: Some(detail.into()), ..Self::of(reason) }
    }

    /// Refuses a parameter whose value isn't allowed.
    pub fn invalid(name: &str, allowed: &str) -> Self {
        let detail = format!("{name} must be {allowed}.");
        Self::with_detail(Reason::InvalidParameter, detail)
    }

    /// Replaces the reason's own sentence with a more specific one.
    pub fn saying(self, detail: &str) -> Self {
        Self { detail: Some(detail.to_owned()), ..self }
    }

    /// Refuses a parameter that occurs more than once.
    pub fn duplicate(name: &str) -> Self {
        let detail = format!("{name} is given more than once; give it once.");
        Self::with_detail(Reason::DuplicateParameter, detail)
    }

    /// Refuses a file with bad rows.
    pub fn of_file(file: BadFile) -> Self {
        let again = "upload the file with dryrun=1, which sends nothing. Repeat this until no bad \
                     row is left";
        Self::of_rows(file, "sent", again)
    }

    /// Refuses a file of numbers for the list of opt-outs.
    pub fn of_list(file: BadFile) -> Self {
        Self::of_rows(file, "stored", "upload the file again")
    }

    fn of_rows(file: BadFile, done: &str, again: &str) -> Self {
        let (listed, count) = (file.errors.len(), file.error_count);
        // If all bad rows are listed, the reason's own sentence is enough.
        let cut = (count > listed as u64).then(|| {
            format!(
                "The file has {count} bad rows; nothing was {done}. The first {listed} are \
                 listed: correct them and {again}."
            )
        });
        // If the whole file is wrong, say so first.
        let whole = file.findings.iter().filter(|finding| finding.rows == count);
        let whole: Vec<_> = whole.map(|finding| finding.file.sentence()).collect();
        let detail = if whole.is_empty() {
            cut
        } else {
            let rest = cut.unwrap_or_else(|| format!("Nothing was {done}."));
            Some(format!("{} {rest}", whole.join(" ")))
        };
        Self { detail, file: Some(Box::new(file)), ..Self::of(Reason::InvalidFile) }
    }

    /// Returns true if the failure depends only on the content of the request. The same content is
    /// always refused, so such a request never was the one that was accepted under an idempotency
    /// key.
    pub const fn is_about_the_request(&self) -> bool {
        !self.unanswered && matches!(self.reason.http_status(), 400 | 413 | 415)
    }

    /// Fails a request whose outcome is unknown. Any response could be wrong, so the server sends
    /// none.
    pub fn unanswered() -> Self {
        Self { unanswered: true, ..Self::of(Reason::Internal) }
    }

    /// Sets the number of seconds after which the client may repeat the request.
    pub fn retry_after(self, seconds: i64) -> Self {
        Self { retry_after_s: seconds, ..self }
    }

    /// Closes the connection after the response.
    pub fn closing(self) -> Self {
        Self { close: true, ..self }
    }

    /// Adds the requestid that the caller chose.
    pub fn about(self, requestid: Option<RequestId>) -> Self {
        Self { requestid, ..self }
    }

    /// Adds the recipient's masked number.
    pub fn to(self, recipient: Option<String>) -> Self {
        Self { recipient, ..self }
    }

    pub const fn reason(&self) -> Reason {
        self.reason
    }

    pub fn recipient(&self) -> Option<&str> {
        self.recipient.as_deref()
    }

    /// Returns the detail for the owner's list of calls, if it says more than the reason.
    pub fn detail(&self) -> Option<String> {
        if self.unanswered {
            return Some("No response could be sent. Look the message up by its requestid.".into());
        }
        let Some(file) = &self.file else {
            return self.detail.clone();
        };
        let first = file.errors.first()?;
        let (count, line, detail) = (file.error_count, first.line, first.detail);
        Some(format!("Bad rows: {count}; the first is in line {line}. {detail}"))
    }

    /// Returns true if the key is invalid, or if the request may have failed before the key was
    /// checked.
    pub fn leaves_key_unknown(&self) -> bool {
        // A method is refused before the key is checked.
        let unknown =
            [Reason::ApiInvalid, Reason::Internal, Reason::MethodNotAllowed, Reason::Unavailable];
        unknown.contains(&self.reason)
    }

    pub fn into_answer(self) -> Answer {
        self.into_answer_of()
    }

    /// Builds the response with any type of body.
    fn into_answer_of<B: From<Vec<u8>>>(self) -> Response<B> {
        let file = self.file.as_deref();
        let words = self.detail.as_deref().unwrap_or(self.reason.sentence());
        let mut response = json_of(&ErrorBody {
            code: self.reason.code(),
            message: words,
            text: words,
            reason: self.reason.as_str(),
            requestid: self.requestid.as_ref().map(RequestId::as_str),
            errors: file.map(|file| file.errors.iter().map(RowError::from).collect()),
            error_count: file.map(|file| file.error_count),
        });
        *response.status_mut() = StatusCode::from_u16(self.reason.http_status())
            .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = response.headers_mut();
        match self.reason {
            Reason::Unavailable
            | Reason::RateLimited
            | Reason::RecipientFlooded
            | Reason::SpendCapReached
            | Reason::IdempotencyInProgress => {
                headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after_s));
            }
            // RFC 9110 §11.6.1 requires this header on every 401.
            Reason::ApiInvalid => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        if self.close {
            headers.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        if self.unanswered {
            response.extensions_mut().insert(NoAnswer);
        }
        response
    }
}

impl From<Reason> for Failure {
    fn from(reason: Reason) -> Self {
        Self::of(reason)
    }
}

impl From<service::Error> for Failure {
    /// Converts an error that its handler doesn't answer itself. A refused cursor is the client's
    /// fault. All other errors are logged here, once.
    fn from(error: service::Error) -> Self {
        if let Some(Refusal::InvalidCursor) = error.refusal() {
            return Self::invalid("cursor", CURSOR_ALLOWED);
        }
        if let Some(refusal @ Refusal::CursorTooOld) = error.refusal() {
            return Self::with_detail(Reason::InvalidParameter, refusal.to_string());
        }
        tracing::error!(?error, "a request of the API failed");
        Self::of(error.reason())
    }
}

/// Returns the response to a request whose handler panicked.
pub fn internal() -> Answer {
    Failure::of(Reason::Internal).into_answer()
}

/// Returns the response to a request with no Host header or several. The connection is closed,
/// because the rest of its data may not be what the client meant.
pub fn without_host() -> Answer {
    let detail = "The request must have one Host header.";
    Failure::with_detail(Reason::InvalidParameter, detail).closing().into_answer()
}

/// Returns the response to data that isn't a valid HTTP request. The status is 400 or 431. The
/// connection is closed.
pub fn unreadable(status: StatusCode) -> Response<Bytes> {
    let (reason, detail) = if status == StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE {
        (
            Reason::TooLarge,
            "The request's head is larger than 64 KiB or has more than 100 headers; send long \
             parameters in the body of a POST.",
        )
    } else {
        (
            Reason::InvalidParameter,
            "The request can't be read as HTTP/1.1. In the address, a space is written %20, < is \
             %3C, > is %3E and \" is %22; \\ ^ ` { | } and whatever isn't plain ASCII are \
             percent-encoded as UTF-8 too.",
        )
    };
    let mut response = Failure::with_detail(reason, detail).into_answer_of();
    *response.status_mut() = status;
    response
}

/// Returns the response to a request whose target isn't a path. CONNECT, which is meant for a
/// proxy, has such a target, and `*` is another.
pub fn without_path() -> Answer {
    let detail = "The request has no path; this server isn't a proxy.";
    let failure = Failure::with_detail(Reason::MethodNotAllowed, detail).closing();
    let mut response = failure.into_answer();
    let allowed = HeaderValue::from_static("GET, HEAD, POST");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Returns a 200 response with a JSON body.
pub fn json<T: Serialize>(body: &T) -> Answer {
    json_of(body)
}

fn json_of<T: Serialize, B: From<Vec<u8>>>(body: &T) -> Response<B> {
    // Serialising fails only for maps whose keys aren't strings. No body contains such a map.
    let text = serde_json::to_vec(body).unwrap_or_else(|_| b"{\"code\":500}".to_vec());
    guarded(text, HeaderValue::from_static("application/json"))
}

/// Returns a 200 response with the headers of every API response. Caches must not store the
/// response. Browsers must not send its URL, which may contain the key, as a referrer.
pub fn guarded<B: From<Vec<u8>>>(body: Vec<u8>, content_type: HeaderValue) -> Response<B> {
    let mut response = Response::new(B::from(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, content_type);
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_bad_file_says_what_was_not_done() {
        let file = || BadFile { errors: Vec::new(), error_count: 30, findings: Vec::new() };
        for (failure, said) in [
            (Failure::of_file(file()), "nothing was sent"),
            (Failure::of_list(file()), "nothing was stored"),
        ] {
            assert!(failure.detail.as_deref().unwrap().contains(said), "{failure:?}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_answered_as_everything_is() {
        let response = internal();
        assert_eq!(response.status(), 500);
        let headers = response.headers();
        assert_eq!(headers[CONTENT_TYPE], "application/json");
        assert_eq!(headers[CACHE_CONTROL], "no-store");
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let body: Value = serde_json::from_slice(&body).unwrap();
        let words = Reason::Internal.sentence();
        assert_eq!(
            body,
            json!({"code": 500, "message": words, "text": words, "reason": "internal"})
        );
    }
}
