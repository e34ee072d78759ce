//! The endpoints where carriers post receipts and messages from handsets:
//! `/carriers/{name}/{secret}` and `/carriers/{name}/inbound/{secret}` on the public address.
//!
//! The secret is the last segment of the path, because many carriers accept only a URL. No log
//! contains the secret: access lines show the route's template.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{self, Body, Bytes};
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use domain::MessageStatus;
use domain::support::ReceiptKind;
use parking_lot::{Mutex, RwLock};
use serde_json::Value;
use service::{CARRIER_MESSAGE_ID_CHARS_MAX, CarrierReceipt, RawReceipt, Service};
use subtle::ConstantTimeEq as _;

use super::inbound;
use super::lists::each;
use super::receipt::{HttpReceipt, NoReceipt, ReceiptState, fields, receipt};
use crate::api;
use crate::config::carriers::{
    CarrierKind, CarrierSettings, InboundSettings, ReceiptSettings, Secret,
};

const RECEIPTS_PATH: &str = "/carriers/{name}/{secret}";
const INBOUND_PATH: &str = "/carriers/{name}/inbound/{secret}";
/// The maximum size of a body in bytes. A receipt has a few hundred.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// The number of seconds after which a carrier should repeat a receipt that we couldn't store.
const RETRY_AFTER_S: &str = "5";
/// The shortest time between two log lines about posts that can't be stored. On a full disk, every
/// post fails, and the log may be on that disk, too.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// The shortest time between two log lines about a carrier's refused posts. Anybody can post one.
const REFUSED_LOG_INTERVAL: Duration = Duration::from_mins(1);

struct Endpoint {
    service: Service,
    posting: Arc<PostingCarriers>,
}

/// The carriers that post to us, by name. A reload of the settings changes them.
#[derive(Default)]
pub struct PostingCarriers(RwLock<Arc<Posting>>);

/// The names of all HTTP carriers, each with its settings for posts, if it has any.
#[derive(Default)]
struct Posting {
    receipts: Vec<(String, Option<ReceiptSettings>)>,
    inbound: Vec<(String, Option<InboundSettings>)>,
}

impl PostingCarriers {
    pub fn set(&self, carriers: &[CarrierSettings]) {
        let http = || {
            carriers.iter().filter_map(|carrier| match &carrier.kind {
                CarrierKind::Http(http) => Some((carrier.name.clone(), http)),
                CarrierKind::Smpp(_) | CarrierKind::Sandbox => None,
            })
        };
        let receipts = http().map(|(name, http)| (name, http.receipt.clone()));
        let inbound = http().map(|(name, http)| (name, http.inbound.clone()));
        let posting = Posting { receipts: receipts.collect(), inbound: inbound.collect() };
        *self.0.write() = Arc::new(posting);
    }

    fn get(&self) -> Arc<Posting> {
        Arc::clone(&self.0.read())
    }
}

/// A kind of post, and the section of the settings that has its secret.
type Post = (&'static str, &'static str);
const RECEIPT: Post = ("a receipt", "carrier.receipt");
const INBOUND: Post = ("a message", "carrier.inbound");

/// The name of a carrier and the secret, from the path.
type Caller = Result<Path<(String, String)>, PathRejection>;

pub fn router(service: Service, posting: Arc<PostingCarriers>) -> Router {
    Router::new()
        .route(RECEIPTS_PATH, any(take_receipt))
        .route(INBOUND_PATH, any(take_inbound))
        .with_state(Arc::new(Endpoint { service, posting }))
}

async fn take_receipt(
    State(endpoint): State<Arc<Endpoint>>,
    caller: Caller,
    request: Request,
) -> Response {
    let posting = endpoint.posting.get();
    let found = find(&posting.receipts, caller, RECEIPT, |settings| &settings.secret);
    answer(match found {
        Some((name, settings)) => match read(request).await {
            Ok(fields) => endpoint.take_receipts(name, settings, fields).await,
            Err(refusal) => refusal,
        },
        None => unknown(),
    })
}

async fn take_inbound(
    State(endpoint): State<Arc<Endpoint>>,
    caller: Caller,
    request: Request,
) -> Response {
    let posting = endpoint.posting.get();
    let found = find(&posting.inbound, caller, INBOUND, |settings| &settings.secret);
    answer(match found {
        Some((name, settings)) => match read(request).await {
            Ok(fields) => endpoint.take_messages(name, settings, fields).await,
            Err(refusal) => refusal,
        },
        None => unknown(),
    })
}

