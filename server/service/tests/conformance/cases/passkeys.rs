//! Passkeys of a software authenticator, used after the password in place of a code.

use domain::records::AccountRecord;
use domain::security_event::SecurityEventKind::{
    self, PasskeyAdded, PasskeyRefused, PasskeyRemoved, PasskeyUsed,
};
use domain::{Email, MailKind};
use serde_json::Value;
use service::{AccountChange, Actor, ClientInfo, Refusal, SecondStep, Service};
use testing::authenticator::Authenticator;

use super::second_factors::{MINUTE_MS, half_signed_in, refusal, session, set_up, with_factor};
use crate::database::Backend;
use crate::world::{HOUR_MS, PASSWORD, World, password};

on_each_backend![
    a_passkey_is_taken_in_place_of_a_code,
    a_passkey_opens_nothing_without_the_password,
    an_answer_is_taken_once,
    an_answer_comes_within_five_minutes,
    a_passkey_of_another_account_is_refused,
    what_another_site_was_answered_is_refused,
    a_counter_that_goes_back_is_refused,
    a_removed_passkey_is_refused,
    passkeys_go_with_the_app,
    an_account_has_an_app_and_five_passkeys_at_most,
    refused_passkeys_are_throttled,
    another_process_takes_the_answer,
    a_site_without_a_name_has_no_passkeys,
];

/// The origin of [`World::mailing`].
const ORIGIN: &str = "https://sms.example.org";

/// Uses a passkey as the second step.
fn answer(authenticator: &mut Authenticator, origin: &str, options: &str) -> SecondStep {
    SecondStep::Passkey(authenticator.answer(origin, options))
}

/// Begins to add a passkey in a session. Returns the options for the browser.
async fn begin(service: &Service, token: &str, account: &AccountRecord) -> String {
    let accounts = service.accounts();
    let begun = accounts.begin_passkey(token, account.id, &account.email, " Phone ");
    begun.await.unwrap();
    let accounts = service.accounts();
    let options = accounts.passkey_to_add(token, account.id);
    options.await.unwrap()
}

/// Adds a passkey to an account.
async fn add(world: &World, account: &AccountRecord) -> Authenticator {
    let token = format!("adds to {}", account.id);
    session(&world.service, &token).await;
    let mut authenticator = Authenticator::default();
    let options = begin(&world.service, &token, account).await;
    let made = authenticator.make(ORIGIN, &options);
    let accounts = world.service.accounts();
    let added = accounts.add_passkey(&token, account.id, &made);
    added.await.unwrap();
    world.service.accounts().session_delete(&token).await.unwrap();
    authenticator
}

/// Adds an account with an authenticator app and a passkey.
async fn with_passkey(world: &World, email: &str) -> (AccountRecord, Authenticator) {
    // The email is confirmed, so the account gets mails.
    let (email, secret) = (Email::parse(email).unwrap(), password(PASSWORD));
    let service = &world.service;
    let accounts = service.accounts();
    let added = accounts.add_account(&Actor::CommandLine, &email, &secret, false);
    let id = added.await.unwrap().id;
    set_up(world, &service.accounts().account(id).await.unwrap().unwrap()).await;
    let account = service.accounts().account(id).await.unwrap().unwrap();
    let authenticator = add(world, &account).await;
    (account, authenticator)
}

/// Creates a session that waits for the second step. Returns the options for its browser.
async fn asked(world: &World, token: &str, account: &AccountRecord) -> String {
    half_signed_in(world, token, account).await;
    world.service.accounts().request_passkey(token).await.unwrap()
}

/// Returns the details of an account's events of a kind.
async fn events(world: &World, account: &AccountRecord, kind: SecurityEventKind) -> Vec<String> {
    let events = world.service.accounts().security_events(account.id).await.unwrap();
    let events = events.into_iter().filter(|event| event.kind == kind);
    events.filter_map(|event| event.detail).collect()
}

