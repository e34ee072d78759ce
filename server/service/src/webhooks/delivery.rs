//! Chooses the events that an endpoint gets next, and records the outcomes of attempts.
//!
//! A process leases an endpoint and delivers its events in batches. First come events whose next
//! attempt is due, then new ones, then events to replay. The endpoint's position is the last new
//! event that was attempted, so a new event needs no row for each endpoint. An event whose attempt
//! failed gets a row with the time of its next attempt. If a process dies, the lease ends, and
//! another process delivers the events of that batch again.

use std::collections::HashSet;
use std::sync::Arc;

use domain::timestamp::DAY_MS;
use domain::webhook::DisabledReason;
use domain::{EventStream, EventType, Timestamp, WebhookId};

use super::endpoints::{
    ChangedWebhook, WebhookChange, answered, event_id, find, once, record, shown_attempt,
};
use super::events::{EventData, EventRecord, described};
use super::secret::WebhookSecret;
use crate::accounts::sealing::about_endpoint;
use crate::admission::KeyAccess;
use crate::admission::idempotency::IdempotencyKey;
use crate::mail::{self, texts};
use crate::transactions::work;
use crate::{Webhooks, run_detached, run_detached_with_attempts};
use domain::ids::Shard;
use store::audit::{self, Actor};
use store::error::{Error, Fault, Refusal, Result};
use store::gate::Priority;
use store::query::Conn;
use store::webhooks::{self, AttemptRow, Replay, WebhookRow};
use store::{Tx, applications, events};

/// The pauses after an event's failed attempts. Each varies by up to a fifth.
const PAUSES_MS: [i64; 9] = {
    const MINUTE: i64 = 60_000;
    const HOUR: i64 = 60 * MINUTE;
    [5000, MINUTE, 5 * MINUTE, 30 * MINUTE, 2 * HOUR, 5 * HOUR, 10 * HOUR, 14 * HOUR, 20 * HOUR]
};
/// An endpoint that has accepted nothing for this long is disabled, after at least
/// [`FAILURES_BEFORE_PAUSE`] failures in a row. The minimum number of failures protects an endpoint
/// when the clock jumps ahead.
const FAILING_MS: i64 = 3 * DAY_MS;
/// The HTTP status with which an endpoint declines all further events.
const GONE: u16 = 410;
/// How long a process may deliver a batch before others take over the endpoint. A batch starts
/// requests for [`BATCH_MS`], and its last requests take at most 15 seconds more.
const LEASE_MS: i64 = 30_000;
/// How long a batch may start requests.
pub const BATCH_MS: i64 = 10_000;
const AT_ONCE: usize = 8;
/// After this many failures in a row, a batch ends, and the endpoint is paused. It then gets one
/// request at a time until it accepts an event. So a dead endpoint uses few connections, and most
/// of its events keep all their attempts.
const FAILURES_BEFORE_PAUSE: i64 = 8;
/// The limits of a pause. The pause is a tenth of the time since the first failure in a row.
const PAUSE_LIMITS_MS: (i64, i64) = (1000, 60_000);
/// The most new events of a batch, and the most to replay.
const NEW_MAX: i64 = 250;
/// The most events of a batch whose next attempt is due.
const RETRIES_MAX: i64 = 50;

/// An endpoint that this process delivers to.
#[derive(Clone, Copy, Debug)]
pub struct LeasedWebhook {
    pub id: WebhookId,
    shard: Shard,
    token: i64,
}

/// Events to deliver to an endpoint, in order.
pub struct EventBatch {
    row: WebhookRow,
    pub url: String,
    /// Every secret signs every delivery.
    pub secrets: Vec<WebhookSecret>,
    pub events: Vec<DueEvent>,
    /// The most requests at once.
    pub at_once: usize,
    /// After this many failures in a row, the batch ends.
    pub failures_max: i64,
    /// The ID of the last new event that was read.
    new_read: Option<i64>,
    /// The replay in progress, and the ID of its last event that was read.
    replayed: Option<(Replay, i64)>,
    /// The events to retry that have been deleted since.
    deleted: Vec<i64>,
    is_last: bool,
}

pub struct DueEvent {
    pub event: EventRecord,
    source: Source,
}

/// Why an event is delivered now.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    New,
    Replay,
    /// It has failed this many times.
    Retry(i64),
}

pub enum TestBegun {
    Deliver(Box<EventBatch>),
    /// The answer to an earlier request with the same idempotency key.
    Answered(Box<ChangedWebhook>),
}

