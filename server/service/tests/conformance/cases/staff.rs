//! Actions of staff on accounts.

use domain::records::AccountRecord;
use domain::{
    ApplicationStatus, Category, MessageStatus, Prefix, PriceChange, Reason, Reference, Timestamp,
};
use service::{
    AccountChange, Actor, ClientInfo, DepositStatus, Refusal, SANDBOX_CARRIER, SendError, Service,
    SessionRow,
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
    staff_do_not_change_their_own_account_at_the_desk,
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
    let accounts = world.service.accounts();
    let disabled = accounts.disable_account(&ACTOR, EMAIL, "unpaid");
    disabled.await.unwrap();
}

async fn enable(world: &World) {
    world.service.accounts().enable_account(&ACTOR, EMAIL).await.unwrap();
    world.service.delivery().resume_deferred().await.unwrap();
}

fn reason<T: std::fmt::Debug>(answer: Result<T, SendError>) -> Reason {
    match answer.unwrap_err() {
        SendError::Refused(reason) => reason,
        error @ SendError::Lost => panic!("{error:?}"),
    }
}

async fn status(world: &World, customer: &Customer) -> ApplicationStatus {
    let found = world.service.applications().find_application(customer.reference).await;
    found.unwrap().unwrap().status
}

async fn set_price(service: &Service, actor: Actor) -> service::Result<Timestamp> {
    let prefix = Prefix::parse("27").unwrap();
    let change = PriceChange::Prefix(prefix, Some(money("0.3")));
    service.money().set_price(&actor, change, None).await
}

/// Signs in a device of an account with only the password.
async fn device(service: &Service, token: &str, account: &AccountRecord) {
    let row =
        SessionRow { account_id: None, data: "{}".to_owned(), expires_at: service.clock().now() };
    service.accounts().session_create(token, &row).await.unwrap();
    let client = ClientInfo::default();
    service.accounts().device_sign_in(token, account, &client).await.unwrap();
}

