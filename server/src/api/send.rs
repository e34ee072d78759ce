//! `/sms/send`: one message.

use axum::http::{HeaderMap, Request};
use domain::{ApiKey, MessageText, Number, Reason, RequestId};
use hyper::body::Incoming;
use serde::Serialize;
use service::{IdempotencyKey, SendError, SendRequest};

use super::answer::{Answer, Failure, Head, json};
use super::credentials::KeyText;
use super::parameters::Parameters;
use super::{Api, body, shared_parameters};
use crate::json::Amount;

/// The parameters of a send. Others are ignored.
const KNOWN: [&str; 4] = ["number", "message", "requestid", "dryrun"];

#[derive(Serialize)]
struct Accepted<'a> {
    #[serde(flatten)]
    head: Head,
    #[serde(skip_serializing_if = "Option::is_none")]
    requestid: Option<&'a str>,
    balance: Amount,
    /// Null for a dry run.
    transid: Option<String>,
    pages: usize,
    cost: Amount,
    currency: &'a str,
    warnings: &'a [&'static str],
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    dryrun: bool,
}

/// A send by GET: everything is in the query, so that a good one costs one call of the service,
/// which checks key, status and sender itself. Only when the parameters are bad are those checked
/// before.
pub async fn get(api: &Api, key: &KeyText, request: &Request<Incoming>) -> Result<Answer, Failure> {
    let parameters = Parameters::of_query(&KNOWN, request.uri().query());
    let headers = request.headers();
    let failure = match SendParameters::read(api, &parameters, headers) {
        Ok(send) => return send.hand_over(api, key).await,
        Err(failure) => failure,
    };
    let requestid = requestid(&parameters);
    let idempotency = shared_parameters::idempotency(headers).ok().flatten();
    let authorized = api
        .service
        .authorize_send(key.as_deref(), idempotency.as_ref());
    let failure = match authorized.await {
        Ok(access) => shared_parameters::refused(api, key, &access, &parameters, failure).await,
        Err(reason) => reason.into(),
    };
    Err(failure.about(requestid))
}

/// A send by POST: whoever may not send is told so before the body is read.
pub async fn post(api: &Api, key: &KeyText, request: Request<Incoming>) -> Answer {
    let (head, body) = request.into_parts();
    let mut parameters = Parameters::of_query(&KNOWN, head.uri.query());
    let idempotency = shared_parameters::idempotency(&head.headers).ok().flatten();
    let authorized = api
        .service
        .authorize_send(key.as_deref(), idempotency.as_ref());
    let access = match authorized.await {
        Ok(access) => access,
        Err(reason) => {
            body::drop_rest(body);
            let requestid = requestid(&parameters);
            return Failure::of(reason).about(requestid).into_response();
        }
    };
    let read = body::read_parameters(&head.headers, body, &mut parameters, api.message_pages_max);
    let read = match read.await {
        Ok(()) => SendParameters::read(api, &parameters, &head.headers),
        Err(failure) => Err(failure),
    };
    let answered = match read {
        Ok(send) => send.hand_over(api, key).await,
        Err(failure) => {
            let failure = shared_parameters::refused(api, key, &access, &parameters, failure).await;
            Err(failure.about(requestid(&parameters)))
        }
    };
    answered.unwrap_or_else(Failure::into_response)
}

/// The request id when there is a good one: errors carry it too.
fn requestid(parameters: &Parameters) -> Option<RequestId> {
    shared_parameters::requestid(parameters).ok().flatten()
}

/// What the parameters ask for.
struct SendParameters {
    number: Number,
    message: MessageText,
    requestid: Option<RequestId>,
    idempotency: Option<IdempotencyKey>,
    dry_run: bool,
}

impl SendParameters {
    /// The first fault wins: number, message, requestid, dryrun, the idempotency key, which a dry
    /// run has no use for.
    fn read(api: &Api, parameters: &Parameters, headers: &HeaderMap) -> Result<Self, Failure> {
        let number = parameters.required("number", Reason::InvalidNumber)?;
        let number = Number::parse(number).map_err(|_| Reason::InvalidNumber)?;
        let message = shared_parameters::message(parameters, api.message_pages_max)?;
        let requestid = shared_parameters::requestid(parameters)?;
        let dry_run = shared_parameters::dry_run(parameters)?;
        let idempotency = if dry_run {
            None
        } else {
            shared_parameters::idempotency(headers)?
        };
        Ok(Self {
            number,
            message,
            requestid,
            idempotency,
            dry_run,
        })
    }

    /// Hands it to the service and words the outcome.
    async fn hand_over(self, api: &Api, key: &KeyText) -> Result<Answer, Failure> {
        let key = key.as_deref().and_then(|text| ApiKey::parse(text).ok());
        let Some(key) = key else {
            return Err(Failure::of(Reason::ApiInvalid).about(self.requestid));
        };
        let warnings: &[&'static str] = if self.number.looks_local(&api.country_code) {
            &[shared_parameters::LOOKS_LOCAL]
        } else {
            &[]
        };
        let (requestid, dry_run) = (self.requestid.clone(), self.dry_run);
        let request = SendRequest {
            key,
            number: self.number,
            message: self.message,
            requestid: self.requestid,
            idempotency: self.idempotency,
            dry_run,
        };
        let sent = match api.service.send(request).await {
            Ok(sent) => sent,
            Err(SendError::Refused(reason)) => return Err(Failure::of(reason).about(requestid)),
            Err(SendError::Lost) => return Err(Failure::unanswered()),
        };
        if !dry_run && !sent.replayed {
            api.metrics.send_accepted();
        }
        let response = json(&Accepted {
            head: Head::success(),
            requestid: requestid.as_ref().map(RequestId::as_str),
            balance: Amount(sent.balance),
            transid: sent.transid.map(|id| id.to_string()),
            pages: sent.pages,
            cost: Amount(sent.cost),
            currency: &api.currency,
            warnings,
            dryrun: dry_run,
        });
        Ok(shared_parameters::answered(response, sent.replayed))
    }
}
