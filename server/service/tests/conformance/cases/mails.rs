//! Mails: the outbox, delivery attempts, secret links, and the confirmation of an email.

use domain::records::{ConnectionRecord, ConnectionState, MailRecord};
use domain::{Category, Email, KeyKind, MailKind, MailState};
use service::{
    AccountChange, Actor, BatchRequest, ClientInfo, MailCounts, OutgoingMail, Refusal, Service,
    SessionRow,
};

use super::schedules::at;
use crate::database::Backend;
use crate::processes::peer;
use crate::sending::Sending;
use crate::uploads::{accepted, plain, rows, upload};
use crate::world::{HOUR_MS, PASSWORD, World, money, name, order, password};

on_each_backend![
    an_event_and_its_mail_are_stored_together_or_not_at_all,
    decisions_and_deposits_are_mailed_with_their_reasons,
    two_processes_never_have_the_same_mail,
    a_mail_is_tried_again_for_a_day_and_then_given_up_until_staff_retry,
    a_mail_whose_process_died_is_tried_again_after_its_lease,
    a_sent_mail_is_emptied_and_deleted_after_a_month,
    a_reset_link_stands_in_the_mail_alone_and_works_once,
    without_a_mail_server_mails_are_kept_and_nobody_must_confirm,
    an_e_mail_is_changed_by_a_link_to_the_new_one_and_by_nothing_before,
    a_canceled_change_and_a_link_that_is_too_old_change_no_e_mail,
    a_changed_e_mail_waits_for_a_day_in_which_its_owner_can_stop_it,
    what_an_owner_does_against_a_thief_ends_a_change_of_the_e_mail,
    an_old_second_factor_changes_the_e_mail_at_once_and_a_fresh_one_does_not,
    a_reset_link_is_made_for_the_address_that_the_account_has,
    a_mailed_reset_proves_the_address_and_removes_a_strangers_factor,
    an_unconfirmed_address_gets_few_mails_and_no_strangers_words,
    no_kind_of_mail_floods_its_owner_or_keeps_another_kind_from_them,
    mails_that_an_account_does_not_want_are_not_written,
    a_registered_e_mail_is_confirmed_by_a_link_before_applications_are_made,
    only_a_sign_in_from_something_new_is_mailed,
    a_low_balance_is_mailed_once_each_time_that_it_falls,
    staff_are_mailed_about_a_carrier_that_fails_and_when_it_is_back,
    staff_are_mailed_about_what_has_waited_for_an_hour_once_an_hour,
    a_batch_that_is_done_is_mailed_to_who_wants_it,
];

const MINUTE_MS: i64 = 60_000;

/// Returns every mail in the outbox, newest first.
async fn outbox(service: &Service) -> Vec<MailRecord> {
    service.operations().mails(None, 200).await.unwrap().items
}

async fn kinds(service: &Service) -> Vec<MailKind> {
    let mails = outbox(service).await;
    mails.iter().rev().map(|mail| mail.kind).collect()
}

/// Sends all due mails.
async fn send_all(service: &Service) -> Vec<OutgoingMail> {
    let mails = service.operations().claim_mails(100).await.unwrap();
    for mail in &mails {
        service.operations().mail_sent(mail).await.unwrap();
    }
    mails
}

/// Returns the token of the link in a mail.
fn token(mail: &OutgoingMail, page: &str) -> String {
    let start = format!("https://sms.example.org{page}");
    let (_, rest) = mail.text.split_once(&start).unwrap();
    let token = rest.lines().next().unwrap().to_owned();
    assert!(mail.html.contains(&format!("href=\"{start}{token}\"")));
    assert_eq!(mail.secret.as_deref(), Some(token.as_str()));
    token
}

