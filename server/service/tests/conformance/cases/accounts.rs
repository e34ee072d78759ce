//! Registration, sign-in, password reset and staff.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use domain::password::InvalidPassword;
use domain::records::AccountRecord;
use domain::{Email, MessageStatus, Reason};
use service::{Actor, DepositStatus, Refusal, SendError};

use crate::database::Backend;
use crate::world::{HOUR_MS, PASSWORD, World, order, password};

/// Much longer than a sign-in takes on busy cores.
const SOON: Duration = Duration::from_mins(1);

on_each_backend![
    an_email_is_taken_once_whatever_its_case_and_however_many_ask,
    sign_in_says_the_same_for_a_wrong_password_and_an_unknown_email,
    sign_in_is_throttled_for_known_and_unknown_emails_alike_and_opens_again,
    registration_is_throttled_by_address,
    a_reset_link_works_once_and_for_an_hour,
    staff_are_added_by_somebody_and_customers_are_not_staff,
    a_closed_account_is_closed_to_keys_deposits_and_people,
    people_sign_in_while_every_core_is_busy,
    new_passwords_are_judged_wherever_one_is_set_and_old_ones_still_sign_in,
    an_account_chooses_its_time_zone_by_a_name_of_the_list,
];

async fn an_account_chooses_its_time_zone_by_a_name_of_the_list(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let id = world.account("one@example.org").await.id;
    let chosen = async || {
        let settings = service.accounts().account_settings(id).await.unwrap();
        settings.account.time_zone
    };
    assert_eq!(chosen().await, None);
    let berlin = "Europe/Berlin";
    service.accounts().set_time_zone(id, Some(berlin)).await.unwrap();
    assert_eq!(chosen().await.as_deref(), Some(berlin));
    for unknown in ["", "Europe/Nowhere", "europe/berlin", "CET\n"] {
        let refused = service.accounts().set_time_zone(id, Some(unknown)).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&Refusal::TimeZoneUnknown));
    }
    assert_eq!(chosen().await.as_deref(), Some(berlin));
    service.accounts().set_time_zone(id, None).await.unwrap();
    assert_eq!(chosen().await, None);
}

async fn an_email_is_taken_once_whatever_its_case_and_however_many_ask(backend: Backend) {
    let world = World::new(backend).await;
    let attempts = (0..4).map(|n| {
        let email = if n % 2 == 0 { "one@example.org" } else { "ONE@Example.org" };
        let (service, email) = (world.service.clone(), Email::parse(email).unwrap());
        tokio::spawn(
            async move { service.accounts().register(&email, &password(PASSWORD), "x").await },
        )
    });
    let mut made = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        match attempt.await.unwrap() {
            Ok(_) => made += 1,
            Err(error) => assert_eq!(error.refusal(), Some(&Refusal::EmailTaken)),
        }
    }
    assert_eq!(made, 1);
}

async fn sign_in_says_the_same_for_a_wrong_password_and_an_unknown_email(backend: Backend) {
    let world = World::new(backend).await;
    world.account("one@example.org").await;
    for (email, secret) in [("one@example.org", "wrong password"), ("two@example.org", PASSWORD)] {
        let error = world.service.accounts().sign_in(email, secret, "x").await.unwrap_err();
        assert_eq!(error.refusal(), Some(&Refusal::WrongCredentials));
    }
    let account =
        world.service.accounts().sign_in(" One@Example.org ", PASSWORD, "x").await.unwrap();
    assert_eq!(account.email, "one@example.org");
}

