//! The request that a server function handles.

use std::sync::Arc;

use async_trait::async_trait;
use domain::endpoint_check::Finding;
use domain::records::{AccountRecord, SessionEnd};
use domain::{HomeCountry, Reference, Refusal, Theme, WebhookId, Zone};
use http::header::RETRY_AFTER;
use http::request::Parts;
use http::{HeaderValue, StatusCode};
use leptos::context::use_context;
use leptos_axum::ResponseOptions;
use service::{ClientInfo, EventRecord, KeyAccess, SecondStep, Service};

use crate::applications::NewKeys;
use crate::footer::Footer;
use crate::overload::RETRY_AFTER_S;
use crate::problem::{Cause, Problem, ReturnedForm, TWO_FACTOR_PATH};

/// The maximum length of the path that the sign-in page returns to, in bytes. The headers of a
/// redirect have to fit into a proxy's buffer.
const NEXT_BYTES_MAX: usize = 1024;

/// A request to the portal, with its session, its device and the service.
///
/// The server implements this trait. Server functions get the request from [`current_request`].
#[async_trait]
pub trait PortalRequest: Send + Sync {
    fn service(&self) -> &Service;

    fn site(&self) -> &SiteSettings;

    fn endpoints(&self) -> &dyn EndpointClient;

    /// Returns the browser and the address, as the devices page shows them.
    fn client(&self) -> ClientInfo;

    /// Returns the form that came back to the requested page with a problem.
    fn returned_form(&self) -> Option<ReturnedForm>;

    /// Returns the theme that this browser used last.
    fn theme(&self) -> Theme;

    /// Returns the name of the browser's time zone, if the browser has reported it.
    fn browser_zone(&self) -> Option<String>;

    /// Sets a cookie with the name of the browser's time zone, unless the browser has it already.
    fn keep_browser_zone(&self, name: &str);

    /// Returns the zone in which pages show times: the account's setting, else the zone named
    /// `browser`, else UTC. A failure to load the account counts as no setting.
    async fn zone(&self, browser: Option<String>) -> Zone {
        let account = self.session_account().await.ok().flatten();
        let chosen = account.and_then(|account| account.time_zone);
        let zone = chosen.or(browser).and_then(|name| self.service().zone(&name));
        zone.unwrap_or_default()
    }

    /// Sets a cookie with the account's theme, unless the browser has it already.
    fn keep_theme(&self, theme: Theme);

    /// Returns the programming language that was last selected in this browser.
    fn language(&self) -> Option<String>;

    /// Sets a cookie with the programming language, unless the browser has it already.
    fn keep_language(&self, language: &str);

    /// Returns the session's token, or `None` without a session.
    fn token(&self) -> Option<String>;

    /// Returns the signed-in account, even if all it may do is set up a second factor. Queries the
    /// database once per request.
    async fn session_account(&self) -> Result<Option<AccountRecord>, Problem>;

    /// Returns the signed-in account, unless it must set up a second factor first.
    async fn account(&self) -> Result<Option<AccountRecord>, Problem> {
        let account = self.session_account().await?;
        Ok(account.filter(|account| !self.service().accounts().must_set_up_factor(account)))
    }

    /// Returns when the current session ends. Doesn't extend the session.
    async fn session_end(&self) -> Result<Option<SessionEnd>, Problem> {
        let token = self.token().unwrap_or_default();
        Ok(self.service().accounts().session_end(&token).await?)
    }

    /// Returns where to redirect a request that has no [`PortalRequest::account`]. The sign-in page
    /// then returns to `next`.
    async fn way_in(&self, next: &str) -> Result<String, Problem> {
        Ok(match self.session_account().await? {
            Some(_) => TWO_FACTOR_PATH.to_owned(),
            None => sign_in_path(next),
        })
    }

    /// Signs an account in under a new session ID and registers the device. If the account has a
    /// second factor, the sign-in stays pending until [`PortalRequest::sign_in_by_code`].
    async fn sign_in(&self, account: &AccountRecord) -> Result<(), Problem>;

    /// Gives the account's session a new ID after a password change or step-up authentication.
    async fn renew(&self, account: &AccountRecord) -> Result<(), Problem>;

