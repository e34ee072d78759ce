//! Deposits in the staff portal: the list, suggestions for deposits without an application, and
//! bulk imports.

use domain::approval::StaffAct;
use domain::decision::DepositList;
use domain::{Money, Reference};
use service::{Actor, DepositStatus, Refusal};

use crate::database::Backend;
use crate::world::{World, money, order};

on_each_backend![
    deposits_are_listed_page_by_page,
    references_with_one_mistake_are_suggested,
    of_two_assignments_one_wins_and_the_other_is_told,
    an_unmatched_deposit_is_returned_once,
    a_bank_id_with_a_control_character_is_refused,
];

const STAFF: Actor = Actor::CommandLine;

async fn deposits_are_listed_page_by_page(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    world.deposit("bank-0", customer.reference, "1").await;
    for bank_id in ["bank-2", "bank-1", "=bank-3"] {
        let unmatched = order(bank_id, "nobody's", "2");
        world.service.money().add_deposit(&STAFF, &unmatched).await.unwrap();
        if bank_id == "bank-1" {
            world.pass(1);
        }
    }
    for (list, expected) in [
        (DepositList::Unmatched, vec!["bank-1", "bank-2", "=bank-3"]),
        (DepositList::All, vec!["=bank-3", "bank-2", "bank-1", "bank-0"]),
    ] {
        let (mut found, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let page = world.service.money().deposit_list(list, cursor.as_deref(), 1).await;
            let page = page.unwrap();
            found.extend(page.items.into_iter().map(|case| case.deposit.bank_id));
            cursor = page.next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(found, expected);
    }
    for cursor in ["", "x", "1", "1-\0"] {
        let money = world.service.money();
        let refused = money.deposit_list(DepositList::All, Some(cursor), 1);
        let refused = refused.await.unwrap_err();
        assert_eq!(refused.refusal(), Some(&Refusal::InvalidCursor));
    }
    world.assert_sound().await;
}

async fn an_unmatched_deposit_is_returned_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.pending("one@example.org").await;
    let staff = world.account("staff@example.org").await.id;
    let ledger = world.service.money();
    ledger.add_deposit(&STAFF, &order("bank-1", "rent", "7.5")).await.unwrap();
    let give_back = |note: &str| {
        let act = StaffAct::ReturnDeposit { bank_id: "bank-1".to_owned(), note: note.to_owned() };
        let service = world.service.clone();
        async move { service.support().act(staff, act).await }
    };
    for (note, expected) in
        [(" ", Refusal::ReasonMissing), (&"x".repeat(501), Refusal::ReasonInvalid)]
    {
        assert_eq!(give_back(note).await.unwrap_err().refusal(), Some(&expected));
    }
    assert!(give_back("The payer asked for it.").await.unwrap());
    assert_eq!(give_back("Again").await.unwrap_err().refusal(), Some(&Refusal::DepositReturned));
    let assigned = ledger.assign_deposit(&STAFF, "bank-1", customer.reference).await;
    assert_eq!(assigned.unwrap_err().refusal(), Some(&Refusal::DepositReturned));
    let again = ledger.add_deposit(&STAFF, &order("bank-1", "rent", "7.5")).await.unwrap();
    assert_eq!((again.status, again.already), (DepositStatus::Returned, true));
    let deposit = ledger.deposit("bank-1").await.unwrap().unwrap();
    assert_eq!(deposit.returned.unwrap().1, "The payer asked for it.");
    assert!(ledger.unmatched_deposits().await.unwrap().is_empty());
    assert_eq!(ledger.deposit_list(DepositList::All, None, 10).await.unwrap().items.len(), 1);
    world.deposit("bank-2", customer.reference, "1").await;
    let act = StaffAct::ReturnDeposit { bank_id: "bank-2".to_owned(), note: "No".to_owned() };
    let refused = world.service.support().act(staff, act).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::DepositAssigned));
    // The sums of the ledger count the return.
    world.assert_sound().await;
}

