//! A request to the portal, with its session, its device and its account.

use std::sync::Arc;

use app::applications::NewKeys;
use app::portal_request::{PortalRequest, SiteSettings};
use app::problem::{Cause, Problem};
use async_trait::async_trait;
use axum::http::header::USER_AGENT;
use axum::http::request::Parts;
use domain::Reference;
use domain::records::AccountRecord;
use service::{ClientInfo, Service};
use tokio::sync::OnceCell;
use tower_sessions::Session;

use super::follow::followers::Followers;
use super::seal;
use crate::client_address::ClientAddress;

/// What all requests to the portal share.
#[derive(Clone)]
pub struct Portal {
    pub service: Service,
    pub site: Arc<SiteSettings>,
    pub followers: Followers,
}

/// A request to the portal, as the server serves it.
pub struct ServedRequest {
    portal: Portal,
    session: Option<Session>,
    client: ClientInfo,
    /// Header and page both ask for the account; the database is asked once.
    account: OnceCell<Option<AccountRecord>>,
}

impl ServedRequest {
    pub fn new(portal: Portal, parts: &Parts) -> Self {
        let user_agent = parts
            .headers
            .get(USER_AGENT)
            .and_then(|value| value.to_str().ok());
        let address = parts.extensions.get::<ClientAddress>();
        Self {
            portal,
            session: parts.extensions.get::<Session>().cloned(),
            client: ClientInfo {
                user_agent: user_agent.unwrap_or_default().to_owned(),
                address: address
                    .map(|address| address.0.to_string())
                    .unwrap_or_default(),
            },
            account: OnceCell::new(),
        }
    }

    fn session(&self) -> Result<&Session, Problem> {
        self.session.as_ref().ok_or_else(|| {
            tracing::error!("a request to the portal has no session: the session layer is missing");
            Cause::Failed.into()
        })
    }
}

/// The name under which a session keeps the encrypted keys of an application.
fn keys_entry(reference: Reference) -> String {
    format!("keys-{reference}")
}

/// A session that can't be read or written.
fn failed(error: impl std::fmt::Display) -> Problem {
    tracing::error!(%error, "a session can't be read or written");
    Cause::Failed.into()
}

#[async_trait]
impl PortalRequest for ServedRequest {
    fn service(&self) -> &Service {
        &self.portal.service
    }

    fn site(&self) -> &SiteSettings {
        &self.portal.site
    }

    fn client(&self) -> ClientInfo {
        self.client.clone()
    }

    fn token(&self) -> Option<String> {
        self.session.as_ref()?.id().map(|id| id.to_string())
    }

    async fn account(&self) -> Result<Option<AccountRecord>, Problem> {
        let ask = || async {
            match self.token() {
                Some(token) => self.portal.service.session_account(&token).await,
                None => Ok(None),
            }
        };
        Ok(self.account.get_or_try_init(ask).await?.clone())
    }

    async fn sign_in(&self, account: &AccountRecord) -> Result<(), Problem> {
        let session = self.session()?;
        // Nothing of an earlier session may go on, least of all its id: an id that somebody else
        // knows must not become one that is signed in.
        session.clear().await;
        if session.id().is_some() {
            session.cycle_id().await.map_err(failed)?;
        }
        session.save().await.map_err(failed)?;
        let token = self.token().unwrap_or_default();
        Ok(self
            .portal
            .service
            .device_sign_in(&token, account, &self.client)
            .await?)
    }

    async fn sign_out(&self) -> Result<(), Problem> {
        if self.token().is_some() {
            self.session()?.flush().await.map_err(failed)?;
        }
        Ok(())
    }

    async fn keep_keys(&self, reference: Reference, keys: &NewKeys) -> Result<(), Problem> {
        let token = self.token().unwrap_or_default();
        let text = serde_json::to_vec(keys).map_err(failed)?;
        let nonce = self.portal.service.entropy().bytes();
        let sealed = seal::seal(&token, reference.as_str(), &text, nonce)
            .ok_or_else(|| failed("new keys can't be encrypted"))?;
        self.session()?
            .insert(&keys_entry(reference), sealed)
            .await
            .map_err(failed)
    }

    async fn take_keys(&self, reference: Reference) -> Result<Option<NewKeys>, Problem> {
        let Some(token) = self.token() else {
            return Ok(None);
        };
        let (session, entry) = (self.session()?, keys_entry(reference));
        let Some(sealed) = session.get::<String>(&entry).await.map_err(failed)? else {
            return Ok(None);
        };
        session.remove_value(&entry).await.map_err(failed)?;
        let text = seal::open(&token, reference.as_str(), &sealed);
        Ok(text.and_then(|text| serde_json::from_slice(&text).ok()))
    }
}