async fn a_closed_account_is_closed_to_keys_deposits_and_people(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.active("one@example.org", "1").await;
    let other = world.active("two@example.org", "1").await;
    let (account, reference) = (&customer.account, customer.reference);
    let access = world.access(&customer.live).await;
    let sent = world.send(&customer.live, "58000001").await.unwrap();
    let closing = async |account: &AccountRecord, secret: &str, references: &str| {
        let closed = service.accounts().close_account(account, secret, references).await;
        closed.map_err(|error| error.refusal().cloned().unwrap())
    };
    let email = Email::parse("staff@example.org").unwrap();
    let staff = service
        .accounts()
        .add_account(&Actor::CommandLine, &email, &password(PASSWORD), true)
        .await
        .unwrap();
    let both = format!("{reference} {}", other.reference);
    for (account, secret, references, refusal) in [
        (account, "not the password", reference.as_str(), Refusal::WrongPassword),
        (account, PASSWORD, "", Refusal::ReferencesDiffer),
        (account, PASSWORD, other.reference.as_str(), Refusal::ReferencesDiffer),
        (account, PASSWORD, &both, Refusal::ReferencesDiffer),
        (&staff, PASSWORD, "", Refusal::StaffCannotClose),
    ] {
        assert_eq!(closing(account, secret, references).await, Err(refusal));
    }
    closing(account, PASSWORD, &format!(" {reference},")).await.unwrap();

    // Keys are unknown, nobody can sign in, and staff can't reopen the account.
    for key in [&customer.live, &customer.test] {
        let refused = world.send(key, "58000001").await.unwrap_err();
        assert_eq!(refused, SendError::Refused(Reason::ApiInvalid));
    }
    let refused = service.accounts().sign_in("one@example.org", PASSWORD, "x").await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::AccountClosed));
    let refused = service.accounts().enable_account(&Actor::CommandLine, "one@example.org").await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::AccountClosed));
    assert!(service.accounts().account(account.id).await.unwrap().unwrap().closed);
    // Late deposits wait for staff, who can't assign them to the account either.
    let late = service
        .money()
        .add_deposit(&Actor::CommandLine, &order("late", reference.as_str(), "5"))
        .await
        .unwrap();
    assert_eq!(late.status, DepositStatus::Unmatched);
    let refused = service.money().assign_deposit(&Actor::CommandLine, "late", reference).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::AccountClosed));
    // The charge for the queued message is released when the message expires.
    world.pass(49 * HOUR_MS);
    service.delivery().expire().await.unwrap();
    let message = service.messages().message(&access, sent.transid.unwrap()).await;
    let message = message.unwrap().unwrap();
    assert_eq!(message.record.status, MessageStatus::Expired);
    assert_eq!(message.record.released, message.record.cost);
    world.assert_sound().await;
    world.send(&other.live, "58000001").await.unwrap();
}

/// Keeps every core busy until it is dropped.
struct BusyCores(Arc<AtomicBool>);

impl BusyCores {
    fn new() -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..2 * cores {
            let is_over = Arc::clone(&is_over);
            std::thread::spawn(move || {
                while !is_over.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            });
        }
        Self(is_over)
    }
}