async fn references_with_one_mistake_are_suggested(backend: Backend) {
    let world = World::new(backend).await;
    let meant = world.pending("one@example.org").await.reference;
    let digits = meant.as_str();
    let turned = |digit: &str| if digit == "9" { "0" } else { "9" };
    let wrong = format!("{}{}", turned(&digits[..1]), &digits[1..]);
    let two_wrong = format!("{}{}{}", turned(&digits[..1]), turned(&digits[1..2]), &digits[2..]);
    let swap_at = (1..6).find(|place| digits[*place..=*place] != digits[place - 1..*place]);
    let mut swapped = digits.as_bytes().to_vec();
    // If all digits are equal, nothing can be swapped.
    if let Some(place) = swap_at {
        swapped.swap(place, place - 1);
    }
    let swapped = String::from_utf8(swapped).unwrap();
    for (place, (text, is_suggested)) in [
        (wrong.clone(), true),
        (format!("INV {wrong}, thanks"), true),
        (format!("{}-{}", &wrong[..3], &wrong[3..]), true),
        (format!("REF {digits}"), true),
        (format!("{} {}", &digits[..3], &digits[3..]), true),
        (format!("REF {swapped}"), true),
        (two_wrong, false),
        (format!("{digits}1"), false),
        ("rent".to_owned(), false),
    ]
    .into_iter()
    .enumerate()
    {
        let bank_id = format!("bank-{place}");
        let deposit = order(&bank_id, &text, "1");
        world.service.money().add_deposit(&STAFF, &deposit).await.unwrap();
        let money = world.service.money();
        let page = money.deposit_list(DepositList::Unmatched, None, 100);
        let cases = page.await.unwrap().items;
        let case = cases.iter().find(|case| case.deposit.bank_id == bank_id);
        let expected: &[Reference] = if is_suggested { &[meant] } else { &[] };
        assert_eq!(case.unwrap().suggestions, expected, "{text}");
    }
    world.assert_sound().await;
}

async fn of_two_assignments_one_wins_and_the_other_is_told(backend: Backend) {
    let world = World::new(backend).await;
    let one = world.pending("one@example.org").await;
    let other = world.pending("other@example.org").await;
    let unmatched = order("bank-1", "nobody's", "2");
    world.service.money().add_deposit(&STAFF, &unmatched).await.unwrap();
    let ledger = world.service.money();
    let assign = |reference| ledger.assign_deposit(&STAFF, "bank-1", reference);
    let (first, second) = tokio::join!(assign(one.reference), assign(other.reference));
    let (winner, loser, told) = match (first, second) {
        (Ok(_), Err(told)) => (&one, &other, told),
        (Err(told), Ok(_)) => (&other, &one, told),
        both => panic!("{both:?}"),
    };
    assert_eq!(told.refusal(), Some(&Refusal::DepositAssigned));
    assert_eq!(world.balance(&winner.live).await, money("2"));
    assert_eq!(world.balance(&loser.live).await, money("0"));
    let deposit = world.service.money().deposit("bank-1").await.unwrap().unwrap();
    assert_eq!(deposit.assigned_to, Some(winner.reference));
    world.assert_sound().await;
}

async fn a_bank_id_with_a_control_character_is_refused(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "0").await;
    let reference = customer.reference.as_str();
    for bank_id in ["", "bank-1\0", "\0", "bank\n1", "bank\u{202e}1", &"b".repeat(256)] {
        let request = order(bank_id, reference, "5");
        let added = world.service.money().add_deposit(&STAFF, &request).await;
        let refusal = added.unwrap_err();
        assert_eq!(refusal.refusal(), Some(&Refusal::InvalidBankId), "{bank_id:?}");
        assert_eq!(world.service.money().deposit(bank_id).await.unwrap(), None);
        let money = world.service.money();
        let assigned = money.assign_deposit(&STAFF, bank_id, customer.reference);
        let refusal = assigned.await.unwrap_err();
        assert_eq!(refusal.refusal(), Some(&Refusal::NoSuchDeposit), "{bank_id:?}");
    }
    assert_eq!(world.balance(&customer.live).await, Money::ZERO);
    world.assert_sound().await;
}
