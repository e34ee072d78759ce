//! Sends, results and connections share a transaction. These tests check that they don't interfere
//! with each other.

use std::time::Duration;

use domain::carrier_figures::CarrierEvent;
use domain::{MessageStatus, Reason, Transid};
use futures_util::future::join_all;
use service::{Actor, Claimed, Consumer, Lease, SANDBOX_CARRIER, SendError};
use sqlx::Executor as _;

use super::verifications::{of_number, start_with};
use crate::database::Backend;
use crate::network::{answered, taken_as};
use crate::sending::{Sending, receipt};
use crate::world::{Customer, HOUR_MS, World, keyed, money, request};

on_each_backend![
    a_send_is_handed_to_a_connection_that_has_a_place_for_it,
    no_connection_is_handed_more_than_it_has_places_for,
    messages_that_a_closed_connection_did_not_receive_go_to_another_one,
    a_code_is_not_lost_by_a_connection_that_stops_waiting,
    a_drained_carrier_is_handed_nothing,
    messages_of_a_suspended_application_are_handed_to_nobody,
    a_message_that_is_deferred_is_submitted_again_when_its_time_comes,
    a_connection_that_was_full_is_handed_what_became_due_meanwhile,
    an_input_that_cannot_be_stored_fails_alone,
    results_that_come_after_their_lease_change_no_status,
    of_two_requests_with_one_key_and_money_for_one_the_second_is_a_replay,
];

const CARRIER: &str = SANDBOX_CARRIER;
/// Longer than any wait in these tests.
const SOON: Duration = Duration::from_secs(20);

/// Adds a connection with this many free slots.
fn consumer(world: &World, credit: usize) -> Consumer {
    let consumer = world.service.delivery().consume(CARRIER);
    consumer.credit().refresh(|| credit);
    consumer
}

/// Submits the received messages, and sets the credit of the connection.
fn free(consumer: &Consumer, received: usize, credit: usize) {
    consumer.submit(received, || (), || credit);
}

async fn next(consumer: &mut Consumer) -> (Lease, Vec<Claimed>) {
    tokio::time::timeout(SOON, consumer.next()).await.unwrap()
}

/// Receives this many messages.
async fn take(consumer: &mut Consumer, count: usize) -> Vec<(Lease, Claimed)> {
    let mut taken = Vec::new();
    while taken.len() < count {
        let (lease, messages) = next(consumer).await;
        taken.extend(messages.into_iter().map(|message| (lease, message)));
    }
    assert_eq!(taken.len(), count);
    taken
}

/// Adds a connection and lets it process one message. A connection polls the queue once before it
/// gets new messages directly.
async fn connected(world: &World, customer: &Customer, credit: usize) -> Consumer {
    let mut consumer = consumer(world, credit);
    world.send(&customer.live, "57000000").await.unwrap();
    let (lease, messages) = next(&mut consumer).await;
    record(world, lease, &messages).await;
    free(&consumer, 1, credit);
    consumer
}

async fn record(world: &World, lease: Lease, messages: &[Claimed]) {
    let results = messages.iter().map(|m| answered(m, taken_as("c"))).collect();
    let taken = world.record(CARRIER, &lease, results).await;
    assert_eq!(taken.len(), messages.len());
}

async fn a_send_is_handed_to_a_connection_that_has_a_place_for_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let mut consumer = connected(&world, &customer, 10).await;
    let sent = world.send(&customer.live, "57000001").await.unwrap();
    let (lease, messages) = next(&mut consumer).await;
    assert_eq!(messages[0].id, sent.transid.unwrap());
    assert_eq!(messages[0].address, "26657000001");
    assert_eq!(messages[0].message.as_str(), "hello");
    let stored = world.message(&customer, messages[0].id).await;
    assert_eq!(stored.record.status, MessageStatus::Sending);
    let steps: Vec<_> = stored.timeline.iter().map(|entry| entry.status).collect();
    assert_eq!(steps, [MessageStatus::Queued, MessageStatus::Sending]);
    record(&world, lease, &messages).await;
    assert_eq!(world.status(&customer, messages[0].id).await, MessageStatus::Submitted);
    assert_eq!(world.service.delivery().queue_state().await.unwrap().waiting, 0);
    world.assert_sound().await;
}

