//! What takes two members of staff, where the settings say so.

use domain::approval::StaffAct;
use domain::records::AccountRecord;
use domain::{Prefix, PriceChange, Reference};
use service::{Actor, Refusal};

use crate::database::Backend;
use crate::world::{HOUR_MS, World, money};

on_each_backend![
    one_member_of_staff_asks_and_another_one_approves,
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
        .promote_account(&OPERATOR, email)
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

/// The only request that waits.
async fn waiting(world: &World) -> i64 {
    let waiting = world.service.approvals().await.unwrap();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    waiting[0].id
}

async fn one_member_of_staff_asks_and_another_one_approves(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let customer = world.pending("customer@example.org").await;
    let secret = service.new_totp_secret();
    let given = service.give_factor(&OPERATOR, customer.account.id, &secret);
    given.await.unwrap();
    world
        .deposit("bank-1", Reference::from_number(1), "7")
        .await;
    let email = customer.account.email.clone();
    let prefix = Prefix::parse("27").unwrap();
    let acts = [
        StaffAct::AssignDeposit {
            bank_id: "bank-1".to_owned(),
            reference: customer.reference,
        },
        StaffAct::SetPrice {
            change: PriceChange::Prefix(prefix, Some(money("0.3"))),
            from: None,
        },
        StaffAct::Promote {
            email: email.clone(),
        },
        StaffAct::ResetFactor { email },
    ];
    let state = async || {
        let account = service.account(customer.account.id).await.unwrap().unwrap();
        let balance = world.balance(&customer.live).await;
        let prices = service.price_changes().await.unwrap().len();
        (balance, prices, account.staff, account.second_factor)
    };
    for act in acts {
        let before = state().await;
        assert!(!service.act(one.id, act.clone()).await.unwrap(), "{act}");
        assert_eq!(state().await, before, "{act}");
        let id = waiting(&world).await;
        assert_eq!(
            refusal(service.approve_act(one.id, id)).await,
            Refusal::OwnRequest
        );
        service.approve_act(two.id, id).await.unwrap();
        assert_ne!(state().await, before, "{act}");
        let again = service.approve_act(two.id, id);
        assert_eq!(refusal(again).await, Refusal::NoSuchApproval);
        let asked = service.act(one.id, act).await.unwrap();
        assert!(!asked);
        service
            .decline_act(one.id, waiting(&world).await)
            .await
            .unwrap();
    }
    world.assert_sound().await;
}

async fn nobody_approves_for_an_application_of_their_own(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let own = service
        .create_application(one.id, domain::Category::Sms, None)
        .await
        .unwrap();
    world
        .deposit("bank-1", Reference::from_number(1), "7")
        .await;
    let act = StaffAct::AssignDeposit {
        bank_id: "bank-1".to_owned(),
        reference: own.reference,
    };
    let asked = service.act(one.id, act.clone());
    assert_eq!(refusal(asked).await, Refusal::OwnApplication);
    service.act(two.id, act).await.unwrap();
    let id = waiting(&world).await;
    let approved = service.approve_act(one.id, id);
    assert_eq!(refusal(approved).await, Refusal::OwnApplication);
    let third = staff(&world, "three@example.org").await;
    service.approve_act(third.id, id).await.unwrap();
    assert_eq!(world.balance(&own.live_key).await, money("7"));
}

async fn a_request_ends_after_a_week_and_with_its_author(backend: Backend) {
    let (world, one, two) = strict(backend).await;
    let service = &world.service;
    let email = world.account("customer@example.org").await.email;
    let act = StaffAct::Promote { email };
    service.act(one.id, act.clone()).await.unwrap();
    let id = waiting(&world).await;
    world.pass(7 * 24 * HOUR_MS);
    let late = service.approve_act(two.id, id);
    assert_eq!(refusal(late).await, Refusal::NoSuchApproval);
    service.act(one.id, act).await.unwrap();
    let id = waiting(&world).await;
    service.demote_account(&OPERATOR, &one.email).await.unwrap();
    let gone = service.approve_act(two.id, id);
    assert_eq!(refusal(gone).await, Refusal::NoSuchApproval);
}

async fn without_the_setting_one_is_enough(backend: Backend) {
    let world = World::new(backend).await;
    let one = staff(&world, "one@example.org").await;
    let customer = world.pending("customer@example.org").await;
    world
        .deposit("bank-1", Reference::from_number(1), "7")
        .await;
    let act = StaffAct::AssignDeposit {
        bank_id: "bank-1".to_owned(),
        reference: customer.reference,
    };
    assert!(world.service.act(one.id, act).await.unwrap());
    assert_eq!(world.balance(&customer.live).await, money("7"));
}
