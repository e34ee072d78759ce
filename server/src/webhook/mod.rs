//! Sends events to the endpoints of customers, as Standard Webhooks describes.
//!
//! Each call makes one attempt: one request, without redirects, proxies or retries. The caller
//! decides when the next attempt follows. hyper-util repeats a request only if a kept connection
//! turned out to be closed and hyper had written nothing of the request.

mod checker;
mod delivery;
mod fault;
mod outcome;
mod resolver;
mod sender;
mod signature;

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use axum::http::{HeaderValue, header};
use reqwest::dns::Resolve;
use reqwest::{Client, Method, Request, redirect, retry};
use service::EndpointRules;
use tokio::time::Instant;
use tokio_rustls::rustls::ClientConfig;

use crate::config_error::ConfigError;
use crate::tls;
use outcome::KeptAnswer;
use resolver::{CheckedResolver, DnsResolver};

pub use delivery::Delivery;
pub use outcome::Outcome;
pub use sender::Sender;

/// The maximum time of an attempt, from the DNS lookup to the end of the answer.
const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(15);
/// The maximum time for connecting, including the DNS lookup and TLS.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// How long an idle connection is kept. Most servers close idle connections after 5 s or more. If
/// the endpoint closes a connection just as we send a request, the attempt fails.
const IDLE_TIMEOUT: Duration = Duration::from_secs(4);
/// The maximum number of idle connections to one host. There are many hosts.
const IDLE_PER_HOST_MAX: usize = 8;
/// The maximum number of bytes that are read of an answer's body.
const ANSWER_BYTES_MAX: usize = 64 * 1024;
const USER_AGENT: &str = concat!("Heliograph/", env!("CARGO_PKG_VERSION"));

/// Sends webhooks. All endpoints share one connection pool, so a process needs one client.
pub struct WebhookClient {
    client: Client,
    rules: Arc<EndpointRules>,
}

impl WebhookClient {
    /// Creates the HTTP client without connecting yet. It trusts the public authorities.
    pub fn new(rules: EndpointRules) -> Result<Self, ConfigError> {
        let resolver = DnsResolver::new().map_err(|error| not_set_up(&error))?;
        Self::with(rules, tls::client(None)?, ATTEMPT_TIMEOUT, resolver)
    }

    /// Tests trust other authorities, wait less, and resolve names themselves.
    fn with(
        rules: EndpointRules,
        tls: ClientConfig,
        timeout: Duration,
        resolver: impl Resolve + 'static,
    ) -> Result<Self, ConfigError> {
        let rules = Arc::new(rules);
        let client = Client::builder()
            .tls_backend_preconfigured(tls)
            .http1_only()
            // A proxy from the environment would resolve the names itself, unchecked.
            .no_proxy()
            // A redirect could lead to an address that isn't allowed.
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .dns_resolver(CheckedResolver::new(Arc::clone(&rules), resolver))
            .connect_timeout(CONNECT_TIMEOUT.min(timeout))
            .timeout(timeout)
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(IDLE_PER_HOST_MAX)
            .user_agent(USER_AGENT)
            .build()
            .map_err(|error| not_set_up(&error))?;
        Ok(Self { client, rules })
    }

    /// Makes one attempt to deliver an event. It ends within 15 s. If the future is dropped, the
    /// endpoint may or may not have received the event.
    pub async fn deliver(&self, delivery: &Delivery<'_>) -> Outcome {
        let started = Instant::now();
        let exchanged = match self.request(delivery) {
            Ok(request) => self.exchange(request).await,
            Err(error) => Err(error),
        };
        let latency = started.elapsed();
        match exchanged {
            Ok(answer) => answer.outcome(delivery.timestamp, latency),
            Err(error) => Outcome::without_answer(error, latency),
        }
    }

    /// Checks the URL again, because the rules may have changed since it was stored. Also, reqwest
    /// doesn't resolve literal addresses, so only this checks them.
    fn request(&self, delivery: &Delivery<'_>) -> Result<Request, String> {
        let url = self.rules.check_url(delivery.url).map_err(|fault| fault.to_string())?;
        let mut request = Request::new(Method::POST, url.into_url());
        let headers = request.headers_mut();
        signature::add_headers(headers, delivery)?;
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        *request.body_mut() = Some(delivery.body.clone().into());
        Ok(request)
    }

    /// Sends the request and reads the answer. Once the status is known, it counts, even if the
    /// rest of the answer is too long or never comes: the endpoint has decided by then.
    async fn exchange(&self, request: Request) -> Result<KeptAnswer, String> {
        let response = self.client.execute(request).await;
        let mut response = response.map_err(|error| fault::sentence(&error))?;
        let mut answer = KeptAnswer::new(response.status(), response.headers());
        let mut read = 0;
        while let Ok(Some(chunk)) = response.chunk().await {
            answer.push(&chunk);
            read += chunk.len();
            if read >= ANSWER_BYTES_MAX {
                break;
            }
        }
        Ok(answer)
    }
}

fn not_set_up(error: &dyn Error) -> ConfigError {
    ConfigError::new(format!("the webhook client can't be set up: {error}"))
}

#[cfg(test)]
mod tests;
