//! Endpoints: what they get, when it is attempted again, and when they are disabled.

use domain::history::{HistoryAction, HistoryAuthor};
use domain::webhook::{DisabledReason, WEBHOOKS_MAX, WebhookRecord};
use domain::{EventId, EventType, MessageStatus, Refusal, WebhookId};
use service::{
    Attempt, ChangedWebhook, Error, EventBatch, EventFilter, IdempotencyKey, KeyAccess,
    LeasedWebhook, WebhookChange,
};

use super::events::{is_active, page};
use crate::database::Backend;
use crate::network::taken_as;
use crate::sending::{Sending, receipt};
use crate::world::{HOUR_MS, World};

on_each_backend![
    an_endpoint_gets_what_happens_from_its_creation_on,
    an_endpoint_gets_the_types_that_it_names,
    a_failed_event_is_attempted_ten_times_with_growing_pauses,
    an_endpoint_that_asks_for_a_pause_gets_nothing_meanwhile,
    a_lease_ends_when_the_clock_is_set_back,
    an_endpoint_that_always_fails_is_paused_and_disabled_after_three_days,
    an_endpoint_that_is_gone_is_disabled_at_once,
    an_enabled_endpoint_gets_the_events_of_three_days,
    a_disabled_endpoint_gets_a_replayed_event_when_it_is_enabled,
    events_are_replayed_once_each,
    a_process_delivers_only_while_it_has_the_lease,
    a_request_with_an_idempotency_key_makes_one_endpoint,
    endpoints_are_limited_changed_and_removed,
    a_rotated_secret_signs_for_a_day,
    owners_read_endpoints_attempts_and_events,
];

const URL: &str = "https://example.com/hook";
const DAY_MS: i64 = 24 * HOUR_MS;

/// A customer with an endpoint.
struct Hooked {
    sending: Sending,
    access: KeyAccess,
    id: WebhookId,
    messages: std::cell::Cell<u32>,
}

fn created(world: &World, types: Option<Vec<EventType>>) -> WebhookChange {
    let url = world.service.webhooks().endpoint_url(URL).unwrap();
    WebhookChange::Create { url, types }
}

impl Hooked {
    async fn new(backend: Backend) -> Self {
        Self::with(backend, Some(vec![EventType::Delivered])).await
    }

    async fn with(backend: Backend, types: Option<Vec<EventType>>) -> Self {
        let sending = Sending::by_acme(backend).await;
        let access = sending.world.access(&sending.customer.live).await;
        let webhooks = sending.world.service.webhooks();
        let change = created(&sending.world, types);
        let changed = webhooks.change(&access, change, None).await.unwrap();
        Self { access, id: changed.record.webhookid, sending, messages: 0.into() }
    }

    fn world(&self) -> &World {
        &self.sending.world
    }

    async fn change(&self, change: WebhookChange) -> service::Result<ChangedWebhook> {
        self.world().service.webhooks().change(&self.access, change, None).await
    }

    async fn record(&self) -> WebhookRecord {
        let webhooks = self.world().service.webhooks();
        webhooks.endpoint(&self.access, self.id, 1000).await.unwrap().0
    }

    /// Sends a message, and lets the carrier deliver it.
    async fn deliver_message(&self) {
        let count = self.messages.get() + 1;
        self.messages.set(count);
        let name = format!("c{count}");
        let handed = self.sending.submitted().await;
        self.sending.answer(&handed, taken_as(&name)).await;
        self.sending.receive(receipt(&name, MessageStatus::Delivered)).await;
    }

    /// Returns the first event of a delivered message.
    async fn first_event(&self) -> EventId {
        let types = Some(vec![EventType::Delivered]);
        let filter = EventFilter { types, limit: 10, ..EventFilter::default() };
        let listed = page(self.world(), &self.sending.customer, filter);
        listed.await.events[0].id
    }

    async fn lease(&self) -> Option<LeasedWebhook> {
        let mut leased = self.world().service.webhooks().lease_due(10).await.unwrap();
        assert!(leased.len() <= 1);
        leased.pop()
    }

