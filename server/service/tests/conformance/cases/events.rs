//! Events: which are stored, in which order, and how a program polls them.

use domain::webhook::WebhookRecord;
use domain::{EventType, KeyKind, MessageStatus, Money, Refusal, SenderName};
use service::{Actor, Error, EventData, EventFilter, EventPage, EventRecord, KeyAccess};

use crate::database::Backend;
use crate::network::{refused, taken_as};
use crate::sending::{Sending, receipt};
use crate::uploads::{accepted, rows};
use crate::world::{Customer, HOUR_MS, PASSWORD, World, money};

on_each_backend![
    the_events_of_a_message_are_listed_in_the_order_of_its_statuses,
    an_application_that_nobody_asked_about_stores_no_events_of_messages,
    events_of_live_and_test_messages_are_apart,
    a_message_that_no_carrier_accepts_has_one_event,
    a_batch_has_an_event_when_all_its_messages_are_final,
    decisions_deposits_and_keys_have_events_for_both_keys,
    a_low_balance_has_one_event_until_it_is_above_again,
    a_cursor_neither_misses_nor_repeats_an_event,
    events_are_found_by_type_and_time,
    old_events_are_deleted_and_a_cursor_before_them_is_refused,
    a_cursor_passes_the_events_that_the_time_leaves_out,
];

/// Returns a page of the live key's events.
pub async fn page(world: &World, customer: &Customer, filter: EventFilter) -> EventPage {
    let access = world.access(&customer.live).await;
    page_of(world, &access, filter).await.unwrap()
}

async fn page_of(
    world: &World,
    access: &KeyAccess,
    filter: EventFilter,
) -> service::Result<EventPage> {
    world.service.webhooks().events(access, &filter).await
}

fn all() -> EventFilter {
    EventFilter { limit: 1000, ..EventFilter::default() }
}

fn after(cursor: &str) -> EventFilter {
    EventFilter { cursor: Some(cursor.to_owned()), ..all() }
}

fn types(events: &[EventRecord]) -> Vec<&'static str> {
    events.iter().map(|event| event.kind.as_str()).collect()
}

/// Makes the service store events of messages, and returns the cursor of the events from now on.
async fn begin(world: &World, customer: &Customer) -> String {
    page(world, customer, all()).await.next
}

/// Sends a message, and lets the carrier deliver it.
async fn deliver(sending: &Sending, name: &str) {
    let handed = sending.submitted().await;
    sending.answer(&handed, taken_as(name)).await;
    sending.receive(receipt(name, MessageStatus::Delivered)).await;
}

async fn the_events_of_a_message_are_listed_in_the_order_of_its_statuses(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    let start = begin(world, customer).await;
    let handed = sending.submitted().await;
    sending.answer(&handed, taken_as("c1")).await;
    world.pass(1000);
    sending.receive(receipt("c1", MessageStatus::Failed)).await;
    let events = page(world, customer, after(&start)).await.events;
    assert_eq!(types(&events), ["message.submitted", "message.failed"]);
    let records = events.iter().map(|event| match &event.data {
        EventData::Message(record) => record.as_ref().clone(),
        other => panic!("{other:?}"),
    });
    let records: Vec<_> = records.collect();
    let now = sending.detail(handed.id()).await.record;
    assert_eq!(records[1], now);
    // The first event shows the message as it was then.
    assert_eq!(records[0].status, MessageStatus::Submitted);
    assert_eq!((records[0].final_at, &records[0].error), (None, &None));
    assert_eq!(records[0].submitted_at, now.submitted_at);
    assert!(events[0].at < events[1].at);
    sending.assert_sound().await;
}

async fn an_application_that_nobody_asked_about_stores_no_events_of_messages(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    deliver(&sending, "c1").await;
    let found = page(&sending.world, &sending.customer, all()).await;
    assert_eq!(types(&found.events), ["application.activated", "deposit.received"]);
    assert_eq!(found.since, sending.world.now());
    deliver(&sending, "c2").await;
    let later = page(&sending.world, &sending.customer, after(&found.next)).await;
    assert_eq!(types(&later.events), ["message.submitted", "message.delivered"]);
    assert_eq!(later.since, found.since);
}

