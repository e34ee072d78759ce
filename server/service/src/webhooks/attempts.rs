//! Lists endpoints, their attempts and the delivered events, for an application's owner and staff.

use domain::ids::compose_id;
use domain::records::Paged;
use domain::timestamp::DAY_MS;
use domain::webhook::{AttemptCounts, AttemptRecord, WebhookRecord};
use domain::{EventId, EventStream, KeyKind, Reference, WebhookId};

use super::endpoints::{find, record, shown_attempt};
use super::events::{EventRecord, described};
use crate::Webhooks;
use crate::admission::KeyAccess;
use crate::applications::owned;
use store::error::{Refusal, Result};
use store::webhooks::AttemptsWanted;
use store::{applications, events, webhooks};

/// The number of attempts on a page.
const PAGE: i64 = 100;
/// How far back attempts are counted.
pub const COUNTED_DAYS: i64 = 7;
/// The most attempts that are counted. Their rows have the endpoint's answers, so counting all
/// attempts of a busy endpoint would read gigabytes.
pub const COUNTED_MAX: i64 = 10_000;

impl Webhooks<'_> {
    /// Returns all endpoints of an application, each with the kind of key whose events it gets. The
    /// endpoints of the live key come first. Endpoints of the same key are sorted oldest first.
    ///
    /// # Errors
    /// `NoSuchApplication`.
    pub async fn of_application(
        &self,
        reference: Reference,
    ) -> Result<Vec<(KeyKind, WebhookRecord)>> {
        let mut conn = self.read_of(reference).await?;
        let row = applications::by_reference(&mut conn, reference).await?;
        let application_id = row.ok_or(Refusal::NoSuchApplication)?.id;
        let mut found = Vec::new();
        for kind in [KeyKind::Live, KeyKind::Test] {
            let stream = EventStream { application_id, test: kind == KeyKind::Test };
            for row in webhooks::list(&mut conn, stream).await? {
                found.push((kind, record(row)?));
            }
        }
        Ok(found)
    }

    /// Returns the access to an endpoint of one of an account's applications.
    ///
    /// # Errors
    /// `NoSuchApplication`, `NoSuchWebhook`.
    pub async fn access_to(
        &self,
        account_id: i64,
        reference: Reference,
        id: WebhookId,
    ) -> Result<KeyAccess> {
        let mut conn = self.read_of(reference).await?;
        let application_id = owned(&mut conn, account_id, reference).await?.id;
        let row = webhooks::one(&mut conn, id.0).await?;
        let row = row.filter(|row| row.stream.application_id == application_id);
        let test = row.ok_or(Refusal::NoSuchWebhook)?.stream.test;
        let kind = if test { KeyKind::Test } else { KeyKind::Live };
        Ok(KeyAccess { application_id, reference, kind })
    }

    /// Returns a page of an endpoint's attempts, newest first.
    ///
    /// # Errors
    /// `NoSuchWebhook`, `InvalidCursor`.
    pub async fn attempts(
        &self,
        access: &KeyAccess,
        id: WebhookId,
        only_failed: bool,
        cursor: Option<&str>,
    ) -> Result<Paged<AttemptRecord>> {
        let below = match cursor {
            Some(cursor) => cursor.parse().map_err(|_| Refusal::InvalidCursor)?,
            None => i64::MAX,
        };
        let wanted = if only_failed {
            AttemptsWanted::FailedBelow(below)
        } else {
            AttemptsWanted::Below(below)
        };
        let found = self.selected(access, id, wanted, PAGE + 1).await?;
        Ok(Paged::of(found, PAGE, |attempt| attempt.id.to_string()))
    }

    /// Returns the newest attempts to deliver an event to an endpoint.
    ///
    /// # Errors
    /// `NoSuchWebhook`.
    pub async fn attempts_of_event(
        &self,
        access: &KeyAccess,
        id: WebhookId,
        event: EventId,
    ) -> Result<Vec<AttemptRecord>> {
        self.selected(access, id, AttemptsWanted::OfEvent(event.number), PAGE).await
    }

    async fn selected(
        &self,
        access: &KeyAccess,
        id: WebhookId,
        wanted: AttemptsWanted,
        limit: i64,
    ) -> Result<Vec<AttemptRecord>> {
        let mut conn = self.read_of(access.reference).await?;
        let row = find(&mut conn, access.stream(), id).await?;
        let found = webhooks::attempts(&mut conn, id.0, wanted, limit).await?;
        Ok(found.into_iter().map(|attempt| shown_attempt(&row, attempt)).collect())
    }

    /// Counts an endpoint's attempts of the last [`COUNTED_DAYS`], at most the newest
    /// [`COUNTED_MAX`].
    ///
    /// # Errors
    /// `NoSuchWebhook`.
    pub async fn attempt_counts(
        &self,
        access: &KeyAccess,
        id: WebhookId,
    ) -> Result<Vec<AttemptCounts>> {
        let mut conn = self.read_of(access.reference).await?;
        find(&mut conn, access.stream(), id).await?;
        let from = compose_id(self.now().plus_ms(-COUNTED_DAYS * DAY_MS).unix_ms(), 0);
        webhooks::attempt_counts(&mut conn, id.0, from, COUNTED_MAX).await
    }

    /// Returns an event that a key sees.
    ///
    /// # Errors
    /// `NoSuchEvent`.
    pub async fn event(&self, access: &KeyAccess, id: EventId) -> Result<EventRecord> {
        let stream = access.stream();
        if id.reference != access.reference || id.test != stream.test {
            return Err(Refusal::NoSuchEvent.into());
        }
        let mut conn = self.read_of(access.reference).await?;
        let span = (id.number - 1, id.number.saturating_add(1));
        let found = events::page(&mut conn, stream, span, 1).await?;
        let found = described(&mut conn, stream, access.reference, found).await?;
        Ok(found.into_iter().next().ok_or(Refusal::NoSuchEvent)?)
    }
}
