//! The endpoint where upstreams post receipts: `/carriers/{name}/{secret}` on the public address.
//!
//! The secret is the last segment of the path, because many upstreams accept only a URL. No log
//! contains the secret: access lines show the route's template.

use std::sync::Arc;

use axum::Router;
use axum::body::{self, Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use domain::{DeliveryError, MessageStatus};
use serde_json::Value;
use service::{CARRIER_MESSAGE_ID_CHARS_MAX, CarrierReceipt, Service};
use subtle::ConstantTimeEq as _;

use super::receipt::{HttpReceipt, NoReceipt, ReceiptState, fields, receipt};
use crate::api;
use crate::config::carriers::{CarrierKind, CarrierSettings, ReceiptSettings};

const PATH: &str = "/carriers/{name}/{secret}";
/// The maximum size of a body in bytes. A receipt has a few hundred.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The number of seconds after which an upstream should repeat a receipt that we couldn't store.
const RETRY_AFTER_S: &str = "5";
/// The number of characters of a reason that we store.
const ERROR_CHARS_MAX: usize = 100;

struct Endpoint {
    service: Service,
    /// The carriers that post receipts, by name.
    carriers: Vec<(String, ReceiptSettings)>,
}

/// Returns the router for upstreams.
pub fn router(service: Service, carriers: &[CarrierSettings]) -> Router {
    let posting = carriers.iter().filter_map(|carrier| match &carrier.kind {
        CarrierKind::Http(http) => Some((carrier.name.clone(), http.receipt.clone()?)),
        CarrierKind::Smpp(_) | CarrierKind::Sandbox => None,
    });
    let endpoint = Endpoint { service, carriers: posting.collect() };
    Router::new().route(PATH, any(answer)).with_state(Arc::new(endpoint))
}

async fn answer(
    State(endpoint): State<Arc<Endpoint>>,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> Response {
    let found = path.ok().and_then(|Path((name, secret))| {
        let posting = &endpoint.carriers;
        let (name, settings) = posting.iter().find(|(known, _)| *known == name)?;
        let known = settings.secret.expose().as_bytes();
        bool::from(known.ct_eq(secret.as_bytes())).then_some((name, settings))
    });
    let mut response = match found {
        Some((name, settings)) => endpoint.take(name, settings, request).await,
        // The response doesn't reveal whether the name or the secret is wrong.
        None => (StatusCode::NOT_FOUND, "Not found.\n").into_response(),
    };
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

impl Endpoint {
    async fn take(&self, carrier: &str, settings: &ReceiptSettings, request: Request) -> Response {
        let (head, body) = request.into_parts();
        // The route matches every method. HEAD, for example, must change nothing.
        if !matches!(head.method, Method::GET | Method::POST) {
            let allow = [(ALLOW, "GET, POST")];
            return (StatusCode::METHOD_NOT_ALLOWED, allow, "Use GET or POST.\n").into_response();
        }
        let read = match read(&head, body).await {
            Ok(fields) => receipt(settings, &fields),
            Err(status) => return (status, "The body can't be read.\n").into_response(),
        };
        let receipt = match read {
            Ok(receipt) if names_one(&receipt) => receipt,
            Err(NoReceipt::Several) => {
                tracing::warn!(
                    carrier,
                    "a post has several receipts or statuses and was refused, since only one can \
                     be read; have the carrier post each receipt by itself"
                );
                let words = "Post one receipt at a time: this has several messages or statuses.\n";
                return (StatusCode::BAD_REQUEST, words).into_response();
            }
            Ok(_) | Err(NoReceipt::Incomplete) => {
                tracing::warn!(carrier, "a posted receipt has no message ID or no status");
                let words = "The receipt has no message ID or no status.\n";
                return (StatusCode::BAD_REQUEST, words).into_response();
            }
        };
        if receipt.message_id.chars().count() > CARRIER_MESSAGE_ID_CHARS_MAX {
            tracing::warn!(carrier, "a posted receipt's message id is too long");
            let words = format!(
                "The message id has more than {CARRIER_MESSAGE_ID_CHARS_MAX} characters.\n"
            );
            return (StatusCode::BAD_REQUEST, words).into_response();
        }
        if let Some(receipt) = receipt_of(receipt) {
            let delivery = (self.service).delivery();
            let recorded = delivery.record_carrier_receipts(carrier, vec![receipt]);
            if let Err(error) = recorded.await {
                tracing::error!(carrier, detail = ?error, "a receipt can't be stored; the \
                    upstream should repeat it");
                let again = [(RETRY_AFTER, RETRY_AFTER_S)];
                let words = "Try again in a few seconds.\n";
                return (StatusCode::SERVICE_UNAVAILABLE, again, words).into_response();
            }
        }
        "OK\n".into_response()
    }
}

/// Reads the fields of a receipt: those of a JSON body, or the parameters of the query and of a
/// form together.
async fn read(head: &Parts, body: Body) -> Result<Value, StatusCode> {
    let body = if head.method == Method::POST {
        (body::to_bytes(body, BODY_BYTES_MAX).await).map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?
    } else {
        Bytes::new()
    };
    if api::body::is(content_type(&head.headers), "application/json") {
        return serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST);
    }
    let query = head.uri.query().unwrap_or_default().as_bytes();
    let pairs = api::form::pairs(query).chain(api::form::pairs(&body));
    // Some upstreams quote the message's text in another encoding. We don't need the text.
    Ok(fields(pairs.filter_map(|(name, value)| name.zip(value))))
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Returns whether the message ID is plausible: no upstream uses control characters.
fn names_one(receipt: &HttpReceipt) -> bool {
    !receipt.message_id.contains(char::is_control)
}

/// Returns the message's final status, or `None` while the message is on the way.
fn receipt_of(receipt: HttpReceipt) -> Option<CarrierReceipt> {
    let (status, word) = match receipt.state {
        ReceiptState::Delivered => (MessageStatus::Delivered, None),
        ReceiptState::Failed => (MessageStatus::Failed, Some(DeliveryError::Undeliverable)),
        ReceiptState::Expired => (MessageStatus::Expired, Some(DeliveryError::ValidityExpired)),
        ReceiptState::Intermediate => return None,
    };
    let said = receipt.error.map(|error| {
        let kept = error.chars().filter(|c| !c.is_control());
        kept.take(ERROR_CHARS_MAX).collect()
    });
    Some(CarrierReceipt {
        message_ids: vec![receipt.message_id],
        status,
        error: word.map(|word| said.unwrap_or_else(|| word.as_str().to_owned())),
        user_reference: None,
        number: String::new(),
        sender: String::new(),
        submitted_at: None,
    })
}
