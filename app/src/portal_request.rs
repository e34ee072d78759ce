//! The request that a server function serves.

use std::sync::Arc;

use async_trait::async_trait;
use domain::records::AccountRecord;
use domain::{Reference, Refusal};
use http::StatusCode;
use http::request::Parts;
use leptos::context::use_context;
use leptos_axum::ResponseOptions;
use service::{ClientInfo, Service};

use crate::applications::NewKeys;
use crate::problem::{Cause, Problem};

/// A request to the portal, with its session, its device and the service.
///
/// The server implements it; server functions get it through [`current_request`].
#[async_trait]
pub trait PortalRequest: Send + Sync {
    fn service(&self) -> &Service;

    fn site(&self) -> &SiteSettings;

    /// Browser and address, as the devices page shows them.
    fn client(&self) -> ClientInfo;

    /// The session's token; `None` without a session.
    fn token(&self) -> Option<String>;

    /// The account that is signed in. A request asks the database for it once.
    ///
    /// # Errors
    /// When the service fails.
    async fn account(&self) -> Result<Option<AccountRecord>, Problem>;

    /// Signs an account in under a new session id and registers the device.
    ///
    /// # Errors
    /// When the password was changed since the account was read, or the service fails.
    async fn sign_in(&self, account: &AccountRecord) -> Result<(), Problem>;

    /// Ends the session.
    ///
    /// # Errors
    /// When the service fails.
    async fn sign_out(&self) -> Result<(), Problem>;

    /// Keeps new keys, encrypted, until the application's page shows them.
    ///
    /// # Errors
    /// When the session can't be written.
    async fn keep_keys(&self, reference: Reference, keys: &NewKeys) -> Result<(), Problem>;

    /// Gives kept keys out and forgets them.
    ///
    /// # Errors
    /// When the session can't be read or written.
    async fn take_keys(&self, reference: Reference) -> Result<Option<NewKeys>, Problem>;
}

/// Settings that all requests to the portal share.
#[derive(Clone, Debug)]
pub struct SiteSettings {
    /// Without a slash at its end.
    pub base_url: String,
    /// ISO 4217 code.
    pub currency: String,
}

/// The request that is being served, as the server puts it into leptos' context.
pub type CurrentRequest = Arc<dyn PortalRequest>;

/// The request that is being served.
///
/// # Errors
/// When the server didn't provide the request, which is a fault of ours.
pub fn current_request() -> Result<CurrentRequest, Problem> {
    use_context::<CurrentRequest>().ok_or_else(|| {
        tracing::error!("a server function was called without its request in the context");
        Cause::Failed.into()
    })
}

/// The request and the account that is signed in. Every server function that needs an account
/// starts with it.
///
/// # Errors
/// [`Cause::SignedOut`]; where no scripts run, the browser is then led to the sign-in page, and
/// from there back. Else when the service fails.
pub async fn signed_in() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let current = current_request()?;
    if let Some(account) = current.account().await? {
        return Ok((current, account));
    }
    leptos_axum::redirect(&sign_in_path(&page_path().unwrap_or_default()));
    Err(Cause::SignedOut.into())
}

/// The request and the member of staff who is signed in. Every server function for staff starts
/// with it.
///
/// # Errors
/// Those of [`signed_in`]; [`Cause::NotFound`] to an account that isn't staff.
pub async fn staff() -> Result<(CurrentRequest, AccountRecord), Problem> {
    let (current, account) = signed_in().await?;
    if !account.staff {
        return Err(Cause::NotFound.into());
    }
    Ok((current, account))
}

/// The address of the sign-in page that leads back to a page of this site.
#[must_use]
pub fn sign_in_path(next: &str) -> String {
    match local_path(next) {
        "/applications" => "/login".to_owned(),
        next => format!("/login?next={}", leptos_router::location::Url::escape(next)),
    }
}

/// Where to go after signing in: this path if it is one of this site, else My Applications.
#[must_use]
pub fn local_path(next: &str) -> &str {
    // A browser reads `//host` and `/\host` as another site.
    let local = next.starts_with('/')
        && !next[1..].starts_with('/')
        && next.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    if local { next } else { "/applications" }
}

/// The page that is shown: the requested one, or the one that called a server function.
fn page_path() -> Option<String> {
    let parts = use_context::<Parts>()?;
    let path = parts.uri.path_and_query()?.as_str();
    if !path.starts_with("/fn/") {
        return Some(path.to_owned());
    }
    let referer = parts.headers.get(http::header::REFERER)?.to_str().ok()?;
    let (_, rest) = referer.split_once("://")?;
    let path = &rest[rest.find('/')?..];
    // An older problem in the address would be shown again after signing in.
    Some(path.split("?__path=").next().unwrap_or(path).to_owned())
}

/// Whether the page is really shown: it isn't asked for by HEAD, nor fetched ahead of a click.
#[must_use]
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
        Cause::SignedOut => return,
        Cause::NotFound => StatusCode::NOT_FOUND,
        Cause::Filter(_) | Cause::Refused(Refusal::InvalidCursor) => StatusCode::BAD_REQUEST,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    };
    if let Some(response) = use_context::<ResponseOptions>() {
        response.set_status(status);
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
        ] {
            assert_eq!(local_path(path), "/applications");
        }
    }
}
