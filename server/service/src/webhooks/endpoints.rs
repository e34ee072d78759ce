//! Endpoints: creating, changing and removing them.

use domain::timestamp::DAY_MS;
use domain::webhook::{AttemptRecord, DisabledReason, WEBHOOKS_MAX, WebhookRecord};
use domain::{EventId, EventStream, EventType, KeyKind, Reference, Timestamp, WebhookId};
use serde::{Deserialize, Serialize};

use super::address::EndpointUrl;
use super::secret::WebhookSecret;
use crate::accounts::sealing::about_endpoint;
use crate::admission::KeyAccess;
use crate::admission::idempotency::{Digest, IdempotencyKey, Once};
use crate::applications::owned;
use crate::mail::{self, texts};
use crate::reports::first_id;
use crate::transactions::work;
use crate::{Service, Webhooks};
use store::applications::ApplicationRow;
use store::audit::{self, Actor};
use store::error::{Error, Fault, Refusal, Result};
use store::query::Conn;
use store::webhooks::{self, AttemptRow, AttemptsWanted, NewWebhook, Replay, WebhookRow};
use store::{Tx, applications, events};

/// How long the old secret also signs after a rotation.
const OLD_SECRET_MS: i64 = DAY_MS;
/// The age of the oldest event that an endpoint gets when it is enabled again.
const MISSED_MS: i64 = 3 * DAY_MS;
/// The maximum number of attempts on a page.
const ATTEMPTS_MAX: i64 = 1000;

#[derive(Clone, Debug)]
pub enum WebhookChange {
    Create {
        url: EndpointUrl,
        types: Option<Vec<EventType>>,
    },
    Url(WebhookId, EndpointUrl),
    Types(WebhookId, Option<Vec<EventType>>),
    Enable(WebhookId),
    Remove(WebhookId),
    /// Makes a new secret. The old one also signs for a day.
    Rotate(WebhookId),
    /// Delivers an event again, even if the endpoint has accepted it.
    Replay(WebhookId, EventId),
    /// Delivers all events since this time that the endpoint hasn't accepted.
    ReplayFrom(WebhookId, Timestamp),
    /// Delivers a test event.
    Test(WebhookId),
}

/// A changed endpoint.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ChangedWebhook {
    pub record: WebhookRecord,
    /// The new secret, which is shown only once. A replayed answer doesn't have it.
    #[serde(skip)]
    pub secret: Option<WebhookSecret>,
    /// Whether an earlier request with the same idempotency key made the change.
    #[serde(skip)]
    pub replayed: bool,
    /// The delivery of a test event.
    pub attempt: Option<AttemptRecord>,
}

pub(super) fn once(access: &KeyAccess, key: &IdempotencyKey, change: &WebhookChange) -> Once {
    let mut digest = Digest::new("webhook");
    digest.text(&format!("{change:?}"));
    Once::new(access.stream(), key, digest)
}

/// Returns the answer to an earlier request with the same idempotency key, if there was one.
pub(super) async fn answered(
    once: &Once,
    tx: &mut Tx<'_>,
    now: Timestamp,
) -> Result<Option<ChangedWebhook>> {
    let changed = once.answered::<ChangedWebhook>(tx, now).await?;
    Ok(changed.map(|changed| ChangedWebhook { replayed: true, ..changed }))
}

