//! A carrier behind an HTTP API. The settings describe the API.
//!
//! The client sends each request once: it follows no redirects, and reqwest's retries are off.
//! hyper-util retries a request only if a kept connection was closed before hyper wrote any of the
//! request. So the carrier can't get a message twice.

mod answer;
pub mod connection;
pub mod endpoint;
mod fault;
mod inbound;
mod lists;
mod receipt;
mod submit;

use std::borrow::Cow;
use std::error::Error as _;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, Method, header};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use domain::message::{Encoding, encoding};
use parking_lot::Mutex;
use reqwest::{Client, Request, RequestBuilder, Url, redirect, retry};
use smpp::SharedPace;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_rustls::rustls;

use super::unanswered::Unanswered;
use crate::config::carriers::{Body, Escape, HttpSettings, Placeholder, Secret};
use crate::config_error::ConfigError;
use crate::tls;
use answer::{Answer, Head, HttpOutcome, WrittenAnswer};
use fault::{HttpFault, HttpFaultKind};
use submit::HttpSubmit;

/// The maximum time for connecting, including the DNS lookup and TLS. At most half of a request's
/// timeout: a request that reaches its own timeout then had a connection, and may have been sent.
const CONNECT_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// How long an idle connection is kept. Most carriers close idle connections after 5 s or more. If
/// the carrier closes a connection just as we send a request, we can't know whether it arrived.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum size of an answer in bytes. An answer about one message isn't longer.
const ANSWER_BYTES_MAX: usize = 64 * 1024;

/// The minimum length of a word in the templates that may be a key. It also contains a digit.
const KEY_MIN: usize = 8;

/// Sends messages to one carrier.
pub struct HttpCarrier {
    client: Client,
    settings: HttpSettings,
    /// The secrets that a carrier may echo, and that must not be logged: see [`secrets`].
    secrets: Vec<String>,
    places: Semaphore,
    /// The rate limit, which other processes share.
    pub(super) pace: Arc<SharedPace>,
    unanswered: Mutex<Unanswered>,
}

impl HttpCarrier {
    /// Creates the HTTP client without connecting yet.
    pub fn new(settings: HttpSettings) -> Result<Self, ConfigError> {
        let tls = tls::client_with(settings.ca_file.as_deref(), settings.client.as_ref())?;
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            .no_proxy()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .connect_timeout(CONNECT_TIMEOUT_MAX.min(settings.timeout / 2))
            .timeout(settings.timeout)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(settings.connections)
            .build()
            .map_err(|error| {
                ConfigError::new(format!("the HTTP client can't be set up: {error}"))
            })?;
        Ok(Self {
            client,
            secrets: secrets(&settings),
            places: Semaphore::new(settings.connections),
            pace: Arc::new(SharedPace::new(settings.rate)),
            unanswered: Mutex::default(),
            settings,
        })
    }

    /// Waits for a free slot and for the rate limit, sends one message and returns the outcome,
    /// with the answer if there was one. If the future is dropped, the message may or may not have
    /// been sent.
    pub async fn submit(&self, submit: &HttpSubmit) -> (HttpOutcome, Option<WrittenAnswer>) {
        let request = match self.request(submit) {
            Ok(request) => request,
            Err(error) => {
                let error = HttpFault::new(HttpFaultKind::NotSent, error);
                return (HttpOutcome::NotSent { error }, None);
            }
        };
        // The semaphore is never closed.
        let _place = self.places.acquire().await.ok();
        let has_turn = self.pace.turn(submit.not_after).await;
        if !has_turn || Instant::now() > submit.not_after {
            return (HttpOutcome::TooLate, None);
        }
        self.unanswered.lock().begin();
        let exchanged = self.exchange(request).await;
        self.unanswered.lock().end();
        match exchanged {
            Ok(answer) => {
                let outcome = answer.outcome(&self.settings.answers, submit, &self.secrets);
                // If the answer has an ID, nothing else in it is worth keeping for staff.
                let is_known = matches!(outcome, HttpOutcome::Accepted { message_id: Some(_) });
                (outcome, (!is_known).then(|| answer.written(submit, &self.secrets)))
            }
            Err(error) => (failed(&error), None),
        }
    }

