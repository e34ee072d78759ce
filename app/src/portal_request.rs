//! The request that a server function serves.

use std::sync::Arc;

use async_trait::async_trait;
use domain::records::{AccountRecord, SessionEnd};
use domain::{HomeCountry, Reference, Refusal, Theme, Zone};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use leptos::context::use_context;
use leptos_axum::ResponseOptions;
use service::{ClientInfo, SecondStep, Service};

use crate::applications::NewKeys;
use crate::problem::{Cause, Problem, ReturnedForm, TWO_FACTOR_PATH};

/// Most bytes of the page that the sign-in page leads back to: a redirect's head has to fit into a
/// proxy's buffer.
const NEXT_BYTES_MAX: usize = 1024;

/// A request to the portal, with its session, its device and the service.
///
/// The server implements it; server functions get it through [`current_request`].
#[async_trait]
pub trait PortalRequest: Send + Sync {
    fn service(&self) -> &Service;

    fn site(&self) -> &SiteSettings;

    /// Browser and address, as the devices page shows them.
    fn client(&self) -> ClientInfo;

    /// The form that came back to the requested page with a problem.
    fn returned_form(&self) -> Option<ReturnedForm>;

    /// The colours that the browser last saw the portal in.
    fn theme(&self) -> Theme;

    /// The name of the browser's time zone, as the browser told it earlier.
    fn browser_zone(&self) -> Option<String>;

    /// Has the browser bring the name of its time zone with its requests, unless it does already.
    fn keep_browser_zone(&self, name: &str);

    /// The zone in which pages show times: the one that the account chose, else that of a browser
    /// whose zone has this name, else UTC; also where the account can't be read.
    async fn zone(&self, browser: Option<String>) -> Zone {
        let account = self.session_account().await.ok().flatten();
        let chosen = account.and_then(|account| account.time_zone);
        let zone = chosen
            .or(browser)
            .and_then(|name| self.service().zone(&name));
        zone.unwrap_or_default()
    }

    /// Has the browser keep the account's theme, unless it has it already.
    fn keep_theme(&self, theme: Theme);

    /// The language of programs that was chosen last in this browser.
    fn language(&self) -> Option<String>;

    /// Has the browser keep a language, unless it has it already.
    fn keep_language(&self, language: &str);

    /// The session's token; `None` without a session.
    fn token(&self) -> Option<String>;

    /// The account that is signed in, even if all it may do is set up a second factor. A request
    /// asks the database for it once.
    async fn session_account(&self) -> Result<Option<AccountRecord>, Problem>;

    /// The account that is signed in, unless it must set up a second factor first.
    async fn account(&self) -> Result<Option<AccountRecord>, Problem> {
        let account = self.session_account().await?;
        Ok(account.filter(|account| !self.service().must_set_up_factor(account)))
    }

    /// When the session of whoever is signed in ends, without putting that off.
    async fn session_end(&self) -> Result<Option<SessionEnd>, Problem> {
        let token = self.token().unwrap_or_default();
        Ok(self.service().session_end(&token).await?)
    }

    /// Where a request without [`PortalRequest::account`] is led, and from there to `next`.
    async fn way_in(&self, next: &str) -> Result<String, Problem> {
        Ok(match self.session_account().await? {
            Some(_) => TWO_FACTOR_PATH.to_owned(),
            None => sign_in_path(next),
        })
    }

    /// Signs an account in under a new session id and registers the device; an account with a
    /// second factor is only noted, until [`PortalRequest::sign_in_by_code`].
    async fn sign_in(&self, account: &AccountRecord) -> Result<(), Problem>;

    /// Gives the session of an account a new id, after its password was changed.
    async fn renew(&self, account: &AccountRecord) -> Result<(), Problem>;

    /// The second step of [`PortalRequest::sign_in`], under a new session id too.
    async fn sign_in_by_code(&self, step: &SecondStep) -> Result<AccountRecord, Problem>;

    /// Ends the session.
    async fn sign_out(&self) -> Result<(), Problem>;