async fn an_e_mail_is_changed_by_a_link_to_the_new_one_and_by_nothing_before(backend: Backend) {
    let (world, id) = with_account(backend).await;
    let service = &world.service;
    let account = service.accounts().account(id).await.unwrap().unwrap();
    world.account("two@example.org").await;
    world.pass(6 * MINUTE_MS);
    send_all(service).await;
    let ask = async |secret: &str, new: &str| {
        let new = Email::parse(new).unwrap();
        let account = service.accounts().account(account.id).await.unwrap().unwrap();
        let asked = service.accounts().request_email_change(&account, secret, &new).await;
        asked.map_err(|error| error.refusal().cloned().unwrap())
    };
    for (secret, new, refusal) in [
        ("not the password", "new@example.org", Refusal::WrongPassword),
        (PASSWORD, "ONE@example.org", Refusal::EmailUnchanged),
        (PASSWORD, "two@example.org", Refusal::EmailTaken),
    ] {
        assert_eq!(ask(secret, new).await, Err(refusal));
    }
    ask(PASSWORD, "first@example.org").await.unwrap();
    let throttled = ask(PASSWORD, "new@example.org").await;
    assert!(matches!(throttled, Err(Refusal::Throttled { retry_after_s: 300 })), "{throttled:?}");
    let first = send_all(service).await;
    let recipients: Vec<_> = first.iter().map(|mail| mail.recipient.as_str()).collect();
    assert_eq!(recipients, ["first@example.org", "one@example.org"]);
    assert!(first[1].text.contains("first@example.org"), "{}", first[1].text);
    let first = token(&first[0], "/account/email/");

    // Nothing has changed, and the link can't confirm the account. A request for another address
    // replaces this one.
    assert!(service.accounts().sign_in("first@example.org", PASSWORD, "x").await.is_err());
    let invalid = service.accounts().confirm_email(&first).await.unwrap_err();
    assert_eq!(invalid.refusal(), Some(&Refusal::ConfirmationInvalid));
    world.pass(6 * MINUTE_MS);
    ask(PASSWORD, "new@example.org").await.unwrap();
    let waiting = service.accounts().account_settings(account.id).await.unwrap().new_email;
    assert_eq!(waiting.as_deref(), Some("new@example.org"));
    let second = token(&send_all(service).await[0], "/account/email/");
    let invalid = service.accounts().change_email(&first).await.unwrap_err();
    assert_eq!(invalid.refusal(), Some(&Refusal::ConfirmationInvalid));

    let reset =
        service.accounts().issue_reset(&Actor::CommandLine, "one@example.org").await.unwrap();
    assert_eq!(
        service.accounts().change_email(&second).await.unwrap(),
        Some(world.now().plus_ms(24 * HOUR_MS))
    );
    world.pass(24 * HOUR_MS);
    service.accounts().apply_email_changes().await.unwrap();
    assert_eq!(service.accounts().change_email(&second).await.unwrap(), None);
    assert!(service.accounts().sign_in("one@example.org", PASSWORD, "x").await.is_err());
    let changed = service.accounts().sign_in("new@example.org", PASSWORD, "x").await;
    assert_eq!(changed.unwrap().id, account.id);
    let told = send_all(service).await;
    let told: Vec<_> =
        told.iter().map(|mail| (mail.recipient.as_str(), mail.subject.as_str())).collect();
    let (old, new) = ("one@example.org", "new@example.org");
    assert_eq!(
        told,
        [
            (new, "Your new email is confirmed"),
            (old, "The email of your account was changed"),
            (new, "The email of your account was changed"),
        ]
    );
    // The link that the old address got earlier no longer works.
    let spent = service.accounts().reset_password(&reset, &password("another long one")).await;
    assert_eq!(spent.unwrap_err().refusal(), Some(&Refusal::ResetLinkInvalid));
}

async fn a_canceled_change_and_a_link_that_is_too_old_change_no_e_mail(backend: Backend) {
    let (world, id) = with_account(backend).await;
    let service = &world.service;
    for too_old in [false, true] {
        world.pass(6 * MINUTE_MS);
        let (change, _) = asked(&world, id, "third@example.org").await;
        if too_old {
            world.pass(73 * HOUR_MS);
        } else {
            service.accounts().cancel_email_change(id).await.unwrap();
        }
        let invalid = service.accounts().change_email(&change).await.unwrap_err();
        assert_eq!(invalid.refusal(), Some(&Refusal::ConfirmationInvalid));
    }
}

/// Requests a change to this email. Returns the tokens of the links in the mails to the new and the
/// current address.
async fn asked(world: &World, id: i64, new: &str) -> (String, String) {
    let service = &world.service;
    send_all(service).await;
    let account = service.accounts().account(id).await.unwrap().unwrap();
    let new = Email::parse(new).unwrap();
    service.accounts().request_email_change(&account, PASSWORD, &new).await.unwrap();
    let mails = send_all(service).await;
    let [to_new, told] = mails.as_slice() else {
        panic!("{mails:?}");
    };
    (token(to_new, "/account/email/"), token(told, "/account/email/stop/"))
}

/// Opens a world with a mail server, and adds an account whose email is confirmed.
async fn with_account(backend: Backend) -> (World, i64) {
    let world = World::mailing(backend).await;
    let email = Email::parse("one@example.org").unwrap();
    let secret = password(PASSWORD);
    let accounts = world.service.accounts();
    let added = accounts.add_account(&Actor::CommandLine, &email, &secret, false);
    let id = added.await.unwrap().id;
    (world, id)
}

async fn email_of(service: &Service, id: i64) -> String {
    service.accounts().account(id).await.unwrap().unwrap().email
}

async fn a_changed_e_mail_waits_for_a_day_in_which_its_owner_can_stop_it(backend: Backend) {
    let (world, id) = with_account(backend).await;
    let service = &world.service;
    let (change, stop) = asked(&world, id, "thief@example.org").await;
    let effective_at = service.accounts().change_email(&change).await.unwrap();
    let settings = service.accounts().account_settings(id).await.unwrap();
    assert_eq!(settings.new_email_at, effective_at);
    assert!(effective_at.is_some());
    // Opening the link again doesn't restart the day, and its token can't stop the change.
    world.pass(HOUR_MS);
    assert_eq!(service.accounts().change_email(&change).await.unwrap(), effective_at);
    for wrong in [&change, &"x".to_owned()] {
        let invalid = service.accounts().stop_email_change(wrong).await.unwrap_err();
        assert_eq!(invalid.refusal(), Some(&Refusal::ConfirmationInvalid));
    }
    world.pass(22 * HOUR_MS);
    service.accounts().apply_email_changes().await.unwrap();
    assert_eq!(email_of(service, id).await, "one@example.org");
    service.accounts().stop_email_change(&stop).await.unwrap();
    service.accounts().stop_email_change(&stop).await.unwrap();
    world.pass(2 * HOUR_MS);
    service.accounts().apply_email_changes().await.unwrap();
    assert_eq!(email_of(service, id).await, "one@example.org");
    let invalid = service.accounts().change_email(&change).await.unwrap_err();
    assert_eq!(invalid.refusal(), Some(&Refusal::ConfirmationInvalid));
    // If somebody else has taken the address meanwhile, they keep it.
    let (change, _) = asked(&world, id, "later@example.org").await;
    service.accounts().change_email(&change).await.unwrap();
    world.account("later@example.org").await;
    world.pass(24 * HOUR_MS);
    service.accounts().apply_email_changes().await.unwrap();
    let settings = service.accounts().account_settings(id).await.unwrap();
    assert_eq!((settings.account.email.as_str(), settings.new_email), ("one@example.org", None));
}