impl Webhooks<'_> {
    /// Returns the access to one of an account's applications that a key of this kind would give.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn access_of(
        &self,
        account_id: i64,
        reference: Reference,
        kind: KeyKind,
    ) -> Result<KeyAccess> {
        let shard = self.shard_of(reference).await?;
        let row = owned(&mut self.store().read_at(shard).await?, account_id, reference).await?;
        Ok(KeyAccess { application_id: row.id, reference, kind })
    }

    /// Parses the URL of an endpoint.
    ///
    /// # Errors
    /// `WebhookUrl`.
    pub fn endpoint_url(&self, text: &str) -> Result<EndpointUrl> {
        let checked = self.inner.endpoint_rules.check_url(text);
        Ok(checked.map_err(|fault| Refusal::WebhookUrl { why: fault.to_string() })?)
    }

    /// Returns the endpoints that a key manages, oldest first.
    pub async fn endpoints(&self, access: &KeyAccess) -> Result<Vec<WebhookRecord>> {
        let mut conn = self.read_of(access.reference).await?;
        let rows = webhooks::list(&mut conn, access.stream()).await?;
        rows.into_iter().map(record).collect()
    }

    /// Returns an endpoint and its newest attempts.
    ///
    /// # Errors
    /// `NoSuchWebhook`.
    pub async fn endpoint(
        &self,
        access: &KeyAccess,
        id: WebhookId,
        limit: i64,
    ) -> Result<(WebhookRecord, Vec<AttemptRecord>)> {
        let mut conn = self.read_of(access.reference).await?;
        let row = find(&mut conn, access.stream(), id).await?;
        let limit = limit.clamp(1, ATTEMPTS_MAX);
        let newest = AttemptsWanted::Below(i64::MAX);
        let attempts = webhooks::attempts(&mut conn, id.0, newest, limit).await?;
        let attempts = attempts.into_iter().map(|attempt| shown_attempt(&row, attempt)).collect();
        Ok((record(row)?, attempts))
    }

    /// Creates or changes an endpoint. If an earlier request had the same idempotency key, returns
    /// its answer without the secret. For a test, call [`Self::begin_test`] instead.
    ///
    /// # Errors
    /// `NoSuchWebhook`, `TooManyWebhooks`, `NoSuchEvent`, `IdempotencyMismatch`.
    pub async fn change(
        &self,
        access: &KeyAccess,
        change: WebhookChange,
        key: Option<&IdempotencyKey>,
    ) -> Result<ChangedWebhook> {
        let once = key.map(|key| once(access, key, &change));
        let (service, access) = (self.0.clone(), *access);
        let new_id = WebhookId(self.next_id(self.now()));
        let id = change.webhook().unwrap_or(new_id);
        let secret = WebhookSecret::new(self.entropy().bytes());
        let sealed = self.accounts().seal(&about_endpoint(id), secret.as_bytes()).await?;
        self.in_transaction_of(
            access.reference,
            work!(|tx, now| {
                if let Some(once) = &once
                    && let Some(answered) = answered(once, tx, now).await?
                {
                    return Ok(answered);
                }
                let owner = applications::by_reference(tx, access.reference).await?;
                let owner = owner.ok_or(Refusal::NoSuchApplication)?;
                let stream = access.stream();
                let target = Target { id, stream, owner: &owner, sealed: &sealed, now };
                let row = match change.webhook() {
                    None => None,
                    Some(id) => Some(find(tx, stream, id).await?),
                };
                let before = row.clone();
                let has_secret = target.apply(&service, tx, &change, row).await?;
                let row = webhooks::one(tx, id.0).await?.or(before);
                let record = record(row.ok_or(Refusal::NoSuchWebhook)?)?;
                let secret = has_secret.then_some(secret);
                let changed = ChangedWebhook { record, secret, replayed: false, attempt: None };
                if let Some(once) = once {
                    once.keep(tx, &changed, now).await?;
                }
                Ok(changed)
            }),
        )
        .await
    }
}

impl WebhookChange {
    /// Returns the endpoint to change. `None` for a new one.
    pub fn webhook(&self) -> Option<WebhookId> {
        match self {
            Self::Create { .. } => None,
            Self::Url(id, _)
            | Self::Types(id, _)
            | Self::Enable(id)
            | Self::Remove(id)
            | Self::Rotate(id)
            | Self::Replay(id, _)
            | Self::ReplayFrom(id, _)
            | Self::Test(id) => Some(*id),
        }
    }
}

/// The endpoint that a change is about.
struct Target<'a> {
    id: WebhookId,
    stream: EventStream,
    owner: &'a ApplicationRow,
    /// A new secret, encrypted.
    sealed: &'a str,
    now: Timestamp,
}

impl Target<'_> {
    /// Makes the change. Returns whether the endpoint has the new secret.
    async fn apply(
        &self,
        service: &Service,
        tx: &mut Tx<'_>,
        change: &WebhookChange,
        row: Option<WebhookRow>,
    ) -> Result<bool> {
        let Self { id, stream, owner, sealed, now } = *self;
        let Some(row) = row else {
            if let WebhookChange::Create { url, types } = change {
                create(tx, stream, (id, url, types.as_deref()), sealed, now).await?;
                note(tx, owner, "webhook.create", id, Some(url.as_str()), now).await?;
                let mail = texts::webhook_created(owner.record.reference, url.as_str());
                mail::put(tx, owner, &mail, now).await?;
            }
            return Ok(true);
        };
        let (action, detail) = match change {
            WebhookChange::Create { .. } | WebhookChange::Test(_) => return Ok(false),
            WebhookChange::Url(_, url) => {
                if url.as_str() == row.url {
                    return Ok(false);
                }
                webhooks::set_url(tx, id.0, url.as_str()).await?;
                let mail = texts::webhook_moved(owner.record.reference, &row.url, url.as_str());
                mail::put(tx, owner, &mail, now).await?;
                ("webhook.move", Some(url.as_str().to_owned()))
            }
            WebhookChange::Types(_, types) => {
                webhooks::set_types(tx, id.0, types.as_deref()).await?;
                ("webhook.events", None)
            }
            WebhookChange::Enable(_) => {
                if row.disabled_at.is_some() {
                    let missed = first_id(now.plus_ms(-MISSED_MS));
                    webhooks::enable(tx, id.0, missed, now).await?;
                    replay(service, tx, &row, missed - 1, now).await?;
                }
                ("webhook.enable", None)
            }
            WebhookChange::Remove(_) => {
                webhooks::remove(tx, id.0, now).await?;
                ("webhook.remove", Some(row.url))
            }
            WebhookChange::Rotate(_) => {
                webhooks::rotate(tx, id.0, sealed, now.plus_ms(OLD_SECRET_MS)).await?;
                ("webhook.rotate", None)
            }
            WebhookChange::Replay(_, event) => {
                let is_own = event.reference == row.reference && event.test == stream.test;
                let span = (event.number - 1, event.number.saturating_add(1));
                if !is_own || events::page(tx, stream, span, 1).await?.is_empty() {
                    return Err(Refusal::NoSuchEvent.into());
                }
                // `wake` locks the endpoint, as delivery does before it changes a retry.
                webhooks::wake(tx, id.0, now).await?;
                webhooks::put_retry(tx, id.0, event.number, 0, now).await?;
                return Ok(false);
            }
            WebhookChange::ReplayFrom(_, from) => {
                replay(service, tx, &row, first_id(*from) - 1, now).await?;
                return Ok(false);
            }
        };
        note(tx, owner, action, id, detail.as_deref(), now).await?;
        Ok(matches!(change, WebhookChange::Rotate(_)))
    }
}