async fn keys_of_a_disabled_account_send_nothing_and_read_on(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active(EMAIL, "1").await;
    let other = world.active("two@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    disable(&world).await;
    for key in [&customer.live, &customer.test] {
        assert_eq!(reason(world.send(key, "12345678").await), Reason::ApiSuspended);
    }
    assert_eq!(world.balance(&customer.live).await, money("0.95"));
    assert_eq!(status(&world, &customer).await, ApplicationStatus::Active);
    world.send(&other.live, "12345678").await.unwrap();
    let account_id = customer.account.id;
    let applications = world.service.applications();
    let new = applications.create_application(account_id, Category::Electricity, None);
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
        beside.accounts().disable_account(&ACTOR, EMAIL, "unpaid").await.unwrap();
        let refused = world.send(&customer.live, "12345678").await;
        assert_eq!(reason(refused), Reason::ApiSuspended);
        beside.accounts().enable_account(&ACTOR, EMAIL).await.unwrap();
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
    let claim = async || world.service.delivery().claim(SANDBOX_CARRIER, 8).await.unwrap().1;
    assert!(claim().await.is_empty());
    world.service.delivery().resume_deferred().await.unwrap();
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
    let accounts = service.accounts();
    let reasonless = accounts.disable_account(&ACTOR, EMAIL, " ");
    assert_eq!(refusal(reasonless).await, Refusal::ReasonMissing);
    disable(&world).await;
    assert_eq!(service.accounts().session_account("a").await.unwrap(), None);
    let accounts = service.accounts();
    let again = accounts.disable_account(&ACTOR, EMAIL, "why");
    assert_eq!(refusal(again).await, Refusal::AccountDisabledAlready);
    let accounts = service.accounts();
    let signed_in = accounts.sign_in(EMAIL, PASSWORD, "x");
    assert_eq!(refusal(signed_in).await, Refusal::AccountDisabled);
    // Somebody without the password doesn't learn that the account is disabled.
    let accounts = service.accounts();
    let guessed = accounts.sign_in(EMAIL, "wrong password", "x");
    assert_eq!(refusal(guessed).await, Refusal::WrongCredentials);
    // The password was verified before the account was disabled.
    let row =
        SessionRow { account_id: None, data: "{}".to_owned(), expires_at: service.clock().now() };
    service.accounts().session_create("b", &row).await.unwrap();
    let client = ClientInfo::default();
    let accounts = service.accounts();
    let bound = accounts.device_sign_in("b", &account, &client);
    assert_eq!(refusal(bound).await, Refusal::WrongCredentials);
    let shown = service.accounts().account_detail(EMAIL).await.unwrap();
    assert_eq!(shown.disabled_at, Some(world.now()));
    assert_eq!(shown.disabled_reason.as_deref(), Some("unpaid"));

    service.accounts().enable_account(&ACTOR, EMAIL).await.unwrap();
    let accounts = service.accounts();
    let again = accounts.enable_account(&ACTOR, EMAIL);
    assert_eq!(refusal(again).await, Refusal::AccountNotDisabled);
    service.accounts().sign_in(EMAIL, PASSWORD, "x").await.unwrap();
    let shown = service.accounts().account_detail(EMAIL).await.unwrap();
    assert_eq!((shown.disabled_at, shown.disabled_reason), (None, None));
}

async fn a_disabled_account_stays_out_of_reach_of_reinstating(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active(EMAIL, "1").await;
    let (service, reference) = (&world.service, customer.reference);
    service.applications().suspend(&ACTOR, reference, "spam").await.unwrap();
    disable(&world).await;
    service.applications().reinstate(&ACTOR, reference).await.unwrap();
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(reason(refused), Reason::ApiSuspended);
    service.applications().suspend(&ACTOR, reference, "spam").await.unwrap();
    enable(&world).await;
    assert_eq!(status(&world, &customer).await, ApplicationStatus::Suspended);
    let refused = world.send(&customer.live, "12345678").await;
    assert_eq!(reason(refused), Reason::ApiSuspended);
}

async fn the_last_member_of_staff_stays(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    for email in [EMAIL, "two@example.org"] {
        world.account(email).await;
        service.accounts().change_account(&ACTOR, email, AccountChange::Promote).await.unwrap();
    }
    // A disabled member of staff doesn't count.
    let two = "two@example.org";
    service.accounts().disable_account(&ACTOR, two, "left").await.unwrap();
    let accounts = service.accounts();
    let demoted = accounts.change_account(&ACTOR, EMAIL, AccountChange::Demote);
    assert_eq!(refusal(demoted).await, Refusal::LastStaff);
    let accounts = service.accounts();
    let disabled = accounts.disable_account(&ACTOR, EMAIL, "why");
    assert_eq!(refusal(disabled).await, Refusal::LastStaff);
    service.accounts().change_account(&ACTOR, two, AccountChange::Demote).await.unwrap();
    service.accounts().enable_account(&ACTOR, two).await.unwrap();
    service.accounts().change_account(&ACTOR, two, AccountChange::Promote).await.unwrap();
    // Of two members who are demoted at the same time, one stays.
    let attempts = [EMAIL, two].map(|email| {
        let service = service.clone();
        tokio::spawn(async move {
            service.accounts().change_account(&ACTOR, email, AccountChange::Demote).await.is_ok()
        })
    });
    let mut demoted = 0;
    for attempt in attempts {
        demoted += usize::from(attempt.await.unwrap());
    }
    assert_eq!(demoted, 1);
}

async fn staff_do_not_change_their_own_account_at_the_desk(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account(EMAIL).await;
    let me = Actor::Account(account.id);
    let secret = service.accounts().new_totp_secret();
    service.accounts().give_factor(&ACTOR, account.id, &secret).await.unwrap();
    for change in [AccountChange::Demote, AccountChange::SignOut, AccountChange::ResetFactor] {
        let accounts = service.accounts();
        assert_eq!(refusal(accounts.change_account(&me, EMAIL, change)).await, Refusal::OwnAccount);
    }
    let accounts = service.accounts();
    let disabled = accounts.disable_account(&me, EMAIL, "why");
    assert_eq!(refusal(disabled).await, Refusal::OwnAccount);
}

async fn a_role_is_given_and_taken_and_signs_out(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account(EMAIL).await;
    world.account("two@example.org").await;
    service
        .accounts()
        .change_account(&ACTOR, "two@example.org", AccountChange::Promote)
        .await
        .unwrap();
    device(service, "a", &account).await;
    let accounts = service.accounts();
    let demoted = accounts.change_account(&ACTOR, EMAIL, AccountChange::Demote);
    assert_eq!(refusal(demoted).await, Refusal::NotStaff);
    service
        .accounts()
        .change_account(&ACTOR, " One@example.org ", AccountChange::Promote)
        .await
        .unwrap();
    assert_eq!(service.accounts().session_account("a").await.unwrap(), None);
    let accounts = service.accounts();
    let promoted = accounts.change_account(&ACTOR, EMAIL, AccountChange::Promote);
    assert_eq!(refusal(promoted).await, Refusal::StaffAlready);
    device(service, "b", &account).await;
    assert!(service.accounts().session_follower("b").await.unwrap().unwrap().staff);
    service.accounts().change_account(&ACTOR, EMAIL, AccountChange::Demote).await.unwrap();
    assert_eq!(service.accounts().session_follower("b").await.unwrap(), None);
    device(service, "c", &account).await;
    service.accounts().change_account(&ACTOR, EMAIL, AccountChange::SignOut).await.unwrap();
    assert_eq!(service.accounts().session_account("c").await.unwrap(), None);
    let emails: Vec<_> = (service.accounts().all().await.unwrap().into_iter())
        .map(|shown| (shown.account.email, shown.account.staff))
        .collect();
    let expected = [(EMAIL.to_owned(), false), ("two@example.org".to_owned(), true)];
    assert_eq!(emails, expected);
    let accounts = service.accounts();
    let unknown = accounts.change_account(&ACTOR, "three@example.org", AccountChange::Promote);
    assert_eq!(refusal(unknown).await, Refusal::NoSuchAccount);
}

async fn a_lost_second_factor_is_removed(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account(EMAIL).await;
    let accounts = service.accounts();
    let reset = accounts.change_account(&ACTOR, EMAIL, AccountChange::ResetFactor);
    assert_eq!(refusal(reset).await, Refusal::NoSecondFactor);
    let secret = service.accounts().new_totp_secret();
    service.accounts().give_factor(&ACTOR, account.id, &secret).await.unwrap();
    assert!(service.accounts().account(account.id).await.unwrap().unwrap().second_factor);
    service.accounts().change_account(&ACTOR, EMAIL, AccountChange::ResetFactor).await.unwrap();
    assert!(!service.accounts().account(account.id).await.unwrap().unwrap().second_factor);
    assert_eq!(service.accounts().factor(account.id).await.unwrap(), None);
    let new = password("another password");
    service.accounts().change_password(&account, PASSWORD, &new, "").await.unwrap();
}

async fn staff_do_nothing_for_applications_of_their_own(backend: Backend) {
    let mut world = World::new(backend).await;
    let own = world.pending_as(EMAIL, Some("Bank")).await;
    let other = world.pending("two@example.org").await;
    let (me, reference) = (Actor::Account(own.account.id), own.reference);
    world.deposit("bank-1", Reference::from_number(1), "7").await;
    let sender = world.service.applications().sender_requests(true).await.unwrap()[0].id;
    {
        let service = &world.service;
        assert_eq!(
            refusal(service.applications().approve(&me, reference)).await,
            Refusal::OwnApplication
        );
        assert_eq!(
            refusal(service.applications().accept_sender(&me, sender)).await,
            Refusal::OwnApplication
        );
        let money = service.money();
        let assigned = money.assign_deposit(&me, "bank-1", reference);
        assert_eq!(refusal(assigned).await, Refusal::OwnApplication);
        service.applications().suspend(&me, reference, "a test").await.unwrap();
        assert_eq!(
            refusal(service.applications().reinstate(&me, reference)).await,
            Refusal::OwnApplication
        );
        // A payment from a file waits for another member of staff.
        let paid = order("bank-2", reference.as_str(), "5");
        let money = service.money();
        let paid = money.add_deposit(&me, &paid);
        assert_eq!(paid.await.unwrap().status, DepositStatus::Unmatched);
        service.money().assign_deposit(&ACTOR, "bank-2", reference).await.unwrap();
        assert_eq!(refusal(set_price(service, me)).await, Refusal::OwnPrices);
        service.applications().approve(&me, other.reference).await.unwrap();
        service.applications().reinstate(&ACTOR, reference).await.unwrap();
    }
    world.limits.own_applications = true;
    let world = world.reopen().await;
    let service = &world.service;
    service.applications().approve(&me, reference).await.unwrap();
    service.applications().accept_sender(&me, sender).await.unwrap();
    set_price(service, me).await.unwrap();
    service.money().assign_deposit(&me, "bank-1", reference).await.unwrap();
    world.assert_sound().await;
}

async fn only_somebody_with_a_second_factor_is_promoted_at_the_desk(backend: Backend) {
    let world = World::new(backend).await;
    let service = &world.service;
    let account = world.account(EMAIL).await;
    let staff = Actor::Account(world.account("two@example.org").await.id);
    let accounts = service.accounts();
    let promoted = accounts.change_account(&staff, EMAIL, AccountChange::Promote);
    assert_eq!(refusal(promoted).await, Refusal::FactorBeforeStaff);
    let secret = service.accounts().new_totp_secret();
    service.accounts().give_factor(&ACTOR, account.id, &secret).await.unwrap();
    service.accounts().change_account(&staff, EMAIL, AccountChange::Promote).await.unwrap();
}
