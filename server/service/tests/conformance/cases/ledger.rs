//! Deposits and the statement.

use domain::Reference;
use domain::ledger::TransferKind;
use service::{Actor, DepositStatus, Refusal, StatementFilter};

use crate::database::Backend;
use crate::world::{World, money, order, whole};

on_each_backend![
    a_bank_id_is_credited_once_and_other_data_under_it_is_refused,
    deposits_at_once_are_all_credited_and_each_once,
    an_unknown_reference_waits_until_staff_assign_it,
    a_payer_may_write_anything_for_a_reference,
    a_deposit_that_would_overflow_the_balance_is_refused,
    the_statement_lists_every_transfer_with_the_balance_after_it,
];

const STAFF: Actor = Actor::CommandLine;

async fn a_bank_id_is_credited_once_and_other_data_under_it_is_refused(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let reference = customer.reference.as_str();
    let first = order("bank-1", reference, "12.5");
    let done = world.service.money().add_deposit(&STAFF, &first).await.unwrap();
    assert_eq!((done.status, done.already), (DepositStatus::Credited, false));
    let again = world.service.money().add_deposit(&STAFF, &first).await.unwrap();
    assert_eq!((again.already, again.balance), (true, Some(money("12.5"))));
    for other in [order("bank-1", reference, "12.6"), order("bank-1", "000000", "12.5")] {
        let refused = world.service.money().add_deposit(&STAFF, &other).await.unwrap_err();
        assert!(matches!(refused.refusal(), Some(Refusal::BankIdConflict { .. })), "{refused:?}");
    }
    assert_eq!(world.balance(&customer.live).await, money("12.5"));
    world.assert_sound().await;
}

async fn deposits_at_once_are_all_credited_and_each_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let tasks: Vec<_> = (0..20)
        .map(|n| {
            let service = world.service.clone();
            let order = order(&format!("bank-{}", n % 10), customer.reference.as_str(), "0.000001");
            tokio::spawn(async move {
                service.money().add_deposit(&STAFF, &order).await.unwrap().already
            })
        })
        .collect();
    let mut repeated = 0;
    for task in tasks {
        repeated += usize::from(task.await.unwrap());
    }
    assert_eq!(repeated, 10);
    assert_eq!(world.balance(&customer.live).await, money("0.00001"));
    world.assert_sound().await;
}

async fn an_unknown_reference_waits_until_staff_assign_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    for (bank_id, reference) in [("bank-1", "typo"), ("bank-2", "")] {
        let done = world
            .service
            .money()
            .add_deposit(&STAFF, &order(bank_id, reference, "3"))
            .await
            .unwrap();
        assert_eq!(done.status, DepositStatus::Unmatched);
    }
    world.assert_sound().await;
    let ledger = world.service.money();
    let assign = |bank_id, reference| ledger.assign_deposit(&STAFF, bank_id, reference);
    let nobody = Reference::from_number(1);
    assert_eq!(
        assign("bank-1", nobody).await.unwrap_err().refusal(),
        Some(&Refusal::NoSuchApplication)
    );
    assert_eq!(
        assign("x", customer.reference).await.unwrap_err().refusal(),
        Some(&Refusal::NoSuchDeposit)
    );
    assign("bank-1", customer.reference).await.unwrap();
    let twice = assign("bank-1", customer.reference).await.unwrap_err();
    assert_eq!(twice.refusal(), Some(&Refusal::DepositAssigned));
    assert_eq!(world.balance(&customer.live).await, money("3"));
    assert_eq!(world.service.money().unmatched_deposits().await.unwrap().len(), 1);
    let again =
        world.service.money().add_deposit(&STAFF, &order("bank-1", "typo", "3")).await.unwrap();
    assert_eq!((again.status, again.already), (DepositStatus::Credited, true));
    world.assert_sound().await;
}

async fn a_payer_may_write_anything_for_a_reference(backend: Backend) {
    let world = World::new(backend).await;
    let odd = order("bank-1", "invoice\0 7 'é'", "3");
    for already in [false, true] {
        let done = world.service.money().add_deposit(&STAFF, &odd).await.unwrap();
        let expected = (DepositStatus::Unmatched, already);
        assert_eq!((done.status, done.already), expected);
    }
    world.assert_sound().await;
}

async fn a_deposit_that_would_overflow_the_balance_is_refused(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    world.deposit("bank-1", customer.reference, "9223372036854").await;
    let more = order("bank-2", customer.reference.as_str(), "1");
    let refused = world.service.money().add_deposit(&STAFF, &more).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::BalanceTooLarge));
    world.assert_sound().await;
}

async fn the_statement_lists_every_transfer_with_the_balance_after_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = world.send(&customer.live, "12345678").await.unwrap();
    let page = |cursor: Option<String>| {
        let (service, account, reference) =
            (world.service.clone(), customer.account.id, customer.reference);
        async move {
            service
                .applications()
                .statement(account, reference, whole(cursor.as_deref(), 1))
                .await
                .unwrap()
        }
    };
    let newest = page(None).await;
    let charge = &newest.items[0];
    assert_eq!((charge.kind, charge.amount), (TransferKind::Charge, money("0.05")));
    assert_eq!(
        (&charge.subject, charge.balance_after),
        (&sent.transid.unwrap().to_string(), money("0.95"))
    );
    let oldest = page(newest.next).await;
    assert_eq!(oldest.items[0].kind, TransferKind::Deposit);
    assert_eq!(oldest.items[0].subject, "first of one@example.org");
    assert_eq!(oldest.next, None);

    for (kind, listed) in
        [(TransferKind::Charge, 1), (TransferKind::Deposit, 1), (TransferKind::Release, 0)]
    {
        let filter = StatementFilter { kind: Some(kind), ..whole(None, 10) };
        let statement = (world.service)
            .applications()
            .statement(customer.account.id, customer.reference, filter)
            .await
            .unwrap();
        assert_eq!(statement.items.len(), listed, "{kind}");
        assert!(statement.items.iter().all(|line| line.kind == kind));
    }
}
