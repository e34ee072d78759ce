//! Sender names: requested, accepted, rejected, replaced.

use domain::{Category, Reason, SenderStatus};
use service::{Actor, Refusal, SendError};

use crate::database::Backend;
use crate::world::{World, name};

on_each_backend![
    a_pending_or_rejected_name_refuses_sends_and_an_accepted_one_is_used,
    an_accepted_name_stays_in_use_until_a_new_one_is_accepted,
    a_name_accepted_for_one_account_is_not_accepted_for_another,
    a_newer_request_for_a_name_replaces_one_that_waits,
];

const STAFF: Actor = Actor::CommandLine;

async fn a_pending_or_rejected_name_refuses_sends_and_an_accepted_one_is_used(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let (service, account) = (&world.service, customer.account.id);
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let first = service
        .message(&world.access(&customer.live).await, sent.transid.unwrap())
        .await
        .unwrap();
    assert_eq!(first.unwrap().record.sender, None);

    service
        .request_sender_name(account, customer.reference, &name("Acme"))
        .await
        .unwrap();
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(refused, Err(SendError::Refused(Reason::SenderPending)));
    world.send(&customer.test, "12345678").await.unwrap();

    let waiting = service.sender_requests(true).await.unwrap();
    let rejected = service
        .reject_sender(&STAFF, waiting[0].id, "too general")
        .await
        .unwrap();
    assert_eq!(rejected.status, SenderStatus::Rejected);
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(refused, Err(SendError::Refused(Reason::SenderRejected)));
    let shown = service
        .application(account, customer.reference)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        shown.requested_sender.unwrap().reason.as_deref(),
        Some("too general")
    );
    assert!(service.accept_sender(&STAFF, waiting[0].id).await.is_err());

    service
        .request_sender_name(account, customer.reference, &name("AcmeShop"))
        .await
        .unwrap();
    let waiting = service.sender_requests(true).await.unwrap();
    service.accept_sender(&STAFF, waiting[0].id).await.unwrap();
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let access = world.access(&customer.live).await;
    let record = service
        .message(&access, sent.transid.unwrap())
        .await
        .unwrap()
        .unwrap()
        .record;
    assert_eq!(record.sender.as_deref(), Some("AcmeShop"));
    world.assert_sound().await;
}

async fn an_accepted_name_stays_in_use_until_a_new_one_is_accepted(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let (service, account) = (&world.service, customer.account.id);
    for (text, verdict, used) in [
        ("First", true, "First"),
        ("Second", false, "First"),
        ("Third", true, "Third"),
    ] {
        service
            .request_sender_name(account, customer.reference, &name(text))
            .await
            .unwrap();
        if text != "First" {
            world.send(&customer.live, "12345678").await.unwrap();
        }
        let id = service.sender_requests(true).await.unwrap()[0].id;
        if verdict {
            service.accept_sender(&STAFF, id).await.unwrap();
        } else {
            service.reject_sender(&STAFF, id, "no").await.unwrap();
        }
        let shown = service
            .application(account, customer.reference)
            .await
            .unwrap()
            .unwrap();
        assert_eq!(shown.sender_name.as_deref(), Some(used));
    }
    let same = service
        .request_sender_name(account, customer.reference, &name("Third"))
        .await;
    assert_eq!(
        same.unwrap_err().refusal(),
        Some(&Refusal::SenderNameUnchanged)
    );
}

async fn a_name_accepted_for_one_account_is_not_accepted_for_another(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let mut waiting = Vec::new();
    for (email, text) in [("one@example.org", "Acme"), ("two@example.org", "ACME")] {
        let account = world.account(email).await;
        service
            .create_application(account.id, Category::Sms, Some(&name(text)))
            .await
            .unwrap();
        waiting = service.sender_requests(true).await.unwrap();
    }
    service.accept_sender(&STAFF, waiting[0].id).await.unwrap();
    let refused = service
        .accept_sender(&STAFF, waiting[1].id)
        .await
        .unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::SenderNameTaken));
    service
        .reject_sender(&STAFF, waiting[1].id, "belongs to another")
        .await
        .unwrap();
    let third = world.account("three@example.org").await;
    let early = service
        .create_application(third.id, Category::Sms, Some(&name("acme")))
        .await;
    assert_eq!(
        early.unwrap_err().refusal(),
        Some(&Refusal::SenderNameTaken)
    );
    world.assert_sound().await;
}

async fn a_newer_request_for_a_name_replaces_one_that_waits(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    for text in ["First", "Second"] {
        let name = name(text);
        let ask = world
            .service
            .request_sender_name(customer.account.id, customer.reference, &name);
        ask.await.unwrap();
    }
    let all = world.service.sender_requests(false).await.unwrap();
    let states: Vec<_> = all.iter().map(|request| request.status).collect();
    assert_eq!(states, [SenderStatus::Replaced, SenderStatus::Pending]);
}
