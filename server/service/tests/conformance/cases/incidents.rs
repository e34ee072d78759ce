//! Draining the last carrier, and incident notes for customers.

use domain::records::{ConnectionRecord, ConnectionState};
use service::{Actor, Refusal, Service};

use crate::database::Backend;
use crate::sending::Sending;
use crate::world::World;

on_each_backend![
    the_last_carrier_is_drained_only_after_a_confirmation,
    a_carrier_is_not_the_last_while_another_one_is_connected,
    notes_are_open_until_they_are_ended,
    a_note_must_be_readable,
    a_few_notes_are_open_at_a_time,
];

const STAFF: Actor = Actor::CommandLine;

async fn refusal<T>(done: impl Future<Output = service::Result<T>>) -> Refusal {
    match done.await {
        Ok(_) => panic!("it wasn't refused"),
        Err(error) => error.refusal().unwrap().clone(),
    }
}

/// Stores a connection in this state for each of these carriers.
async fn connect(service: &Service, carriers: &[&str], state: ConnectionState) {
    let now = service.clock().now();
    let connection = |carrier: &&str| ConnectionRecord {
        carrier: (*carrier).to_owned(),
        node: 0,
        number: 1,
        state,
        since: now,
        in_flight: 0,
        window: 10,
        rate: 0,
        throttled: 0,
        last_error: None,
        last_error_at: None,
        updated_at: now,
    };
    let connections = carriers.iter().map(connection).collect();
    service.delivery().report_connections(connections).await.unwrap();
}

async fn the_last_carrier_is_drained_only_after_a_confirmation(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let service = &sending.world.service;
    // No route leads to beta.
    connect(service, &["acme", "beta"], ConnectionState::Bound).await;
    sending.send().await;
    sending.send().await;
    let refused = refusal(service.delivery().drain_carrier(&STAFF, "acme", false)).await;
    assert_eq!(refused, Refusal::LastCarrier { waiting: 2 });
    assert_eq!(service.delivery().drained_carriers().await.unwrap(), Vec::<String>::new());
    assert!(service.delivery().drain_carrier(&STAFF, "acme", true).await.unwrap());
    assert_eq!(service.delivery().drained_carriers().await.unwrap(), ["acme"]);
    let delivery = service.delivery();
    let again = delivery.drain_carrier(&STAFF, "acme", false);
    assert!(!again.await.unwrap(), "it was drained before");
}

async fn a_carrier_is_not_the_last_while_another_one_is_connected(backend: Backend) {
    let sending = Sending::by_acme_or_beta(backend).await;
    let service = &sending.world.service;
    let is_refused = async || {
        let refused = refusal(service.delivery().drain_carrier(&STAFF, "acme", false)).await;
        assert_eq!(refused, Refusal::LastCarrier { waiting: 0 });
    };
    is_refused().await;
    connect(service, &["acme"], ConnectionState::Bound).await;
    is_refused().await;
    connect(service, &["acme", "beta"], ConnectionState::Connecting).await;
    is_refused().await;
    connect(service, &["acme", "beta"], ConnectionState::Bound).await;
    assert!(service.delivery().drain_carrier(&STAFF, "acme", false).await.unwrap());
    let refused = refusal(service.delivery().drain_carrier(&STAFF, "beta", false)).await;
    assert_eq!(refused, Refusal::LastCarrier { waiting: 0 });
    assert!(service.delivery().resume_carrier(&STAFF, "acme").await.unwrap());
    assert!(service.delivery().drain_carrier(&STAFF, "beta", false).await.unwrap());
    assert!(service.delivery().resume_carrier(&STAFF, "beta").await.unwrap());
    // A state that no process has updated recently doesn't count.
    sending.world.pass(60_000);
    is_refused().await;
}

async fn notes_are_open_until_they_are_ended(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let delivery = service.delivery();
    let first = delivery.open_incident(&STAFF, " Delivery is slow ", Some("sandbox"));
    let first = first.await.unwrap();
    assert_eq!(first.text, "Delivery is slow");
    assert_eq!((first.carrier.as_deref(), first.began_at), (Some("sandbox"), world.now()));
    world.pass(1000);
    let delivery = service.delivery();
    let second = delivery.open_incident(&STAFF, "Receipts are late", None);
    let second = second.await.unwrap();
    let open = async || service.delivery().incidents().await.unwrap();
    assert_eq!(open().await, [first.clone(), second.clone()]);
    assert_eq!(service.delivery().end_incident(&STAFF, second.id).await.unwrap(), second);
    assert_eq!(open().await, [first]);
    let again = refusal(service.delivery().end_incident(&STAFF, second.id)).await;
    assert_eq!(again, Refusal::NoSuchIncident);
    // IDs aren't reused, so an outdated page can't end a different note.
    let third = service.delivery().open_incident(&STAFF, "Down", None).await.unwrap();
    assert!(third.id > second.id);
}

async fn a_note_must_be_readable(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    for text in ["", " ", "a\nb", "a\u{1b}b", "a\u{202e}b", &"a".repeat(301)] {
        let refused = refusal(service.delivery().open_incident(&STAFF, text, None)).await;
        assert_eq!(refused, Refusal::IncidentInvalid, "{text:?}");
    }
    let refused = refusal(service.delivery().open_incident(&STAFF, "Slow", Some("nobody"))).await;
    assert_eq!(refused, Refusal::NoSuchCarrier);
    let longest = "é".repeat(300);
    let opened = service.delivery().open_incident(&STAFF, &longest, None).await.unwrap();
    assert_eq!(opened.text, longest);
}

async fn a_few_notes_are_open_at_a_time(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let open = async |text: &str| service.delivery().open_incident(&STAFF, text, None).await;
    for text in ["1", "2", "3", "4", "5"] {
        open(text).await.unwrap();
    }
    assert_eq!(refusal(open("6")).await, Refusal::TooManyIncidents);
    let first = service.delivery().incidents().await.unwrap().remove(0);
    service.delivery().end_incident(&STAFF, first.id).await.unwrap();
    open("6").await.unwrap();
}