    /// Keeps new keys, encrypted, until the application's page shows them.
    async fn keep_keys(&self, reference: Reference, keys: &NewKeys) -> Result<(), Problem>;

    /// Gives kept keys out and forgets them.
    async fn take_keys(&self, reference: Reference) -> Result<Option<NewKeys>, Problem>;

    /// Keeps a secret text, encrypted, under a name.
    async fn keep_text(&self, name: &str, text: &str) -> Result<(), Problem>;

    /// Gives a kept text out, and forgets it.
    async fn take_text(&self, name: &str) -> Result<Option<String>, Problem>;
}

/// Settings that all requests to the portal share.
#[derive(Clone, Debug)]
pub struct SiteSettings {
    /// Without a slash at its end.
    pub base_url: String,
    /// ISO 4217 code.
    pub currency: String,
    pub home: HomeCountry,
    /// Whom customers pay, and how; lines of text.
    pub payment_instructions: Option<String>,
    /// Pages of the longest message.
    pub message_pages_max: usize,
    /// The chapters of the API reference.
    pub reference: String,
}

/// The page that called a server function: a path of this site. The server puts it into the
/// request's extensions.
#[derive(Clone)]
pub struct CallingPage(pub String);

/// The request that is being served, as the server puts it into leptos' context.
pub type CurrentRequest = Arc<dyn PortalRequest>;

/// The request that is being served.
pub fn current_request() -> Result<CurrentRequest, Problem> {
    use_context::<CurrentRequest>().ok_or_else(|| {
        tracing::error!("a server function was called without its request in the context");
        Cause::Failed.into()
    })
}

/// The request and the account that is signed in. Every server function that needs an account
/// starts with it.
pub async fn signed_in() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let current = current_request()?;
    if let Some(account) = current.account().await? {
        return Ok((current, account));
    }
    let way_in = current.way_in(&page_path().unwrap_or_default()).await?;
    leptos_axum::redirect(&way_in);
    let signed_out = current.session_account().await?.is_none();
    Err(if signed_out {
        Cause::SignedOut.into()
    } else {
        Cause::SecondFactorMissing.into()
    })
}

/// Like [`signed_in`], for setting up a second factor: the one thing that an account may do which
/// must have one and hasn't.
pub async fn setting_up() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let current = current_request()?;
    match current.session_account().await? {
        Some(account) => Ok((current, account)),
        None => signed_in().await,
    }
}

/// Asks again who is signed in, before what matters, unless that was confirmed within the last 10
/// minutes. `credential` is what was typed into [`crate::ui::StepUpField`]; where it is given, the
/// session has a new id from then on.
pub async fn step_up(
    current: &CurrentRequest,
    account: &AccountRecord,
    credential: &str,
) -> Result<(), Problem> {
    let token = current.token().unwrap_or_default();
    current
        .service()
        .step_up(&token, account, credential)
        .await?;
    if credential.trim().is_empty() {
        return Ok(());
    }
    let renewed = current.renew(account).await;
    renewed.map_err(Problem::after_change)
}

/// The request and the member of staff who is signed in. Every server function for staff starts
/// with it.
///
/// # Errors
/// Those of [`signed_in`]; [`Cause::NotFound`] to an account that isn't staff.
pub async fn staff() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let (current, account) = signed_in().await?;
    if !account.staff {
        let page = use_context::<Parts>().map(|parts| parts.uri.path().to_owned());
        let page = page.unwrap_or_default();
        current.service().record_denied(account.id, &page).await?;
        return Err(Cause::NotFound.into());
    }
    Ok((current, account))
}

/// The address of the sign-in page that leads back to a page of this site; without the page's query
/// where it would be too long.
pub fn sign_in_path(next: &str) -> String {
    let next = local_path(next);
    let without_query = next.split(['?', '#']).next().unwrap_or_default();
    let mut fitting = [next, without_query]
        .into_iter()
        .map(leptos_router::location::Url::escape)
        .filter(|escaped| escaped.len() <= NEXT_BYTES_MAX);
    match fitting.next() {
        Some(escaped) if next != "/applications" => format!("/login?next={escaped}"),
        _ => "/login".to_owned(),
    }
}

