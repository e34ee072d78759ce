//! The API's answers: always JSON, always with a code and words.

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

/// The words for code 200, as the specification names it.
pub const SUCCESS: &str = "SUCCESS";
/// What a cursor may be, in words.
pub const CURSOR_ALLOWED: &str = "the value of next in an earlier answer";
/// Seconds that a client should wait before it tries again after `unavailable`, `rate_limited` or
/// `idempotency_in_progress`, where nothing else is known.
const RETRY_AFTER_S: i64 = 1;

/// An answer. Its body is there as a whole.
pub type Answer = Response<Body>;

/// The template of the route that answered, on each response that has one; never the path itself.
#[derive(Clone, Debug)]
pub struct RouteTemplate(pub Cow<'static, str>);

/// The number that a message is for, masked, on the answer to a send.
#[derive(Clone)]
pub struct Recipient(pub String);

/// What every answer begins with. The specification names the words both `message` and `text`.
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
        Self {
            code: CODE_SUCCESS,
            message: SUCCESS,
            text: SUCCESS,
        }
    }
}

/// A request that wasn't done, and why.
#[derive(Debug)]
pub struct Failure {
    reason: Reason,
    /// More exact than the reason's own sentence. Quotes nothing that the client sent, but for a
    /// parameter's name.
    detail: Option<String>,
    requestid: Option<RequestId>,
    /// The number that the message is for, masked.
    recipient: Option<String>,
    file: Option<Box<BadFile>>,
    retry_after_s: i64,
    close: bool,
    unanswered: bool,
}

/// An answer whose code isn't 200.
#[derive(Serialize, ToSchema)]
#[schema(as = Error)]
pub struct ErrorBody<'a> {
    #[schema(value_type = schemas::CodeFailure)]
    code: u16,
    /// What happened and what to do, for people; the words may change.
    message: &'a str,
    /// The same words as message.
    text: &'a str,
    #[schema(value_type = schemas::Reason)]
    reason: &'static str,
    #[schema(value_type = schemas::RequestId, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    requestid: Option<&'a str>,
    /// Of a refused file, the first 20 bad rows. To find the others, correct these and upload the
    /// file with dryrun=1, which sends nothing, until none is left.
    #[schema(value_type = Vec<RowError>, required = false, min_items = 1, max_items = 20)]
    #[serde(skip_serializing_if = "Option::is_none")]
    errors: Option<Vec<RowError>>,
    /// All bad rows of a refused file.
    #[schema(value_type = schemas::Positive, required = false)]
    #[serde(skip_serializing_if = "Option::is_none")]
    error_count: Option<u64>,
}

