//! Checks an endpoint with four requests, for the portal.

use std::time::Duration;

use app::portal_request::EndpointClient;
use async_trait::async_trait;
use domain::endpoint_check::{CheckAnswer, CheckRequest, Finding, OLD_MINUTES, findings};
use domain::{EventId, Timestamp, WebhookId};
use service::{
    Attempt, DueEvent, EventBatch, EventRecord, KeyAccess, Result, TestBegun, WebhookSecret,
};

use super::{Outcome, Sender};
use crate::api::event::Event;

/// The maximum time of the requests after the first one. Together with the first request, the check
/// ends before the portal's own timeout.
const REST_TIMEOUT: Duration = Duration::from_secs(10);
/// The bits of an ID that don't contain the time.
const COUNT_BITS: u64 = (1 << 21) - 1;

#[async_trait]
impl EndpointClient for Sender {
    async fn test(&self, access: &KeyAccess, id: WebhookId) -> Result<()> {
        Self::test(self, access, id, None).await.map(drop)
    }

    /// The first request is stored as an attempt. No request counts as a failure of the endpoint.
    async fn check(&self, access: &KeyAccess, id: WebhookId) -> Result<Vec<Finding>> {
        let begun = self.service.webhooks().begin_test(access, id, None).await?;
        let TestBegun::Deliver(batch) = begun else {
            return Ok(Vec::new());
        };
        let Some(valid) = batch.events.first() else {
            return Ok(Vec::new());
        };
        let attempt = self.attempt(&batch, valid).await;
        let mut answers = vec![answer_of(&attempt)];
        // If the server can't be reached, the other requests would only take time.
        if attempt.status.is_some() {
            answers.extend(self.check_more(&batch, valid, attempt.at).await);
        }
        self.service.webhooks().end_test(access, *batch, attempt, None).await?;
        Ok(findings(&answers))
    }

    fn readable_body(&self, event: EventRecord) -> Option<String> {
        let event = Event::new(event, &self.currency).ok()?;
        serde_json::to_string_pretty(&event).ok()
    }
}

impl Sender {
    /// Sends the requests after the first one, all at once.
    async fn check_more(
        &self,
        batch: &EventBatch,
        valid: &DueEvent,
        at: Timestamp,
    ) -> [CheckAnswer; CheckRequest::ALL.len() - 1] {
        let wrong = [WebhookSecret::new(self.service.entropy().bytes())];
        let old = at.plus_ms(-OLD_MINUTES * 60_000);
        let forged = self.answer_to(batch, self.another(&valid.event), at, &wrong);
        let repeated = self.answer_to(batch, valid.event.clone(), at, &batch.secrets);
        let old = self.answer_to(batch, self.another(&valid.event), old, &batch.secrets);
        let (forged, repeated, old) = tokio::join!(forged, repeated, old);
        [forged, repeated, old]
    }

    /// Returns an event like this one with another ID, so that the endpoint can't take it for a
    /// repeated one. No stored event has the ID, because its time is before the first release.
    fn another(&self, event: &EventRecord) -> EventRecord {
        let number = (self.service.entropy().number() & COUNT_BITS).cast_signed();
        EventRecord { id: EventId { number, ..event.id }, ..event.clone() }
    }

    async fn answer_to(
        &self,
        batch: &EventBatch,
        event: EventRecord,
        at: Timestamp,
        secrets: &[WebhookSecret],
    ) -> CheckAnswer {
        let sending = self.post(batch, event, at, secrets);
        let outcome = tokio::time::timeout(REST_TIMEOUT, sending).await.unwrap_or_else(|_| {
            let error = format!("The endpoint didn't answer within {} s.", REST_TIMEOUT.as_secs());
            Outcome::without_answer(error, REST_TIMEOUT)
        });
        CheckAnswer {
            status: outcome.status,
            latency_ms: i64::try_from(outcome.latency.as_millis()).unwrap_or(i64::MAX),
            error: outcome.error,
        }
    }
}

fn answer_of(attempt: &Attempt) -> CheckAnswer {
    CheckAnswer {
        status: attempt.status,
        latency_ms: attempt.latency_ms,
        error: attempt.error.clone(),
    }
}
