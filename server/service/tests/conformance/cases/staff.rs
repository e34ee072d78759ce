//! Actions of staff on accounts.

use domain::records::AccountRecord;
use domain::{
    ApplicationStatus, Category, MessageStatus, Prefix, PriceChange, Reason, Reference, Timestamp,
};
use service::{
    Actor, ClientInfo, DepositStatus, Refusal, SANDBOX_CARRIER, SendError, Service, SessionRow,
};

use crate::database::Backend;
use crate::world::{Customer, PASSWORD, World, money, order, password};

on_each_backend![
    staff_do_nothing_for_applications_of_their_own,
    only_somebody_with_a_second_factor_is_promoted_at_the_desk,
    keys_of_a_disabled_account_send_nothing_and_read_on,
    a_send_that_is_cached_as_allowed_is_refused_in_its_group,
    messages_of_a_disabled_account_wait_until_it_is_enabled,
    a_disabled_account_is_signed_out_and_nobody_signs_in,
    a_disabled_account_stays_out_of_reach_of_reinstating,
    the_last_member_of_staff_stays,
    a_role_is_given_and_taken_and_signs_out,
    a_lost_second_factor_is_removed,
];

const ACTOR: Actor = Actor::CommandLine;
const EMAIL: &str = "one@example.org";

async fn refusal<T>(done: impl Future<Output = service::Result<T>>) -> Refusal {
    match done.await {
        Ok(_) => panic!("it wasn't refused"),
        Err(error) => error.refusal().unwrap().clone(),
    }
}

async fn disable(world: &World) {
    let disabled = world.service.disable_account(&ACTOR, EMAIL, "unpaid");
    disabled.await.unwrap();
}

async fn enable(world: &World) {
    world.service.enable_account(&ACTOR, EMAIL).await.unwrap();
    world.service.resume_deferred().await.unwrap();
}

fn reason<T: std::fmt::Debug>(answer: Result<T, SendError>) -> Reason {
    match answer.unwrap_err() {
        SendError::Refused(reason) => reason,
        error @ SendError::Lost => panic!("{error:?}"),
    }
}

async fn status(world: &World, customer: &Customer) -> ApplicationStatus {
    let found = world.service.find_application(customer.reference).await;
    found.unwrap().unwrap().status
}

async fn set_price(service: &Service, actor: Actor) -> service::Result<Timestamp> {
    let prefix = Prefix::parse("27").unwrap();
    let change = PriceChange::Prefix(prefix, Some(money("0.3")));
    service.set_price(&actor, change, None).await
}

/// Signs in a device of an account with only the password.
async fn device(service: &Service, token: &str, account: &AccountRecord) {
    let row = SessionRow {
        account_id: None,
        data: "{}".to_owned(),
        expires_at: service.clock().now(),
    };
    service.session_create(token, &row).await.unwrap();
    let client = ClientInfo::default();
    service
        .device_sign_in(token, account, &client)
        .await
        .unwrap();
}

async fn keys_of_a_disabled_account_send_nothing_and_read_on(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active(EMAIL, "1").await;
    let other = world.active("two@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    disable(&world).await;
    for key in [&customer.live, &customer.test] {
        assert_eq!(
            reason(world.send(key, "12345678").await),
            Reason::ApiSuspended
        );
    }
    assert_eq!(world.balance(&customer.live).await, money("0.95"));
    assert_eq!(status(&world, &customer).await, ApplicationStatus::Active);
    world.send(&other.live, "12345678").await.unwrap();
    let account_id = customer.account.id;
    let new = world
        .service
        .create_application(account_id, Category::Electricity, None);
    assert_eq!(refusal(new).await, Refusal::AccountDisabled);
    enable(&world).await;
    for key in [&customer.live, &customer.test] {
        world.send(key, "12345678").await.unwrap();
    }
    world.assert_sound().await;
}

async fn a_send_that_is_cached_as_allowed_is_refused_in_its_group(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active(EMAIL, "1").await;
    // On PostgreSQL another process disables the account, while this process still caches the old
    // rows.
    let beside = Service::open_beside(world.config()).await.unwrap();
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
        beside
            .disable_account(&ACTOR, EMAIL, "unpaid")
            .await
            .unwrap();
        let refused = world.send(&customer.live, "12345678").await;
        assert_eq!(reason(refused), Reason::ApiSuspended);
        beside.enable_account(&ACTOR, EMAIL).await.unwrap();
    }
    assert_eq!(world.balance(&customer.live).await, money("0.85"));
    beside.close().await;
    world.assert_sound().await;
}