async fn what_an_owner_does_against_a_thief_ends_a_change_of_the_e_mail(backend: Backend) {
    for what in 0..5 {
        for confirmed in [false, true] {
            let (world, id) = with_account(backend).await;
            let service = &world.service;
            let (change, _) = asked(&world, id, "thief@example.org").await;
            if confirmed {
                service.accounts().change_email(&change).await.unwrap();
            }
            let new = password("another long one");
            let (actor, email) = (Actor::CommandLine, "one@example.org");
            match what {
                0 => {
                    let token = service.accounts().issue_reset(&actor, email).await.unwrap();
                    service.accounts().reset_password(&token, &new).await.unwrap();
                }
                1 => {
                    let account = service.accounts().account(id).await.unwrap().unwrap();
                    let accounts = service.accounts();
                    let changed = accounts.change_password(&account, PASSWORD, &new, "");
                    changed.await.unwrap();
                }
                2 => service.accounts().sign_out_others(id, PASSWORD, "").await.unwrap(),
                3 => service
                    .accounts()
                    .change_account(&actor, email, AccountChange::SignOut)
                    .await
                    .unwrap(),
                _ => {
                    service.accounts().disable_account(&actor, email, "Stolen.").await.unwrap();
                }
            }
            let invalid = service.accounts().change_email(&change).await.unwrap_err();
            assert_eq!(invalid.refusal(), Some(&Refusal::ConfirmationInvalid));
            world.pass(25 * HOUR_MS);
            service.accounts().apply_email_changes().await.unwrap();
            assert_eq!(email_of(service, id).await, email, "{what} {confirmed}");
        }
    }
}

async fn an_old_second_factor_changes_the_e_mail_at_once_and_a_fresh_one_does_not(
    backend: Backend,
) {
    let (world, id) = with_account(backend).await;
    let service = &world.service;
    world.pass(25 * HOUR_MS);
    let secret = service.accounts().new_totp_secret();
    service.accounts().give_factor(&Actor::CommandLine, id, &secret).await.unwrap();
    let (change, _) = asked(&world, id, "new@example.org").await;
    assert!(service.accounts().change_email(&change).await.unwrap().is_some());
    world.pass(25 * HOUR_MS);
    let (change, _) = asked(&world, id, "new@example.org").await;
    assert_eq!(service.accounts().change_email(&change).await.unwrap(), None);
    assert_eq!(email_of(service, id).await, "new@example.org");
}

async fn a_reset_link_is_made_for_the_address_that_the_account_has(backend: Backend) {
    let (world, id) = with_account(backend).await;
    let service = &world.service;
    let reset = async || {
        service.accounts().request_reset("one@example.org", "x").await.unwrap();
    };
    // Three links: one is sent, one is being sent, and one waits. None of them works once the new
    // email is confirmed.
    reset().await;
    let sent = token(&send_all(service).await[0], "/reset/");
    reset().await;
    let under_way = service.operations().claim_mails(1).await.unwrap().remove(0);
    let account = service.accounts().account(id).await.unwrap().unwrap();
    let new = Email::parse("new@example.org").unwrap();
    let accounts = service.accounts();
    let asking = accounts.request_email_change(&account, PASSWORD, &new);
    asking.await.unwrap();
    let change = token(&send_all(service).await[0], "/account/email/");
    reset().await;
    service.accounts().change_email(&change).await.unwrap();
    service.operations().mail_not_sent(&under_way, "451 later", false).await.unwrap();
    for hour in 0..24 {
        world.pass(HOUR_MS);
        for mail in send_all(service).await {
            assert!(!mail.text.contains("/reset/"), "hour {hour}");
        }
    }
    let new = password("another long one");
    for link in [sent, token(&under_way, "/reset/")] {
        let tried = service.accounts().reset_password(&link, &new).await;
        let refusal = tried.unwrap_err().refusal().cloned();
        assert_eq!(refusal, Some(Refusal::ResetLinkInvalid));
    }
    // A link that is requested while the change waits goes to the owner, and ends the change.
    reset().await;
    let asked = token(&send_all(service).await[0], "/reset/");
    service.accounts().reset_password(&asked, &new).await.unwrap();
    let settings = service.accounts().account_settings(id).await.unwrap();
    assert_eq!(settings.new_email, None);
}

async fn a_mailed_reset_proves_the_address_and_removes_a_strangers_factor(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let id = world.account("one@example.org").await.id;
    let secret = service.accounts().new_totp_secret();
    service.accounts().give_factor(&Actor::Account(id), id, &secret).await.unwrap();
    send_all(service).await;
    // A link that staff pass on doesn't confirm the address.
    let handed =
        service.accounts().issue_reset(&Actor::CommandLine, "one@example.org").await.unwrap();
    let new = password("another long one");
    service.accounts().reset_password(&handed, &new).await.unwrap();
    assert!(service.accounts().factor(id).await.unwrap().is_some());
    for factor_stays in [false, true] {
        service.accounts().request_reset("one@example.org", "x").await.unwrap();
        let mails = send_all(service).await;
        let mail = mails.iter().find(|mail| mail.text.contains("/reset/"));
        let link = token(mail.unwrap(), "/reset/");
        service.accounts().reset_password(&link, &new).await.unwrap();
        let account = service.accounts().account(id).await.unwrap().unwrap();
        assert!(account.confirmed_at.is_some());
        assert_eq!(account.second_factor, factor_stays);
        // Once the owner has confirmed the address, the next reset doesn't remove the factor.
        let owners = service.accounts().new_totp_secret();
        service.accounts().give_factor(&Actor::Account(id), id, &owners).await.unwrap();
    }
}