impl Drop for BusyCores {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

async fn people_sign_in_while_every_core_is_busy(backend: Backend) {
    let world = World::new(backend).await;
    let _busy = BusyCores::new();
    let signing_in = async {
        world.account("one@example.org").await;
        let service = &world.service;
        service.accounts().sign_in("one@example.org", PASSWORD, "x").await
    };
    let signed_in = tokio::time::timeout(SOON, signing_in).await;
    assert!(signed_in.unwrap().is_ok());
}

async fn sign_in_is_throttled_for_known_and_unknown_emails_alike_and_opens_again(backend: Backend) {
    let world = World::new(backend).await;
    world.account("one@example.org").await;
    for email in ["one@example.org", "nobody@example.org"] {
        for _ in 0..10 {
            let error =
                world.service.accounts().sign_in(email, "wrong password", "x").await.unwrap_err();
            assert_eq!(error.refusal(), Some(&Refusal::WrongCredentials));
        }
        let error = world.service.accounts().sign_in(email, PASSWORD, "x").await.unwrap_err();
        assert!(matches!(error.refusal(), Some(Refusal::Throttled { .. })), "{error:?}");
    }
    world.service.accounts().sign_in("one@example.org", PASSWORD, "another address").await.unwrap();
    world.pass(HOUR_MS);
    world.service.accounts().sign_in("one@example.org", PASSWORD, "x").await.unwrap();
}

async fn registration_is_throttled_by_address(backend: Backend) {
    let world = World::new(backend).await;
    for n in 0..20 {
        world.account(&format!("n{n}@example.org")).await;
    }
    let email = Email::parse("late@example.org").unwrap();
    let error = world
        .service
        .accounts()
        .register(&email, &password(PASSWORD), "127.0.0.1")
        .await
        .unwrap_err();
    assert!(matches!(error.refusal(), Some(Refusal::Throttled { .. })), "{error:?}");
}

async fn a_reset_link_works_once_and_for_an_hour(backend: Backend) {
    let world = World::new(backend).await;
    world.account("one@example.org").await;
    let late =
        world.service.accounts().issue_reset(&Actor::CommandLine, "one@example.org").await.unwrap();
    world.pass(HOUR_MS + 1);
    let new = password("another password");
    let refused = world.service.accounts().reset_password(&late, &new).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::ResetLinkInvalid));

    let token =
        world.service.accounts().issue_reset(&Actor::CommandLine, "one@example.org").await.unwrap();
    world.service.accounts().reset_password(&token, &new).await.unwrap();
    assert!(world.service.accounts().reset_password(&token, &new).await.is_err());
    world.service.accounts().sign_in("one@example.org", "another password", "x").await.unwrap();
    assert!(world.service.accounts().sign_in("one@example.org", PASSWORD, "x").await.is_err());
    let unknown = world
        .service
        .accounts()
        .issue_reset(&Actor::CommandLine, "two@example.org")
        .await
        .unwrap_err();
    assert_eq!(unknown.refusal(), Some(&Refusal::NoSuchAccount));
}

async fn staff_are_added_by_somebody_and_customers_are_not_staff(backend: Backend) {
    let world = World::new(backend).await;
    let email = Email::parse("staff@example.org").unwrap();
    let staff = world
        .service
        .accounts()
        .add_account(&Actor::CommandLine, &email, &password(PASSWORD), true)
        .await
        .unwrap();
    assert!(staff.staff);
    assert!(!world.account("one@example.org").await.staff);
}

async fn new_passwords_are_judged_wherever_one_is_set_and_old_ones_still_sign_in(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let email = Email::parse("wanderer@example.org").unwrap();
    let account = world.account(email.as_str()).await;
    let other = Email::parse("wanderer@example.com").unwrap();
    for (text, why) in [
        ("password123", InvalidPassword::Common),
        ("1q2w3e4r5t", InvalidPassword::Common),
        ("wanderer2026", InvalidPassword::OfEmail),
    ] {
        let refusal = Refusal::InvalidPassword(why);
        let bad = password(text);
        let registered = service.accounts().register(&other, &bad, "x").await;
        assert_eq!(registered.unwrap_err().refusal(), Some(&refusal), "{text}");
        let accounts = service.accounts();
        let added = accounts.add_account(&Actor::CommandLine, &other, &bad, true);
        assert_eq!(added.await.unwrap_err().refusal(), Some(&refusal), "{text}");
        let accounts = service.accounts();
        let changed = accounts.change_password(&account, PASSWORD, &bad, "");
        assert_eq!(changed.await.unwrap_err().refusal(), Some(&refusal), "{text}");
        let accounts = service.accounts();
        let token = accounts.issue_reset(&Actor::CommandLine, email.as_str());
        let reset = service.accounts().reset_password(&token.await.unwrap(), &bad).await;
        assert_eq!(reset.unwrap_err().refusal(), Some(&refusal), "{text}");
    }
    let signed_in = service.accounts().sign_in(email.as_str(), PASSWORD, "x").await;
    assert_eq!(signed_in.unwrap(), account);
}