async fn messages_of_a_disabled_account_wait_until_it_is_enabled(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active(EMAIL, "1").await;
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    disable(&world).await;
    let claim = async || world.service.claim(SANDBOX_CARRIER, 8).await.unwrap().1;
    assert!(claim().await.is_empty());
    world.service.resume_deferred().await.unwrap();
    assert!(claim().await.is_empty());
    let id = sent.transid.unwrap();
    assert_eq!(world.status(&customer, id).await, MessageStatus::Queued);
    enable(&world).await;
    assert_eq!(claim().await.len(), 1);
    world.assert_sound().await;
}

async fn a_disabled_account_is_signed_out_and_nobody_signs_in(backend: Backend) {
    let world = World::new(backend).await;
    let account = world.account(EMAIL).await;
    let service = &world.service;
    device(service, "a", &account).await;
    let reasonless = service.disable_account(&ACTOR, EMAIL, " ");
    assert_eq!(refusal(reasonless).await, Refusal::ReasonMissing);
    disable(&world).await;
    assert_eq!(service.session_account("a").await.unwrap(), None);
    let again = service.disable_account(&ACTOR, EMAIL, "why");
    assert_eq!(refusal(again).await, Refusal::AccountDisabledAlready);
    let signed_in = service.sign_in(EMAIL, PASSWORD, "x");
    assert_eq!(refusal(signed_in).await, Refusal::AccountDisabled);
    // Somebody without the password doesn't learn that the account is disabled.
    let guessed = service.sign_in(EMAIL, "wrong password", "x");
    assert_eq!(refusal(guessed).await, Refusal::WrongCredentials);
    // The password was verified before the account was disabled.
    let row = SessionRow {
        account_id: None,
        data: "{}".to_owned(),
        expires_at: service.clock().now(),
    };
    service.session_create("b", &row).await.unwrap();
    let client = ClientInfo::default();
    let bound = service.device_sign_in("b", &account, &client);
    assert_eq!(refusal(bound).await, Refusal::WrongCredentials);
    let shown = service.account_detail(EMAIL).await.unwrap();
    assert_eq!(shown.disabled_at, Some(world.now()));
    assert_eq!(shown.disabled_reason.as_deref(), Some("unpaid"));

    service.enable_account(&ACTOR, EMAIL).await.unwrap();
    let again = service.enable_account(&ACTOR, EMAIL);
    assert_eq!(refusal(again).await, Refusal::AccountNotDisabled);
    service.sign_in(EMAIL, PASSWORD, "x").await.unwrap();
    let shown = service.account_detail(EMAIL).await.unwrap();
    assert_eq!((shown.disabled_at, shown.disabled_reason), (None, None));
}

async fn a_disabled_account_stays_out_of_reach_of_reinstating(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active(EMAIL, "1").await;
    let (service, reference) = (&world.service, customer.reference);
    service.suspend(&ACTOR, reference, "spam").await.unwrap();
    disable(&world).await;
    service.reinstate(&ACTOR, reference).await.unwrap();
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(reason(refused), Reason::ApiSuspended);
    service.suspend(&ACTOR, reference, "spam").await.unwrap();
    enable(&world).await;
    assert_eq!(
        status(&world, &customer).await,
        ApplicationStatus::Suspended
    );
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(reason(refused), Reason::ApiSuspended);
}

async fn the_last_member_of_staff_stays(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    for email in [EMAIL, "two@example.org"] {
        world.account(email).await;
        service.promote_account(&ACTOR, email).await.unwrap();
    }
    // A disabled member of staff doesn't count.
    let two = "two@example.org";
    service.disable_account(&ACTOR, two, "left").await.unwrap();
    let demoted = service.demote_account(&ACTOR, EMAIL);
    assert_eq!(refusal(demoted).await, Refusal::LastStaff);
    let disabled = service.disable_account(&ACTOR, EMAIL, "why");
    assert_eq!(refusal(disabled).await, Refusal::LastStaff);
    service.demote_account(&ACTOR, two).await.unwrap();
    service.enable_account(&ACTOR, two).await.unwrap();
    service.promote_account(&ACTOR, two).await.unwrap();
    // Of two members who are demoted at the same time, one stays.
    let attempts = [EMAIL, two].map(|email| {
        let service = service.clone();
        tokio::spawn(async move { service.demote_account(&ACTOR, email).await.is_ok() })
    });
    let mut demoted = 0;
    for attempt in attempts {
        demoted += usize::from(attempt.await.unwrap());
    }
    assert_eq!(demoted, 1);
}

