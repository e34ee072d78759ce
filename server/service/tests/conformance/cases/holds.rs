//! Nothing is submitted while messages are held.

use std::collections::BTreeSet;

use domain::MessageStatus::{Submitted, Unknown};
use domain::Transid;
use service::{Actor, Reconciled, Reconciliation, Refusal, Rest};

use crate::database::Backend;
use crate::network::taken_as;
use crate::sending::Sending;
use crate::world::HOUR_MS;

on_each_backend![
    a_hold_by_command_stops_and_resumes_sends,
    a_reconciliation_ends_leases_that_are_older_than_a_queue,
];

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
