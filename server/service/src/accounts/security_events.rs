//! Security events: recorded with where the request comes from.

use domain::Timestamp;
use domain::records::SecurityEventRecord;
use domain::security_event::SecurityEventKind;

use super::throttle::{Attempt, Counted, network};
use crate::Service;
use crate::error::Result;
use crate::store::query::Connection;
use crate::store::security_events::{self, Origin};

/// The events that an account's owner is shown.
const SHOWN_MAX: i64 = 50;
/// The events that an account's owner can download.
const EXPORTED_MAX: i64 = 10_000;
/// How long events are kept.
const KEPT_MS: i64 = 180 * 24 * 60 * 60 * 1000;

/// The browser or program that asks.
#[derive(Clone, Debug, Default)]
pub struct ClientInfo {
    pub user_agent: String,
    pub address: String,
}

/// How many characters of a `User-Agent` are kept.
const USER_AGENT_CHARS_MAX: usize = 255;

impl ClientInfo {
    /// As it is recorded: a `User-Agent` of any length isn't kept.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            address: self.address.clone(),
            network: network(&self.address),
            user_agent: self.user_agent.chars().take(USER_AGENT_CHARS_MAX).collect(),
        }
    }
}

/// A client's event, to be stored in the transaction of what happened.
pub(crate) struct Event {
    pub(crate) kind: SecurityEventKind,
    pub(crate) account_id: Option<i64>,
    pub(crate) origin: Origin,
    pub(crate) detail: Option<String>,
}

impl Event {
    pub(crate) async fn store(&self, conn: &mut dyn Connection, now: Timestamp) -> Result<()> {
        let (kind, origin, detail) = (self.kind, &self.origin, self.detail.as_deref());
        security_events::insert(conn, now, self.account_id, kind, origin, detail)
            .await
            .map(drop)
    }
}

impl Service {
    /// The service for requests of this client, with the cookie of a known device if it has one:
    /// events that are recorded name the client.
    pub fn asked_by(&self, client: ClientInfo, device_cookie: Option<String>) -> Self {
        Self {
            client: client.into(),
            device_cookie: device_cookie.map(Into::into),
            ..self.clone()
        }
    }

    /// An event of the client that asks.
    pub(crate) fn event(&self, kind: SecurityEventKind, account_id: Option<i64>) -> Event {
        Event {
            kind,
            account_id,
            origin: self.client.origin(),
            detail: None,
        }
    }

    /// Counts an attempt, and refuses it when one of its limits is reached.
    pub(crate) fn count(&self, what: Attempt, client: &str, account: &str) -> Result<Counted> {
        let throttle = &self.inner.throttle;
        let counted = throttle.count(what, client, account, self.now());
        counted.inspect_err(|_| throttle.note_refused(what))
    }

    /// Records an event that isn't part of a verb's transaction.
    pub(crate) async fn record(&self, event: Event) -> Result<()> {
        self.in_transaction(move |tx, now| Box::pin(async move { event.store(tx, now).await }))
            .await
    }

    /// Records that an account asked for what it may not see; at most 20 times an hour.
    pub async fn record_denied(&self, account_id: i64, page: &str) -> Result<()> {
        let account = account_id.to_string();
        if self.count(Attempt::Denied, "", &account).is_err() {
            return Ok(());
        }
        let mut event = self.event(SecurityEventKind::AccessDenied, Some(account_id));
        event.detail = Some(page.to_owned());
        self.record(event).await
    }

    /// The newest security events of an account.
    pub async fn security_events(&self, account_id: i64) -> Result<Vec<SecurityEventRecord>> {
        let mut conn = self.store().read().await?;
        security_events::of_account(&mut conn, account_id, SHOWN_MAX).await
    }

    /// The security events of an account that are still kept, the newest first; at most 10,000.
    pub async fn all_security_events(&self, account_id: i64) -> Result<Vec<SecurityEventRecord>> {
        let mut conn = self.store().read().await?;
        security_events::of_account(&mut conn, account_id, EXPORTED_MAX).await
    }

    /// Stores how many attempts this process refused since the last call, as one sum; none when
    /// none was.
    pub async fn store_throttled(&self) -> Result<()> {
        let refused = self.inner.throttle.take_refused();
        if refused.is_empty() {
            return Ok(());
        }
        let sums: Vec<_> = refused
            .iter()
            .map(|(what, count)| format!("{}: {count}", what.word()))
            .collect();
        let mut event = self.event(SecurityEventKind::Throttled, None);
        event.detail = Some(sums.join(", "));
        self.record(event).await
    }
}

/// Deletes security events that are too old.
pub(crate) async fn sweep(conn: &mut dyn Connection, now: Timestamp) -> Result<()> {
    security_events::sweep(conn, now.plus_ms(-KEPT_MS)).await
}
