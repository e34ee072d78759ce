//! Security events. Each is recorded with the origin of its request.

use domain::Timestamp;
use domain::records::SecurityEventRecord;
use domain::security_event::SecurityEventKind;

use super::throttle::{Attempt, Counted, network};
use crate::transactions::work;
use crate::{Accounts, Service};
use store::error::Result;
use store::query::Conn;
use store::security_events::{self, Origin};

/// The maximum number of events that an account's owner sees.
const SHOWN_MAX: i64 = 50;
/// The maximum number of events that an account's owner can download.
const EXPORTED_MAX: i64 = 10_000;

/// The browser or program that sends a request.
#[derive(Clone, Debug, Default)]
pub struct ClientInfo {
    pub user_agent: String,
    pub address: String,
}

/// The maximum number of stored characters of a `User-Agent`.
const USER_AGENT_CHARS_MAX: usize = 255;

impl ClientInfo {
    /// Returns the client as it is stored, with a truncated `User-Agent`.
    pub(crate) fn origin(&self) -> Origin {
        Origin {
            address: self.address.clone(),
            network: network(&self.address),
            user_agent: self.user_agent.chars().take(USER_AGENT_CHARS_MAX).collect(),
        }
    }
}

/// An event of a client, to be stored in the transaction that it belongs to.
pub(crate) struct Event {
    pub(crate) kind: SecurityEventKind,
    pub(crate) account_id: Option<i64>,
    pub(crate) origin: Origin,
    pub(crate) detail: Option<String>,
}

impl Event {
    pub(crate) async fn store(&self, conn: Conn<'_>, now: Timestamp) -> Result<()> {
        let (kind, origin, detail) = (self.kind, &self.origin, self.detail.as_deref());
        security_events::insert(conn, now, self.account_id, kind, origin, detail).await.map(drop)
    }
}

impl Service {
    /// Returns the service for requests of this client, so that recorded events name the client.
    /// `device_cookie` is the cookie of a known device, if the client has one.
    pub fn asked_by(&self, client: ClientInfo, device_cookie: Option<String>) -> Self {
        Self { client: client.into(), device_cookie: device_cookie.map(Into::into), ..self.clone() }
    }
}

impl Accounts<'_> {
    /// Creates an event of the current client.
    pub(crate) fn event(&self, kind: SecurityEventKind, account_id: Option<i64>) -> Event {
        Event { kind, account_id, origin: self.client.origin(), detail: None }
    }

    /// Counts an attempt. Refuses it if one of its limits is reached.
    pub(crate) fn count(&self, what: Attempt, client: &str, account: &str) -> Result<Counted> {
        let throttle = &self.inner.throttle;
        let counted = throttle.count(what, client, account, self.now());
        counted.inspect_err(|_| throttle.note_refused(what))
    }

    /// Records an event in a transaction of its own.
    pub(crate) async fn record(&self, event: Event) -> Result<()> {
        self.in_transaction(work!(|tx, now| event.store(tx, now).await)).await
    }

    /// Records that an account requested a page that it may not see. Records at most 20 such events
    /// per account and hour.
    pub async fn record_denied(&self, account_id: i64, page: &str) -> Result<()> {
        let account = account_id.to_string();
        if self.count(Attempt::Denied, "", &account).is_err() {
            return Ok(());
        }
        let mut event = self.event(SecurityEventKind::AccessDenied, Some(account_id));
        event.detail = Some(page.to_owned());
        self.record(event).await
    }

    /// Returns the newest security events of an account.
    pub async fn security_events(&self, account_id: i64) -> Result<Vec<SecurityEventRecord>> {
        security_events::of_account(&mut self.store().read().await?, account_id, SHOWN_MAX).await
    }

    /// Returns the stored security events of an account, newest first, at most 10,000.
    pub async fn all_security_events(&self, account_id: i64) -> Result<Vec<SecurityEventRecord>> {
        let mut conn = self.store().read().await?;
        security_events::of_account(&mut conn, account_id, EXPORTED_MAX).await
    }

    /// Stores one event with the number of attempts that this process has refused since the last
    /// call, by kind. Stores nothing if it refused none.
    pub async fn store_throttled(&self) -> Result<()> {
        let refused = self.inner.throttle.take_refused();
        if refused.is_empty() {
            return Ok(());
        }
        let sums: Vec<_> =
            refused.iter().map(|(what, count)| format!("{}: {count}", what.code())).collect();
        let mut event = self.event(SecurityEventKind::Throttled, None);
        event.detail = Some(sums.join(", "));
        self.record(event).await
    }
}