async fn no_connection_is_handed_more_than_it_has_places_for(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let mut consumer = connected(&world, &customer, 3).await;
    for n in 0..7 {
        world.send(&customer.live, &format!("5700000{n}")).await.unwrap();
    }
    let first = take(&mut consumer, 3).await;
    // No slot is free, so the other messages wait and nothing arrives.
    let nothing = tokio::time::timeout(Duration::from_millis(50), consumer.next()).await;
    assert!(nothing.is_err());
    assert_eq!(world.service.delivery().queue_state().await.unwrap().waiting, 7);
    free(&consumer, 3, 3);
    let second = take(&mut consumer, 3).await;
    free(&consumer, 3, 3);
    let third = take(&mut consumer, 1).await;
    let numbers = |taken: &[(Lease, Claimed)]| -> Vec<String> {
        taken.iter().map(|(_, m)| m.number.digits().to_owned()).collect()
    };
    let all = [numbers(&first), numbers(&second), numbers(&third)].concat();
    let expected: Vec<_> = (0..7).map(|n| format!("5700000{n}")).collect();
    assert_eq!(all, expected, "the oldest first");
    world.assert_sound().await;
}

async fn messages_that_a_closed_connection_did_not_receive_go_to_another_one(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let closing = connected(&world, &customer, 10).await;
    world.send(&customer.live, "57000001").await.unwrap();
    drop(closing);
    let mut other = consumer(&world, 10);
    let taken = take(&mut other, 1).await;
    assert_eq!(taken[0].1.number.digits(), "57000001");
    record(&world, taken[0].0, &[taken[0].1.clone()]).await;
    world.assert_sound().await;
}

/// Before it returns a code, a process reads the secret that codes are derived from.
async fn a_code_is_not_lost_by_a_connection_that_stops_waiting(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    start_with(&world.service, &customer.live, of_number("57000001"), None).await.unwrap();
    let world = world.reopen().await;
    let mut consumer = consumer(&world, 10);
    let mut wait = Duration::from_micros(50);
    let (lease, messages) = loop {
        assert!(wait < SOON, "the code is lost");
        match tokio::time::timeout(wait, consumer.next()).await {
            Ok(next) => break next,
            Err(_) => wait = wait * 11 / 10,
        }
    };
    assert!(messages[0].message.as_str().as_bytes()[..6].iter().all(u8::is_ascii_digit));
    record(&world, lease, &messages).await;
    world.assert_sound().await;
}

async fn a_drained_carrier_is_handed_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let mut consumer = connected(&world, &customer, 10).await;
    let actor = Actor::CommandLine;
    world.service.delivery().drain_carrier(&actor, CARRIER, true).await.unwrap();
    world.send(&customer.live, "57000001").await.unwrap();
    let nothing = tokio::time::timeout(Duration::from_millis(50), consumer.next()).await;
    assert!(nothing.is_err());
    world.service.delivery().resume_carrier(&actor, CARRIER).await.unwrap();
    // The process that serves the carrier also refreshes the credit after a resume.
    free(&consumer, 0, 0);
    free(&consumer, 0, 10);
    take(&mut consumer, 1).await;
    world.assert_sound().await;
}

async fn messages_of_a_suspended_application_are_handed_to_nobody(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "57000001").await.unwrap();
    let actor = Actor::CommandLine;
    let reference = customer.reference;
    world.service.applications().suspend(&actor, reference, "a reason").await.unwrap();
    let mut consumer = consumer(&world, 10);
    let nothing = tokio::time::timeout(Duration::from_millis(50), consumer.next()).await;
    assert!(nothing.is_err());
    world.service.applications().reinstate(&actor, reference).await.unwrap();
    world.service.delivery().resume_deferred().await.unwrap();
    take(&mut consumer, 1).await;
    world.assert_sound().await;
}

