//! A request to the portal, with its session, its device and its account.

use std::path::Path;
use std::sync::Arc;

use app::applications::NewKeys;
use app::portal_request::{EndpointClient, PortalRequest, SiteSettings};
use app::problem::{Cause, Problem, ReturnedForm};
use async_trait::async_trait;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use domain::records::AccountRecord;
use domain::{Reference, Theme};
use service::{ClientInfo, SecondStep, Service};
use tokio::sync::OnceCell;
use tower_sessions::Session;

use super::cookies::{self, NewCookies, is_https};
use super::follow::followers::Followers;
use super::seal;
use crate::client_address::ClientAddress;
use crate::webhook::Sender;

/// The state that all requests to the portal share.
#[derive(Clone)]
pub struct Portal {
    pub service: Service,
    pub site: Arc<SiteSettings>,
    pub followers: Followers,
    pub sender: Arc<Sender>,
    /// The folder for files that are being read.
    pub data_dir: Arc<Path>,
}

/// A request to the portal, as the server serves it.
pub struct ServedRequest {
    portal: Portal,
    /// The portal's service, with this client as the caller.
    service: Service,
    session: Option<Session>,
    client: ClientInfo,
    returned_form: Option<ReturnedForm>,
    new_cookies: NewCookies,
    is_https: bool,
    theme: Theme,
    /// The time zone in the browser's cookie.
    browser_zone: Option<String>,
    /// The programming language in the browser's cookie.
    language: Option<String>,
    /// The account. The header and the page both need it, but the database is queried only once,
    /// even if the query fails.
    account: OnceCell<Result<Option<AccountRecord>, Problem>>,
}

impl ServedRequest {
    pub fn new(portal: Portal, parts: &Parts) -> Self {
        let user_agent = parts.headers.get(USER_AGENT).and_then(|value| value.to_str().ok());
        let address = parts.extensions.get::<ClientAddress>();
        let client = ClientInfo {
            user_agent: user_agent.unwrap_or_default().to_owned(),
            address: address.map(|address| address.0.to_string()).unwrap_or_default(),
        };
        let is_https = is_https(&portal.site.base_url);
        let known_by = cookies::DEVICE.of(&parts.headers, is_https);
        Self {
            service: portal.service.asked_by(client.clone(), known_by),
            portal,
            session: parts.extensions.get::<Session>().cloned(),
            client,
            returned_form: parts.extensions.get::<ReturnedForm>().cloned(),
            new_cookies: parts.extensions.get::<NewCookies>().cloned().unwrap_or_default(),
            is_https,
            theme: cookies::theme(&parts.headers, is_https),
            browser_zone: cookies::TIME_ZONE.of(&parts.headers, is_https),
            language: cookies::LANGUAGE.of(&parts.headers, is_https),
            account: OnceCell::new(),
        }
    }

    /// Makes this browser known to the account, and applies the account's theme.
    async fn remember_device(&self, account: &AccountRecord) -> Result<(), Problem> {
        self.keep_theme(account.theme);
        if let Some(cookie) = self.service.accounts().make_device_cookie(account.id).await? {
            self.new_cookies.add(cookies::DEVICE.make(&cookie, self.is_https));
        }
        Ok(())
    }

    fn session(&self) -> Result<&Session, Problem> {
        self.session.as_ref().ok_or_else(|| {
            tracing::error!("a request to the portal has no session: the session layer is missing");
            Cause::Failed.into()
        })
    }

    /// Starts a session and returns its token. Nothing of an earlier session is kept. Above all,
    /// its ID is not reused: somebody else may know it.
    async fn new_session(&self) -> Result<String, Problem> {
        let session = self.session()?;
        session.clear().await;
        if session.id().is_some() {
            session.cycle_id().await.map_err(failed)?;
        }
        session.save().await.map_err(failed)?;
        Ok(self.token().unwrap_or_default())
    }
}

/// Returns the session entry that holds the encrypted keys of an application.
fn keys_entry(reference: Reference) -> String {
    format!("keys-{reference}")
}

/// Logs that a session can't be read or written.
fn failed(error: impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "a session can't be read or written");
    Cause::Failed.into()
}

#[async_trait]
impl PortalRequest for ServedRequest {
    fn service(&self) -> &Service {
        &self.service
    }

    fn site(&self) -> &SiteSettings {
        &self.portal.site
    }

    fn endpoints(&self) -> &dyn EndpointClient {
        &*self.portal.sender
    }

    fn client(&self) -> ClientInfo {
        self.client.clone()
    }