    /// Delivers what is due, and answers each attempt with this status. Returns the types of the
    /// attempted events.
    async fn deliver(&self, status: u16) -> Vec<&'static str> {
        let webhooks = self.world().service.webhooks();
        let mut types = Vec::new();
        let Some(leased) = self.lease().await else {
            return types;
        };
        while let Some(batch) = webhooks.next_batch(&leased).await.unwrap() {
            let kinds = batch.events.iter().map(|event| event.event.kind.as_str());
            let kinds: Vec<_> = kinds.collect();
            let attempts = self.attempts(&batch, status);
            types.extend(kinds.into_iter().take(attempts.len()));
            if !webhooks.record(&leased, batch, attempts).await.unwrap() {
                break;
            }
        }
        types
    }

    /// Returns the outcomes of a batch, as the sender makes them: it ends after some failures.
    fn attempts(&self, batch: &EventBatch, status: u16) -> Vec<Attempt> {
        let attempt = |_| self.attempt(status);
        let attempts = batch.events.iter().map(attempt);
        if status == 200 {
            return attempts.collect();
        }
        attempts.take(usize::try_from(batch.failures_max).unwrap()).collect()
    }

    fn attempt(&self, status: u16) -> Attempt {
        Attempt {
            at: self.world().now(),
            delivered: status == 200,
            status: Some(status),
            latency_ms: 12,
            error: (status != 200).then(|| format!("status {status}")),
            answer: Some("answer".to_owned()),
            retry_after_ms: None,
        }
    }
}

async fn an_endpoint_gets_what_happens_from_its_creation_on(backend: Backend) {
    let hooked = Hooked::with(backend, None).await;
    assert_eq!(hooked.deliver(200).await, [""; 0]);
    hooked.deliver_message().await;
    let (reference, service) = (hooked.access.reference, &hooked.world().service);
    let staff = service::Actor::CommandLine;
    service.applications().suspend(&staff, reference, "unpaid").await.unwrap();
    // It doesn't name message.submitted.
    assert_eq!(hooked.deliver(200).await, ["message.delivered", "application.suspended"]);
    assert_eq!(hooked.deliver(200).await, [""; 0]);
    let webhooks = service.webhooks();
    let (_, attempts) = webhooks.endpoint(&hooked.access, hooked.id, 1000).await.unwrap();
    let shown = attempts.iter().map(|attempt| (attempt.kind.as_str(), attempt.delivered));
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, [("application.suspended", true), ("message.delivered", true)]);
}

async fn an_endpoint_gets_the_types_that_it_names(backend: Backend) {
    let hooked = Hooked::with(backend, Some(vec![EventType::Submitted])).await;
    hooked.deliver_message().await;
    assert_eq!(hooked.deliver(200).await, ["message.submitted"]);
    let change = WebhookChange::Types(hooked.id, Some(vec![EventType::Delivered]));
    hooked.change(change).await.unwrap();
    hooked.deliver_message().await;
    assert_eq!(hooked.deliver(200).await, ["message.delivered"]);
}

async fn a_failed_event_is_attempted_ten_times_with_growing_pauses(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.deliver_message().await;
    assert_eq!(hooked.deliver(500).await.len(), 1);
    let pauses_s = [5, 60, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000];
    for pause_s in pauses_s {
        let pause_ms = pause_s * 1000;
        hooked.world().pass(pause_ms * 8 / 10 - 1);
        assert_eq!(hooked.deliver(500).await.len(), 0, "{pause_s}");
        hooked.world().pass(pause_ms * 4 / 10 + 1);
        assert_eq!(hooked.deliver(500).await.len(), 1, "{pause_s}");
    }
    hooked.world().pass(10 * DAY_MS);
    assert_eq!(hooked.deliver(500).await.len(), 0);
    let webhooks = hooked.world().service.webhooks();
    let (_, attempts) = webhooks.endpoint(&hooked.access, hooked.id, 1000).await.unwrap();
    assert_eq!(attempts.len(), 10);
    assert_eq!(attempts[0].next_attempt_at, None);
    assert!(attempts[1..].iter().all(|attempt| attempt.next_attempt_at.is_some()));
    // No event waited in the ten days, so they don't count as days of failures.
    hooked.deliver_message().await;
    assert_eq!(hooked.deliver(500).await.len(), 1);
    assert!(is_active(&hooked.record().await));
}