async fn a_passkey_is_taken_in_place_of_a_code(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    let stored = service.accounts().passkeys(account.id).await.unwrap();
    assert_eq!((stored.len(), stored[0].name.as_str()), (1, "Phone"));
    assert_eq!(stored[0].used_at, None);
    assert_eq!(events(&world, &account, PasskeyAdded).await, ["Phone"]);
    let mails = service.operations().mails(None, 10).await.unwrap().items;
    assert_eq!(mails[0].kind, MailKind::SecondFactor);
    assert!(mails[0].text.contains("A passkey was added"));

    let options = asked(&world, "a", &account).await;
    let used = answer(&mut phone, ORIGIN, &options);
    let signed_in = service.accounts().sign_in_step("a", &used).await.unwrap();
    assert_eq!(signed_in.id, account.id);
    let stored = service.accounts().passkeys(account.id).await.unwrap();
    assert_eq!(stored[0].used_at, Some(world.now()));
    assert_eq!(events(&world, &account, PasskeyUsed).await, ["Phone"]);
    let client = ClientInfo::default();
    let accounts = service.accounts();
    let device = accounts.device_sign_in_by_code("a", &account, &client);
    device.await.unwrap();

    world.pass(10 * MINUTE_MS);
    let refused = refusal(service.accounts().step_up("a", &account, "")).await;
    assert_eq!(refused, Refusal::CodeOrPasskeyNeeded);
    let options = service.accounts().request_passkey("a").await.unwrap();
    let credential = phone.answer(ORIGIN, &options);
    service.accounts().step_up("a", &account, &credential).await.unwrap();
    service.accounts().step_up("a", &account, "").await.unwrap();
}

async fn a_passkey_opens_nothing_without_the_password(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    session(service, "a").await;
    for token in ["a", "no session"] {
        let refused = refusal(service.accounts().request_passkey(token)).await;
        assert_eq!(refused, Refusal::SignInOver);
    }
    // The options of the owner's session can't be used in another session.
    let options = asked(&world, "b", &account).await;
    let used = answer(&mut phone, ORIGIN, &options);
    let refused = refusal(service.accounts().sign_in_step("a", &used)).await;
    assert_eq!(refused, Refusal::SignInOver);
    assert_eq!(service.accounts().session_account("b").await.unwrap(), None);
}

async fn an_answer_is_taken_once(backend: Backend) {
    let world = World::mailing(backend).await;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    let options = asked(&world, "a", &account).await;
    let used = answer(&mut phone, ORIGIN, &options);
    let attempts = (0..4).map(|_| {
        let (service, used) = (world.service.clone(), used.clone());
        tokio::spawn(async move { service.accounts().sign_in_step("a", &used).await.is_ok() })
    });
    let mut taken = 0;
    for attempt in attempts.collect::<Vec<_>>() {
        taken += usize::from(attempt.await.unwrap());
    }
    assert_eq!(taken, 1);
    let refused = refusal(world.service.accounts().sign_in_step("a", &used)).await;
    assert_eq!(refused, Refusal::PasskeyOver);
    // The answer doesn't fit the next options.
    world.service.accounts().request_passkey("a").await.unwrap();
    let refused = refusal(world.service.accounts().sign_in_step("a", &used)).await;
    assert_eq!(refused, Refusal::PasskeyRefused);

    let options = begin(&world.service, "a", &account).await;
    let made = phone.make(ORIGIN, &options);
    let accounts = world.service.accounts();
    let add = || accounts.add_passkey("a", account.id, &made);
    add().await.unwrap();
    assert_eq!(refusal(add()).await, Refusal::PasskeyOver);
}

async fn an_answer_comes_within_five_minutes(backend: Backend) {
    let world = World::mailing(backend).await;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    for (wait, in_time) in [(5 * MINUTE_MS - 1, true), (5 * MINUTE_MS, false)] {
        let token = format!("after {wait}");
        let options = asked(&world, &token, &account).await;
        let used = answer(&mut phone, ORIGIN, &options);
        world.pass(wait);
        let accounts = world.service.accounts();
        let step = accounts.sign_in_step(&token, &used);
        if in_time {
            step.await.unwrap();
        } else {
            assert_eq!(refusal(step).await, Refusal::PasskeyOver);
        }
    }
    session(&world.service, "adds").await;
    let options = begin(&world.service, "adds", &account).await;
    let made = phone.make(ORIGIN, &options);
    world.pass(5 * MINUTE_MS);
    let accounts = world.service.accounts();
    let added = accounts.add_passkey("adds", account.id, &made);
    assert_eq!(refusal(added).await, Refusal::PasskeyOver);
}

