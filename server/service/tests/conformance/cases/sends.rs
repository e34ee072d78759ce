//! Single sends: who may send, the price, and that each is charged once.

use domain::{Category, Money, Reason, RequestId};
use service::{Actor, KeyAccess, SendError, Sent};
use sqlx::Executor as _;

use crate::database::Backend;
use crate::world::{World, money, name, request, stranger};

on_each_backend![
    a_send_is_refused_for_the_first_reason_in_the_contracts_order,
    sixty_four_at_once_never_overdraw_and_their_balances_form_a_chain,
    a_send_whose_caller_left_is_stored_whole_or_not_at_all,
    the_price_is_the_pages_times_the_price_of_the_kind_of_number,
    a_test_key_works_while_pending_on_play_money_that_is_topped_up_daily,
    reserved_numbers_of_the_test_key_are_ordinary_for_the_live_one,
    new_prices_apply_from_the_restart_that_sets_them,
    two_sends_with_one_requestid_are_two_messages,
    more_sends_than_can_wait_are_told_to_come_again_and_charged_nothing,
];

fn refused(reason: Reason) -> Result<Sent, SendError> {
    Err(SendError::Refused(reason))
}

async fn a_send_is_refused_for_the_first_reason_in_the_contracts_order(backend: Backend) {
    let world = World::new(backend).await;
    let pending = world.pending("one@example.org").await;
    let service = &world.service;
    let unknown = stranger(pending.reference);
    assert_eq!(world.send(&unknown, "12345678").await, refused(Reason::ApiInvalid));
    assert_eq!(world.send(&pending.live, "12345678").await, refused(Reason::ApiPending));
    let account = pending.account.id;
    service
        .applications()
        .request_sender_name(account, pending.reference, &name("Acme"))
        .await
        .unwrap();
    assert_eq!(world.send(&pending.live, "12345678").await, refused(Reason::ApiPending));
    let electricity = service
        .applications()
        .create_application(account, Category::Electricity, None)
        .await
        .unwrap();
    for key in [&electricity.live_key, &electricity.test_key] {
        assert_eq!(world.send(key, "12345678").await, refused(Reason::ApiNotApplicable));
        let read = service.messages().authorize(Some(key.expose())).await;
        assert_eq!(read, Err(Reason::ApiNotApplicable));
    }
    service.applications().suspend(&Actor::CommandLine, pending.reference, "why").await.unwrap();
    for key in [&pending.live, &pending.test] {
        assert_eq!(world.send(key, "12345678").await, refused(Reason::ApiSuspended));
    }
    let read = service.messages().authorize(Some(pending.live.expose())).await;
    assert!(matches!(read, Ok(KeyAccess { .. })), "reports can be read while suspended");
    for malformed in [None, Some(""), Some("x"), Some("123456hk_short")] {
        assert_eq!(
            service.messages().authorize_send(malformed, None).await,
            Err(Reason::ApiInvalid)
        );
    }
}

async fn sixty_four_at_once_never_overdraw_and_their_balances_form_a_chain(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "2").await;
    let tasks: Vec<_> = (0..64)
        .map(|_| {
            let (service, request) =
                (world.service.clone(), request(&customer.live, "12345678", "x"));
            tokio::spawn(async move { service.messages().send(request).await })
        })
        .collect();
    let mut balances = Vec::new();
    let mut poor = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(sent) => balances.push(sent.balance.micros()),
            Err(error) => {
                assert_eq!(error, SendError::Refused(Reason::InsufficientFunds));
                poor += 1;
            }
        }
    }
    balances.sort_unstable();
    let chain: Vec<_> = (0..40).map(|n| n * 50_000).collect();
    assert_eq!((balances, poor), (chain, 24));
    world.assert_sound().await;
}

async fn a_send_whose_caller_left_is_stored_whole_or_not_at_all(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "100").await;
    for turn in 0..50 {
        let service = world.service.clone();
        let request = request(&customer.live, "12345678", "x");
        let task = tokio::spawn(async move { service.messages().send(request).await });
        for _ in 0..turn {
            tokio::task::yield_now().await;
        }
        task.abort();
        let _ = task.await;
    }
    // Sends are answered in order, so all earlier ones are done after this one.
    world.send(&customer.live, "12345678").await.unwrap();
    world.assert_sound().await;
}