/// Stores a new endpoint. It gets the events from now on.
async fn create(
    tx: &mut Tx<'_>,
    stream: EventStream,
    (id, url, types): (WebhookId, &EndpointUrl, Option<&[EventType]>),
    sealed: &str,
    now: Timestamp,
) -> Result<()> {
    if webhooks::list(tx, stream).await?.len() >= WEBHOOKS_MAX {
        return Err(Refusal::TooManyWebhooks.into());
    }
    events::keep_since(tx, stream, now).await?;
    let position = events::lock(tx, stream).await?;
    let (url, secret) = (url.as_str(), sealed);
    let new = NewWebhook { id: id.0, stream, url, secret, types, position };
    webhooks::insert(tx, &new, now).await
}

/// Delivers the events after `position` that were attempted at the endpoint and that it hasn't
/// accepted.
async fn replay(
    service: &Service,
    tx: &mut Tx<'_>,
    row: &WebhookRow,
    position: i64,
    now: Timestamp,
) -> Result<()> {
    if position < row.position {
        webhooks::wake(tx, row.id, now).await?;
        let id = service.next_id(now);
        webhooks::put_replay(tx, row.id, Replay { id, position, last_id: row.position }).await?;
    }
    Ok(())
}

/// Notes a change of an endpoint in the audit log.
async fn note(
    tx: &mut Tx<'_>,
    owner: &ApplicationRow,
    action: &'static str,
    id: WebhookId,
    detail: Option<&str>,
    now: Timestamp,
) -> Result<()> {
    let actor = Actor::Account(owner.account_id);
    let subject = owner.record.reference.to_string();
    let detail = detail.map_or_else(|| id.to_string(), |detail| format!("{id} {detail}"));
    audit::insert(tx, now, &actor, action, &subject, Some(&detail)).await
}

/// Returns an endpoint of a stream.
pub(super) async fn find(conn: Conn<'_>, stream: EventStream, id: WebhookId) -> Result<WebhookRow> {
    let row = webhooks::one(conn, id.0).await?.filter(|row| row.stream == stream);
    Ok(row.ok_or(Refusal::NoSuchWebhook)?)
}

pub(super) fn event_id(row: &WebhookRow, number: i64) -> EventId {
    EventId { number, reference: row.reference, test: row.stream.test }
}

pub(super) fn shown_attempt(row: &WebhookRow, attempt: AttemptRow) -> AttemptRecord {
    AttemptRecord {
        id: attempt.id,
        event: event_id(row, attempt.event_id).to_string(),
        kind: attempt.kind,
        at: attempt.at,
        delivered: attempt.delivered,
        status: attempt.status,
        latency_ms: attempt.latency_ms,
        error: attempt.error,
        answer: attempt.answer,
        next_attempt_at: attempt.next_at,
    }
}

pub(super) fn record(row: WebhookRow) -> Result<WebhookRecord> {
    let disabled = row.disabled_reason.as_deref().map(|reason| {
        DisabledReason::parse(reason).ok_or(Error::Failed(Fault::Corrupt {
            table: "webhooks",
            column: "disabled_reason".into(),
            value: reason.to_owned(),
        }))
    });
    Ok(WebhookRecord {
        webhookid: WebhookId(row.id),
        url: row.url,
        events: row.types,
        disabled: disabled.transpose()?,
        failing_since: row.failing_since,
        created_at: row.created_at,
    })
}
