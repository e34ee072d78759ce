//! Delivers the events of a batch to their endpoint.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::{Timestamp, WebhookId};
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use service::{
    Attempt, BATCH_MS, ChangedWebhook, DueEvent, EventBatch, EventRecord, IdempotencyKey,
    KeyAccess, Refusal, Result, Service, TestBegun, WebhookSecret,
};
use tokio_util::sync::CancellationToken;

use super::{Delivery, Outcome, WebhookClient};
use crate::api::event::Event;
use crate::metrics::Metrics;

/// Delivers events.
pub struct Sender {
    pub service: Service,
    pub client: WebhookClient,
    pub metrics: Arc<Metrics>,
    /// ISO 4217 code.
    pub currency: Arc<str>,
}

impl Sender {
    /// Attempts the events of a batch. Begins them in order, with several requests at once, but
    /// sends the events about one message or upload one after the other. Ends early if the endpoint
    /// fails repeatedly, if the batch takes long, or at shutdown. Returns the outcomes of the
    /// attempted events, which are the first ones of the batch.
    pub async fn deliver(&self, batch: &EventBatch, stop: &CancellationToken) -> Vec<Attempt> {
        let end = Instant::now() + Duration::from_millis(BATCH_MS.unsigned_abs());
        let mut attempts: Vec<Option<Attempt>> = Vec::new();
        attempts.resize_with(batch.events.len(), || None);
        let mut running: FuturesUnordered<_> = FuturesUnordered::new();
        let mut subjects = HashSet::new();
        let mut failures = 0;
        for (index, event) in batch.events.iter().enumerate() {
            let subject = event.subject();
            let must_wait = |subjects: &HashSet<i64>, running: usize| {
                running >= batch.at_once || subject.is_some_and(|id| subjects.contains(&id))
            };
            while must_wait(&subjects, running.len()) {
                let ended: Option<(usize, Option<i64>, Attempt)> = running.next().await;
                let Some((index, subject, attempt)) = ended else {
                    break;
                };
                failures = failures_after(failures, &attempt, batch.failures_max);
                attempts[index] = Some(attempt);
                if let Some(subject) = subject {
                    subjects.remove(&subject);
                }
            }
            let is_over = Instant::now() > end || failures >= batch.failures_max;
            if is_over || stop.is_cancelled() {
                break;
            }
            subjects.extend(subject);
            running.push(async move { (index, subject, self.attempt(batch, event).await) });
        }
        while let Some((index, _, attempt)) = running.next().await {
            attempts[index] = Some(attempt);
        }
        attempts.into_iter().map_while(|attempt| attempt).collect()
    }

    pub(super) async fn attempt(&self, batch: &EventBatch, event: &DueEvent) -> Attempt {
        let now = self.service.clock().now();
        let outcome = self.post(batch, event.event.clone(), now, &batch.secrets).await;
        self.metrics.webhook_attempt(outcome.is_success());
        Attempt {
            at: now,
            delivered: outcome.is_success(),
            status: outcome.status,
            latency_ms: i64::try_from(outcome.latency.as_millis()).unwrap_or(i64::MAX),
            answer: outcome.status.map(|_| outcome.answer),
            retry_after_ms: outcome
                .retry_after
                .and_then(|pause| i64::try_from(pause.as_millis()).ok()),
            error: outcome.error,
        }
    }

    /// Sends an event to the endpoint of a batch, signed with these secrets at this time.
    pub(super) async fn post(
        &self,
        batch: &EventBatch,
        event: EventRecord,
        at: Timestamp,
        secrets: &[WebhookSecret],
    ) -> Outcome {
        let id = event.id.to_string();
        let body = Event::new(event, &self.currency);
        let body = match body.and_then(|event| serde_json::to_vec(&event)) {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(%error, "an event can't be written as JSON");
                let words = "Something is wrong on our side: the event can't be written.";
                return Outcome::without_answer(words.to_owned(), Duration::ZERO);
            }
        };
        let delivery = Delivery {
            url: &batch.url,
            event_id: &id,
            timestamp: at.unix_ms() / 1000,
            body: body.into(),
            secrets,
        };
        self.client.deliver(&delivery).await
    }

    /// Delivers a test event to an endpoint, and stores the attempt.
    pub async fn test(
        &self,
        access: &KeyAccess,
        id: WebhookId,
        key: Option<&IdempotencyKey>,
    ) -> Result<ChangedWebhook> {
        let webhooks = self.service.webhooks();
        let batch = match webhooks.begin_test(access, id, key).await? {
            TestBegun::Answered(answered) => return Ok(*answered),
            TestBegun::Deliver(batch) => batch,
        };
        let attempt = match batch.events.first() {
            Some(event) => self.attempt(&batch, event).await,
            None => return Err(Refusal::NoSuchEvent.into()),
        };
        webhooks.end_test(access, *batch, attempt, key).await
    }
}

/// Returns the number of failures in a row after another attempt. An endpoint that is gone counts
/// as having failed often enough.
fn failures_after(failures: i64, attempt: &Attempt, most: i64) -> i64 {
    match attempt {
        attempt if attempt.delivered => 0,
        attempt if attempt.is_gone() => most,
        _ => failures + 1,
    }
}