async fn a_passkey_of_another_account_is_refused(backend: Backend) {
    let world = World::mailing(backend).await;
    let (account, _) = with_passkey(&world, "one@example.org").await;
    let (other, mut others) = with_passkey(&world, "two@example.org").await;
    let options = asked(&world, "a", &account).await;
    let of_other = asked(&world, "b", &other).await;
    // The challenge of one session, answered with the passkey of another account.
    let mut mixed: Value = serde_json::from_str(&options).unwrap();
    let of_other: Value = serde_json::from_str(&of_other).unwrap();
    mixed["allowCredentials"] = of_other["allowCredentials"].clone();
    let used = answer(&mut others, ORIGIN, &mixed.to_string());
    let refused = refusal(world.service.accounts().sign_in_step("a", &used)).await;
    assert_eq!(refused, Refusal::PasskeyRefused);
    let details = events(&world, &account, PasskeyRefused).await;
    assert_eq!(details, [Refusal::PasskeyRefused.to_string()]);
    let used = answer(&mut others, ORIGIN, &of_other.to_string());
    world.service.accounts().sign_in_step("b", &used).await.unwrap();
    // The account can't remove the other account's passkey either.
    let id = world.service.accounts().passkeys(other.id).await.unwrap()[0].id;
    let accounts = world.service.accounts();
    let removed = accounts.remove_passkey(account.id, id);
    assert_eq!(refusal(removed).await, Refusal::NoSuchPasskey);
}

async fn what_another_site_was_answered_is_refused(backend: Backend) {
    let world = World::mailing(backend).await;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    for foreign in ["https://evil.sms.example.org", "https://sms.example.org:8443"] {
        let options = asked(&world, foreign, &account).await;
        let used = answer(&mut phone, foreign, &options);
        let refused = refusal(world.service.accounts().sign_in_step(foreign, &used)).await;
        assert_eq!(refused, Refusal::PasskeyRefused);
        let options = begin(&world.service, foreign, &account).await;
        let made = phone.make(foreign, &options);
        let accounts = world.service.accounts();
        let added = accounts.add_passkey(foreign, account.id, &made);
        assert_eq!(refusal(added).await, Refusal::PasskeyNotAdded);
    }
    assert_eq!(world.service.accounts().passkeys(account.id).await.unwrap().len(), 1);
}

async fn a_counter_that_goes_back_is_refused(backend: Backend) {
    let world = World::mailing(backend).await;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    let mut copy = phone.copy();
    let first = asked(&world, "a", &account).await;
    let second = asked(&world, "b", &account).await;
    let step = async |token: &str, used| world.service.accounts().sign_in_step(token, &used).await;
    step("a", answer(&mut phone, ORIGIN, &first)).await.unwrap();
    // These options are older than the new counter, and the copy reports the same counter.
    let refused = refusal(step("b", answer(&mut copy, ORIGIN, &second))).await;
    assert_eq!(refused, Refusal::PasskeyCopied);
    let third = asked(&world, "c", &account).await;
    step("c", answer(&mut phone, ORIGIN, &third)).await.unwrap();
    let fourth = asked(&world, "d", &account).await;
    let refused = refusal(step("d", answer(&mut copy, ORIGIN, &fourth))).await;
    assert_eq!(refused, Refusal::PasskeyCopied);
    let details = events(&world, &account, PasskeyRefused).await;
    assert_eq!(details, vec![Refusal::PasskeyCopied.to_string(); 2]);
}

async fn a_removed_passkey_is_refused(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    let mut other = add(&world, &account).await;
    let options = asked(&world, "a", &account).await;
    let used = answer(&mut phone, ORIGIN, &options);
    let id = service.accounts().passkeys(account.id).await.unwrap()[0].id;
    service.accounts().remove_passkey(account.id, id).await.unwrap();
    let refused = refusal(service.accounts().sign_in_step("a", &used)).await;
    assert_eq!(refused, Refusal::PasskeyRefused);
    let accounts = service.accounts();
    let again = accounts.remove_passkey(account.id, id);
    assert_eq!(refusal(again).await, Refusal::NoSuchPasskey);
    assert_eq!(events(&world, &account, PasskeyRemoved).await, ["Phone"]);
    let mails = service.operations().mails(None, 10).await.unwrap().items;
    assert!(mails[0].text.contains("A passkey was removed"));
    let options = asked(&world, "b", &account).await;
    let used = answer(&mut other, ORIGIN, &options);
    service.accounts().sign_in_step("b", &used).await.unwrap();
}

