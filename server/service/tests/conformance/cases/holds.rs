//! Nothing is submitted while messages are held.

use std::collections::BTreeSet;

use domain::MessageStatus::{Cancelled, Delivered, Expired, Queued, Scheduled, Submitted, Unknown};
use domain::{Schedule, Transid, Validity};
use service::{
    Actor, CancelTarget, Export, ExportLine, Reconciled, Reconciliation, Refusal, Rest, StopAuthor,
};

use super::schedules::{at, cancel, cancel_one, send, uploaded, valid_for};
use crate::database::Backend;
use crate::network::{network, taken_as};
use crate::sending::{Sending, receipt};
use crate::world::{HOUR_MS, money};

on_each_backend![
    a_hold_by_command_stops_and_resumes_sends,
    a_reconciliation_ends_leases_that_are_older_than_a_queue,
    what_is_held_does_not_expire,
    what_is_held_is_not_cancelled,
    an_upload_that_is_held_becomes_messages_although_it_has_expired,
    a_batch_that_begins_during_a_hold_is_held_if_its_time_was_before,
    nothing_is_rejected_for_want_of_a_route_while_messages_are_held,
];

const MINUTE_MS: i64 = 60_000;
const STAFF: Actor = Actor::CommandLine;

pub async fn sent_to(sending: &Sending, number: &str) -> Transid {
    let sent = sending.world.send(&sending.customer.live, number).await;
    sent.unwrap().transid.unwrap()
}

/// Submits everything that is due, and returns the messages. The carrier calls a message by its ID.
pub async fn submit_all(sending: &Sending) -> BTreeSet<Transid> {
    let mut submitted = BTreeSet::new();
    // On PostgreSQL, the first claim after the end of a hold only learns that it ended.
    for _ in 0..2 {
        for handed in sending.claim("acme").await {
            assert!(submitted.insert(handed.id()));
            sending.answer(&handed, taken_as(&handed.id().to_string())).await;
        }
    }
    submitted
}

pub async fn reconcile(sending: &Sending, by: Reconciliation) -> Reconciled {
    sending.world.service.operations().reconcile(&STAFF, by).await.unwrap()
}

async fn a_hold_by_command_stops_and_resumes_sends(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let operations = sending.world.service.operations();
    let (answered, lost) = (sending.submitted().await, sending.submitted().await);
    sending.world.pass(1);
    operations.begin_hold(&STAFF).await.unwrap();
    // The answers to these submits may still come.
    let by = Reconciliation { rest: Some(Rest::Send), ..Reconciliation::default() };
    let refused = operations.reconcile(&STAFF, by).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::StillSubmitting));
    sending.answer(&answered, taken_as("c1")).await;
    sending.assert_status(answered.id(), Submitted).await;
    sending.world.pass(sending.world.service.limits().lease_ms);
    let id = sent_to(&sending, "12345671").await;
    sending.assert_nothing_due("acme").await;
    let held = sending.reopen().await;
    held.assert_nothing_due("acme").await;
    let by = Reconciliation { rest: Some(Rest::Unknown), ..Reconciliation::default() };
    // The lease of one message is over. The other one was accepted after the hold began, so it
    // wasn't sent before.
    assert_eq!(reconcile(&held, by).await.unknown, 0);
    held.assert_status(lost.id(), Unknown).await;
    assert_eq!(submit_all(&held).await, BTreeSet::from([id]));
}

/// Upkeep of a running server leaves leases of such old messages out.
async fn a_reconciliation_ends_leases_that_are_older_than_a_queue(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let lost = sending.submitted().await;
    sending.world.pass(50 * 24 * HOUR_MS);
    sending.world.service.operations().begin_hold(&STAFF).await.unwrap();
    let by = Reconciliation { rest: Some(Rest::Send), ..Reconciliation::default() };
    assert!(reconcile(&sending, by).await.ended);
    sending.assert_status(lost.id(), Unknown).await;
    assert_eq!(submit_all(&sending).await, BTreeSet::new());
}

async fn begin_hold(sending: &Sending) {
    sending.world.pass(1);
    sending.world.service.operations().begin_hold(&STAFF).await.unwrap();
    sending.world.pass(1);
}

async fn expire(sending: &Sending) -> u64 {
    sending.world.service.delivery().expire().await.unwrap()
}

async fn held(sending: &Sending) -> i64 {
    sending.world.service.operations().hold().await.unwrap().unwrap().waiting
}

/// Decides that acme has got these messages.
fn got(ids: &[Transid]) -> Reconciliation {
    let line = |id: &Transid| ExportLine {
        transid: Some(*id),
        carrier_message_id: Some(format!("c{id}")),
        ..ExportLine::default()
    };
    let export = Export { carrier: "acme".to_owned(), lines: ids.iter().map(line).collect() };
    Reconciliation { export: Some(export), ..Reconciliation::default() }
}

fn rest(rest: Rest) -> Reconciliation {
    Reconciliation { rest: Some(rest), ..Reconciliation::default() }
}