/// Returns the carrier that the path names, if the secret is right.
fn find<T>(
    carriers: &[(String, Option<T>)],
    caller: Caller,
    (what, section): Post,
    secret_of: impl Fn(&T) -> &Secret,
) -> Option<(&str, &T)> {
    let Path((name, secret)) = caller.ok()?;
    let (name, settings) = carriers.iter().find(|(known, _)| *known == name)?;
    let Some(settings) = settings else {
        if is_log_due(name, section) {
            tracing::warn!(
                carrier = name,
                "{what} for the carrier was refused, because its settings have no [{section}]; add \
                 the section, or ask the carrier not to call this URL"
            );
        }
        return None;
    };
    let known = secret_of(settings).expose().as_bytes();
    if bool::from(known.ct_eq(secret.as_bytes())) {
        return Some((name, settings));
    }
    if is_log_due(name, section) {
        tracing::warn!(
            carrier = name,
            "{what} for the carrier came with a wrong secret; compare the URL that the carrier \
             calls with `secret` in [{section}]"
        );
    }
    None
}

/// Whether to log a refused post: at most one a minute for each carrier and section. Logging slows
/// an answer, which reveals that a carrier has this name. The limit makes such answers rare.
fn is_log_due(carrier: &str, section: &'static str) -> bool {
    static LOGGED: Mutex<BTreeMap<(String, &str), Instant>> = Mutex::new(BTreeMap::new());
    let mut logged = LOGGED.lock();
    let at = logged.get(&(carrier.to_owned(), section));
    if at.is_some_and(|at| at.elapsed() < REFUSED_LOG_INTERVAL) {
        return false;
    }
    logged.insert((carrier.to_owned(), section), Instant::now());
    true
}

/// The response doesn't reveal whether the name or the secret is wrong.
fn unknown() -> Response {
    (StatusCode::NOT_FOUND, "Not found.\n").into_response()
}