async fn an_unconfirmed_address_gets_few_mails_and_no_strangers_words(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let lure = "Chrome/1 Windows https://evil.example/unlock";
    let sign_in = async |email: &str, n: usize| {
        let account = service.accounts().sign_in(email, PASSWORD, "x").await.unwrap();
        let session = format!("{email} {n}");
        let row = SessionRow { account_id: None, data: "{}".to_owned(), expires_at: world.now() };
        service.accounts().session_create(&session, &row).await.unwrap();
        let client =
            ClientInfo { user_agent: format!("{lure}{n}"), address: "192.0.2.1".to_owned() };
        let signed_in = service.accounts().device_sign_in(&session, &account, &client).await;
        signed_in.unwrap();
    };
    let id = world.account("bystander@example.org").await.id;
    let confirmed = Email::parse("one@example.org").unwrap();
    service
        .accounts()
        .add_account(&Actor::CommandLine, &confirmed, &password(PASSWORD), false)
        .await
        .unwrap();
    for n in 0..8 {
        sign_in("bystander@example.org", n).await;
        sign_in("one@example.org", n).await;
        service.accounts().request_reset("bystander@example.org", &n.to_string()).await.unwrap();
    }
    let written = outbox(service).await;
    let to_bystander = written.iter().filter(|mail| mail.recipient == "bystander@example.org");
    assert_eq!(to_bystander.count(), 5);
    let account = service.accounts().account(id).await.unwrap().unwrap();
    let new = password("another long one");
    let accounts = service.accounts();
    let changed = accounts.change_password(&account, PASSWORD, &new, "");
    changed.await.unwrap();
    let mails = send_all(service).await;
    let to = |email: &str| -> Vec<&OutgoingMail> {
        let to = mails.iter().filter(|mail| mail.recipient == email);
        to.collect()
    };
    let subjects: Vec<_> =
        to("bystander@example.org").iter().map(|mail| mail.subject.clone()).collect();
    // The waiting mails with reset links were deleted when the password changed.
    assert_eq!(subjects, ["Confirm your email"]);
    let told = to("one@example.org");
    assert_eq!(told.len(), 5);
    for mail in told {
        assert!(mail.text.contains("Chrome on Windows"), "{}", mail.text);
        assert!(!mail.text.contains("evil.example"), "{}", mail.text);
    }
    // Mails of another kind still arrive.
    let account = service.accounts().find_account("one@example.org").await.unwrap();
    let account = account.unwrap();
    let accounts = service.accounts();
    let changed = accounts.change_password(&account, PASSWORD, &new, "");
    changed.await.unwrap();
    assert_eq!(send_all(service).await.len(), 1);
}

async fn no_kind_of_mail_floods_its_owner_or_keeps_another_kind_from_them(backend: Backend) {
    let (world, id) = with_account(backend).await;
    let service = &world.service;
    let secret = service.accounts().new_totp_secret();
    service.accounts().give_factor(&Actor::Account(id), id, &secret).await.unwrap();
    for _ in 0..25 {
        service.accounts().renew_recovery_codes(id).await.unwrap();
    }
    assert_eq!(kinds(service).await, [MailKind::SecondFactor; 20]);
    let account = service.accounts().account(id).await.unwrap().unwrap();
    let new = password("another long one");
    let accounts = service.accounts();
    let changed = accounts.change_password(&account, PASSWORD, &new, "");
    changed.await.unwrap();
    assert_eq!(kinds(service).await.last(), Some(&MailKind::PasswordChanged));
    world.pass(HOUR_MS);
    service.accounts().renew_recovery_codes(id).await.unwrap();
    assert_eq!(kinds(service).await.last(), Some(&MailKind::SecondFactor));
}

async fn mails_that_an_account_does_not_want_are_not_written(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("one@example.org").await;
    let id = customer.account.id;
    let before = kinds(service).await.len();
    // An account can't turn off mails about security.
    let unwanted = [MailKind::Deposit, MailKind::KeyReplaced];
    service.accounts().set_unwanted_mails(id, &unwanted).await.unwrap();
    let settings = service.accounts().account_settings(id).await.unwrap();
    assert_eq!(settings.unwanted_mails, [MailKind::Deposit]);
    world.deposit("a", customer.reference, "1").await;
    service.applications().approve(&Actor::CommandLine, customer.reference).await.unwrap();
    let applications = service.applications();
    let replaced =
        applications.replace_key(id, customer.reference, KeyKind::Live, PASSWORD, "", None);
    replaced.await.unwrap();
    let written = [MailKind::Application, MailKind::KeyReplaced];
    assert_eq!(kinds(service).await[before..], written);
    service.accounts().set_unwanted_mails(id, &[]).await.unwrap();
    world.deposit("b", customer.reference, "1").await;
    assert_eq!(kinds(service).await[before + 2..], [MailKind::Deposit]);
}