async fn what_is_held_does_not_expire(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let sent = send(&sending, valid_for("1")).await.unwrap();
    let lost = send(&sending, valid_for("1")).await.unwrap();
    let plain = sending.send().await;
    begin_hold(&sending).await;
    let new = send(&sending, valid_for("1")).await.unwrap();
    sending.world.pass(2 * MINUTE_MS);
    assert_eq!(expire(&sending).await, 1);
    sending.assert_ended(new, Expired, "validity").await;
    sending.world.pass(50 * HOUR_MS);
    assert_eq!(expire(&sending).await, 0);
    for id in [sent, lost, plain] {
        sending.assert_status(id, Queued).await;
    }
    sending.assert_balance("99.85").await;
    sending.assert_sound().await;
    assert_eq!(reconcile(&sending, got(&[sent])).await.by_export, 1);
    assert_eq!(expire(&sending).await, 0);
    sending.assert_status(sent, Submitted).await;
    sending.receive(receipt(&format!("c{sent}"), Delivered)).await;
    sending.assert_status(sent, Delivered).await;
    assert!(reconcile(&sending, rest(Rest::Send)).await.ended);
    assert_eq!(submit_all(&sending).await, BTreeSet::new());
    assert_eq!(expire(&sending).await, 2);
    sending.assert_ended(lost, Expired, "validity").await;
    sending.assert_ended(plain, Expired, "expired_in_queue").await;
    sending.assert_balance("99.95").await;
    sending.assert_sound().await;
}

async fn what_is_held_is_not_cancelled(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let one = sending.send().await;
    let batch = uploaded(&sending, 2, Schedule::default()).await;
    sending.world.expand_all().await;
    let past = send(&sending, at(&sending.world, 10 * MINUTE_MS)).await.unwrap();
    let past_batch = uploaded(&sending, 2, at(&sending.world, 10 * MINUTE_MS)).await;
    sending.world.pass(20 * MINUTE_MS);
    // Nothing was submitted before its time.
    let later = send(&sending, at(&sending.world, HOUR_MS)).await.unwrap();
    let other = send(&sending, at(&sending.world, HOUR_MS)).await.unwrap();
    uploaded(&sending, 2, at(&sending.world, HOUR_MS)).await;
    begin_hold(&sending).await;
    let new = sending.send().await;
    let before = "99.45";
    sending.assert_balance(before).await;
    for target in [
        CancelTarget::Message(one),
        CancelTarget::Message(past),
        CancelTarget::Batch(batch),
        CancelTarget::Batch(past_batch),
    ] {
        let refused = cancel(&sending, target).await.unwrap_err();
        assert_eq!(refused, Refusal::NotCancellable, "{target:?}");
    }
    let messages = sending.world.service.messages();
    let access = sending.world.access(&sending.customer.live).await;
    assert_eq!(messages.stoppable(&access, batch).await.unwrap(), (0, money("0")));
    sending.assert_balance(before).await;
    assert_eq!(cancel_one(&sending, new).await.unwrap().released, money("0.05"));
    assert_eq!(cancel_one(&sending, later).await.unwrap().messages, 1);
    let cancelled = messages.cancel_scheduled(&access, StopAuthor::Program).await.unwrap();
    assert_eq!((cancelled.messages, cancelled.released), (3, money("0.15")));
    sending.assert_status(other, Cancelled).await;
    sending.assert_status(past, Scheduled).await;
    sending.world.expand_all().await;
    assert_eq!(held(&sending).await, 6);
    assert!(reconcile(&sending, rest(Rest::Send)).await.ended);
    for target in [CancelTarget::Message(one), CancelTarget::Message(past)] {
        assert_eq!(cancel(&sending, target).await.unwrap().messages, 1);
    }
    for target in [CancelTarget::Batch(batch), CancelTarget::Batch(past_batch)] {
        assert_eq!(cancel(&sending, target).await.unwrap().messages, 2);
    }
    while messages.follow_stops().await.unwrap() {}
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}

async fn an_upload_that_is_held_becomes_messages_although_it_has_expired(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    uploaded(&sending, 3, valid_for("1")).await;
    begin_hold(&sending).await;
    uploaded(&sending, 2, valid_for("1")).await;
    sending.world.pass(2 * MINUTE_MS);
    sending.world.expand_all().await;
    assert_eq!(expire(&sending).await, 0);
    assert_eq!(held(&sending).await, 3);
    // The later upload has expired.
    sending.assert_balance("99.85").await;
    assert_eq!(reconcile(&sending, rest(Rest::Unknown)).await.unknown, 3);
    sending.assert_balance("99.85").await;
    sending.assert_sound().await;
}

async fn a_batch_that_begins_during_a_hold_is_held_if_its_time_was_before(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let schedule = Schedule { validity: Validity::parse("5"), ..at(&sending.world, MINUTE_MS) };
    let batch = uploaded(&sending, 2, schedule).await;
    sending.world.pass(2 * MINUTE_MS);
    begin_hold(&sending).await;
    sending.world.expand_all().await;
    assert_eq!(held(&sending).await, 2);
    sending.world.pass(5 * MINUTE_MS);
    assert_eq!(expire(&sending).await, 0);
    sending.world.pass(50 * HOUR_MS);
    assert_eq!(expire(&sending).await, 0);
    let refused = cancel(&sending, CancelTarget::Batch(batch)).await.unwrap_err();
    assert_eq!(refused, Refusal::NotCancellable);
    assert_eq!(reconcile(&sending, rest(Rest::Unknown)).await.unknown, 2);
    sending.assert_balance("99.9").await;
    sending.assert_sound().await;
}

/// The settings may not have all carriers and routes yet.
async fn nothing_is_rejected_for_want_of_a_route_while_messages_are_held(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let id = sending.send().await;
    begin_hold(&sending).await;
    let delivery = sending.world.service.delivery();
    delivery.set_network(network(&[]));
    for carrier in ["acme", ""] {
        delivery.reroute(carrier).await.unwrap();
    }
    sending.assert_status(id, Queued).await;
    assert!(reconcile(&sending, rest(Rest::Send)).await.ended);
    sending.world.pass(HOUR_MS);
    delivery.reroute("").await.unwrap();
    sending.assert_ended(id, domain::MessageStatus::Rejected, "no_route").await;
    sending.assert_balance("100").await;
    sending.assert_sound().await;
}