/// Where an account goes after signing in: to this path if it is one of this site and was asked
/// for, else to the first page of staff or to My Applications.
pub fn landing_path<'a>(account: &AccountRecord, next: &'a str) -> &'a str {
    match local_path(next) {
        "/applications" if account.staff => "/support",
        next => next,
    }
}

/// This path if it is one of this site, else My Applications.
pub fn local_path(next: &str) -> &str {
    if is_local(next) {
        next
    } else {
        "/applications"
    }
}

/// Whether a path is one of this site. Browsers and proxies decode a path and resolve `.` and `..`
/// in it, and read `//host` and `/\host` as another site. No page of this site needs any of that,
/// so that a path with it is none of ours, whoever resolves it.
pub fn is_local(path: &str) -> bool {
    let page = path.split(['?', '#']).next().unwrap_or_default();
    page.starts_with('/')
        && !page.contains("//")
        && !page.contains('%')
        && !page.split('/').any(|part| part == "." || part == "..")
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
}

/// The page that is shown: the requested one, or the one that called a server function.
fn page_path() -> Option<String> {
    let parts = use_context::<Parts>()?;
    let path = parts.uri.path_and_query()?.as_str();
    if path.starts_with("/fn/") {
        return Some(parts.extensions.get::<CallingPage>()?.0.clone());
    }
    Some(path.to_owned())
}

/// Whether the page is really shown: it isn't asked for by HEAD, nor fetched ahead of a click.
pub fn is_shown() -> bool {
    use_context::<Parts>().is_some_and(|parts| {
        let ahead = parts
            .headers
            .get("sec-purpose")
            .is_some_and(|purpose| purpose.as_bytes().starts_with(b"prefetch"));
        parts.method != http::Method::HEAD && !ahead
    })
}

/// Gives the page that is being rendered the HTTP status of its problem.
pub fn set_status(cause: &Cause) {
    let status = match cause {
        // The answer is a redirect already.
        Cause::SignedOut | Cause::SecondFactorMissing => return,
        Cause::NotFound => StatusCode::NOT_FOUND,
        Cause::Filter(_) | Cause::Refused(Refusal::InvalidCursor) => StatusCode::BAD_REQUEST,
        Cause::Refused(Refusal::Busy) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    if let Some(response) = use_context::<ResponseOptions>() {
        response.set_status(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            let seconds = HeaderValue::from_static(crate::overload::RETRY_AFTER_S);
            response.insert_header(RETRY_AFTER, seconds);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::local_path;

    #[test]
    fn only_paths_of_this_site_are_followed() {
        for path in [
            "/",
            "/reports?status=failed&number=1",
            "/applications/000123",
            "/reports/?from=2026-01-01T00%3A00%3A00%2B02%3A00&q=..//a",
            "/docs#../..//a",
            "/applications/..a/.b",
        ] {
            assert_eq!(local_path(path), path);
        }
        for path in [
            "",
            "//evil.example",
            "/\\evil.example",
            "https://evil.example",
            "/a b",
            "/\r\nX: y",
            "/é",
            "/..//evil.example",
            "/../evil",
            "/.//evil.example",
            "/reports/..//evil.example",
            "/reports/../../evil.example",
            "/reports//evil.example",
            "/..?a",
            "/.#a",
            "/%2e%2e//evil.example",
            "/%2E%2e/evil.example",
            "/.%2e/evil.example",
            "/%2fevil.example",
            "/%5cevil.example",
            "/%252e%252e%252fevil.example",
            "/%09/evil.example",
            "/\t/evil.example",
            "/..\\/evil.example",
            "/\u{7f}/evil.example",
        ] {
            assert_eq!(local_path(path), "/applications", "{path:?}");
        }
    }
}
