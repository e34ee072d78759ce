//! `/sms/send`: one message.

use axum::body::Body;
use axum::http::{HeaderMap, Request, Response};
use domain::message::InvalidMessage;
use domain::{ApiKey, MessageText, Number, Reason, RequestId};
use hyper::body::Incoming;
use serde::Serialize;
use service::{SendError, SendRequest};

use super::answer::{Failure, Head, json};
use super::credentials::KeyText;
use super::parameters::Parameters;
use super::{Api, body};
use crate::json::Amount;

/// The parameters of a send. Others are ignored.
const KNOWN: [&str; 4] = ["number", "message", "requestid", "dryrun"];
/// Makes a send safe to repeat, once there is such a thing.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

#[derive(Serialize)]
struct Accepted<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    requestid: Option<&'a str>,
    balance: Amount,
    transid: Option<String>,
    pages: usize,
    cost: Amount,
    currency: &'a str,
    warnings: &'a [&'static str],
}

/// A send by GET: everything is in the query, so that a good one costs one call of the service, which
/// checks key, status and sender itself. Only when the parameters are bad are those checked before.
pub async fn get(
    api: &Api,
    key: &KeyText,
    request: &Request<Incoming>,
) -> Result<Response<Body>, Failure> {
    let parameters = Parameters::of_query(&KNOWN, request.uri().query());
    match Order::read(api, &parameters, request.headers()) {
        Ok(order) => order.place(api, key).await,
        Err(failure) => {
            let requestid = requestid(&parameters);
            match api.service.authorize_send(key.as_deref(), None).await {
                Ok(_) => Err(failure.about(requestid)),
                Err(reason) => Err(Failure::of(reason).about(requestid)),
            }
        }
    }
}

/// A send by POST: whoever may not send is told so before the body is read.
pub async fn post(api: &Api, key: KeyText, request: Request<Incoming>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let mut parameters = Parameters::of_query(&KNOWN, head.uri.query());
    if let Err(reason) = api.service.authorize_send(key.as_deref(), None).await {
        body::drop_rest(body);
        return Failure::of(reason)
            .about(requestid(&parameters))
            .into_response();
    }
    let read = body::read_parameters(&head.headers, body, &mut parameters, api.message_pages_max);
    if let Err(failure) = read.await {
        return failure.about(requestid(&parameters)).into_response();
    }
    let placed = match Order::read(api, &parameters, &head.headers) {
        Ok(order) => order.place(api, &key).await,
        Err(failure) => Err(failure.about(requestid(&parameters))),
    };
    placed.unwrap_or_else(Failure::into_response)
}

/// The request id when there is a good one: errors carry it too.
fn requestid(parameters: &Parameters) -> Option<RequestId> {
    let text = parameters
        .optional("requestid", Reason::InvalidRequestid)
        .ok()??;
    RequestId::parse(text).ok()
}

/// What the parameters ask for.
struct Order {
    number: Number,
    message: MessageText,
    requestid: Option<RequestId>,
}

impl Order {
    /// The first fault wins, in the order number, message, requestid.
    fn read(api: &Api, parameters: &Parameters, headers: &HeaderMap) -> Result<Self, Failure> {
        let number = parameters.required("number", Reason::InvalidNumber)?;
        let number = Number::parse(number).map_err(|_| Reason::InvalidNumber)?;
        let message = parameters.required("message", Reason::InvalidMessage)?;
        let message =
            MessageText::parse(message.to_owned(), api.message_pages_max).map_err(|error| {
                match error {
                    InvalidMessage::Empty | InvalidMessage::Nul => Reason::InvalidMessage,
                    InvalidMessage::TooLong { .. } => Reason::MessageTooLong,
                }
            })?;
        let requestid = parameters
            .optional("requestid", Reason::InvalidRequestid)?
            .map(RequestId::parse)
            .transpose()
            .map_err(|_| Reason::InvalidRequestid)?;
        refuse_unsupported(parameters, headers)?;
        Ok(Self {
            number,
            message,
            requestid,
        })
    }

    /// Hands it to the service and words the outcome.
    async fn place(self, api: &Api, key: &KeyText) -> Result<Response<Body>, Failure> {
        let key = key.as_deref().and_then(|text| ApiKey::parse(text).ok());
        let Some(key) = key else {
            return Err(Failure::of(Reason::ApiInvalid).about(self.requestid));
        };
        let warnings: &[&'static str] = if self.number.looks_local(&api.country_code) {
            &["looks_local"]
        } else {
            &[]
        };
        let requestid = self.requestid.clone();
        let request = SendRequest {
            key,
            number: self.number,
            message: self.message,
            requestid: self.requestid,
            idempotency: None,
            dry_run: false,
        };
        let sent = match api.service.send(request).await {
            Ok(sent) => sent,
            Err(SendError::Refused(reason)) => return Err(Failure::of(reason).about(requestid)),
            Err(SendError::Lost) => return Err(Failure::unanswered()),
        };
        api.metrics.send_accepted();
        Ok(json(&Accepted {
            head: Head::success(),
            requestid: requestid.as_ref().map(RequestId::as_str),
            balance: Amount(sent.balance),
            transid: sent.transid.map(|id| id.to_string()),
            pages: sent.pages,
            cost: Amount(sent.cost),
            currency: &api.currency,
            warnings,
        }))
    }
}

/// A dry run that sends would cost money, and so would a repeated request that counts on its key.
fn refuse_unsupported(parameters: &Parameters, headers: &HeaderMap) -> Result<(), Failure> {
    if parameters.has("dryrun") {
        return Err(Failure::with_detail(
            Reason::InvalidParameter,
            "dryrun isn't supported; nothing was sent.",
        ));
    }
    if headers.contains_key(IDEMPOTENCY_KEY) {
        return Err(Failure::with_detail(
            Reason::InvalidParameter,
            "The header Idempotency-Key isn't supported; nothing was sent.",
        ));
    }
    Ok(())
}