    /// The second step of [`PortalRequest::sign_in`]. It also starts a new session ID.
    async fn sign_in_by_code(&self, step: &SecondStep) -> Result<AccountRecord, Problem>;

    /// Ends the session.
    async fn sign_out(&self) -> Result<(), Problem>;

    /// Stores new keys, encrypted, until the application's page shows them.
    async fn keep_keys(&self, reference: Reference, keys: &NewKeys) -> Result<(), Problem>;

    /// Returns the stored keys and deletes them.
    async fn take_keys(&self, reference: Reference) -> Result<Option<NewKeys>, Problem>;

    /// Stores a secret text, encrypted, under a name.
    async fn keep_text(&self, name: &str, text: &str) -> Result<(), Problem>;

    /// Returns a stored text and deletes it.
    async fn take_text(&self, name: &str) -> Result<Option<String>, Problem>;
}

/// Sends requests to customers' endpoints, which get events.
#[async_trait]
pub trait EndpointClient: Send + Sync {
    /// Delivers a test event to an endpoint, and stores the attempt.
    async fn test(&self, access: &KeyAccess, id: WebhookId) -> service::Result<()>;

    /// Sends the requests of a check to an endpoint, and judges the answers.
    async fn check(&self, access: &KeyAccess, id: WebhookId) -> service::Result<Vec<Finding>>;

    /// Returns the JSON of an event's deliveries, indented for people to read.
    fn readable_body(&self, event: EventRecord) -> Option<String>;
}

/// Settings that all requests to the portal share.
#[derive(Clone, Debug)]
pub struct SiteSettings {
    /// The version of the program.
    pub version: &'static str,
    /// Without a trailing slash.
    pub base_url: String,
    /// ISO 4217 code.
    pub currency: String,
    pub home: HomeCountry,
    /// The payee and how to pay, as lines of text.
    pub payment_instructions: Option<String>,
    /// How long a bank transfer takes.
    pub deposit_time: Option<String>,
    /// The operator on receipts, as lines of text.
    pub operator_details: Option<String>,
    /// The part of every page below its content.
    pub footer: Footer,
    /// The maximum number of pages per message.
    pub message_pages_max: usize,
    /// The chapters of the API reference, as HTML.
    pub reference: String,
}

/// The page that called a server function, as a path of this site. The server puts it into the
/// request's extensions.
#[derive(Clone)]
pub struct CallingPage(pub String);

/// The current request, as the server puts it into the Leptos context.
pub type CurrentRequest = Arc<dyn PortalRequest>;

pub fn current_request() -> Result<CurrentRequest, Problem> {
    use_context::<CurrentRequest>().ok_or_else(|| {
        tracing::error!("a server function was called without its request in the context");
        Cause::Failed.into()
    })
}

/// Sends the browser to another page. The functions of forms end with this call.
pub fn redirect_to(page: &str) -> Result<(), Problem> {
    leptos_axum::redirect(page);
    Ok(())
}

/// Returns the request and the signed-in account. Every server function that needs an account
/// starts with this call.
pub async fn signed_in() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let current = current_request()?;
    if let Some(account) = current.account().await? {
        return Ok((current, account));
    }
    let way_in = current.way_in(&page_path().unwrap_or_default()).await?;
    leptos_axum::redirect(&way_in);
    let signed_out = current.session_account().await?.is_none();
    Err(if signed_out { Cause::SignedOut.into() } else { Cause::SecondFactorMissing.into() })
}

/// Like [`signed_in`], but also accepts an account that must set up a second factor and hasn't.
/// Setting it up is all that such an account may do.
pub async fn setting_up() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let current = current_request()?;
    match current.session_account().await? {
        Some(account) => Ok((current, account)),
        None => signed_in().await,
    }
}