async fn a_role_is_given_and_taken_and_signs_out(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account(EMAIL).await;
    world.account("two@example.org").await;
    service
        .promote_account(&ACTOR, "two@example.org")
        .await
        .unwrap();
    device(service, "a", &account).await;
    let demoted = service.demote_account(&ACTOR, EMAIL);
    assert_eq!(refusal(demoted).await, Refusal::NotStaff);
    service
        .promote_account(&ACTOR, " One@example.org ")
        .await
        .unwrap();
    assert_eq!(service.session_account("a").await.unwrap(), None);
    let promoted = service.promote_account(&ACTOR, EMAIL);
    assert_eq!(refusal(promoted).await, Refusal::StaffAlready);
    device(service, "b", &account).await;
    assert!(service.session_follower("b").await.unwrap().unwrap().staff);
    service.demote_account(&ACTOR, EMAIL).await.unwrap();
    assert_eq!(service.session_follower("b").await.unwrap(), None);
    device(service, "c", &account).await;
    service.sign_out_account(&ACTOR, EMAIL).await.unwrap();
    assert_eq!(service.session_account("c").await.unwrap(), None);
    let emails: Vec<_> = (service.accounts().await.unwrap().into_iter())
        .map(|shown| (shown.account.email, shown.account.staff))
        .collect();
    let expected = [
        (EMAIL.to_owned(), false),
        ("two@example.org".to_owned(), true),
    ];
    assert_eq!(emails, expected);
    let unknown = service.promote_account(&ACTOR, "three@example.org");
    assert_eq!(refusal(unknown).await, Refusal::NoSuchAccount);
}

async fn a_lost_second_factor_is_removed(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account(EMAIL).await;
    let reset = service.reset_factor(&ACTOR, EMAIL);
    assert_eq!(refusal(reset).await, Refusal::NoSecondFactor);
    let secret = service.new_totp_secret();
    service
        .give_factor(&ACTOR, account.id, &secret)
        .await
        .unwrap();
    assert!(
        service
            .account(account.id)
            .await
            .unwrap()
            .unwrap()
            .second_factor
    );
    service.reset_factor(&ACTOR, EMAIL).await.unwrap();
    assert!(
        !service
            .account(account.id)
            .await
            .unwrap()
            .unwrap()
            .second_factor
    );
    assert_eq!(service.factor(account.id).await.unwrap(), None);
    let new = password("another password");
    service
        .change_password(&account, PASSWORD, &new, "")
        .await
        .unwrap();
}

async fn staff_do_nothing_for_applications_of_their_own(backend: Backend) {
    let mut world = World::new(backend).await;
    let own = world.pending_as(EMAIL, Some("Bank")).await;
    let other = world.pending("two@example.org").await;
    let (me, reference) = (Actor::Account(own.account.id), own.reference);
    world
        .deposit("bank-1", Reference::from_number(1), "7")
        .await;
    let sender = world.service.sender_requests(true).await.unwrap()[0].id;
    {
        let service = &world.service;
        assert_eq!(
            refusal(service.approve(&me, reference)).await,
            Refusal::OwnApplication
        );
        assert_eq!(
            refusal(service.accept_sender(&me, sender)).await,
            Refusal::OwnApplication
        );
        let assigned = service.assign_deposit(&me, "bank-1", reference);
        assert_eq!(refusal(assigned).await, Refusal::OwnApplication);
        service.suspend(&me, reference, "a test").await.unwrap();
        assert_eq!(
            refusal(service.reinstate(&me, reference)).await,
            Refusal::OwnApplication
        );
        // A payment from a file waits for another member of staff.
        let paid = order("bank-2", reference.as_str(), "5");
        let paid = service.add_deposit(&me, &paid);
        assert_eq!(paid.await.unwrap().status, DepositStatus::Unmatched);
        service
            .assign_deposit(&ACTOR, "bank-2", reference)
            .await
            .unwrap();
        assert_eq!(refusal(set_price(service, me)).await, Refusal::OwnPrices);
        service.approve(&me, other.reference).await.unwrap();
        service.reinstate(&ACTOR, reference).await.unwrap();
    }
    world.limits.own_applications = true;
    let world = world.reopen().await;
    let service = &world.service;
    service.approve(&me, reference).await.unwrap();
    service.accept_sender(&me, sender).await.unwrap();
    set_price(service, me).await.unwrap();
    service
        .assign_deposit(&me, "bank-1", reference)
        .await
        .unwrap();
    world.assert_sound().await;
}

async fn only_somebody_with_a_second_factor_is_promoted_at_the_desk(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account(EMAIL).await;
    let staff = Actor::Account(world.account("two@example.org").await.id);
    let promoted = service.promote_account(&staff, EMAIL);
    assert_eq!(refusal(promoted).await, Refusal::FactorBeforeStaff);
    let secret = service.new_totp_secret();
    service
        .give_factor(&ACTOR, account.id, &secret)
        .await
        .unwrap();
    service.promote_account(&staff, EMAIL).await.unwrap();
}
