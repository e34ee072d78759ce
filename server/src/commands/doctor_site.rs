//! The doctor's requests to the running process and to the URL that customers use.

use std::error::Error;
use std::time::Duration;

use axum::http::header::{COOKIE, DATE, LOCATION};
use domain::Timestamp;
use reqwest::{Client, Response, redirect};
use service::Entropy;

use super::finding::Finding;
use crate::config::Settings;
use crate::tls;
use crate::web::Knock;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How far the answer's `Date` may differ from the time of the request, in milliseconds. `Date` has
/// whole seconds, and is as late as the answer.
const CLOCKS_APART_MS: i64 = 30_000;

/// Asks the process of these settings whether it is ready, and requests a page at the base URL.
/// `form_key` proves that this installation answers. It is `None` if the database can't be read.
pub async fn check(settings: &Settings, form_key: Option<&str>, now: Timestamp) -> Vec<Finding> {
    let client = match client() {
        Ok(client) => client,
        Err(why) => return vec![Finding::fault("base URL", why)],
    };
    let (service, runs) = service(settings, &client).await;
    let mut found = vec![service];
    let Some(base_url) = &settings.base_url else {
        let text = format!(
            "base_url isn't set, so links in mails lead to {}. Set it to the URL that customers \
             use",
            settings.base_url(settings.addr)
        );
        found.push(Finding::warning("base URL", text));
        return found;
    };
    found.extend(site(&client, base_url, form_key, now, runs).await);
    found
}

fn client() -> Result<Client, String> {
    let tls = tls::client_of_machine().map_err(|error| error.to_string())?;
    Client::builder()
        .tls_backend_preconfigured(tls)
        .no_proxy()
        .redirect(redirect::Policy::none())
        .timeout(TIMEOUT)
        .build()
        .map_err(|error| error.to_string())
}

/// Returns the state of the process, and whether it runs.
async fn service(settings: &Settings, client: &Client) -> (Finding, bool) {
    const CHECK: &str = "service";
    let address = settings.ops_addr;
    match client.get(format!("http://{address}/readyz")).send().await {
        Ok(answer) if answer.status().is_success() => (Finding::ok(CHECK, "it is ready"), true),
        Ok(answer) => {
            let why = answer.text().await.unwrap_or_default();
            let text = format!("it isn't ready: {}. Its log says more", why.trim());
            (Finding::fault(CHECK, text), true)
        }
        Err(error) => {
            let text = format!(
                "it doesn't run here: {address}: {}. Start it, for example with `sudo systemctl \
                 start heliograph`",
                innermost(&error)
            );
            (Finding::warning(CHECK, text), false)
        }
    }
}

/// Requests a page like a customer. Without a running process, an error is only a warning.
async fn site(
    client: &Client,
    base_url: &str,
    form_key: Option<&str>,
    now: Timestamp,
    runs: bool,
) -> Vec<Finding> {
    const CHECK: &str = "base URL";
    let bad = |text: String| {
        if runs { Finding::fault(CHECK, text) } else { Finding::warning(CHECK, text) }
    };
    let nonce = Entropy::system().bytes();
    let knock = form_key.and_then(|key| Knock::new(key, base_url, now, nonce));
    let mut request = client.get(format!("{base_url}{}", Knock::PAGE));
    if let Some(knock) = &knock {
        request = request.header(COOKIE, &knock.cookie);
    }
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => {
            let text = format!(
                "{base_url}: {}. Check base_url, its name in DNS, and the proxy with its \
                 certificate",
                innermost(&error)
            );
            return vec![bad(text)];
        }
    };
    let arrived = match &knock {
        Some(knock) if knock.is_answered(answer.headers()) => {
            Finding::ok(CHECK, format!("{base_url} leads to this installation"))
        }
        None if answer.status().is_success() => {
            let text = format!(
                "{base_url} answers. Without the database, the doctor can't check whether it leads \
                 to this installation"
            );
            Finding::warning(CHECK, text)
        }
        _ => bad(format!(
            "{base_url} answers {}, but doesn't lead to this installation. Check base_url and \
             where the proxy forwards requests",
            status(&answer)
        )),
    };
    std::iter::once(arrived).chain(clock(&answer, now)).collect()
}

/// Returns the status of an answer, with the address that it redirects to.
fn status(answer: &Response) -> String {
    let to = answer.headers().get(LOCATION).and_then(|to| to.to_str().ok());
    to.map_or_else(|| answer.status().to_string(), |to| format!("{} to {to}", answer.status()))
}

/// Warns if the answer's date differs from this machine's time.
fn clock(answer: &Response, now: Timestamp) -> Option<Finding> {
    let date = answer.headers().get(DATE)?.to_str().ok()?;
    let at = httpdate::parse_http_date(date).ok()?.duration_since(std::time::UNIX_EPOCH).ok()?;
    let ahead_ms = now.unix_ms() - i64::try_from(at.as_millis()).ok()?;
    (ahead_ms.abs() > CLOCKS_APART_MS).then(|| {
        let text = format!(
            "it is {} s ahead of the clock at the base URL. Set the wrong one, and keep both right \
             with chrony or systemd-timesyncd",
            ahead_ms / 1000
        );
        Finding::warning("clock", text)
    })
}

/// Returns the innermost cause of a failed request, which says most.
fn innermost(error: &reqwest::Error) -> String {
    let mut clearest: &dyn Error = error;
    while let Some(source) = clearest.source() {
        clearest = source;
    }
    clearest.to_string()
}