fn answer(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn bad_request(words: impl Into<String>) -> Response {
    (StatusCode::BAD_REQUEST, words.into()).into_response()
}

/// Returns the response to a post that is stored, or that the carrier should repeat.
fn stored(carrier: &str, recorded: service::Result<()>) -> Response {
    let Err(error) = recorded else {
        // The response has no body, because some carriers send it to the handset as a reply.
        return StatusCode::OK.into_response();
    };
    log_unstored(carrier, &error);
    let again = [(RETRY_AFTER, RETRY_AFTER_S)];
    (StatusCode::SERVICE_UNAVAILABLE, again, "Try again in a few seconds.\n").into_response()
}

/// Logs that a post can't be stored, at most once a second for all carriers. `posts` is the number
/// of such posts since the last line.
fn log_unstored(carrier: &str, error: &service::Error) {
    static LOGGED: Mutex<(Option<Instant>, u64)> = Mutex::new((None, 0));
    let mut logged = LOGGED.lock();
    logged.1 += 1;
    if logged.0.is_some_and(|at| at.elapsed() < LOG_INTERVAL) {
        return;
    }
    let posts = std::mem::take(&mut logged.1);
    logged.0 = Some(Instant::now());
    drop(logged);
    tracing::error!(carrier, posts, detail = ?error, "a post can't be stored; the carrier should \
        repeat it");
}

impl Endpoint {
    /// Stores all receipts of a post, or refuses the post.
    async fn take_receipts(
        &self,
        carrier: &str,
        settings: &ReceiptSettings,
        post: Value,
    ) -> Response {
        let (mut receipts, mut raw) = (Vec::new(), Vec::new());
        for fields in each(post, &settings.message_id) {
            match read_receipt(carrier, settings, &fields) {
                Ok(receipt) => {
                    raw.push(raw_of(settings, &receipt));
                    receipts.extend(receipt_of(receipt));
                }
                Err(words) => return bad_request(words),
            }
        }
        let delivery = self.service.delivery();
        let mut recorded = if receipts.is_empty() {
            Ok(())
        } else {
            delivery.record_carrier_receipts(carrier, receipts).await.map(drop)
        };
        if recorded.is_ok() {
            recorded = delivery.record_unknown_states(carrier, &mut raw).await;
        }
        if recorded.is_ok() {
            delivery.keep_raw_receipts(carrier, raw);
        }
        stored(carrier, recorded)
    }

    /// Stores all messages of a post, or refuses the post.
    async fn take_messages(
        &self,
        carrier: &str,
        settings: &InboundSettings,
        post: Value,
    ) -> Response {
        let all = each(post, &settings.message);
        let messages: Option<Vec<_>> =
            all.iter().map(|fields| inbound::message(settings, fields)).collect();
        let Some(messages) = messages.filter(|messages| !messages.is_empty()) else {
            tracing::warn!(carrier, "a posted message lacks a number or its text, or has several");
            return bad_request(
                "Post each message with its number, recipient and text, alone or in a list.\n",
            );
        };
        stored(carrier, self.service.delivery().record_inbound(carrier, messages).await)
    }
}

/// Reads a receipt. Returns the text of the response if it can't be read.
fn read_receipt(
    carrier: &str,
    settings: &ReceiptSettings,
    fields: &Value,
) -> Result<HttpReceipt, String> {
    let receipt = match receipt(settings, fields) {
        Ok(receipt) if names_one(&receipt) => receipt,
        Err(NoReceipt::Several) => {
            tracing::warn!(
                carrier,
                "a post was refused, since it has several message IDs or statuses outside of a list"
            );
            let words = "The post has several message IDs or statuses outside of a list.\n";
            return Err(words.to_owned());
        }
        Ok(_) | Err(NoReceipt::Incomplete) => {
            tracing::warn!(carrier, "a posted receipt has no valid message ID or no status");
            return Err("The receipt has no valid message ID or no status.\n".to_owned());
        }
    };
    if receipt.message_id.chars().count() > CARRIER_MESSAGE_ID_CHARS_MAX {
        tracing::warn!(carrier, "a posted receipt's message ID is too long");
        return Err(format!(
            "The message ID has more than {CARRIER_MESSAGE_ID_CHARS_MAX} characters.\n"
        ));
    }
    Ok(receipt)
}

/// Reads the fields of a post: those of a JSON body, or the parameters of the query and of a form
/// together. Returns the response if they can't be read.
async fn read(request: Request) -> Result<Value, Response> {
    let (head, body) = request.into_parts();
    // The route matches every method. HEAD, for example, must change nothing.
    if !matches!(head.method, Method::GET | Method::POST) {
        let allow = [(ALLOW, "GET, POST")];
        let words = "Use GET or POST.\n";
        return Err((StatusCode::METHOD_NOT_ALLOWED, allow, words).into_response());
    }
    let fields = read_fields(&head, body).await;
    fields.map_err(|status| (status, "The body can't be read.\n").into_response())
}

async fn read_fields(head: &Parts, body: Body) -> Result<Value, StatusCode> {
    let body = if head.method == Method::POST {
        (body::to_bytes(body, BODY_BYTES_MAX).await).map_err(|_| StatusCode::PAYLOAD_TOO_LARGE)?
    } else {
        Bytes::new()
    };
    if api::body::is(content_type(&head.headers), "application/json") {
        return serde_json::from_slice(&body).map_err(|_| StatusCode::BAD_REQUEST);
    }
    let query = head.uri.query().unwrap_or_default().as_bytes();
    let pairs = api::form::raw_pairs(query).chain(api::form::raw_pairs(&body));
    Ok(fields(pairs.map(|(name, value)| (read_text(name), read_text(value)))))
}

/// Reads a text as UTF-8, or as Latin-1 if it isn't UTF-8.
fn read_text(bytes: Vec<u8>) -> String {
    let as_latin1 = |bytes: &[u8]| bytes.iter().copied().map(char::from).collect();
    String::from_utf8(bytes).unwrap_or_else(|error| as_latin1(error.as_bytes()))
}

fn content_type(headers: &HeaderMap) -> &str {
    let value = headers.get(CONTENT_TYPE);
    value.and_then(|value| value.to_str().ok()).unwrap_or_default()
}

/// Whether the message ID is plausible: no carrier uses control characters.
fn names_one(receipt: &HttpReceipt) -> bool {
    !receipt.message_id.contains(char::is_control)
}

/// Returns the fields of a receipt that are kept for staff: those that we read. Others may contain
/// the message's text.
fn raw_of(settings: &ReceiptSettings, receipt: &HttpReceipt) -> RawReceipt {
    RawReceipt {
        kind: match receipt.state {
            ReceiptState::Delivered | ReceiptState::Failed | ReceiptState::Expired => {
                ReceiptKind::Final
            }
            ReceiptState::Enroute => ReceiptKind::Intermediate,
            ReceiptState::Unknown => ReceiptKind::UnknownState,
        },
        text_id: Some(receipt.message_id.clone()),
        parameter_id: None,
        number: String::new(),
        state: receipt.status.clone(),
        error: receipt.error.clone(),
        raw: format!(
            "{}={} {}={} error={}",
            settings.message_id,
            receipt.message_id,
            settings.status,
            receipt.status,
            receipt.error.as_deref().unwrap_or_default()
        ),
        message_id: None,
    }
}

/// Returns the message's final status, or `None` if the receipt has none.
fn receipt_of(receipt: HttpReceipt) -> Option<CarrierReceipt> {
    let status = match receipt.state {
        ReceiptState::Delivered => MessageStatus::Delivered,
        ReceiptState::Failed => MessageStatus::Failed,
        ReceiptState::Expired => MessageStatus::Expired,
        ReceiptState::Enroute | ReceiptState::Unknown => return None,
    };
    Some(CarrierReceipt {
        message_ids: vec![receipt.message_id],
        status,
        error: receipt.error,
        user_reference: None,
        number: String::new(),
        sender: String::new(),
        submitted_at: None,
        received_at: None,
        written: service::WrittenReceipt::default(),
    })
}