async fn an_event_and_its_mail_are_stored_together_or_not_at_all(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "0").await;
    let before = kinds(&world.service).await;
    assert_eq!(before, [MailKind::Application]);
    let applications = world.service.applications();
    let again = applications.approve(&Actor::CommandLine, customer.reference);
    assert!(again.await.is_err());
    assert_eq!(kinds(&world.service).await, before);
    world.deposit("a", customer.reference, "1.5").await;
    // The same payment again is neither credited nor mailed.
    world.deposit("a", customer.reference, "1.5").await;
    let mails = outbox(&world.service).await;
    assert_eq!(mails.len(), 2);
    assert_eq!(mails[0].kind, MailKind::Deposit);
    assert!(
        mails[0].text.contains("A deposit of 1.50 USD")
            && mails[0].text.contains("is 1.50 USD now"),
        "{:?}",
        mails[0]
    );
}

async fn decisions_and_deposits_are_mailed_with_their_reasons(backend: Backend) {
    let world = World::mailing(backend).await;
    let email = Email::parse("one@example.org").unwrap();
    let staff = Actor::CommandLine;
    let account = world
        .service
        .accounts()
        .add_account(&staff, &email, &password(PASSWORD), false)
        .await
        .unwrap();
    let asked = Some(name("Acme"));
    let applications = world.service.applications();
    let made = applications.create_application(account.id, Category::Sms, asked.as_ref());
    let reference = made.await.unwrap().reference;
    let (service, id) = (&world.service, account.id);
    let requested = service.applications().sender_requests(true).await.unwrap();
    service.applications().reject_sender(&staff, requested[0].id, "not <yours>").await.unwrap();
    service.applications().request_sender_name(id, reference, &name("Bcme")).await.unwrap();
    let requested = service.applications().sender_requests(true).await.unwrap();
    service.applications().accept_sender(&staff, requested[0].id).await.unwrap();
    service.applications().approve(&staff, reference).await.unwrap();
    service.applications().suspend(&staff, reference, "too much noise").await.unwrap();
    service.applications().reinstate(&staff, reference).await.unwrap();
    let payment = order("b", "none", "2");
    service.money().add_deposit(&staff, &payment).await.unwrap();
    service.money().assign_deposit(&staff, "b", reference).await.unwrap();
    service
        .applications()
        .replace_key(id, reference, KeyKind::Live, PASSWORD, "", None)
        .await
        .unwrap();
    let new = password("another password");
    service.accounts().change_password(&account, PASSWORD, &new, "").await.unwrap();

    let mails = send_all(service).await;
    let said: Vec<&str> = mails.iter().map(|mail| mail.subject.as_str()).collect();
    let of = |subject: &str| format!("{subject}: application {reference}");
    assert_eq!(
        said,
        [
            of("Sender name rejected"),
            of("Sender name accepted"),
            of("Approved"),
            of("Suspended"),
            of("Reinstated"),
            of("Deposit received"),
            of("Key replaced"),
            "Your password was changed".to_owned(),
        ]
    );
    assert!(mails.iter().all(|mail| mail.recipient == "one@example.org"));
    assert!(mails.iter().all(|mail| mail.secret.is_none()));
    assert!(mails[0].text.contains("Reason: not <yours>"));
    assert!(mails[0].html.contains("Reason: not &lt;yours&gt;"));
    // The balance is 0.
    assert!(mails[2].text.contains("its API key can't send yet"), "{}", mails[2].text);
    assert!(mails[2].text.contains("Make a deposit."), "{}", mails[2].text);
    assert!(mails[3].text.contains("Reason: too much noise"));
    let link = format!("https://sms.example.org/applications/{reference}");
    assert!(mails[3].text.contains(&link) && mails[3].html.contains(&link));
}

async fn two_processes_never_have_the_same_mail(backend: Backend) {
    let (world, _) = with_account(backend).await;
    let (clerk, second) = (Actor::CommandLine, Email::parse("two@example.org").unwrap());
    let secret = password(PASSWORD);
    let accounts = world.service.accounts();
    let added = accounts.add_account(&clerk, &second, &secret, false);
    added.await.unwrap();
    // An address gets at most 20 of these mails per hour.
    for n in 0..40 {
        let email = ["one@example.org", second.as_str()][n % 2];
        let link = world.service.accounts().issue_reset(&clerk, email).await.unwrap();
        let new = password(PASSWORD);
        world.service.accounts().reset_password(&link, &new).await.unwrap();
    }
    let other =
        if backend == Backend::SHARED { peer(&world, 2).await } else { world.service.clone() };
    let claiming = (0..10).map(|turn| {
        let service = if turn % 2 == 0 { world.service.clone() } else { other.clone() };
        tokio::spawn(async move { service.operations().claim_mails(7).await.unwrap() })
    });
    let mut claimed = Vec::new();
    for one in claiming.collect::<Vec<_>>() {
        claimed.extend(one.await.unwrap().into_iter().map(|mail| mail.id));
    }
    // The next claim gets the mails that a process skipped because another process had locked them.
    claimed.extend(send_all(&world.service).await.into_iter().map(|mail| mail.id));
    claimed.sort_unstable();
    let mails = outbox(&world.service).await;
    let all: Vec<i64> = mails.iter().rev().map(|mail| mail.id).collect();
    assert_eq!(claimed, all);
    assert_eq!(all.len(), 40);
    other.close().await;
}