/// What is wrong with a row of a file.
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
        Self {
            line: row.line,
            reason: row.reason.as_str(),
            detail: row.detail,
        }
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
        Self {
            detail: Some(detail.into()),
            ..Self::of(reason)
        }
    }

    /// A parameter has a value that isn't one of the allowed ones.
    pub fn invalid(name: &str, allowed: &str) -> Self {
        let detail = format!("{name} must be {allowed}.");
        Self::with_detail(Reason::InvalidParameter, detail)
    }

    /// The same, said more exactly.
    pub fn saying(self, detail: &str) -> Self {
        Self {
            detail: Some(detail.to_owned()),
            ..self
        }
    }

    /// A parameter came twice.
    pub fn duplicate(name: &str) -> Self {
        let detail = format!("{name} is given more than once; give it once.");
        Self::with_detail(Reason::DuplicateParameter, detail)
    }

    /// A file has bad rows.
    pub fn of_file(file: BadFile) -> Self {
        let (listed, count) = (file.errors.len(), file.error_count);
        // Otherwise all of them are listed.
        let cut = (count > listed as u64).then(|| {
            format!(
                "The file has {count} bad rows; nothing was sent. The first {listed} are listed: \
                 correct them and upload the file with dryrun=1, which sends nothing and lists \
                 those that are left, until there are none."
            )
        });
        Self {
            detail: cut,
            file: Some(Box::new(file)),
            ..Self::of(Reason::InvalidFile)
        }
    }

    /// What makes a request unlike the one that an idempotency key stands for: whatever can be said
    /// about the request alone.
    pub const fn is_about_the_request(&self) -> bool {
        !self.unanswered && matches!(self.reason.http_status(), 400 | 413 | 415)
    }

    /// Whether something was done isn't known, so that no answer would be true.
    pub fn unanswered() -> Self {
        Self {
            unanswered: true,
            ..Self::of(Reason::Internal)
        }
    }

    /// Says in how many seconds the request may be repeated.
    pub fn retry_after(self, seconds: i64) -> Self {
        Self {
            retry_after_s: seconds,
            ..self
        }
    }

    /// The connection can't be used again.
    pub fn closing(self) -> Self {
        Self {
            close: true,
            ..self
        }
    }

    /// Names the request in the caller's own words.
    pub fn about(self, requestid: Option<RequestId>) -> Self {
        Self { requestid, ..self }
    }

    /// Says which number the message was for.
    pub fn to(self, recipient: Option<String>) -> Self {
        Self { recipient, ..self }
    }

    pub const fn reason(&self) -> Reason {
        self.reason
    }

    pub fn recipient(&self) -> Option<&str> {
        self.recipient.as_deref()
    }

    /// What was wrong, where that is more exact than the reason.
    pub fn detail(&self) -> Option<String> {
        if self.unanswered {
            return Some("No answer could be given: ask for the message by its requestid.".into());
        }
        let Some(file) = &self.file else {
            return self.detail.clone();
        };
        let first = file.errors.first()?;
        let (count, line, detail) = (file.error_count, first.line, first.detail);
        Some(format!(
            "Bad rows: {count}; the first is in line {line}. {detail}"
        ))
    }

    /// Whether the key opens no application, or it wasn't found out whether it opens one.
    pub fn leaves_key_unknown(&self) -> bool {
        // A method is refused before the key is looked at.
        let unknown = [
            Reason::ApiInvalid,
            Reason::Internal,
            Reason::MethodNotAllowed,
            Reason::Unavailable,
        ];
        unknown.contains(&self.reason)
    }

    pub fn into_answer(self) -> Answer {
        self.into_answer_of()
    }

    /// The same with another kind of body.
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
            Reason::Unavailable | Reason::RateLimited | Reason::IdempotencyInProgress => {
                headers.insert(RETRY_AFTER, HeaderValue::from(self.retry_after_s));
            }
            // RFC 9110 §11.6.1 wants it beside every 401.
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
    /// For reads, of which the rules refuse a cursor alone: what is broken is logged here, once.
    fn from(error: service::Error) -> Self {
        if let Some(Refusal::InvalidCursor) = error.refusal() {
            return Self::invalid("cursor", CURSOR_ALLOWED);
        }
        tracing::error!(?error, "a read failed");
        Self::of(error.reason())
    }
}

/// The answer to a panic.
pub fn internal() -> Answer {
    Failure::of(Reason::Internal).into_answer()
}

/// The answer to a request that doesn't say which host it is for, or says it twice. What else came
/// with it may not be what its sender meant, so the connection is closed.
pub fn without_host() -> Answer {
    let detail = "The request must have one Host header.";
    Failure::with_detail(Reason::InvalidParameter, detail)
        .closing()
        .into_answer()
}

/// The answer to what can't be read as a request, for which HTTP has this status: 400 or 431.
/// Its connection is closed.
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

/// The answer to a request that names no path: to CONNECT, which wants a proxy, and to `*`.
pub fn without_path() -> Answer {
    let detail = "The request names no path here; this server is no proxy.";
    let failure = Failure::with_detail(Reason::MethodNotAllowed, detail).closing();
    let mut response = failure.into_answer();
    let allowed = HeaderValue::from_static("GET, HEAD, POST");
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// 200 with this body.
pub fn json<T: Serialize>(body: &T) -> Answer {
    json_of(body)
}

fn json_of<T: Serialize, B: From<Vec<u8>>>(body: &T) -> Response<B> {
    // Serialising our own records fails only for maps with keys that aren't strings; there are
    // none.
    let text = serde_json::to_vec(body).unwrap_or_else(|_| b"{\"code\":500}".to_vec());
    guarded(text, HeaderValue::from_static("application/json"))
}

/// 200 with the headers that every answer of the API has: nothing between us and the client may
/// store it, and its address, which holds the key, may not go on as a referrer.
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