async fn an_endpoint_that_asks_for_a_pause_gets_nothing_meanwhile(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.deliver_message().await;
    let webhooks = hooked.world().service.webhooks();
    let leased = hooked.lease().await.unwrap();
    let batch = webhooks.next_batch(&leased).await.unwrap().unwrap();
    let at = hooked.world().now();
    let asks = Attempt { retry_after_ms: Some(600_000), ..hooked.attempt(503) };
    assert!(!webhooks.record(&leased, batch, vec![asks]).await.unwrap());
    hooked.deliver_message().await;
    hooked.world().pass(599_000);
    assert_eq!(hooked.deliver(200).await, [""; 0]);
    hooked.world().pass(1000);
    assert_eq!(hooked.deliver(200).await, ["message.delivered"; 2]);
    let (_, attempts) = webhooks.endpoint(&hooked.access, hooked.id, 1000).await.unwrap();
    assert_eq!(attempts.last().unwrap().at, at);
}

async fn a_lease_ends_when_the_clock_is_set_back(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.world().pass(2 * HOUR_MS);
    hooked.deliver_message().await;
    hooked.lease().await.unwrap();
    let event = hooked.first_event().await;
    hooked.world().pass(-HOUR_MS - 1000);
    // Makes the endpoint due.
    hooked.change(WebhookChange::Replay(hooked.id, event)).await.unwrap();
    assert!(hooked.lease().await.is_some());
}

async fn an_endpoint_that_always_fails_is_paused_and_disabled_after_three_days(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    for _ in 0..12 {
        hooked.deliver_message().await;
    }
    assert_eq!(hooked.deliver(500).await.len(), 8);
    // It is paused although events wait, also for new ones.
    hooked.deliver_message().await;
    assert_eq!(hooked.deliver(500).await.len(), 0);
    hooked.world().pass(1000);
    assert_eq!(hooked.deliver(500).await.len(), 1);
    hooked.world().pass(3 * DAY_MS - 1001);
    assert_eq!(hooked.deliver(500).await.len(), 1);
    assert!(is_active(&hooked.record().await));
    hooked.world().pass(60_000);
    assert_eq!(hooked.deliver(500).await.len(), 1);
    assert_eq!(hooked.record().await.disabled, Some(DisabledReason::Failing));
    hooked.deliver_message().await;
    hooked.world().pass(DAY_MS);
    assert_eq!(hooked.deliver(200).await.len(), 0);
    let mails = hooked.world().service.operations().mails(None, 100).await.unwrap().items;
    assert!(mails.iter().any(|mail| mail.subject.starts_with("Endpoint disabled")));
    hooked.sending.assert_sound().await;
}

async fn an_endpoint_that_is_gone_is_disabled_at_once(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.deliver_message().await;
    assert_eq!(hooked.deliver(410).await.len(), 1);
    assert_eq!(hooked.record().await.disabled, Some(DisabledReason::Gone));
    let (owner, reference) = (hooked.sending.customer.account.id, hooked.access.reference);
    let applications = hooked.world().service.applications();
    let history = applications.application_history(owner, reference).await.unwrap();
    assert_eq!(history[0].action, HistoryAction::EndpointDisabled);
    assert_eq!(history[0].author, HistoryAuthor::System);
    hooked.world().pass(HOUR_MS);
    assert_eq!(hooked.deliver(200).await.len(), 0);
    // It gets the event at once when it is enabled, not only after the usual pause.
    hooked.change(WebhookChange::Enable(hooked.id)).await.unwrap();
    assert_eq!(hooked.deliver(200).await, ["message.delivered"]);
}

async fn an_enabled_endpoint_gets_the_events_of_three_days(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.deliver_message().await;
    hooked.deliver(410).await;
    hooked.deliver_message().await;
    hooked.world().pass(2 * DAY_MS);
    hooked.deliver_message().await;
    hooked.deliver_message().await;
    hooked.world().pass(2 * DAY_MS);
    hooked.change(WebhookChange::Enable(hooked.id)).await.unwrap();
    assert!(is_active(&hooked.record().await));
    // The first two events are older.
    assert_eq!(hooked.deliver(200).await, ["message.delivered"; 2]);
}

async fn a_disabled_endpoint_gets_a_replayed_event_when_it_is_enabled(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.deliver_message().await;
    hooked.deliver(410).await;
    let event = hooked.first_event().await;
    hooked.change(WebhookChange::Replay(hooked.id, event)).await.unwrap();
    hooked.world().pass(4 * DAY_MS);
    assert_eq!(hooked.deliver(200).await, [""; 0]);
    hooked.change(WebhookChange::Enable(hooked.id)).await.unwrap();
    assert_eq!(hooked.deliver(200).await, ["message.delivered"]);
}

