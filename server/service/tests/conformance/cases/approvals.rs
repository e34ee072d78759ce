//! Staff actions that take two members of staff, if the settings require it.

use std::fmt::Write as _;

use domain::approval::StaffAct;
use domain::records::AccountRecord;
use domain::{Prefix, PriceChange, Reference};
use service::{AccountChange, Actor, Refusal};

use super::statements::stored;
use crate::database::Backend;
use crate::world::{HOUR_MS, World, money};

on_each_backend![
    one_member_of_staff_asks_and_another_one_approves,
    what_cannot_be_done_is_refused_when_it_is_asked_for,
    of_several_decisions_at_once_one_counts,
    a_statement_credits_no_application_of_the_two,
    nobody_approves_for_an_application_of_their_own,
    a_request_ends_after_a_week_and_with_its_author,
    without_the_setting_one_is_enough,
];

const OPERATOR: Actor = Actor::CommandLine;

async fn refusal<T: std::fmt::Debug>(done: impl Future<Output = service::Result<T>>) -> Refusal {
    done.await.unwrap_err().refusal().unwrap().clone()
}

async fn staff(world: &World, email: &str) -> AccountRecord {
    let account = world.account(email).await;
    world
        .service
        .accounts()
        .change_account(&OPERATOR, email, AccountChange::Promote)
        .await
        .unwrap();
    account
}

async fn strict(backend: Backend) -> (World, AccountRecord, AccountRecord) {
    let mut world = World::new(backend).await;
    world.limits.four_eyes = true;
    let world = world.reopen().await;
    let one = staff(&world, "one@example.org").await;
    let two = staff(&world, "two@example.org").await;
    (world, one, two)
}

fn a_price(prefix: &str) -> StaffAct {
    let prefix = Prefix::parse(prefix).unwrap();
    StaffAct::SetPrice { change: PriceChange::Prefix(prefix, Some(money("0.3"))), from: None }
}

/// Returns the ID of the only waiting request.
async fn waiting(world: &World) -> i64 {
    let waiting = world.service.support().approvals().await.unwrap();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    waiting[0].id
}

async fn one_member_of_staff_asks_and_another_one_approves(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let customer = world.pending("customer@example.org").await;
    let secret = service.accounts().new_totp_secret();
    let accounts = service.accounts();
    let given = accounts.give_factor(&OPERATOR, customer.account.id, &secret);
    given.await.unwrap();
    world.deposit("bank-1", Reference::from_number(1), "7").await;
    let email = customer.account.email.clone();
    let acts = [
        StaffAct::AssignDeposit { bank_id: "bank-1".to_owned(), reference: customer.reference },
        a_price("27"),
        StaffAct::Promote { email: email.clone() },
        StaffAct::ResetFactor { email },
    ];
    let state = async || {
        let account = service.accounts().account(customer.account.id).await.unwrap().unwrap();
        let balance = world.balance(&customer.live).await;
        let prices = service.money().price_changes().await.unwrap().len();
        (balance, prices, account.staff, account.second_factor)
    };
    for act in acts {
        let before = state().await;
        assert!(!service.support().act(one.id, act.clone()).await.unwrap(), "{act}");
        assert_eq!(state().await, before, "{act}");
        let id = waiting(&world).await;
        assert_eq!(refusal(service.support().approve_act(one.id, id)).await, Refusal::OwnRequest);
        service.support().approve_act(two.id, id).await.unwrap();
        assert_ne!(state().await, before, "{act}");
        let support = service.support();
        let again = support.approve_act(two.id, id);
        assert_eq!(refusal(again).await, Refusal::NoSuchApproval);
        assert_eq!(service.support().approvals().await.unwrap(), []);
    }
    world.assert_sound().await;
}

async fn what_cannot_be_done_is_refused_when_it_is_asked_for(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let support = service.support();
    let asked = support.act(one.id, StaffAct::Promote { email: two.email });
    assert_eq!(refusal(asked).await, Refusal::StaffAlready);
    let support = service.support();
    let asked = support.act(one.id, StaffAct::ConfirmStatement { id: 7 });
    assert_eq!(refusal(asked).await, Refusal::StatementConfirmed);
    assert_eq!(service.support().approvals().await.unwrap(), []);
}

