//! Endpoints that get events, and the attempts to deliver events to them.

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{EventType, Timestamp, WebhookId};

/// The most endpoints of an application and a kind of key.
pub const WEBHOOKS_MAX: usize = 10;

words! {
    /// Why an endpoint gets no more events.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DisabledReason [
        /// Why, as a sentence for the owner and for staff.
        pub sentence: &'static str,
    ] {
        /// The endpoint answered 410 Gone.
        Gone = "gone", "It answered with status 410.";
        /// All attempts of three days failed.
        Failing = "failing", "It failed for three days.";
    }
}

/// An endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebhookRecord {
    pub webhookid: WebhookId,
    pub url: String,
    /// The types of the events that the endpoint gets. `None` means all types except
    /// `message.submitted`.
    pub events: Option<Vec<EventType>>,
    /// `None` if the endpoint is active.
    pub disabled: Option<DisabledReason>,
    /// Since when every attempt has failed. `None` if the last one succeeded.
    pub failing_since: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl WebhookRecord {
    /// Returns the types as a comma-separated list. `None` means the default ones.
    pub fn types(&self) -> Option<String> {
        let types = self.events.as_ref()?.iter().map(|kind| kind.as_str());
        Some(types.collect::<Vec<_>>().join(","))
    }
}

/// The attempts to deliver events in a quarter of an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptCounts {
    /// The quarter of an hour, counted since 1970-01-01.
    pub quarter: i64,
    pub delivered: i64,
    pub failed: i64,
}

/// An attempt to deliver an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptRecord {
    /// In chronological order.
    pub id: i64,
    /// The event's ID.
    pub event: String,
    pub kind: EventType,
    pub at: Timestamp,
    /// Whether the endpoint accepted the event.
    pub delivered: bool,
    /// The HTTP status. `None` if there was no answer.
    pub status: Option<i64>,
    pub latency_ms: i64,
    /// Why the attempt failed, in words.
    pub error: Option<String>,
    /// The first KiB of the answer.
    pub answer: Option<String>,
    /// When the event is attempted again. `None` if it isn't.
    pub next_attempt_at: Option<Timestamp>,
}