/// Sends a message, which the carrier defers. The connection's slots stay in use.
async fn deferred(world: &World, customer: &Customer, consumer: &mut Consumer) -> Transid {
    world.send(&customer.live, "57000001").await.unwrap();
    let (lease, messages) = next(consumer).await;
    let not_now = service::SubmitOutcome::Temporary { error: "not now".to_owned() };
    world.record(CARRIER, &lease, vec![answered(&messages[0], not_now)]).await;
    messages[0].id
}

async fn a_message_that_is_deferred_is_submitted_again_when_its_time_comes(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let mut consumer = connected(&world, &customer, 10).await;
    let id = deferred(&world, &customer, &mut consumer).await;
    free(&consumer, 1, 10);
    // The clock of the test stands still, so the message isn't due yet.
    let nothing = tokio::time::timeout(Duration::from_millis(50), consumer.next()).await;
    assert!(nothing.is_err());
    world.pass(HOUR_MS);
    let again = take(&mut consumer, 1).await;
    assert_eq!(again[0].1.id, id);
    world.assert_sound().await;
}

async fn a_connection_that_was_full_is_handed_what_became_due_meanwhile(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    // A poll has found that no message waits.
    let mut consumer = connected(&world, &customer, 10).await;
    free(&consumer, 0, 1);
    let id = deferred(&world, &customer, &mut consumer).await;
    world.pass(HOUR_MS);
    // The slot is in use, so nothing arrives and the queue isn't polled.
    let nothing = tokio::time::timeout(Duration::from_millis(50), consumer.next()).await;
    assert!(nothing.is_err());
    free(&consumer, 1, 1);
    let again = take(&mut consumer, 1).await;
    assert_eq!(again[0].1.id, id);
    world.assert_sound().await;
}

async fn an_input_that_cannot_be_stored_fails_alone(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let (world, customer) = (&sending.world, &sending.customer);
    // An answer whose receipt came before it.
    let handed = sending.submitted().await;
    sending.receive(receipt("c1", MessageStatus::Delivered)).await;
    let refusing = world.database.refuse_number("57000666");
    world.database.connect().await.execute(refusing).await.unwrap();
    let numbers: Vec<String> = (0..20)
        .map(|n| if n == 13 { "57000666".to_owned() } else { format!("570000{n:02}") })
        .collect();
    let messages = world.service.messages();
    let sends =
        numbers.iter().map(|number| messages.send(request(&customer.live, number, "hello")));
    let answering = sending.answer(&handed, taken_as("c1"));
    let (answers, ()) = tokio::join!(join_all(sends), answering);
    for (number, answer) in numbers.iter().zip(answers) {
        if number == "57000666" {
            assert_eq!(answer, Err(SendError::Refused(Reason::Internal)));
        } else {
            assert!(answer.is_ok(), "{number}: {answer:?}");
        }
    }
    assert_eq!(world.balance(&customer.live).await, money("99.00"));
    sending.assert_status(handed.id(), MessageStatus::Delivered).await;
    // The group was written several times.
    assert_eq!(sending.count(CarrierEvent::Delivered), 1);
    world.assert_sound().await;
}

async fn results_that_come_after_their_lease_change_no_status(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let mut consumer = connected(&world, &customer, 10).await;
    world.send(&customer.live, "57000001").await.unwrap();
    let (lease, messages) = next(&mut consumer).await;
    world.pass(2 * 60_000);
    let ended = world.service.delivery().end_leases(service::Leases::Over).await;
    assert_eq!(ended.unwrap(), 1);
    let results = vec![answered(&messages[0], taken_as("late"))];
    let taken = world.record(CARRIER, &lease, results).await;
    assert!(taken.is_empty());
    world.assert_sound().await;
}

async fn of_two_requests_with_one_key_and_money_for_one_the_second_is_a_replay(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "0.05").await;
    let with_key = || keyed("once", request(&customer.live, "57000001", "hello"));
    let messages = world.service.messages();
    let (one, other) = tokio::join!(messages.send(with_key()), messages.send(with_key()));
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!((one.transid, one.balance), (other.transid, other.balance));
    assert_eq!([one.replayed, other.replayed].iter().filter(|replayed| **replayed).count(), 1);
    world.assert_sound().await;
}