async fn of_several_decisions_at_once_one_counts(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let three = staff(&world, "three@example.org").await;
    let service = &world.service;
    let mut set = service.money().price_changes().await.unwrap().len();
    for prefix in 1..=9 {
        let act = a_price(&format!("27{prefix}"));
        service.support().act(one.id, act).await.unwrap();
        let id = waiting(&world).await;
        let support = service.support();
        let (first, second, declined) = tokio::join!(
            support.approve_act(two.id, id),
            support.approve_act(three.id, id),
            support.decline_act(one.id, id),
        );
        let done = [&first, &second, &declined];
        let done: Vec<_> = done.iter().map(|decided| decided.is_ok()).collect();
        let count = done.iter().filter(|done| **done).count();
        assert_eq!(count, 1, "{done:?}");
        set += usize::from(!done[2]);
        assert_eq!(service.money().price_changes().await.unwrap().len(), set);
    }
}

async fn a_statement_credits_no_application_of_the_two(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let customer = world.pending("customer@example.org").await;
    let mut text = format!("id;reference;amount\nbank-0;{};7\n", customer.reference);
    let mut own = Vec::new();
    for account in [&one, &two] {
        let applications = service.applications();
        let made = applications.create_application(account.id, domain::Category::Sms, None);
        let made = made.await.unwrap();
        writeln!(text, "bank-{};{};7", account.id, made.reference).unwrap();
        own.push(made.live_key);
    }
    let id = stored(&world, &text).await;
    let act = StaffAct::ConfirmStatement { id };
    service.support().act(one.id, act).await.unwrap();
    service.money().credit_statements().await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("0"));
    let request = waiting(&world).await;
    service.support().approve_act(two.id, request).await.unwrap();
    service.money().credit_statements().await.unwrap();
    assert_eq!(world.balance(&customer.live).await, money("7"));
    for key in &own {
        assert_eq!(world.balance(key).await, money("0"));
    }
    assert_eq!(service.money().unmatched_deposits().await.unwrap().len(), 2);
    world.assert_sound().await;
}

async fn nobody_approves_for_an_application_of_their_own(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let own = service
        .applications()
        .create_application(one.id, domain::Category::Sms, None)
        .await
        .unwrap();
    world.deposit("bank-1", Reference::from_number(1), "7").await;
    let act = StaffAct::AssignDeposit { bank_id: "bank-1".to_owned(), reference: own.reference };
    let support = service.support();
    let asked = support.act(one.id, act.clone());
    assert_eq!(refusal(asked).await, Refusal::OwnApplication);
    service.support().act(two.id, act).await.unwrap();
    let id = waiting(&world).await;
    let support = service.support();
    let approved = support.approve_act(one.id, id);
    assert_eq!(refusal(approved).await, Refusal::OwnApplication);
    let third = staff(&world, "three@example.org").await;
    service.support().approve_act(third.id, id).await.unwrap();
    assert_eq!(world.balance(&own.live_key).await, money("7"));
}

async fn a_request_ends_after_a_week_and_with_its_author(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let act = a_price("27");
    service.support().act(one.id, act.clone()).await.unwrap();
    let id = waiting(&world).await;
    world.pass(7 * 24 * HOUR_MS);
    let support = service.support();
    let late = support.approve_act(two.id, id);
    assert_eq!(refusal(late).await, Refusal::NoSuchApproval);
    service.support().act(one.id, act).await.unwrap();
    let id = waiting(&world).await;
    service.accounts().change_account(&OPERATOR, &one.email, AccountChange::Demote).await.unwrap();
    let support = service.support();
    let gone = support.approve_act(two.id, id);
    assert_eq!(refusal(gone).await, Refusal::NoSuchApproval);
}

async fn without_the_setting_one_is_enough(backend: Backend) {
    let world = World::new(backend).await;
    let one = staff(&world, "one@example.org").await;
    let customer = world.pending("customer@example.org").await;
    world.deposit("bank-1", Reference::from_number(1), "7").await;
    let act =
        StaffAct::AssignDeposit { bank_id: "bank-1".to_owned(), reference: customer.reference };
    assert!(world.service.support().act(one.id, act).await.unwrap());
    assert_eq!(world.balance(&customer.live).await, money("7"));
}