async fn a_mail_is_tried_again_for_a_day_and_then_given_up_until_staff_retry(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    world.account("one@example.org").await;
    let mut attempts = 0;
    let mut hours_passed = 0;
    let begun = world.now();
    loop {
        let mut claimed = service.operations().claim_mails(5).await.unwrap();
        if let Some(mail) = claimed.pop() {
            attempts += 1;
            assert_eq!(mail.attempts, attempts);
            let state =
                service.operations().mail_not_sent(&mail, "451 try later", false).await.unwrap();
            if state == MailState::Failed {
                break;
            }
            assert_eq!(state, MailState::Queued);
        }
        world.pass(MINUTE_MS);
        hours_passed = world.now().ms_since(begun) / HOUR_MS;
        assert!(hours_passed < 26);
    }
    assert_eq!(hours_passed, 24);
    assert_eq!(attempts, 14);
    let counts = MailCounts { waiting: 0, failed: 1 };
    assert_eq!(service.operations().mail_counts().await.unwrap(), counts);
    let failed = outbox(service).await.remove(0);
    assert_eq!(failed.last_error.as_deref(), Some("451 try later"));
    world.pass(HOUR_MS);
    assert!(service.operations().claim_mails(5).await.unwrap().is_empty());

    service.operations().retry_mail(&Actor::CommandLine, failed.id).await.unwrap();
    let mail = service.operations().claim_mails(5).await.unwrap().remove(0);
    let in_flight = service.operations().retry_mail(&Actor::CommandLine, failed.id).await;
    assert_eq!(in_flight.unwrap_err().refusal(), Some(&Refusal::MailSent));
    // A permanent refusal: no further attempt.
    let state = service.operations().mail_not_sent(&mail, "550 no such user", true).await.unwrap();
    assert_eq!(state, MailState::Failed);
    let unknown = service.operations().retry_mail(&Actor::CommandLine, 1_000_000).await;
    assert_eq!(unknown.unwrap_err().refusal(), Some(&Refusal::NoSuchMail));
}

async fn a_mail_whose_process_died_is_tried_again_after_its_lease(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    world.account("one@example.org").await;
    let first = service.operations().claim_mails(5).await.unwrap().remove(0);
    world.pass(2 * MINUTE_MS);
    assert!(service.operations().claim_mails(5).await.unwrap().is_empty());
    world.pass(MINUTE_MS);
    let second = service.operations().claim_mails(5).await.unwrap().remove(0);
    assert_eq!((second.id, second.attempts), (first.id, 2));
    // The first process is still alive. Its failure doesn't affect the second attempt.
    service.operations().mail_not_sent(&first, "timed out", false).await.unwrap();
    assert_eq!(outbox(service).await[0].state, MailState::Sending);
    service.operations().mail_sent(&second).await.unwrap();
    assert_eq!(outbox(service).await[0].state, MailState::Sent);
}

async fn a_sent_mail_is_emptied_and_deleted_after_a_month(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    world.account("one@example.org").await;
    world.account("two@example.org").await;
    assert!(!outbox(service).await[0].text.is_empty());
    let mails = service.operations().claim_mails(5).await.unwrap();
    service.operations().mail_sent(&mails[0]).await.unwrap();
    let sent = outbox(service).await.pop().unwrap();
    assert_eq!((sent.state, sent.text.as_str()), (MailState::Sent, ""));
    let again = service.operations().retry_mail(&Actor::CommandLine, sent.id).await;
    assert_eq!(again.unwrap_err().refusal(), Some(&Refusal::MailSent));
    world.pass(30 * 24 * HOUR_MS - 1);
    service.operations().forget_mails().await.unwrap();
    assert_eq!(outbox(service).await.len(), 2);
    world.pass(1);
    service.operations().forget_mails().await.unwrap();
    // A waiting mail is never deleted.
    let left = outbox(service).await;
    assert_eq!(left.iter().map(|mail| mail.id).collect::<Vec<_>>(), [mails[1].id]);
}

async fn a_reset_link_stands_in_the_mail_alone_and_works_once(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    world.account("one@example.org").await;
    send_all(service).await;
    service.accounts().request_reset("nobody@example.org", "x").await.unwrap();
    assert!(send_all(service).await.is_empty());
    service.accounts().request_reset("One@example.org", "x").await.unwrap();
    let listed = outbox(service).await.remove(0);
    assert_eq!(listed.kind, MailKind::Reset);
    assert!(!listed.text.contains("/reset/"), "{}", listed.text);

    // The first attempt fails after the mail server has seen the link and quoted it in its error.
    let mail = service.operations().claim_mails(5).await.unwrap().remove(0);
    let first = token(&mail, "/reset/");
    let quoted = format!("451 blocked: https://sms.example.org/reset/{first}");
    service.operations().mail_not_sent(&mail, &quoted, false).await.unwrap();
    let listed = outbox(service).await.remove(0);
    assert!(!listed.last_error.unwrap().contains(&first));
    world.pass(MINUTE_MS);
    let mail = send_all(service).await.remove(0);
    let second = token(&mail, "/reset/");
    assert_ne!(first, second);
    let new = password("another password");
    service.accounts().reset_password(&second, &new).await.unwrap();
    for used in [&first, &second] {
        let refused = service.accounts().reset_password(used, &new).await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&Refusal::ResetLinkInvalid));
    }
    assert_eq!(kinds(service).await.pop(), Some(MailKind::PasswordChanged));

    // A link works for an hour after it is sent.
    service.accounts().request_reset("one@example.org", "x").await.unwrap();
    let mails = send_all(service).await;
    let late = token(mails.last().unwrap(), "/reset/");
    world.pass(HOUR_MS);
    assert!(service.accounts().reset_password(&late, &new).await.is_err());
}