    /// Returns since when the carrier has answered nothing although requests are under way.
    fn unanswered_since(&self) -> Option<Instant> {
        self.unanswered.lock().since()
    }

    /// Sends a request without a message to the carrier's host. Any answer is good.
    pub async fn probe(&self) -> Result<(), HttpFault> {
        let url = self.settings.url.fill(|_| Cow::Borrowed(""), Escape::Percent);
        let url = Url::parse(&url).and_then(|url| url.join("/"));
        let mut url =
            url.map_err(|error| HttpFault::new(HttpFaultKind::NotSent, error.to_string()))?;
        // A probe needs no password. Neither call fails, because the URL has a host.
        let _ = url.set_username("");
        let _ = url.set_password(None);
        match self.client.execute(Request::new(Method::HEAD, url)).await {
            Ok(_) => Ok(()),
            Err(error) => Err(fault_of(&error).0),
        }
    }

    fn request(&self, submit: &HttpSubmit) -> Result<Request, String> {
        let settings = &self.settings;
        let value = |placeholder| self.value(submit, placeholder);
        let invalid = |what: &str| format!("the settings produce no valid {what} for this message");
        let url = settings.url.fill(value, Escape::Percent);
        let url = Url::parse(&url).map_err(|_| invalid("URL"))?;
        let mut request = Request::new(settings.method.clone(), url);
        let body = match &settings.body {
            Body::None => None,
            Body::Json(json) => Some((json.fill(value, Escape::Json), "application/json")),
            Body::Form(form) => {
                Some((form.fill(value, Escape::Percent), "application/x-www-form-urlencoded"))
            }
        };
        if let Some((text, content_type)) = body {
            *request.body_mut() = Some(text.into());
            let content_type = HeaderValue::from_static(content_type);
            request.headers_mut().insert(header::CONTENT_TYPE, content_type);
        }
        for (name, template) in &settings.headers {
            let text = template.fill(value, Escape::Plain);
            let mut value = HeaderValue::from_str(&text).map_err(|_| invalid("header"))?;
            value.set_sensitive(true);
            request.headers_mut().insert(name, value);
        }
        let Some(username) = &settings.username else {
            return Ok(request);
        };
        let request = RequestBuilder::from_parts(self.client.clone(), request);
        let request = request.basic_auth(username, settings.password.as_ref().map(Secret::expose));
        request.build().map_err(|_| invalid("header"))
    }

    fn value<'a>(&'a self, submit: &'a HttpSubmit, placeholder: Placeholder) -> Cow<'a, str> {
        let exposed = |secret: &'a Option<Secret>| secret.as_ref().map_or("", Secret::expose);
        match placeholder {
            Placeholder::Number => submit.number.as_str().into(),
            Placeholder::Sender => submit.sender.as_str().into(),
            Placeholder::Message => submit.message.as_str().into(),
            Placeholder::Transid => submit.transid.as_str().into(),
            Placeholder::Application => submit.application.as_str().into(),
            Placeholder::Validity => submit.validity_s.to_string().into(),
            Placeholder::Alphabet => {
                let word =
                    self.settings.alphabet.as_ref().map(|words| match encoding(&submit.message) {
                        Encoding::Gsm7 => &words.gsm7,
                        Encoding::Ucs2 => &words.unicode,
                    });
                word.map_or("", String::as_str).into()
            }
            Placeholder::ReceiptUrl => exposed(&self.settings.receipt_url).into(),
            Placeholder::Password => exposed(&self.settings.password).into(),
        }
    }

