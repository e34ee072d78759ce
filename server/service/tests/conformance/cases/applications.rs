//! Applications: one per category, their statuses and their keys.

use domain::history::{HistoryAction, HistoryAuthor};
use domain::{ApplicationName, ApplicationStatus, Category, KeyKind, Reason, SenderStatus};
use service::{Actor, Refusal, SendError};

use crate::database::Backend;
use crate::world::{PASSWORD, World, name};

on_each_backend![
    one_application_per_category_is_created_however_many_forms_arrive_at_once,
    an_account_has_one_application_without_sender_name_until_it_asks_for_one,
    its_owner_deletes_an_application_that_was_never_used,
    status_moves_as_the_contract_says_and_everything_else_is_refused,
    activation_is_requested_while_pending_and_by_the_owner_alone,
    a_replaced_key_is_unknown_from_its_commit_on_and_the_new_one_works,
    of_two_replacements_of_one_key_one_is_refused,
    its_owner_reads_what_was_done_with_an_application,
    its_owner_reads_every_request_for_a_sender_name,
    its_owner_reads_when_keys_were_made_and_used,
    its_owner_reads_which_addresses_used_a_key,
];

async fn one_application_per_category_is_created_however_many_forms_arrive_at_once(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let account = world.account("one@example.org").await;
    let attempts: Vec<_> = (0..8)
        .map(|n| {
            let (service, sender) = (world.service.clone(), name(&format!("Name{n}")));
            tokio::spawn(async move {
                service
                    .applications()
                    .create_application(account.id, Category::Sms, Some(&sender))
                    .await
            })
        })
        .collect();
    let mut made = 0;
    for attempt in attempts {
        match attempt.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => assert_eq!(error.refusal(), Some(&Refusal::CategoryTaken)),
        }
    }
    assert_eq!(made, 1);
}

async fn an_account_has_one_application_without_sender_name_until_it_asks_for_one(
    backend: Backend,
) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let account = customer.account.id;
    let applications = world.service.applications();
    let create = || applications.create_application(account, Category::Electricity, None);
    assert_eq!(create().await.unwrap_err().refusal(), Some(&Refusal::SenderlessTaken));
    world
        .service
        .applications()
        .request_sender_name(account, customer.reference, &name("Acme"))
        .await
        .unwrap();
    create().await.unwrap();
    assert_eq!(world.service.applications().of_account(account).await.unwrap().len(), 2);
}

async fn its_owner_deletes_an_application_that_was_never_used(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let used = world.active("used@example.org", "1").await;
    let unused = world.pending("unused@example.org").await;
    let other = world.account("other@example.org").await;
    let applications = service.applications();
    for (account, reference, refusal) in [
        (used.account.id, used.reference, Refusal::ApplicationInUse),
        (other.id, unused.reference, Refusal::NoSuchApplication),
    ] {
        let refused = applications.delete_application(account, reference).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&refusal));
    }
    let owner = unused.account.id;
    applications.request_sender_name(owner, unused.reference, &name("Gone")).await.unwrap();
    applications.request_activation(owner, unused.reference).await.unwrap();
    assert!(applications.can_delete(owner, unused.reference).await.unwrap());
    applications.delete_application(owner, unused.reference).await.unwrap();
    let again = applications.delete_application(owner, unused.reference).await.unwrap_err();
    assert_eq!(again.refusal(), Some(&Refusal::NoSuchApplication));
    assert_eq!(applications.of_account(owner).await.unwrap(), []);
    assert!(applications.waiting_work().await.unwrap().iter().all(|work| work.count == 0));
    // A deposit for it waits until staff assign it, and another application can take its place.
    world.deposit("bank-late", unused.reference, "5").await;
    let created = applications.create_application(owner, Category::Sms, None).await.unwrap();
    assert_ne!(created.reference, unused.reference);
    world.assert_sound().await;
}