async fn without_a_mail_server_mails_are_kept_and_nobody_must_confirm(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.pending("one@example.org").await;
    assert!(customer.account.confirmed_at.is_some());
    service.accounts().request_reset("one@example.org", "x").await.unwrap();
    service.operations().keep_mails().await.unwrap();
    let kept = outbox(service).await.remove(0);
    assert_eq!((kept.kind, kept.state), (MailKind::Reset, MailState::Kept));
    assert!(service.operations().claim_mails(5).await.unwrap().is_empty());
    // A mail server that is set up later gets the mails that staff retry.
    service.operations().retry_mail(&Actor::CommandLine, kept.id).await.unwrap();
    assert_eq!(service.operations().claim_mails(5).await.unwrap().len(), 1);
}

async fn a_registered_e_mail_is_confirmed_by_a_link_before_applications_are_made(backend: Backend) {
    let world = World::mailing(backend).await;
    let service = &world.service;
    let account = world.account("one@example.org").await;
    assert_eq!(account.confirmed_at, None);
    let applications = service.applications();
    let create = || applications.create_application(account.id, Category::Sms, None);
    let refused = create().await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::EmailNotConfirmed));
    assert!(service.accounts().must_confirm(account.id).await.unwrap());
    let first = token(&send_all(service).await[0], "/confirm/");

    world.pass(4 * MINUTE_MS);
    let soon = service.accounts().mail_confirmation(account.id).await.unwrap_err();
    assert_eq!(soon.refusal(), Some(&Refusal::Throttled { retry_after_s: 60 }));
    world.pass(MINUTE_MS);
    service.accounts().mail_confirmation(account.id).await.unwrap();
    assert!(service.accounts().mail_confirmation(account.id).await.is_err());
    let second = token(&send_all(service).await[0], "/confirm/");

    let unknown = service.accounts().confirm_email("unknown").await.unwrap_err();
    assert_eq!(unknown.refusal(), Some(&Refusal::ConfirmationInvalid));
    service.accounts().confirm_email(&first).await.unwrap();
    // A link from another mail, or the same link again, changes nothing.
    for again in [&first, &second] {
        service.accounts().confirm_email(again).await.unwrap();
    }
    let confirmed = service.accounts().account(account.id).await.unwrap().unwrap();
    assert_eq!(confirmed.confirmed_at, Some(world.now()));
    let known = service.accounts().mail_confirmation(account.id).await.unwrap_err();
    assert_eq!(known.refusal(), Some(&Refusal::EmailConfirmed));
    create().await.unwrap();
    world.pass(73 * HOUR_MS);
    assert!(service.accounts().confirm_email(&second).await.is_err());

    // Accounts that somebody else creates are confirmed.
    let email = Email::parse("two@example.org").unwrap();
    let secret = password(PASSWORD);
    let accounts = service.accounts();
    let added = accounts.add_account(&Actor::CommandLine, &email, &secret, false);
    let added = added.await.unwrap();
    service.applications().create_application(added.id, Category::Sms, None).await.unwrap();
}

async fn only_a_sign_in_from_something_new_is_mailed(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account("one@example.org").await;
    let mut number = 0;
    let mut sign_in = async |browser: &str, address: &str| {
        number += 1;
        let token = format!("token {number}");
        let row = SessionRow { account_id: None, data: "{}".to_owned(), expires_at: world.now() };
        assert!(service.accounts().session_create(&token, &row).await.unwrap());
        let client = ClientInfo { user_agent: browser.to_owned(), address: address.to_owned() };
        service.accounts().device_sign_in(&token, &account, &client).await.unwrap();
        outbox(service).await.len()
    };
    // The sign-in of the registration.
    assert_eq!(sign_in("Firefox", "2001:db8:1:2::1").await, 0);
    assert_eq!(sign_in("Firefox", "2001:db8:1:2::ffff").await, 0);
    world.pass(HOUR_MS);
    assert_eq!(sign_in("Firefox", "2001:db8:1:3::1").await, 1);
    let chrome = "Mozilla/5.0 (X11; Linux x86_64) Chrome/140 read this";
    assert_eq!(sign_in(chrome, "2001:db8:1:2::1").await, 2);
    assert_eq!(sign_in(chrome, "2001:db8:1:2::1").await, 2);
    let mail = outbox(service).await.remove(0);
    assert_eq!(mail.kind, MailKind::NewDevice);
    assert!(mail.text.contains("Chrome on Linux") && mail.text.contains("2001:db8:1:2::1"));
    assert!(!mail.text.contains("read this"), "{}", mail.text);
    service.operations().keep_mails().await.unwrap();
    world.pass(90 * 24 * HOUR_MS);
    service.operations().forget_mails().await.unwrap();
    // The earlier devices are forgotten, but this sign-in still doesn't count as the first one.
    assert_eq!(sign_in("Firefox", "2001:db8:1:2::1").await, 1);
}

async fn a_low_balance_is_mailed_once_each_time_that_it_falls(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.active("one@example.org", "1").await;
    let (id, reference) = (customer.account.id, customer.reference);
    let mailed = async || {
        service.operations().mail_notices().await.unwrap();
        service.operations().mail_notices().await.unwrap();
        let kinds = kinds(service).await;
        kinds.iter().filter(|kind| **kind == MailKind::LowBalance).count()
    };
    world.send(&customer.live, "12345678").await.unwrap();
    assert_eq!(mailed().await, 0);
    let threshold = Some(money("0.95"));
    service.applications().set_notices(id, reference, threshold, false).await.unwrap();
    assert_eq!(mailed().await, 0);
    world.send(&customer.live, "12345678").await.unwrap();
    assert_eq!(mailed().await, 1);
    world.deposit("more", reference, "0.05").await;
    assert_eq!(mailed().await, 1);
    world.send(&customer.live, "12345678").await.unwrap();
    assert_eq!(mailed().await, 2);
    let stranger = world.account("two@example.org").await;
    let refused = service.applications().set_notices(stranger.id, reference, None, true).await;
    assert_eq!(refused.unwrap_err().refusal(), Some(&Refusal::NoSuchApplication));
    service.applications().set_notices(id, reference, None, false).await.unwrap();
    world.send(&customer.live, "12345678").await.unwrap();
    assert_eq!(mailed().await, 2);
}

