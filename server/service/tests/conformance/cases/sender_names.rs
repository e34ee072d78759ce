//! Sender names: requested, accepted, rejected, replaced.

use domain::{Category, Reason, SenderState, SenderStatus};
use service::{Actor, AuditFilter, Refusal, SendError};

use crate::database::Backend;
use crate::world::{Customer, World, name};

on_each_backend![
    a_pending_or_rejected_first_name_refuses_sends_and_an_accepted_one_is_used,
    a_name_that_is_asked_for_later_stops_nothing,
    a_request_is_withdrawn_where_the_account_may_have_an_application_without_a_name,
    an_accepted_name_stays_in_use_until_a_new_one_is_accepted,
    a_name_accepted_for_one_account_is_not_accepted_for_another,
    a_newer_request_for_a_name_replaces_one_that_waits,
];

const STAFF: Actor = Actor::CommandLine;

async fn a_pending_or_rejected_first_name_refuses_sends_and_an_accepted_one_is_used(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.pending_as("one@example.org", Some("Acme")).await;
    world.activate(&customer, "10").await;
    let (service, account) = (&world.service, customer.account.id);
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(refused, Err(SendError::Refused(Reason::SenderPending)));
    world.send(&customer.test, "12345678").await.unwrap();

    let waiting = service.applications().sender_requests(true).await.unwrap();
    let rejected =
        service.applications().reject_sender(&STAFF, waiting[0].id, "too general").await.unwrap();
    assert_eq!(rejected.status, SenderStatus::Rejected);
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(refused, Err(SendError::Refused(Reason::SenderRejected)));
    let shown =
        service.applications().application(account, customer.reference).await.unwrap().unwrap();
    assert_eq!(shown.requested_sender.unwrap().reason.as_deref(), Some("too general"));
    assert!(service.applications().accept_sender(&STAFF, waiting[0].id).await.is_err());

    service
        .applications()
        .request_sender_name(account, customer.reference, &name("AcmeShop"))
        .await
        .unwrap();
    let waiting = service.applications().sender_requests(true).await.unwrap();
    service.applications().accept_sender(&STAFF, waiting[0].id).await.unwrap();
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let access = world.access(&customer.live).await;
    let record =
        service.messages().message(&access, sent.transid.unwrap()).await.unwrap().unwrap().record;
    assert_eq!(record.sender.as_deref(), Some("AcmeShop"));
    world.assert_sound().await;
}

/// Sends a message. Returns the application's sender state, and the sender name of the message.
async fn sent_as(world: &World, customer: &Customer) -> (SenderState, Option<String>) {
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let message = world.message(customer, sent.transid.unwrap()).await;
    let shown = (world.service)
        .applications()
        .application(customer.account.id, customer.reference)
        .await
        .unwrap();
    (shown.unwrap().sender_state, message.record.sender)
}

async fn a_name_that_is_asked_for_later_stops_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let (service, account) = (&world.service, customer.account.id);
    let ask = async |text| {
        let name = name(text);
        let applications = service.applications();
        let asked = applications.request_sender_name(account, customer.reference, &name);
        asked.await.unwrap();
        service.applications().sender_requests(true).await.unwrap()[0].id
    };
    assert_eq!(sent_as(&world, &customer).await, (SenderState::None, None));
    let first = ask("Acme").await;
    assert_eq!(sent_as(&world, &customer).await, (SenderState::Requested, None));
    service.applications().reject_sender(&STAFF, first, "too general").await.unwrap();
    assert_eq!(sent_as(&world, &customer).await, (SenderState::None, None));
    let second = ask("AcmeShop").await;
    service.applications().accept_sender(&STAFF, second).await.unwrap();
    let as_shop = (SenderState::Accepted, Some("AcmeShop".to_owned()));
    assert_eq!(sent_as(&world, &customer).await, as_shop);
    ask("Other").await;
    assert_eq!(sent_as(&world, &customer).await, as_shop);
    let applications = service.applications();
    let withdrawn = applications.withdraw_sender_name(account, customer.reference);
    withdrawn.await.unwrap();
    assert_eq!(sent_as(&world, &customer).await, as_shop);
    assert!(service.applications().sender_requests(true).await.unwrap().is_empty());
    world.assert_sound().await;
}