    async fn exchange(&self, request: Request) -> reqwest::Result<Answer> {
        let mut response = self.client.execute(request).await?;
        let head = Head::of(&response);
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(Answer::new(head, &body))
    }
}

/// Returns the secrets that a request may contain: the password, its basic authentication, the last
/// segment of the URL for receipts, and each word in the templates that may be a key.
fn secrets(settings: &HttpSettings) -> Vec<String> {
    let password = settings.password.as_ref().map_or("", Secret::expose);
    let user = settings.username.as_deref().unwrap_or_default();
    let receipt_url = settings.receipt_url.as_ref().map_or("", Secret::expose);
    let receipt_secret = receipt_url.rsplit('/').next().unwrap_or_default();
    let basic = BASE64_STANDARD.encode(format!("{user}:{password}"));
    let body = match &settings.body {
        Body::None => None,
        Body::Json(body) | Body::Form(body) => Some(body),
    };
    let headers = settings.headers.iter().map(|(_, value)| value);
    let templates = std::iter::once(&settings.url).chain(headers).chain(body);
    let literals = templates.map(|template| template.fill(|_| " ".into(), Escape::Plain));
    let mut secrets = vec![password.to_owned(), receipt_secret.to_owned(), basic];
    for literal in literals {
        let words = literal.split(|c: char| !c.is_ascii_alphanumeric() && !"-_".contains(c));
        let keys =
            words.filter(|word| word.len() >= KEY_MIN && word.bytes().any(|b| b.is_ascii_digit()));
        secrets.extend(keys.map(str::to_owned));
    }
    secrets
}

/// Returns the outcome of a request that failed. Nothing was sent if there was no connection, or if
/// hyper returned the request unsent ("canceled").
fn failed(error: &reqwest::Error) -> HttpOutcome {
    match fault_of(error) {
        (error, false) => HttpOutcome::NotSent { error },
        (error, true) => HttpOutcome::Unknown { error },
    }
}

/// Returns why a request failed, and whether it may have been sent.
fn fault_of(error: &reqwest::Error) -> (HttpFault, bool) {
    let (mut canceled, mut is_http) = (false, true);
    // The innermost error says most. It never contains the URL, which may contain a password.
    let mut words = String::new();
    let mut source = error.source();
    let mut is_alert = false;
    while let Some(inner) = source {
        // With TLS 1.3, a client certificate is refused only after the client's handshake.
        let tls = inner.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
        let tls = tls.and_then(|inside| inside.downcast_ref::<rustls::Error>());
        if let Some(rustls::Error::AlertReceived(_)) = tls {
            is_alert = true;
        }
        let hyper = inner.downcast_ref::<hyper::Error>();
        canceled |= hyper.is_some_and(hyper::Error::is_canceled);
        is_http &= !hyper.is_some_and(hyper::Error::is_parse);
        words = inner.to_string();
        source = inner.source();
    }
    if error.is_connect() {
        let fault = if error.is_timeout() {
            HttpFault::new(HttpFaultKind::ConnectTimeout, words)
        } else {
            HttpFault::connect(error, words)
        };
        (fault, false)
    } else if canceled || error.is_builder() {
        (HttpFault::new(HttpFaultKind::NotSent, words), false)
    } else if error.is_timeout() {
        (HttpFault::new(HttpFaultKind::Unanswered, "no answer in time"), true)
    } else if error.is_decode() {
        (HttpFault::new(HttpFaultKind::AnswerCut, words), true)
    } else if is_alert {
        (HttpFault::new(HttpFaultKind::TlsRefused, words), true)
    } else {
        let kind = if is_http { HttpFaultKind::ConnectionLost } else { HttpFaultKind::NotHttp };
        if error.url().is_some_and(|url| url.scheme() == "http") {
            words += "; if the port expects TLS, \"url\" must begin with https";
        }
        (HttpFault::new(kind, words), true)
    }
}

#[cfg(test)]
mod tests;