async fn events_are_replayed_once_each(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    let start = hooked.world().now();
    hooked.deliver_message().await;
    hooked.deliver_message().await;
    hooked.deliver(200).await;
    hooked.deliver_message().await;
    hooked.deliver(500).await;
    hooked.world().pass(HOUR_MS);
    hooked.change(WebhookChange::ReplayFrom(hooked.id, start)).await.unwrap();
    // The third is due anyway, and the endpoint has taken the others.
    assert_eq!(hooked.deliver(200).await, ["message.delivered"]);
    hooked.change(WebhookChange::ReplayFrom(hooked.id, start)).await.unwrap();
    assert_eq!(hooked.deliver(200).await, [""; 0]);
    let first = hooked.first_event().await;
    hooked.change(WebhookChange::Replay(hooked.id, first)).await.unwrap();
    assert_eq!(hooked.deliver(200).await, ["message.delivered"]);
    assert_eq!(hooked.deliver(200).await, [""; 0]);
    let unknown = EventId { number: 5, ..first };
    let refused = hooked.change(WebhookChange::Replay(hooked.id, unknown)).await;
    assert!(matches!(refused, Err(Error::Refused(Refusal::NoSuchEvent))));
}

async fn a_process_delivers_only_while_it_has_the_lease(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.deliver_message().await;
    let webhooks = hooked.world().service.webhooks();
    let first = hooked.lease().await.unwrap();
    let batch = webhooks.next_batch(&first).await.unwrap().unwrap();
    assert!(hooked.lease().await.is_none());
    hooked.world().pass(61_000);
    let second = hooked.lease().await.unwrap();
    // The first process comes back too late, and its event is delivered again.
    let attempts = hooked.attempts(&batch, 200);
    assert!(!webhooks.record(&first, batch, attempts).await.unwrap());
    assert!(webhooks.next_batch(&first).await.unwrap().is_none());
    let batch = webhooks.next_batch(&second).await.unwrap().unwrap();
    assert_eq!(batch.events.len(), 1);
    let attempts = hooked.attempts(&batch, 200);
    assert!(!webhooks.record(&second, batch, attempts).await.unwrap());
    assert_eq!(hooked.deliver(200).await, [""; 0]);
}

async fn a_request_with_an_idempotency_key_makes_one_endpoint(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    let webhooks = hooked.world().service.webhooks();
    let key = IdempotencyKey::parse("k").unwrap();
    let create = |types| created(hooked.world(), types);
    let first = webhooks.change(&hooked.access, create(None), Some(&key)).await.unwrap();
    assert!(first.secret.is_some() && !first.replayed);
    let again = webhooks.change(&hooked.access, create(None), Some(&key)).await.unwrap();
    assert!(again.secret.is_none() && again.replayed);
    assert_eq!(again.record, first.record);
    let test = webhooks.begin_test(&hooked.access, hooked.id, Some(&key)).await;
    assert!(matches!(test, Err(Error::Refused(Refusal::IdempotencyMismatch))));
    let other = create(Some(vec![EventType::Failed]));
    let other = webhooks.change(&hooked.access, other, Some(&key)).await;
    assert!(matches!(other, Err(Error::Refused(Refusal::IdempotencyMismatch))));
    assert_eq!(webhooks.endpoints(&hooked.access).await.unwrap().len(), 2);
}