async fn the_price_is_the_pages_times_the_price_of_the_kind_of_number(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "100").await;
    let cases = [
        ("12345678", 160, 1, "0.05"),
        ("12345678", 161, 2, "0.1"),
        ("12345678", 1600, 10, "0.5"),
        ("+12345678", 1, 1, "0.25"),
        ("1234567", 1, 1, "0.25"),
        ("26612345678", 321, 3, "0.75"),
    ];
    let mut left = money("100");
    for (number, length, pages, cost) in cases {
        let request = request(&customer.live, number, &"ü".repeat(length));
        let sent = world.service.messages().send(request).await.unwrap();
        left = left.checked_sub(money(cost)).unwrap();
        assert_eq!((sent.pages, sent.cost, sent.balance), (pages, money(cost), left));
    }
    world.assert_sound().await;
}

async fn a_test_key_works_while_pending_on_play_money_that_is_topped_up_daily(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    world
        .service
        .applications()
        .request_sender_name(customer.account.id, customer.reference, &name("Acme"))
        .await
        .unwrap();
    let sent = world.send(&customer.test, "+4915112345").await.unwrap();
    assert_eq!(sent.balance, money("999.75"));
    assert_eq!(world.balance(&customer.test).await, money("999.75"));
    assert_eq!(world.balance(&customer.live).await, Money::ZERO);
    let codes = [
        ("00000501", Reason::InsufficientFunds),
        ("00000502", Reason::ApiPending),
        ("00000503", Reason::ApiSuspended),
        ("00000504", Reason::ApiInvalid),
        ("00000505", Reason::ApiNotApplicable),
    ];
    for (number, reason) in codes {
        assert_eq!(world.send(&customer.test, number).await, refused(reason));
    }
    assert_eq!(world.balance(&customer.test).await, money("999.75"));
    world.pass(domain::timestamp::DAY_MS);
    assert_eq!(world.balance(&customer.test).await, money("1000"));
    let sent = world.send(&customer.test, "12345678").await.unwrap();
    assert_eq!(sent.balance, money("999.95"));
    world.assert_sound().await;
}

async fn reserved_numbers_of_the_test_key_are_ordinary_for_the_live_one(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "00000501").await.unwrap();
}

async fn new_prices_apply_from_the_restart_that_sets_them(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let first = world.send(&customer.live, "12345678").await.unwrap();
    world.service.close().await;
    let mut config = world.config();
    config.prices = crate::world::prices("0.1", "0.2");
    let service = service::Service::open(config.clone()).await.unwrap();
    let second = service.messages().send(request(&customer.live, "12345678", "x")).await.unwrap();
    assert_eq!((first.cost, second.cost), (money("0.05"), money("0.1")));
    assert_eq!(service.operations().check().await.unwrap(), Vec::<String>::new());
    service.close().await;
    "EUR".clone_into(&mut config.currency);
    assert!(service::Service::open(config).await.is_err(), "the currency is fixed");
}

async fn two_sends_with_one_requestid_are_two_messages(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let mut request = request(&customer.live, "12345678", "x");
    request.requestid = RequestId::parse("mine").ok();
    let first = world.service.messages().send(request.clone()).await.unwrap();
    let second = world.service.messages().send(request).await.unwrap();
    assert_ne!(first.transid.unwrap(), second.transid.unwrap());
}

/// The maximum number of waiting sends, and of sends in the current commit group.
const WAITING_AND_HELD: usize = 4096 + 512;

async fn more_sends_than_can_wait_are_told_to_come_again_and_charged_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1000").await;
    // Later sends find in memory what the first one reads.
    world.send(&customer.live, "12345678").await.unwrap();
    // Another process holds a lock, so the commit group waits and sends pile up behind it.
    let mut other = world.database.connect().await;
    other.execute(world.database.hold()).await.unwrap();
    let (answers, mut answered) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..WAITING_AND_HELD + 100 {
        let (service, answers) = (world.service.clone(), answers.clone());
        let request = request(&customer.live, "12345678", "Hi");
        tokio::spawn(async move { answers.send(service.messages().send(request).await).unwrap() });
    }
    for _ in 0..100 {
        let refused = answered.recv().await.unwrap();
        assert_eq!(refused, Err(SendError::Refused(Reason::Unavailable)));
    }
    other.execute("ROLLBACK").await.unwrap();
    drop(answers);
    let mut accepted = 0;
    while let Some(answer) = answered.recv().await {
        accepted += usize::from(answer.is_ok());
    }
    // A few of the last sends may have arrived before the commit group took its inputs.
    assert!(accepted >= 4096, "{accepted}");
    let spent = money("0.05").checked_times(accepted + 1).unwrap();
    let left = money("1000").checked_sub(spent).unwrap();
    assert_eq!(world.balance(&customer.live).await, left);
    world.assert_sound().await;
}
