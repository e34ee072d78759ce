//! Extracts the API key and the message or batch ID from a request.

use std::convert::Infallible;

use axum::extract::{FromRequestParts, MatchedPath};
use axum::http::header::{ALLOW, AUTHORIZATION, REFERER, USER_AGENT};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method};
use domain::leak::LeakSigns;
use domain::{ApiKey, Leak, Reason};
use service::{ApiCall, Origin, Presented};

use super::answer::{Answer, Failure, Recipient, RouteTemplate};
use super::form::decode;
use super::{Api, rate};
use crate::client_address::ClientAddress;

/// The route templates in logs and metrics. A request with its key in a header has the same
/// template as one with its key in the path.
pub const TEMPLATES: [&str; 20] = [
    DOCUMENT_PATH,
    "/sms/send/{key}",
    "/sms/bulk/{key}",
    "/sms/reports/{key}",
    "/sms/reports/{key}/{transid}",
    "/sms/batches/{key}",
    BATCH,
    "/sms/cancel/{key}",
    "/sms/events/{key}",
    "/sms/inbound/{key}",
    "/sms/webhooks/{key}",
    "/sms/webhooks/{key}/{webhookid}",
    "/sms/optouts/{key}",
    "/sms/limits/{key}",
    "/sms/balance/{key}",
    "/sms/prices/{key}",
    "/sms/test/clock/{key}",
    "/sms/test/inbound/{key}",
    "/sms/verify/start/{key}",
    "/sms/verify/check/{key}",
];

const BATCH: &str = "/sms/batches/{key}/{batchid}";
/// The error detail for a request without a key.
const NO_KEY: &str = "The request has no API key. Write it at the end of the path, such as \
    /sms/send/<API_KEY>, or into the header Authorization: Bearer <API_KEY>.";
/// The error detail for a request with conflicting keys.
const DIFFERENT_KEYS: &str = "The request has different API keys in its path and its Authorization \
    header, or two such headers; give one key.";
/// The path of the OpenAPI document.
pub const DOCUMENT_PATH: &str = "/openapi.json";

/// Returns true if the API handles this path. A base URL that ends with a slash leads to `/sms`
/// paths with extra leading slashes. The API handles those too, and responds `not_found`.
pub fn is_in(path: &str) -> bool {
    let inside = path.trim_start_matches('/');
    let is_sms =
        inside.strip_prefix("sms").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    path == DOCUMENT_PATH || (is_sms && inside.len() < path.len())
}

/// The key, the ID and the client of a request that matched a route.
pub struct Address {
    pub key: KeyText,
    /// The path segment for a transid, batchid or webhookid, not validated yet.
    pub id: Option<String>,
    origin: Origin,
    method: &'static str,
    template: &'static str,
}

impl<S: Sync> FromRequestParts<S> for Address {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let in_header = in_header(&parts.headers);
        let (key, id) = segments(parts.uri.path(), in_header.is_some());
        let matched = parts.extensions.get::<MatchedPath>();
        let matched = matched.map_or("", MatchedPath::as_str);
        let mut templates = TEMPLATES.into_iter().filter(|template| template.starts_with(matched));
        // If the ID stands in the key's segment, axum matched the shorter of two routes.
        let template = if id.is_some() { templates.next_back() } else { templates.next() };
        let origin = Origin {
            address: parts.extensions.get().map(|ClientAddress(client)| *client),
            leak: Leak::find(signs(&parts.headers)),
        };
        Ok(Self {
            key: KeyText::find(key, in_header),
            origin,
            method: word(&parts.method),
            id: id.map(|id| decode(id.as_bytes(), false).unwrap_or_default()),
            template: template.unwrap_or_default(),
        })
    }
}

impl Address {
    /// Returns the request's origin, which an application's limits may refuse.
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// Returns the key and the origin of the request.
    pub fn presented(&self) -> Presented<'_> {
        Presented { key: self.key.as_deref(), origin: self.origin }
    }

    /// Turns a handler's result into a response and records the call. Adds the rate limit headers
    /// and the route template.
    pub fn answer(&self, api: &Api, answered: Result<Answer, Failure>) -> Answer {
        let answered = answered.map_err(|failure| match api.service.support_contact() {
            Some(contact) if failure.reason() == Reason::ApiSuspended => {
                failure.saying(&format!("The application is suspended; contact support: {contact}"))
            }
            _ => self.key.explain(failure),
        });
        self.note(api, answered.as_ref());
        let mut answer = answered.unwrap_or_else(Failure::into_answer);
        rate::note(&api.service, self.key.as_deref(), &mut answer);
        self.name(answer)
    }

    /// Returns the response to a method that isn't one of the `allowed`.
    pub fn refuse_method(&self, api: &Api, allowed: &'static str) -> Answer {
        let failure = Failure::of(Reason::MethodNotAllowed);
        self.note(api, Err(&failure));
        let mut answer = self.name(failure.into_answer());
        answer.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
        answer
    }

    /// Whether the request is about one batch.
    pub fn is_of_batch(&self) -> bool {
        self.template == BATCH
    }

    /// Records the call for the application's owner.
    fn note(&self, api: &Api, answered: Result<&Answer, &Failure>) {
        // A success or any other failure means that the key was valid.
        let is_known = !answered.is_err_and(Failure::leaves_key_unknown);
        if let Some(Ok(key)) = self.key.as_deref().map(ApiKey::parse) {
            if is_known {
                let applications = api.service.applications();
                applications.note_key_use(&key, self.origin.address);
                let reason = answered.err().map(Failure::reason);
                applications.note_origin(&key, self.origin, reason);
            }
            api.service.applications().note_call(&key, self.call(answered, is_known));
        }
    }

    /// Returns the record of the call that the application's owner sees.
    fn call(&self, answered: Result<&Answer, &Failure>, is_known: bool) -> ApiCall {
        let recipient = match answered {
            Ok(answer) => answer.extensions().get().map(|Recipient(number)| number.as_str()),
            Err(failure) => failure.recipient(),
        };
        let failure = answered.err();
        ApiCall {
            method: self.method,
            route: self.template,
            from: self.origin.address,
            recipient: recipient.map(str::to_owned),
            reason: failure.map(Failure::reason),
            detail: failure.and_then(Failure::detail),
            is_known,
        }
    }

    /// Attaches the route template to a response, for logs and metrics.
    pub fn name(&self, mut answer: Answer) -> Answer {
        let template = RouteTemplate(self.template.into());
        answer.extensions_mut().insert(template);
        answer
    }
}