async fn endpoints_are_limited_changed_and_removed(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    let webhooks = hooked.world().service.webhooks();
    for _ in 1..WEBHOOKS_MAX {
        hooked.change(created(hooked.world(), None)).await.unwrap();
    }
    let eleventh = hooked.change(created(hooked.world(), None)).await;
    assert!(matches!(eleventh, Err(Error::Refused(Refusal::TooManyWebhooks))));
    // The test key has its own.
    let test = hooked.world().access(&hooked.sending.customer.test).await;
    assert_eq!(webhooks.endpoints(&test).await.unwrap(), []);
    let missing = webhooks.change(&test, WebhookChange::Remove(hooked.id), None).await;
    assert!(matches!(missing, Err(Error::Refused(Refusal::NoSuchWebhook))));
    let url = webhooks.endpoint_url("https://example.com/other").unwrap();
    hooked.change(WebhookChange::Url(hooked.id, url)).await.unwrap();
    assert_eq!(hooked.record().await.url, "https://example.com/other");
    hooked.deliver_message().await;
    hooked.change(WebhookChange::Remove(hooked.id)).await.unwrap();
    assert_eq!(webhooks.endpoints(&hooked.access).await.unwrap().len(), WEBHOOKS_MAX - 1);
    webhooks.forget_events().await.unwrap();
    let mails = hooked.world().service.operations().mails(None, 100).await.unwrap().items;
    let count = |start: &str| mails.iter().filter(|mail| mail.subject.starts_with(start)).count();
    assert_eq!((count("Endpoint added"), count("Endpoint changed")), (WEBHOOKS_MAX, 1));
    hooked.sending.assert_sound().await;
}

async fn a_rotated_secret_signs_for_a_day(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    let rotated = hooked.change(WebhookChange::Rotate(hooked.id)).await.unwrap();
    let new = rotated.secret.unwrap();
    hooked.deliver_message().await;
    let webhooks = hooked.world().service.webhooks();
    let leased = hooked.lease().await.unwrap();
    let batch = webhooks.next_batch(&leased).await.unwrap().unwrap();
    assert_eq!(batch.secrets.len(), 2);
    assert_eq!(batch.secrets[0].expose(), new.expose());
    assert_ne!(batch.secrets[1].expose(), new.expose());
    hooked.world().pass(DAY_MS + 1);
    let leased = hooked.lease().await.unwrap();
    let batch = webhooks.next_batch(&leased).await.unwrap().unwrap();
    assert_eq!(batch.secrets.len(), 1);
    assert_eq!(batch.secrets[0].expose(), new.expose());
}

async fn owners_read_endpoints_attempts_and_events(backend: Backend) {
    let hooked = Hooked::new(backend).await;
    hooked.deliver_message().await;
    hooked.deliver(500).await;
    hooked.deliver_message().await;
    hooked.deliver(200).await;
    let (access, id) = (&hooked.access, hooked.id);
    let webhooks = hooked.world().service.webhooks();
    let shown = async |only_failed: bool, cursor: Option<&str>| {
        webhooks.attempts(access, id, only_failed, cursor).await.unwrap().items
    };
    let all = shown(false, None).await;
    assert_eq!(all.iter().map(|attempt| attempt.delivered).collect::<Vec<_>>(), [true, false]);
    assert_eq!(shown(true, None).await, all[1..]);
    let cursor = all[0].id.to_string();
    assert_eq!(shown(false, Some(&cursor)).await, all[1..]);
    assert_eq!(shown(true, Some(&all[1].id.to_string())).await, []);
    let bad = webhooks.attempts(access, id, false, Some("x")).await;
    assert!(matches!(bad, Err(Error::Refused(Refusal::InvalidCursor))));

    let counts = webhooks.attempt_counts(access, id).await.unwrap();
    let sums = counts.iter().fold((0, 0), |sum, it| (sum.0 + it.delivered, sum.1 + it.failed));
    assert_eq!(sums, (1, 1));

    let failed = EventId::parse(&all[1].event).unwrap();
    assert_eq!(webhooks.attempts_of_event(access, id, failed).await.unwrap(), all[1..]);
    assert_eq!(webhooks.event(access, failed).await.unwrap().id, failed);
    let others = EventId { test: true, ..failed };
    let missing = webhooks.event(access, others).await;
    assert!(matches!(missing, Err(Error::Refused(Refusal::NoSuchEvent))));

    let (account, reference) = (hooked.sending.customer.account.id, access.reference);
    let found = webhooks.access_to(account, reference, id).await.unwrap();
    assert_eq!((found.application_id, found.kind), (access.application_id, access.kind));
    let unknown = webhooks.access_to(account, reference, WebhookId(1)).await;
    assert!(matches!(unknown, Err(Error::Refused(Refusal::NoSuchWebhook))));
    let listed = webhooks.of_application(reference).await.unwrap();
    assert_eq!(listed, [(access.kind, hooked.record().await)]);
    hooked.world().pass(8 * DAY_MS);
    assert_eq!(webhooks.attempt_counts(access, id).await.unwrap(), []);
}