/// Requires step-up authentication before a sensitive action, unless it succeeded within the last
/// 10 minutes. `credential` is the text from [`crate::ui::StepUpField`]. If it isn't blank and is
/// accepted, the session gets a new ID.
pub async fn step_up(
    current: &CurrentRequest,
    account: &AccountRecord,
    credential: &str,
) -> Result<(), Problem> {
    let token = current.token().unwrap_or_default();
    current.service().accounts().step_up(&token, account, credential).await?;
    if credential.trim().is_empty() {
        return Ok(());
    }
    let renewed = current.renew(account).await;
    renewed.map_err(Problem::after_change)
}

/// Returns the refusal that asks for step-up authentication, if [`step_up`] would require it now.
/// Pages with a sensitive action ask at once, so that nothing has to be entered twice.
pub async fn missing_step_up(
    current: &CurrentRequest,
    account: &AccountRecord,
) -> Result<Option<Refusal>, Problem> {
    let token = current.token().unwrap_or_default();
    Ok(current.service().accounts().missing_step_up(&token, account).await?)
}

/// Returns the request and the signed-in member of staff. Every server function for staff starts
/// with this call.
///
/// # Errors
/// The errors of [`signed_in`], and [`Cause::NotFound`] if the account isn't staff.
pub async fn staff() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let (current, account) = signed_in().await?;
    if !account.staff {
        let page = use_context::<Parts>().map(|parts| parts.uri.path().to_owned());
        let page = page.unwrap_or_default();
        current.service().accounts().record_denied(account.id, &page).await?;
        return Err(Cause::NotFound.into());
    }
    Ok((current, account))
}

/// Returns the address of the sign-in page that returns to `next`. Drops the query of `next` if the
/// address would be too long.
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

/// Returns the page to open after signing in: `next` if it is a path of this site, else My
/// Applications. Staff get the first support page instead of My Applications.
pub fn landing_path<'a>(account: &AccountRecord, next: &'a str) -> &'a str {
    match local_path(next) {
        "/applications" if account.staff => "/support",
        next => next,
    }
}

/// Returns `next` if it is a path of this site, else My Applications.
pub fn local_path(next: &str) -> &str {
    if is_local(next) { next } else { "/applications" }
}

/// Whether a path is safe to redirect to. Browsers and proxies decode a path, resolve `.` and `..`
/// in it, and take `//host` and `/\host` for another site. No page of this site has any of that in
/// its path, so all such paths are rejected.
pub fn is_local(path: &str) -> bool {
    let page = path.split(['?', '#']).next().unwrap_or_default();
    page.starts_with('/')
        && !page.contains("//")
        && !page.contains('%')
        && !page.split('/').any(|part| part == "." || part == "..")
        && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
}

/// Returns the current page: the requested one, or the one that called a server function.
fn page_path() -> Option<String> {
    let parts = use_context::<Parts>()?;
    let path = parts.uri.path_and_query()?.as_str();
    if path.starts_with("/fn/") {
        return Some(parts.extensions.get::<CallingPage>()?.0.clone());
    }
    Some(path.to_owned())
}

/// Whether a person will see the page. False for HEAD requests and prefetches.
pub fn is_shown() -> bool {
    use_context::<Parts>().is_some_and(|parts| {
        let ahead = parts
            .headers
            .get("sec-purpose")
            .is_some_and(|purpose| purpose.as_bytes().starts_with(b"prefetch"));
        parts.method != http::Method::HEAD && !ahead
    })
}

/// Returns the HTTP status of a page or a file that isn't shown because of a problem.
pub const fn status_of(cause: &Cause) -> StatusCode {
    match cause {
        Cause::SignedOut | Cause::SecondFactorMissing => StatusCode::UNAUTHORIZED,
        Cause::NotFound => StatusCode::NOT_FOUND,
        Cause::Filter(_) | Cause::Refused(Refusal::InvalidCursor | Refusal::DaysInvalid) => {
            StatusCode::BAD_REQUEST
        }
        Cause::Refused(Refusal::Busy) => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Sets the HTTP status of the page from its problem.
pub fn set_status(cause: &Cause) {
    let status = status_of(cause);
    // The response to somebody who isn't signed in is already a redirect.
    let response = use_context::<ResponseOptions>().filter(|_| status != StatusCode::UNAUTHORIZED);
    if let Some(response) = response {
        response.set_status(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.insert_header(RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER_S));
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