impl DueEvent {
    /// Returns the message, batch or inbound message that the event is about. Events with the same
    /// subject are delivered one after the other.
    pub fn subject(&self) -> Option<i64> {
        match &self.event.data {
            EventData::Message(message) => Some(message.transid.0),
            EventData::Batch(batch) => Some(batch.batchid.0),
            EventData::Inbound(message) => Some(message.inboundid.0),
            EventData::Other(_) => None,
        }
    }
}

/// The outcome of an attempt.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub at: Timestamp,
    pub delivered: bool,
    /// The HTTP status. `None` if there was no answer.
    pub status: Option<u16>,
    pub latency_ms: i64,
    pub error: Option<String>,
    pub answer: Option<String>,
    /// How long the endpoint wants us to wait.
    pub retry_after_ms: Option<i64>,
}

impl Attempt {
    /// Returns whether the endpoint wants no more events.
    pub fn is_gone(&self) -> bool {
        self.status == Some(GONE)
    }
}

impl Webhooks<'_> {
    /// Leases about `limit` endpoints that are due and that no other process delivers to. Each
    /// shard gets an equal part of `limit`, plus one.
    pub async fn lease_due(&self, limit: i64) -> Result<Vec<LeasedWebhook>> {
        let shards = i64::try_from(self.shards().count()).unwrap_or(1);
        let of_shard = limit.div_euclid(shards.max(1)) + 1;
        let leased = self.in_each_shard(|shard| async move {
            let mut conn = self.store().read_at(shard).await?;
            let due = webhooks::due(&mut conn, self.now(), of_shard).await?;
            drop(conn);
            if due.is_empty() {
                return Ok(Vec::new());
            }
            self.lease(shard, due).await
        });
        Ok(leased.await?.into_iter().flatten().collect())
    }

    async fn lease(&self, shard: Shard, due: Vec<i64>) -> Result<Vec<LeasedWebhook>> {
        let service = self.0.clone();
        run_detached(async move {
            let mut tx = service.store().begin_at(shard, Priority::Results).await?;
            let now = service.now();
            let until = now.plus_ms(LEASE_MS);
            let mut leased = Vec::new();
            for id in due {
                let token = service.next_id(now);
                if webhooks::lease(&mut tx, id, token, now, until).await? {
                    leased.push(LeasedWebhook { id: WebhookId(id), shard, token });
                }
            }
            tx.commit().await?;
            Ok(leased)
        })
        .await
    }

    /// Returns the next events for a leased endpoint. `None` if this process no longer has the
    /// lease, or if the endpoint was removed or disabled.
    pub async fn next_batch(&self, leased: &LeasedWebhook) -> Result<Option<EventBatch>> {
        let mut conn = self.store().read_at(leased.shard).await?;
        let held = webhooks::held(&mut conn, leased.id.0, leased.token).await?;
        let Some(row) = held.filter(|row| row.disabled_at.is_none()) else {
            return Ok(None);
        };
        let now = self.now();
        let is_probed = row.failures >= FAILURES_BEFORE_PAUSE;
        let mut batch = EventBatch {
            url: row.url.clone(),
            secrets: Vec::new(),
            events: Vec::new(),
            at_once: if is_probed { 1 } else { AT_ONCE },
            failures_max: if is_probed { 1 } else { FAILURES_BEFORE_PAUSE },
            new_read: None,
            replayed: None,
            deleted: Vec::new(),
            is_last: true,
            row,
        };
        batch.read_retries(&mut conn, now).await?;
        batch.read_new(&mut conn).await?;
        batch.read_replay(&mut conn).await?;
        drop(conn);
        batch.secrets = self.secrets(&batch.row).await?;
        Ok(Some(batch))
    }

    /// Stores the outcomes of the first attempts of a batch, in their order. Returns true if the
    /// caller must deliver the next batch. Otherwise the lease has ended or was lost, because
    /// nothing is left to deliver, or because the endpoint was paused or disabled.
    pub async fn record(
        &self,
        leased: &LeasedWebhook,
        batch: EventBatch,
        attempts: Vec<Attempt>,
    ) -> Result<bool> {
        let leased = *leased;
        let done = Arc::new((batch, attempts));
        run_detached_with_attempts(self, move |service| {
            let done = Arc::clone(&done);
            async move {
                let mut tx = service.store().begin_at(leased.shard, Priority::Results).await?;
                let (batch, attempts) = &*done;
                let more = service.webhooks().write(&mut tx, &leased, batch, attempts).await?;
                tx.commit().await?;
                Ok(more)
            }
        })
        .await
    }

    /// Ends all leases. Only for SQLite, at the start of the only process.
    pub async fn end_leases(&self) -> Result<()> {
        self.in_transaction(work!(|tx, _| webhooks::end_leases(tx).await)).await
    }

    /// Ends a lease while the endpoint has events left, so that other endpoints have their turn or
    /// the process can stop.
    pub async fn end_lease(&self, leased: &LeasedWebhook) -> Result<()> {
        let (service, leased) = (self.0.clone(), *leased);
        run_detached(async move {
            let mut tx = service.store().begin_at(leased.shard, Priority::Results).await?;
            let now = Some(service.now());
            webhooks::release(&mut tx, leased.id.0, leased.token, now).await?;
            tx.commit().await
        })
        .await
    }

    async fn write(
        &self,
        tx: &mut Tx<'_>,
        leased: &LeasedWebhook,
        batch: &EventBatch,
        attempts: &[Attempt],
    ) -> Result<bool> {
        let (now, row) = (self.now(), &batch.row);
        let all_attempted = attempts.len() == batch.events.len();
        let ends = batch.is_last && all_attempted;
        // Lock the stream before the endpoint, like transactions that add events. Otherwise the two
        // could deadlock.
        let newest = if ends { Some(events::lock(tx, row.stream).await?) } else { None };
        if !webhooks::renew(tx, row.id, leased.token, now.plus_ms(LEASE_MS)).await? {
            return Ok(false);
        }
        let mut rows = Vec::with_capacity(attempts.len());
        let (mut failures, mut failing_since, mut gone) = (row.failures, row.failing_since, false);
        let (mut position, mut wanted_pause) = (row.position, None);
        for (attempt, delivery) in attempts.iter().zip(&batch.events) {
            let event = delivery.event.id.number;
            let next_at = self.settle(tx, row, delivery, attempt).await?;
            if attempt.delivered {
                (failures, failing_since) = (0, None);
            } else {
                failures += 1;
                failing_since.get_or_insert(attempt.at);
                wanted_pause = wanted_pause.max(attempt.retry_after_ms);
            }
            gone |= attempt.is_gone();
            if delivery.source == Source::New {
                position = event;
            }
            rows.push(self.attempt_row(&delivery.event, attempt, next_at));
        }
        webhooks::insert_attempts(tx, row.id, &rows).await?;
        for event in &batch.deleted {
            webhooks::drop_retry(tx, row.id, *event).await?;
        }
        self.advance_replay(tx, batch, rows.len()).await?;
        if all_attempted {
            position = batch.new_read.unwrap_or(position);
        }
        let due_at = match newest {
            None => None,
            Some(newest) if newest > position => Some(now),
            Some(_) if webhooks::replay(tx, row.id).await?.is_some() => Some(now),
            Some(_) => webhooks::next_retry(tx, row.id).await?,
        };
        if ends && due_at.is_none() {
            // No event is left, so the next failure starts a new run. An endpoint is only disabled
            // while events wait.
            (failures, failing_since) = (0, None);
        }
        webhooks::progress(tx, row.id, position, failures, failing_since).await?;
        let failing = failing_since.filter(|_| failures >= FAILURES_BEFORE_PAUSE);
        let failing_ms = failing.map(|since| now.ms_since(since));
        let disabled = match failing_ms {
            _ if gone => Some(DisabledReason::Gone),
            Some(FAILING_MS..) => Some(DisabledReason::Failing),
            _ => None,
        };
        if let Some(reason) = disabled {
            self.disable(tx, row, reason, now).await?;
            return Ok(false);
        }
        let (least, most) = PAUSE_LIMITS_MS;
        let own_pause = failing_ms.map(|failing| (failing / 10).clamp(least, most));
        if let Some(pause) = own_pause.max(wanted_pause) {
            webhooks::pause(tx, row.id, leased.token, now.plus_ms(pause)).await?;
            return Ok(false);
        }
        if ends {
            webhooks::release(tx, row.id, leased.token, due_at).await?;
        }
        Ok(!ends)
    }

    fn attempt_row(
        &self,
        event: &EventRecord,
        attempt: &Attempt,
        next_at: Option<Timestamp>,
    ) -> AttemptRow {
        AttemptRow {
            id: self.next_id(self.now()),
            at: attempt.at,
            event_id: event.id.number,
            kind: event.kind,
            delivered: attempt.delivered,
            status: attempt.status.map(i64::from),
            latency_ms: attempt.latency_ms,
            error: attempt.error.clone(),
            answer: attempt.answer.clone(),
            next_at,
        }
    }

    /// Schedules the next attempt of an event, or ends the attempts. Returns the time of the next
    /// attempt.
    async fn settle(
        &self,
        tx: &mut Tx<'_>,
        row: &WebhookRow,
        delivery: &DueEvent,
        attempt: &Attempt,
    ) -> Result<Option<Timestamp>> {
        let event = delivery.event.id.number;
        let failed = match delivery.source {
            Source::Retry(failed) => failed,
            Source::New | Source::Replay => 0,
        };
        let pause = usize::try_from(failed).ok().and_then(|failed| PAUSES_MS.get(failed));
        let Some(pause) = pause.filter(|_| !attempt.delivered) else {
            if matches!(delivery.source, Source::Retry(_)) {
                webhooks::drop_retry(tx, row.id, event).await?;
            }
            return Ok(None);
        };
        let pause = self.varied(*pause).max(attempt.retry_after_ms.unwrap_or(0));
        let next_at = attempt.at.plus_ms(pause);
        webhooks::put_retry(tx, row.id, event, failed + 1, next_at).await?;
        Ok(Some(next_at))
    }

    /// Changes a pause by up to a fifth at random, so that events that failed together aren't
    /// retried together.
    fn varied(&self, pause_ms: i64) -> i64 {
        let fifth = (pause_ms / 5).max(1).unsigned_abs();
        let change = self.entropy().number() % (2 * fifth + 1);
        pause_ms - fifth.cast_signed() + change.cast_signed()
    }

    async fn advance_replay(
        &self,
        tx: &mut Tx<'_>,
        batch: &EventBatch,
        attempted: usize,
    ) -> Result<()> {
        let Some((replay, read)) = batch.replayed else {
            return Ok(());
        };
        let left = batch.events.iter().skip(attempted);
        let is_left = left.filter(|delivery| delivery.source == Source::Replay).count() > 0;
        let mut done = batch.events.iter().take(attempted).rev();
        let last = done.find(|delivery| delivery.source == Source::Replay);
        let last = last.map_or(replay.position, |delivery| delivery.event.id.number);
        let position = if is_left { last } else { read };
        webhooks::advance_replay(tx, batch.row.id, replay.id, position).await
    }

    async fn disable(
        &self,
        tx: &mut Tx<'_>,
        row: &WebhookRow,
        reason: DisabledReason,
        now: Timestamp,
    ) -> Result<()> {
        let id = WebhookId(row.id);
        tracing::warn!(%id, reason = reason.as_str(), "an endpoint was disabled");
        webhooks::disable(tx, row.id, reason.as_str(), now).await?;
        let subject = row.reference.to_string();
        let detail = format!("{id} {}", reason.sentence());
        audit::insert(tx, now, &Actor::System, "webhook.disable", &subject, Some(&detail)).await?;
        let owner = applications::by_reference(tx, row.reference).await?;
        if let Some(owner) = owner {
            let mail = texts::webhook_disabled(row.reference, &row.url, reason);
            mail::put(tx, &owner, &mail, now).await?;
        }
        Ok(())
    }

    /// Returns the secrets that sign deliveries: the newest secret and, for a day, the one that it
    /// replaced.
    async fn secrets(&self, row: &WebhookRow) -> Result<Vec<WebhookSecret>> {
        let about = about_endpoint(WebhookId(row.id));
        let old = row.old_secret.as_ref().filter(|(_, until)| *until > self.now());
        let mut secrets = Vec::new();
        for sealed in [Some(&row.secret), old.map(|(secret, _)| secret)].into_iter().flatten() {
            let bytes = self.accounts().unseal(&about, sealed).await?;
            let bytes = bytes.try_into().map_err(|_| Error::Failed(Fault::Sealed))?;
            secrets.push(WebhookSecret::new(bytes));
        }
        Ok(secrets)
    }

    /// Stores an event that tests an endpoint, and returns a batch with only this event. If an
    /// earlier request had the same idempotency key, returns its answer instead.
    ///
    /// # Errors
    /// `NoSuchWebhook`, `IdempotencyMismatch`.
    pub async fn begin_test(
        &self,
        access: &KeyAccess,
        id: WebhookId,
        key: Option<&IdempotencyKey>,
    ) -> Result<TestBegun> {
        let access = *access;
        let once = key.map(|key| once(&access, key, &WebhookChange::Test(id)));
        let begun = self.in_transaction_of(
            access.reference,
            work!(|tx, now| {
                if let Some(once) = &once
                    && let Some(answered) = answered(once, tx, now).await?
                {
                    return Ok(Err(answered));
                }
                let stream = access.stream();
                let row = find(tx, stream, id).await?;
                let event = events::add(tx, stream, EventType::Test, id.0, now).await?;
                Ok(Ok((row, event)))
            }),
        );
        let (row, event) = match begun.await? {
            Ok(added) => added,
            Err(answered) => return Ok(TestBegun::Answered(Box::new(answered))),
        };
        let id = event_id(&row, event);
        let at = Timestamp::from_unix_ms(domain::ids::id_unix_ms(event));
        let data = EventData::Other("{}".to_owned());
        let event = EventRecord { id, kind: EventType::Test, at, data };
        Ok(TestBegun::Deliver(Box::new(EventBatch {
            url: row.url.clone(),
            secrets: self.secrets(&row).await?,
            events: vec![DueEvent { event, source: Source::New }],
            at_once: 1,
            failures_max: 1,
            new_read: None,
            replayed: None,
            deleted: Vec::new(),
            is_last: true,
            row,
        })))
    }

    /// Stores the outcome of a test. It counts neither as a success nor as a failure. Later
    /// requests with the same idempotency key get the same answer.
    pub async fn end_test(
        &self,
        access: &KeyAccess,
        batch: EventBatch,
        attempt: Attempt,
        key: Option<&IdempotencyKey>,
    ) -> Result<ChangedWebhook> {
        let delivery = batch.events.first().ok_or(Refusal::NoSuchEvent)?;
        let attempt = self.attempt_row(&delivery.event, &attempt, None);
        let id = WebhookId(batch.row.id);
        let once = key.map(|key| once(access, key, &WebhookChange::Test(id)));
        self.in_transaction_of(
            batch.row.reference,
            work!(|tx, now| {
                webhooks::insert_attempts(tx, id.0, std::slice::from_ref(&attempt)).await?;
                let attempt = Some(shown_attempt(&batch.row, attempt));
                let row = webhooks::one(tx, id.0).await?.unwrap_or(batch.row);
                let changed =
                    ChangedWebhook { record: record(row)?, secret: None, replayed: false, attempt };
                if let Some(once) = once {
                    once.keep(tx, &changed, now).await?;
                }
                Ok(changed)
            }),
        )
        .await
    }
}