async fn events_of_live_and_test_messages_are_apart(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let (live, test) = (world.access(&customer.live).await, world.access(&customer.test).await);
    let cursors = [
        page_of(&world, &live, all()).await.unwrap().next,
        page_of(&world, &test, all()).await.unwrap().next,
    ];
    world.send(&customer.test, "12345678").await.unwrap();
    world.pass(HOUR_MS * 49);
    world.service.delivery().expire().await.unwrap();
    let found = page_of(&world, &live, after(&cursors[0])).await.unwrap();
    assert_eq!(types(&found.events), [""; 0]);
    let found = page_of(&world, &test, after(&cursors[1])).await.unwrap();
    assert_eq!(types(&found.events), ["message.expired"]);
    assert!(found.events[0].id.test);
    // A cursor belongs to its key.
    let other = page_of(&world, &test, after(&cursors[0])).await;
    assert!(matches!(other, Err(Error::Refused(Refusal::InvalidCursor))));
}

async fn a_message_that_no_carrier_accepts_has_one_event(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let start = begin(&sending.world, &sending.customer).await;
    let handed = sending.submitted().await;
    sending.answer(&handed, refused()).await;
    let events = page(&sending.world, &sending.customer, after(&start)).await.events;
    assert_eq!(types(&events), ["message.rejected"]);
    let EventData::Message(record) = &events[0].data else { panic!("{events:?}") };
    assert_eq!((record.released, record.cost), (money("0.05"), money("0.05")));
}

async fn a_batch_has_an_event_when_all_its_messages_are_final(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    let start = begin(world, customer).await;
    let id = accepted(world, customer, &rows(2)).await;
    world.expand_all().await;
    let claimed = sending.claim("acme").await;
    for (handed, name) in claimed.iter().zip(["c1", "c2"]) {
        sending.answer(handed, taken_as(name)).await;
    }
    sending.receive(receipt("c1", MessageStatus::Delivered)).await;
    let open = page(world, customer, after(&start)).await;
    let submitted = ["message.submitted", "message.submitted", "message.delivered"];
    assert_eq!(types(&open.events), submitted);
    sending.receive(receipt("c2", MessageStatus::Delivered)).await;
    let done = page(world, customer, after(&open.next)).await.events;
    assert_eq!(types(&done), ["message.delivered", "batch.done"]);
    let EventData::Batch(batch) = &done[1].data else { panic!("{done:?}") };
    assert_eq!(batch.batchid, id);
    assert_eq!(batch.counts.get(MessageStatus::Delivered), 2);
    assert!(batch.done_at.is_some());
}

/// Returns the JSON of events that aren't about messages.
fn data(events: &[EventRecord]) -> Vec<&str> {
    assert!(events.iter().all(|event| matches!(event.data, EventData::Other(_))));
    events
        .iter()
        .filter_map(|event| match &event.data {
            EventData::Other(json) => Some(json.as_str()),
            _ => None,
        })
        .collect()
}