    fn returned_form(&self) -> Option<ReturnedForm> {
        self.returned_form.clone()
    }

    fn theme(&self) -> Theme {
        self.theme
    }

    fn keep_theme(&self, theme: Theme) {
        if theme != self.theme {
            self.new_cookies.add(cookies::make_theme(theme, self.is_https));
        }
    }

    fn browser_zone(&self) -> Option<String> {
        self.browser_zone.clone()
    }

    fn keep_browser_zone(&self, name: &str) {
        if self.browser_zone.as_deref() != Some(name) {
            self.new_cookies.add(cookies::TIME_ZONE.make(name, self.is_https));
        }
    }

    fn language(&self) -> Option<String> {
        self.language.clone()
    }

    fn keep_language(&self, language: &str) {
        if self.language.as_deref() != Some(language) {
            self.new_cookies.add(cookies::LANGUAGE.make(language, self.is_https));
        }
    }

    fn token(&self) -> Option<String> {
        self.session.as_ref()?.id().map(|id| id.to_string())
    }

    async fn session_account(&self) -> Result<Option<AccountRecord>, Problem> {
        let read = || async {
            match self.token() {
                Some(token) => Ok(self.service.accounts().session_account(&token).await?),
                None => Ok(None),
            }
        };
        self.account.get_or_init(read).await.clone()
    }

    async fn sign_in(&self, account: &AccountRecord) -> Result<(), Problem> {
        // Each sign-in is stored, so somebody who knows the password must not be able to sign in
        // without limit.
        self.service.accounts().take_change(account)?;
        let token = self.new_session().await?;
        if account.second_factor {
            return Ok(self.service.accounts().await_code(&token, account).await?);
        }
        self.service.accounts().device_sign_in(&token, account, &self.client).await?;
        self.remember_device(account).await
    }

    async fn sign_in_by_code(&self, step: &SecondStep) -> Result<AccountRecord, Problem> {
        let token = self.token().unwrap_or_default();
        let account = self.service.accounts().sign_in_step(&token, step).await?;
        // The code is used up. If anything fails from here on, the person has to start the sign-in
        // again.
        let token = self.new_session().await.map_err(Problem::after_change)?;
        self.service.accounts().device_sign_in_by_code(&token, &account, &self.client).await?;
        self.remember_device(&account).await?;
        Ok(account)
    }

    async fn renew(&self, account: &AccountRecord) -> Result<(), Problem> {
        let session = self.session()?;
        let Some(old) = self.token() else {
            return Ok(());
        };
        let aside = format!("aside-{}", hex::encode(self.service.entropy().bytes::<16>()));
        session.load().await.map_err(failed)?;
        // The session layer deletes the old session and stores a new one. The service renames its
        // row before and after that, so that the row keeps its data.
        self.service.accounts().session_rename(&old, &aside).await?;
        session.cycle_id().await.map_err(failed)?;
        session.save().await.map_err(failed)?;
        let token = self.token().unwrap_or_default();
        self.service.accounts().session_rename(&aside, &token).await?;
        self.remember_device(account).await
    }

    async fn sign_out(&self) -> Result<(), Problem> {
        if self.token().is_some() {
            self.session()?.flush().await.map_err(failed)?;
        }
        Ok(())
    }

    async fn keep_keys(&self, reference: Reference, keys: &NewKeys) -> Result<(), Problem> {
        let text = serde_json::to_string(keys).map_err(failed)?;
        self.keep_text(&keys_entry(reference), &text).await
    }

    async fn take_keys(&self, reference: Reference) -> Result<Option<NewKeys>, Problem> {
        let text = self.take_text(&keys_entry(reference)).await?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    async fn keep_text(&self, name: &str, text: &str) -> Result<(), Problem> {
        let token = self.token().unwrap_or_default();
        let nonce = self.service.entropy().bytes();
        let sealed = seal::seal(&token, name, text.as_bytes(), nonce)
            .ok_or_else(|| failed("a secret can't be encrypted"))?;
        self.session()?.insert(name, sealed).await.map_err(failed)
    }

    async fn take_text(&self, name: &str) -> Result<Option<String>, Problem> {
        let Some(token) = self.token() else {
            return Ok(None);
        };
        let session = self.session()?;
        let Some(sealed) = session.get::<String>(name).await.map_err(failed)? else {
            return Ok(None);
        };
        session.remove_value(name).await.map_err(failed)?;
        let text = seal::open(&token, name, &sealed);
        Ok(text.and_then(|text| String::from_utf8(text).ok()))
    }
}