async fn status_moves_as_the_contract_says_and_everything_else_is_refused(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let (service, staff, reference) = (&world.service, Actor::CommandLine, customer.reference);
    assert!(service.applications().reinstate(&staff, reference).await.is_err());
    service.applications().suspend(&staff, reference, "spam").await.unwrap();
    assert!(service.applications().approve(&staff, reference).await.is_err());
    assert!(service.applications().suspend(&staff, reference, "spam").await.is_err());
    let back = service.applications().reinstate(&staff, reference).await.unwrap();
    assert_eq!(back.status, ApplicationStatus::Pending);
    let active = service.applications().approve(&staff, reference).await.unwrap();
    assert_eq!(active.status, ApplicationStatus::Active);
    assert!(service.applications().approve(&staff, reference).await.is_err());
    let suspended = service.applications().suspend(&staff, reference, " fraud ").await.unwrap();
    assert_eq!(suspended.suspend_reason.as_deref(), Some("fraud"));
    let back = service.applications().reinstate(&staff, reference).await.unwrap();
    assert_eq!((back.status, back.suspend_reason), (ApplicationStatus::Active, None));
    let refused = service.applications().suspend(&staff, reference, "  ").await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::ReasonMissing));
}

async fn activation_is_requested_while_pending_and_by_the_owner_alone(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let other = world.account("two@example.org").await;
    let applications = world.service.applications();
    let ask = |account| applications.request_activation(account, customer.reference);
    assert_eq!(ask(other.id).await.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
    ask(customer.account.id).await.unwrap();
    let shown = world
        .service
        .applications()
        .application(customer.account.id, customer.reference)
        .await
        .unwrap();
    assert_eq!(shown.unwrap().activation_requested_at, Some(world.now()));
    assert!(
        world
            .service
            .applications()
            .application(other.id, customer.reference)
            .await
            .unwrap()
            .is_none()
    );
    world.service.applications().approve(&Actor::CommandLine, customer.reference).await.unwrap();
    let late = ask(customer.account.id).await.unwrap_err();
    assert!(matches!(late.refusal(), Some(Refusal::ActivationNotPossible { .. })), "{late:?}");
}

async fn a_replaced_key_is_unknown_from_its_commit_on_and_the_new_one_works(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let account = customer.account.id;
    let applications = world.service.applications();
    let replace = |password| {
        applications.replace_key(account, customer.reference, KeyKind::Live, password, "t", None)
    };
    assert_eq!(
        replace("wrong password").await.unwrap_err().refusal(),
        Some(&Refusal::WrongPassword)
    );
    world.send(&customer.live, "12345678").await.unwrap();
    let key = replace(PASSWORD).await.unwrap();
    assert_eq!(key.reference(), customer.reference);
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(refused, Err(SendError::Refused(Reason::ApiInvalid)));
    let read = world.service.messages().authorize(Some(customer.live.expose())).await;
    assert_eq!(read, Err(Reason::ApiInvalid));
    world.send(&key, "12345678").await.unwrap();
    world.send(&customer.test, "12345678").await.unwrap();
    world.assert_sound().await;
}

async fn of_two_replacements_of_one_key_one_is_refused(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("twice@example.org", "1").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let applications = world.service.applications();
    let replace = |last_four| {
        applications.replace_key(owner, reference, KeyKind::Live, PASSWORD, "t", Some(last_four))
    };
    // Two tabs show the same key.
    let shown = customer.live.last_four();
    let (first, second) = tokio::join!(replace(shown), replace(shown));
    let (key, refused) = match (first, second) {
        (Ok(key), Err(refused)) | (Err(refused), Ok(key)) => (key, refused),
        both => panic!("{both:?}"),
    };
    assert_eq!(refused.refusal(), Some(&Refusal::KeyReplacedBefore));
    world.send(&key, "12345678").await.unwrap();
    let late = replace(shown).await.unwrap_err();
    assert_eq!(late.refusal(), Some(&Refusal::KeyReplacedBefore));
    world.send(&key, "12345678").await.unwrap();
    let next = replace(key.last_four()).await.unwrap();
    world.send(&next, "12345678").await.unwrap();
    world.assert_sound().await;
}

async fn its_owner_reads_what_was_done_with_an_application(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("history@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let other = world.account("other@example.org").await;
    let staff = Actor::Account(world.account("staff@example.org").await.id);
    service.applications().request_activation(owner, reference).await.unwrap();
    service.applications().approve(&staff, reference).await.unwrap();
    world.deposit("bank-1", reference, "12.5").await;
    let shop = ApplicationName::parse(" Shop \u{1f6d2} ").unwrap();
    for (account, refused) in [(other.id, true), (owner, false), (owner, false)] {
        let named = service.applications().set_name(account, reference, shop.as_ref()).await;
        assert_eq!(named.is_err(), refused);
    }
    // Only staff see that staff viewed the application.
    let support = service.support();
    let visit = support.visit_application(&staff, reference);
    visit.await.unwrap();
    let applications = service.applications();
    let suspending = applications.suspend(&staff, reference, "A payment was disputed.");
    suspending.await.unwrap();

    let history = service.applications().application_history(owner, reference).await.unwrap();
    let done: Vec<_> = (history.iter().rev()).map(|entry| (entry.action, entry.author)).collect();
    assert_eq!(
        done,
        [
            (HistoryAction::Created, HistoryAuthor::Owner),
            (HistoryAction::ActivationRequested, HistoryAuthor::Owner),
            (HistoryAction::Approved, HistoryAuthor::Support),
            (HistoryAction::DepositCredited, HistoryAuthor::Support),
            (HistoryAction::Renamed, HistoryAuthor::Owner),
            (HistoryAction::Suspended, HistoryAuthor::Support),
        ]
    );
    let [suspended, renamed, deposit, ..] = history.as_slice() else {
        panic!("{history:?}");
    };
    assert_eq!(suspended.detail.as_deref(), Some("A payment was disputed."));
    let names = (renamed.before.as_deref(), renamed.after.as_deref());
    assert_eq!(names, (Some("SMS application"), Some("Shop \u{1f6d2}")));
    let balances = (deposit.before.as_deref(), deposit.after.as_deref());
    assert_eq!(balances, (Some("0"), Some("12.5")));
    // Only staff see the payer's text.
    assert_eq!(deposit.detail, None);
    let refused = service.applications().application_history(other.id, reference).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
}

async fn its_owner_reads_every_request_for_a_sender_name(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("names@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    for text in ["First", "Second", "Third"] {
        let name = name(text);
        let applications = service.applications();
        let asking = applications.request_sender_name(owner, reference, &name);
        asking.await.unwrap();
    }
    let requests = service.applications().sender_names_asked_for(owner, reference).await;
    let requests: Vec<_> =
        (requests.unwrap().into_iter()).map(|request| (request.name, request.status)).collect();
    assert_eq!(
        requests,
        [
            ("Third".to_owned(), SenderStatus::Pending),
            ("Second".to_owned(), SenderStatus::Replaced),
            ("First".to_owned(), SenderStatus::Replaced),
        ]
    );
    let other = world.account("other@example.org").await;
    let refused = service.applications().sender_names_asked_for(other.id, reference).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
}

async fn its_owner_reads_when_keys_were_made_and_used(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("keys@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let made_at = world.now();
    let records = async || service.applications().key_records(owner, reference).await.unwrap();
    let [live, test] = records().await.try_into().unwrap();
    assert_eq!((live.kind, test.kind), (KeyKind::Live, KeyKind::Test));
    assert!(customer.live.expose().ends_with(&live.last_four));
    assert_eq!(live.last_four.len(), 4);
    assert_eq!((live.made_at, live.used_at, live.calls), (made_at, None, 0));

    let from = "192.0.2.7".parse().unwrap();
    world.pass(60_000);
    service.applications().note_key_use(&customer.live, None);
    world.pass(3_600_000);
    service.applications().note_key_use(&customer.live, Some(from));
    let used_at = world.now();
    service.applications().store_key_uses().await.unwrap();
    // Storing again counts nothing twice.
    service.applications().store_key_uses().await.unwrap();
    let [live, test] = records().await.try_into().unwrap();
    assert_eq!((live.used_at, live.calls), (Some(used_at), 2));
    assert_eq!(live.used_from.as_deref(), Some("192.0.2.7"));
    assert_eq!((test.used_at, test.calls), (None, 0));

    // Calls are counted for one day.
    world.pass(24 * 3_600_000);
    service.applications().note_key_use(&customer.test, Some(from));
    service.applications().store_key_uses().await.unwrap();
    assert_eq!(records().await[0].calls, 1);

    // Uses of the old key don't count for the new one, whenever they are stored.
    service.applications().note_key_use(&customer.live, Some(from));
    world.pass(1);
    let applications = service.applications();
    let replacing = applications.replace_key(owner, reference, KeyKind::Live, PASSWORD, "", None);
    let key = replacing.await.unwrap();
    service.applications().store_key_uses().await.unwrap();
    let [live, test] = records().await.try_into().unwrap();
    assert!(key.expose().ends_with(&live.last_four));
    assert_eq!((live.made_at, live.used_at, live.calls), (world.now(), None, 0));
    assert_eq!(test.calls, 1);

    let other = world.account("other@example.org").await;
    let refused = service.applications().key_records(other.id, reference).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
}

async fn its_owner_reads_which_addresses_used_a_key(backend: Backend) {
    const DAY_MS: i64 = 24 * 3_600_000;
    let world = World::new(backend).await;
    let applications = world.service.applications();
    let customer = world.pending("clients@example.org").await;
    let (owner, reference) = (customer.account.id, customer.reference);
    let clients = async |kind| {
        let clients = applications.key_clients(owner, reference, kind).await.unwrap();
        let shown =
            clients.into_iter().map(|one| (one.client, one.calls, one.first_at, one.last_at));
        shown.collect::<Vec<_>>()
    };
    let used = |from: &str| applications.note_key_use(&customer.live, Some(from.parse().unwrap()));
    let address = |text: &str| Some(text.to_owned());
    let began = world.now();
    used("192.0.2.7");
    used("2001:db8::1");
    applications.note_key_use(&customer.live, None);
    applications.store_key_uses().await.unwrap();
    world.pass(DAY_MS);
    used("192.0.2.7");
    used("192.0.2.7");
    let last = world.now();
    applications.store_key_uses().await.unwrap();
    let seen = [(address("192.0.2.7"), 3, began, last), (address("2001:db8::1"), 1, began, began)];
    assert_eq!(clients(KeyKind::Live).await, seen);
    assert_eq!(clients(KeyKind::Test).await, []);

    // A day lists 100 clients. The others are counted together, whenever they are stored.
    world.pass(29 * DAY_MS);
    let later = world.now();
    for n in 0..150 {
        used(&format!("198.51.100.{n}"));
        used("192.0.2.7");
    }
    applications.store_key_uses().await.unwrap();
    used("198.51.100.200");
    applications.store_key_uses().await.unwrap();
    let listed = clients(KeyKind::Live).await;
    let of = |client: Option<String>| listed.iter().find(|one| one.0 == client).cloned();
    assert_eq!(listed.len(), 100, "the calls of the first day are over 30 days old");
    assert_eq!(of(address("192.0.2.7")), Some((address("192.0.2.7"), 152, last, later)));
    assert_eq!(of(address("2001:db8::1")), None);
    world.pass(2 * DAY_MS);
    used("2001:db8::1");
    applications.store_key_uses().await.unwrap();
    let listed = clients(KeyKind::Live).await;
    assert_eq!(listed[0].0, address("2001:db8::1"));
    assert!(listed.iter().any(|one| one.0.is_none() && one.1 == 52), "{listed:?}");

    // The clients of several keys take several transactions.
    let others = [world.pending("one@example.org").await, world.pending("two@example.org").await];
    let keys = others.iter().flat_map(|other| [&other.live, &other.test]).chain([&customer.test]);
    for (key, n) in keys.flat_map(|key| (0..90).map(move |n| (key, n))) {
        let from = format!("203.0.113.{n}").parse().unwrap();
        applications.note_key_use(key, Some(from));
    }
    applications.store_key_uses().await.unwrap();
    assert_eq!(clients(KeyKind::Test).await.len(), 90);
    for other in &others {
        for kind in [KeyKind::Live, KeyKind::Test] {
            let stored = applications.key_clients(other.account.id, other.reference, kind).await;
            assert_eq!(stored.unwrap().len(), 90);
        }
    }

    let replacing = applications.replace_key(owner, reference, KeyKind::Live, PASSWORD, "", None);
    replacing.await.unwrap();
    assert_eq!(clients(KeyKind::Live).await, []);
    let other = world.account("other@example.org").await;
    let refused = applications.key_clients(other.id, reference, KeyKind::Live).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
}