async fn passkeys_go_with_the_app(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let (one, mut phone) = with_passkey(&world, "one@example.org").await;
    let (two, _) = with_passkey(&world, "two@example.org").await;
    let options = asked(&world, "a", &one).await;
    let used = answer(&mut phone, ORIGIN, &options);
    service.accounts().remove_factor(one.id).await.unwrap();
    let refused = refusal(service.accounts().sign_in_step("a", &used)).await;
    assert_eq!(refused, Refusal::PasskeyRefused);
    let accounts = service.accounts();
    let reset =
        accounts.change_account(&Actor::CommandLine, "two@example.org", AccountChange::ResetFactor);
    reset.await.unwrap();
    for account in [&one, &two] {
        assert_eq!(service.accounts().passkeys(account.id).await.unwrap(), []);
        assert!(!service.accounts().has_passkeys(account.id).await.unwrap());
        // Setting up another app doesn't bring them back.
        set_up(&world, account).await;
        half_signed_in(&world, &account.email, account).await;
        let refused = refusal(service.accounts().request_passkey(&account.email)).await;
        assert_eq!(refused, Refusal::NoSuchPasskey);
    }
}

async fn an_account_has_an_app_and_five_passkeys_at_most(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let account = world.account("one@example.org").await;
    session(service, "a").await;
    let begin_called = async |name: &str| {
        let accounts = service.accounts();
        let begun = accounts.begin_passkey("a", account.id, &account.email, name);
        refusal(begun).await
    };
    assert_eq!(begin_called("Phone").await, Refusal::NoSecondFactor);
    // The app is removed between the two steps.
    set_up(&world, &account).await;
    session(service, "b").await;
    let options = begin(service, "b", &account).await;
    service.accounts().remove_factor(account.id).await.unwrap();
    let made = Authenticator::default().make(ORIGIN, &options);
    let accounts = service.accounts();
    let added = accounts.add_passkey("b", account.id, &made);
    assert_eq!(refusal(added).await, Refusal::NoSecondFactor);

    set_up(&world, &account).await;
    for name in ["", "  ", "a\u{7}b", &"x".repeat(41)] {
        assert_eq!(begin_called(name).await, Refusal::PasskeyNameInvalid);
    }
    for _ in 0..5 {
        add(&world, &account).await;
    }
    assert_eq!(begin_called("Phone").await, Refusal::TooManyPasskeys);
    assert_eq!(service.accounts().passkeys(account.id).await.unwrap().len(), 5);
}

async fn refused_passkeys_are_throttled(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    let options = asked(&world, "a", &account).await;
    let right = answer(&mut phone, ORIGIN, &options);
    let wrong = SecondStep::Passkey("{}".to_owned());
    for n in 0..10 {
        let refused = refusal(service.accounts().sign_in_step("a", &wrong)).await;
        let expected = if n == 0 { Refusal::PasskeyRefused } else { Refusal::PasskeyOver };
        assert_eq!(refused, expected);
    }
    let refused = refusal(service.accounts().sign_in_step("a", &right)).await;
    assert!(matches!(refused, Refusal::Throttled { .. }), "{refused:?}");
    world.pass(HOUR_MS);
    let options = asked(&world, "b", &account).await;
    let right = answer(&mut phone, ORIGIN, &options);
    service.accounts().sign_in_step("b", &right).await.unwrap();
}

async fn another_process_takes_the_answer(backend: Backend) {
    let world = World::mailing(backend).await;
    let (account, mut phone) = with_passkey(&world, "one@example.org").await;
    let options = asked(&world, "a", &account).await;
    let used = answer(&mut phone, ORIGIN, &options);
    let mut config = world.config();
    let folder = tempfile::tempdir().unwrap();
    if world.database.url().starts_with("postgres") {
        config.data_dir = folder.path().to_owned();
    }
    let beside = Service::open_beside(config).await.unwrap();
    beside.accounts().sign_in_step("a", &used).await.unwrap();
    beside.close().await;
}

async fn a_site_without_a_name_has_no_passkeys(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let (account, ..) = with_factor(&world, "one@example.org").await;
    assert!(!service.accounts().passkeys_work());
    half_signed_in(&world, "a", &account).await;
    let accounts = service.accounts();
    let begun = accounts.begin_passkey("a", account.id, &account.email, "Phone");
    assert_eq!(refusal(begun).await, Refusal::PasskeysUnavailable);
    let refused = refusal(service.accounts().request_passkey("a")).await;
    assert_eq!(refused, Refusal::PasskeysUnavailable);
}