async fn staff_are_mailed_about_a_carrier_that_fails_and_when_it_is_back(backend: Backend) {
    use ConnectionState::{Bound, Degraded, Waiting};
    const LONG_MS: i64 = 120_000;
    let sending = Sending::by_acme(backend).await;
    let (world, service) = (&sending.world, &sending.world.service);
    let staff = Email::parse("staff@example.org").unwrap();
    let (accounts, secret) = (service.accounts(), password(PASSWORD));
    accounts.add_account(&Actor::CommandLine, &staff, &secret, true).await.unwrap();
    // Returns the subjects of all mails after acme has been in a state for this long.
    let mailed = async |state, ms: i64| {
        let now = service.clock().now();
        let acme = ConnectionRecord {
            carrier: "acme".to_owned(),
            node: 0,
            number: 1,
            state,
            since: now.plus_ms(-ms),
            in_flight: 0,
            window: 10,
            rate: 0,
            throttled: 0,
            last_error: Some("the carrier is away".to_owned()),
            last_error_at: None,
            updated_at: now,
        };
        service.delivery().report_connections(vec![acme]).await.unwrap();
        service.operations().mail_carrier_states().await.unwrap();
        service.operations().mail_carrier_states().await.unwrap();
        let mails = outbox(service).await;
        let about = mails.iter().filter(|mail| mail.kind == MailKind::Carrier);
        about.map(|mail| mail.subject.clone()).filter(|it| it.contains("acme")).collect::<Vec<_>>()
    };
    let none = Vec::<String>::new();
    assert_eq!(mailed(Bound, LONG_MS).await, none);
    assert_eq!(mailed(Waiting, LONG_MS - 1).await, none);
    assert_eq!(mailed(Waiting, LONG_MS).await, ["Carrier acme is down"]);
    // Staff know that it fails, and a short return doesn't count.
    assert_eq!(mailed(Degraded, LONG_MS).await.len(), 1);
    assert_eq!(mailed(Bound, LONG_MS - 1).await.len(), 1);
    let mut both = mailed(Bound, LONG_MS).await;
    both.sort();
    assert_eq!(both, ["Carrier acme is back", "Carrier acme is down"]);
    world.assert_sound().await;
}

async fn staff_are_mailed_about_what_has_waited_for_an_hour_once_an_hour(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let staff = Email::parse("staff@example.org").unwrap();
    let secret = password(PASSWORD);
    let accounts = service.accounts();
    let added = accounts.add_account(&Actor::CommandLine, &staff, &secret, true);
    added.await.unwrap();
    let mailed = async || {
        service.operations().remind_staff().await.unwrap();
        service.operations().remind_staff().await.unwrap();
        let mails = outbox(service).await;
        let about = mails.iter().filter(|mail| mail.kind == MailKind::Waiting);
        about.map(|mail| mail.subject.clone()).collect::<Vec<_>>()
    };
    let customer = world.pending("one@example.org").await;
    let (id, reference) = (customer.account.id, customer.reference);
    service.applications().request_activation(id, reference).await.unwrap();
    let payment = order("b", "none", "2");
    service.money().add_deposit(&Actor::CommandLine, &payment).await.unwrap();
    assert_eq!(mailed().await, Vec::<String>::new());
    world.pass(HOUR_MS);
    service.applications().request_sender_name(id, reference, &name("Acme")).await.unwrap();
    let first =
        ["1 deposit has the reference of no application", "1 application waits for activation"];
    assert_eq!(mailed().await, first);
    // Cases that still wait aren't mailed again. New ones are.
    world.pass(HOUR_MS);
    assert_eq!(mailed().await[0], "1 sender name waits for a decision");
    world.pass(5 * HOUR_MS);
    assert_eq!(mailed().await.len(), 3);
}

async fn a_batch_that_is_done_is_mailed_to_who_wants_it(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let customer = world.active("one@example.org", "10").await;
    let (id, reference) = (customer.account.id, customer.reference);
    service.applications().set_notices(id, reference, None, true).await.unwrap();
    let mailed = async || {
        service.operations().mail_notices().await.unwrap();
        service.operations().mail_notices().await.unwrap();
        let kinds = kinds(service).await;
        kinds.iter().filter(|kind| **kind == MailKind::BatchDone).count()
    };
    accepted(&world, &customer, &rows(2)).await;
    let schedule = at(&world, 30 * 24 * HOUR_MS);
    let later = BatchRequest { schedule, ..plain() };
    upload(service, &customer.live, None, &rows(2), later).await.unwrap();
    assert_eq!(mailed().await, 0);
    world.expand_all().await;
    assert_eq!(mailed().await, 0);
    world.pass(49 * HOUR_MS);
    service.delivery().expire().await.unwrap();
    assert_eq!(mailed().await, 1);
    world.pass(28 * 24 * HOUR_MS);
    world.expand_all().await;
    world.pass(49 * HOUR_MS);
    service.delivery().expire().await.unwrap();
    assert_eq!(mailed().await, 2);
}