async fn a_request_is_withdrawn_where_the_account_may_have_an_application_without_a_name(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.pending_as("one@example.org", Some("Acme")).await;
    world.activate(&customer, "10").await;
    let (service, account) = (&world.service, customer.account.id);
    let applications = service.applications();
    let withdraw = || applications.withdraw_sender_name(account, customer.reference);
    let other = service
        .applications()
        .create_application(account, Category::Electricity, None)
        .await
        .unwrap();
    // The other application has no sender name, so this one must have one.
    let refused = withdraw().await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::SenderlessTaken));
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(refused, Err(SendError::Refused(Reason::SenderPending)));
    let power = name("Power");
    let applications = service.applications();
    let asked = applications.request_sender_name(account, other.reference, &power);
    asked.await.unwrap();

    // A rejected name can be withdrawn too.
    let id = service.applications().sender_requests(true).await.unwrap()[0].id;
    service.applications().reject_sender(&STAFF, id, "too general").await.unwrap();
    withdraw().await.unwrap();
    assert_eq!(sent_as(&world, &customer).await, (SenderState::None, None));
    let filter = AuditFilter {
        subject: Some(customer.reference.to_string()),
        limit: 100,
        ..AuditFilter::default()
    };
    let recorded = async || service.support().audit(&filter).await.unwrap().items.len();
    let before = recorded().await;
    withdraw().await.unwrap();
    assert_eq!(recorded().await, before, "nothing was changed");

    // Now the other application can't withdraw its request. If staff reject it, the application's
    // sends work as before.
    let refused = service.applications().withdraw_sender_name(account, other.reference).await;
    let refused = refused.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::SenderlessTaken));
    let id = service.applications().sender_requests(true).await.unwrap()[0].id;
    service.applications().reject_sender(&STAFF, id, "too general").await.unwrap();
    let shown = service.applications().application(account, other.reference).await.unwrap();
    assert_eq!(shown.unwrap().sender_state, SenderState::Requested);
    world.assert_sound().await;
}

async fn an_accepted_name_stays_in_use_until_a_new_one_is_accepted(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let (service, account) = (&world.service, customer.account.id);
    for (text, verdict, used) in
        [("First", true, "First"), ("Second", false, "First"), ("Third", true, "Third")]
    {
        service
            .applications()
            .request_sender_name(account, customer.reference, &name(text))
            .await
            .unwrap();
        if text != "First" {
            world.send(&customer.live, "12345678").await.unwrap();
        }
        let id = service.applications().sender_requests(true).await.unwrap()[0].id;
        if verdict {
            service.applications().accept_sender(&STAFF, id).await.unwrap();
        } else {
            service.applications().reject_sender(&STAFF, id, "no").await.unwrap();
        }
        let shown =
            service.applications().application(account, customer.reference).await.unwrap().unwrap();
        assert_eq!(shown.sender_name.as_deref(), Some(used));
    }
    let same = service
        .applications()
        .request_sender_name(account, customer.reference, &name("Third"))
        .await;
    assert_eq!(same.unwrap_err().refusal(), Some(&Refusal::SenderNameUnchanged));
}

async fn a_name_accepted_for_one_account_is_not_accepted_for_another(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let mut waiting = Vec::new();
    for (email, text) in [("one@example.org", "Acme"), ("two@example.org", "ACME")] {
        let account = world.account(email).await;
        service
            .applications()
            .create_application(account.id, Category::Sms, Some(&name(text)))
            .await
            .unwrap();
        waiting = service.applications().sender_requests(true).await.unwrap();
    }
    service.applications().accept_sender(&STAFF, waiting[0].id).await.unwrap();
    let refused = service.applications().accept_sender(&STAFF, waiting[1].id).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::SenderNameTaken));
    service
        .applications()
        .reject_sender(&STAFF, waiting[1].id, "belongs to another")
        .await
        .unwrap();
    let third = world.account("three@example.org").await;
    let early = service
        .applications()
        .create_application(third.id, Category::Sms, Some(&name("acme")))
        .await;
    assert_eq!(early.unwrap_err().refusal(), Some(&Refusal::SenderNameTaken));
    world.assert_sound().await;
}

async fn a_newer_request_for_a_name_replaces_one_that_waits(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    for text in ["First", "Second"] {
        let name = name(text);
        let applications = world.service.applications();
        let ask = applications.request_sender_name(customer.account.id, customer.reference, &name);
        ask.await.unwrap();
    }
    let all = world.service.applications().sender_requests(false).await.unwrap();
    let states: Vec<_> = all.iter().map(|request| request.status).collect();
    assert_eq!(states, [SenderStatus::Replaced, SenderStatus::Pending]);
}