async fn decisions_deposits_and_keys_have_events_for_both_keys(backend: Backend) {
    let world = World::new(backend).await;
    let staff = Actor::CommandLine;
    let customer = world.pending_as("one@example.org", Some("ACME")).await;
    world.activate(&customer, "9.95").await;
    let applications = world.service.applications();
    let cases = applications.sender_cases(None, 10).await.unwrap().items;
    applications.accept_sender(&staff, cases[0].request.id).await.unwrap();
    let (account, reference) = (customer.account.id, customer.reference);
    let name = SenderName::parse("Other").unwrap();
    applications.request_sender_name(account, reference, &name).await.unwrap();
    let cases = applications.sender_cases(None, 10).await.unwrap().items;
    applications.reject_sender(&staff, cases[0].request.id, "too \"short\"").await.unwrap();
    applications.suspend(&staff, reference, "unpaid").await.unwrap();
    applications.reinstate(&staff, reference).await.unwrap();
    applications.replace_key(account, reference, KeyKind::Test, PASSWORD, "", None).await.unwrap();
    let expected = [
        ("application.activated", r#"{"reason":null,"status":"Active"}"#),
        ("deposit.received", r#"{"amount":9.95,"balance":9.95,"currency":"USD"}"#),
        ("sender_name.accepted", r#"{"reason":null,"sender":"ACME"}"#),
        ("sender_name.rejected", r#"{"reason":"too \"short\"","sender":"Other"}"#),
        ("application.suspended", r#"{"reason":"unpaid","status":"Suspended"}"#),
        ("application.reinstated", r#"{"reason":null,"status":"Active"}"#),
        ("key.replaced", r#"{"kind":"test"}"#),
    ];
    let live = world.access(&customer.live).await;
    let test = KeyAccess { kind: KeyKind::Test, ..live };
    for access in [live, test] {
        let events = page_of(&world, &access, all()).await.unwrap().events;
        assert_eq!(types(&events), expected.map(|(kind, _)| kind));
        assert_eq!(data(&events), expected.map(|(_, data)| data));
        assert!(events.iter().all(|event| event.id.test == (access.kind == KeyKind::Test)));
    }
}

async fn a_low_balance_has_one_event_until_it_is_above_again(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let (account, reference) = (customer.account.id, customer.reference);
    let applications = world.service.applications();
    let threshold = Some(Money::parse("2").unwrap());
    applications.set_notices(account, reference, threshold, false).await.unwrap();
    let start = begin(&world, &customer).await;
    for _ in 0..2 {
        world.service.operations().mail_notices().await.unwrap();
    }
    let low = page(&world, &customer, after(&start)).await;
    assert_eq!(types(&low.events), ["balance.low"]);
    assert_eq!(data(&low.events), [r#"{"balance":1,"threshold":2,"currency":"USD"}"#]);
    world.deposit("second", reference, "5").await;
    world.service.operations().mail_notices().await.unwrap();
    let risen = page(&world, &customer, after(&low.next)).await;
    assert_eq!(types(&risen.events), ["deposit.received"]);
}

async fn a_cursor_neither_misses_nor_repeats_an_event(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    let mut cursor = begin(world, customer).await;
    let mut seen = Vec::new();
    for round in 0..5 {
        deliver(&sending, &format!("c{round}")).await;
        // Pages of one event each, until the end.
        loop {
            let filter = EventFilter { limit: 1, ..after(&cursor) };
            let found = page(world, customer, filter).await;
            cursor = found.next;
            if found.events.is_empty() {
                break;
            }
            seen.extend(found.events.into_iter().map(|event| event.id.to_string()));
        }
    }
    assert_eq!(seen.len(), 10);
    let mut sorted = seen.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(sorted, seen);
    let listed = page(world, customer, all()).await.events;
    let listed: Vec<_> = listed.iter().map(|event| event.id.to_string()).collect();
    assert_eq!(listed[listed.len() - 10..], seen);
}

async fn events_are_found_by_type_and_time(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    begin(world, customer).await;
    world.pass(HOUR_MS);
    let from = world.now();
    deliver(&sending, "c1").await;
    world.pass(HOUR_MS);
    let to = world.now();
    deliver(&sending, "c2").await;
    let of_type = EventFilter { types: Some(vec![EventType::Delivered]), ..all() };
    let found = page(world, customer, of_type.clone()).await;
    assert_eq!(types(&found.events), ["message.delivered"; 2]);
    let within = EventFilter { from: Some(from), to: Some(to), ..all() };
    let found = page(world, customer, within.clone()).await;
    assert_eq!(types(&found.events), ["message.submitted", "message.delivered"]);
    let both = EventFilter { from: Some(to), ..of_type };
    let found = page(world, customer, both).await;
    assert_eq!(types(&found.events), ["message.delivered"]);
    let nothing = EventFilter { from: Some(to), to: Some(to), ..all() };
    assert_eq!(types(&page(world, customer, nothing).await.events), [""; 0]);
}

async fn old_events_are_deleted_and_a_cursor_before_them_is_refused(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    let start = begin(world, customer).await;
    deliver(&sending, "c1").await;
    let middle = begin(world, customer).await;
    world.pass(29 * 24 * HOUR_MS);
    deliver(&sending, "c2").await;
    world.pass(2 * 24 * HOUR_MS);
    world.service.webhooks().forget_events().await.unwrap();
    let found = page(world, customer, all()).await;
    assert_eq!(types(&found.events), ["message.submitted", "message.delivered"]);
    assert_eq!(page(world, customer, after(&middle)).await.events.len(), 2);
    let access = world.access(&customer.live).await;
    let old = page_of(world, &access, after(&start)).await;
    assert!(matches!(old, Err(Error::Refused(Refusal::CursorTooOld))));
    // A cursor from the end of an empty list stays valid.
    world.pass(31 * 24 * HOUR_MS);
    world.service.webhooks().forget_events().await.unwrap();
    let empty = page(world, customer, all()).await;
    assert_eq!(types(&empty.events), [""; 0]);
    assert_eq!(page(world, customer, after(&empty.next)).await.events.len(), 0);
    sending.assert_sound().await;
}

async fn a_cursor_passes_the_events_that_the_time_leaves_out(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    begin(world, customer).await;
    deliver(&sending, "c1").await;
    world.pass(HOUR_MS);
    let from = Some(world.now());
    let empty = page(world, customer, EventFilter { from, ..all() }).await;
    assert_eq!(types(&empty.events), [""; 0]);
    deliver(&sending, "c2").await;
    let later = page(world, customer, after(&empty.next)).await.events;
    assert_eq!(types(&later), ["message.submitted", "message.delivered"]);
}

/// Whether an endpoint gets events.
pub fn is_active(record: &WebhookRecord) -> bool {
    record.disabled.is_none()
}