/// Returns the headers that may show that a key has leaked. A header that isn't text shows nothing.
fn signs(headers: &HeaderMap) -> LeakSigns<'_> {
    let text = |name: &HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    LeakSigns {
        referer: text(&REFERER),
        fetch_mode: text(&HeaderName::from_static("sec-fetch-mode")),
        user_agent: text(&USER_AGENT),
        forwarded_proto: text(&HeaderName::from_static("x-forwarded-proto")),
    }
}

/// Returns the method's name for the owner's list of calls.
fn word(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "POST" => "POST",
        "HEAD" => "HEAD",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "Another method",
    }
}

/// Returns the key segment and the ID segment of a path. If a header has the key, the ID of a
/// report or batch may be in the key's segment. Keys start with a digit, so any other text there
/// counts as an ID, even a mistyped one.
fn segments(path: &str, key_in_header: bool) -> (Option<&str>, Option<&str>) {
    // The routes below these names have a name of their own before the key.
    let has_name = path.starts_with("/sms/test/") || path.starts_with("/sms/verify/");
    let skipped = if has_name { 3 } else { 2 };
    let mut segments = path.split('/').skip(skipped);
    let (route, first, second) = (segments.next(), segments.next(), segments.next());
    let is_id = |text: &str| {
        let is_no_key = !text.is_empty() && !text.starts_with(|c: char| c.is_ascii_digit());
        let has_prefix = ["m_", "b_", "w_"].iter().any(|prefix| text.starts_with(prefix));
        has_prefix || key_in_header && is_no_key
    };
    match (route, first, second) {
        (Some("reports" | "batches" | "webhooks"), Some(id), None) if is_id(id) => (None, Some(id)),
        (_, key, id) => (key.filter(|key| !key.is_empty()), id),
    }
}

/// The text in the key's position, not validated yet. It has no `Debug`, so that no key gets into a
/// log.
pub enum KeyText {
    /// The request has no key.
    Absent,
    Given(String),
    /// The path and the header have different keys, or there are two Authorization headers. One of
    /// the keys may belong to another customer.
    Different,
}

impl KeyText {
    fn find(in_path: Option<&str>, in_header: Option<Self>) -> Self {
        let in_path = in_path.map(|segment| {
            if segment.contains('%') {
                // A segment that isn't UTF-8 is an invalid key. It must not fall back to the
                // header's key.
                decode(segment.as_bytes(), false).unwrap_or_default()
            } else {
                // Keys need no escapes, so most segments are copied unchanged.
                segment.to_owned()
            }
        });
        match (in_path, in_header) {
            (None, None) => Self::Absent,
            (None, Some(in_header)) => in_header,
            (Some(in_path), None) => Self::Given(in_path),
            (Some(in_path), Some(Self::Given(in_header))) if in_path == in_header => {
                Self::Given(in_path)
            }
            (Some(_), Some(_)) => Self::Different,
        }
    }

    /// Returns `None` if the request has no key. Returns an empty text, which is never a valid key,
    /// if the keys conflict.
    pub fn as_deref(&self) -> Option<&str> {
        match self {
            Self::Absent => None,
            Self::Given(text) => Some(text),
            Self::Different => Some(""),
        }
    }

    /// Adds a detail to `api_invalid` if the request has no key or conflicting keys. The detail
    /// reveals nothing about stored keys.
    fn explain(&self, failure: Failure) -> Failure {
        match self {
            Self::Absent if failure.reason() == Reason::ApiInvalid => failure.saying(NO_KEY),
            Self::Different if failure.reason() == Reason::ApiInvalid => {
                failure.saying(DIFFERENT_KEYS)
            }
            _ => failure,
        }
    }
}

/// Returns the key of the Authorization header. Two headers count as conflicting keys, since they
/// may belong to different customers.
fn in_header(headers: &HeaderMap) -> Option<KeyText> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    match (values.next(), values.next()) {
        (Some(value), None) => bearer(value).map(|token| KeyText::Given(token.to_owned())),
        (None, _) => None,
        (Some(_), Some(_)) => Some(KeyText::Different),
    }
}

/// Returns the token of `Authorization: Bearer …` (RFC 6750 §2.1). The scheme is case-insensitive
/// (RFC 9110 §11.1).
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

#[cfg(test)]
mod tests;