impl EventBatch {
    const fn stream(&self) -> EventStream {
        self.row.stream
    }

    async fn read_retries(&mut self, conn: Conn<'_>, now: Timestamp) -> Result<()> {
        let due = webhooks::retries(conn, self.row.id, now, RETRIES_MAX).await?;
        self.is_last &= due.len().cast_signed() as i64 != RETRIES_MAX;
        for (event, failed) in due {
            let span = (event - 1, event.saturating_add(1));
            let found = events::page(conn, self.stream(), span, 1).await?;
            let found = described(conn, self.stream(), self.row.reference, found).await?;
            if found.is_empty() {
                self.deleted.push(event);
            }
            let source = Source::Retry(failed);
            self.events.extend(found.into_iter().map(|event| DueEvent { event, source }));
        }
        Ok(())
    }

    async fn read_replay(&mut self, conn: Conn<'_>) -> Result<()> {
        let Some(replay) = webhooks::replay(conn, self.row.id).await? else {
            return Ok(());
        };
        self.is_last = false;
        let span = (replay.position, replay.last_id.saturating_add(1));
        let mut found = events::page(conn, self.stream(), span, NEW_MAX).await?;
        let read = match (found.first(), found.last()) {
            (Some(first), Some(last)) => {
                let ids = (first.id, last.id);
                let skipped = webhooks::not_to_replay(conn, self.row.id, ids).await?;
                let skipped: HashSet<i64> = skipped.into_iter().collect();
                found.retain(|event| self.row.gets(event.kind) && !skipped.contains(&event.id));
                ids.1
            }
            _ => replay.last_id,
        };
        self.replayed = Some((replay, read));
        self.add(conn, found, Source::Replay).await
    }

    async fn read_new(&mut self, conn: Conn<'_>) -> Result<()> {
        let span = (self.row.position, i64::MAX);
        let mut found = events::page(conn, self.stream(), span, NEW_MAX).await?;
        self.is_last &= found.len().cast_signed() as i64 != NEW_MAX;
        self.new_read = found.last().map(|event| event.id);
        found.retain(|event| event.kind != EventType::Test && self.row.gets(event.kind));
        self.add(conn, found, Source::New).await
    }

    async fn add(
        &mut self,
        conn: Conn<'_>,
        found: Vec<events::StoredEvent>,
        source: Source,
    ) -> Result<()> {
        let found = described(conn, self.stream(), self.row.reference, found).await?;
        self.events.extend(found.into_iter().map(|event| DueEvent { event, source }));
        Ok(())
    }
}
