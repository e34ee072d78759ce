//! Old messages are dropped by day once they are final. Their cost stays in the ledger.

use domain::{MessageStatus, Prefix, PriceChange};
use service::{Actor, MessageFilter, Receipt, SANDBOX_CARRIER, SubmitOutcome};
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::database::Backend;
use crate::network::{answered, refused};
use crate::uploads::{plain, upload};
use crate::world::{Customer, HOUR_MS, World, money};

on_each_backend![
    old_days_are_dropped_and_the_sums_of_money_still_agree,
    old_numbers_are_masked_once_their_messages_are_final,
    a_day_with_a_message_that_is_not_final_is_not_dropped,
    the_counts_of_a_day_are_merged_once_all_its_messages_are_final,
];

const DAY_MS: i64 = 24 * HOUR_MS;

async fn count(world: &World, customer: &Customer) -> usize {
    let access = world.access(&customer.live).await;
    let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
    let found = world.service.messages().list(&access, &filter).await.unwrap();
    found.items.len()
}

/// Claims all waiting messages. The first is refused, and the others are delivered.
async fn end_all(world: &World) {
    let (lease, claimed) = world.service.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
    let outcome = |place| {
        if place == 0 { refused() } else { SubmitOutcome::Accepted { carrier_message_id: None } }
    };
    let results = claimed.iter().enumerate();
    let results = results.map(|(place, message)| answered(message, outcome(place)));
    world.record(SANDBOX_CARRIER, &lease, results.collect()).await;
    let receipts = claimed.iter().skip(1).map(|message| Receipt {
        id: message.id,
        application_id: message.application_id,
        status: MessageStatus::Delivered,
        error: None,
    });
    let receipts = receipts.collect();
    world.service.delivery().record_receipts(receipts).await.unwrap();
}

async fn old_days_are_dropped_and_the_sums_of_money_still_agree(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
        world.send(&customer.test, "12345678").await.unwrap();
    }
    let file = "12345678,a\n12345678,b\n";
    upload(&world.service, &customer.live, None, file, plain()).await.unwrap();
    world.expand_all().await;
    end_all(&world).await;
    world.pass(DAY_MS);
    for _ in 0..2 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    end_all(&world).await;
    let balance = world.balance(&customer.live).await;
    assert_eq!(count(&world, &customer).await, 7);

    // The day of the first message is the oldest one that is still kept.
    world.pass(399 * DAY_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.operations().drop_history().await.unwrap();
    assert_eq!(count(&world, &customer).await, 7);
    world.pass(DAY_MS);
    world.service.operations().drop_history().await.unwrap();
    assert_eq!(count(&world, &customer).await, 2);
    world.assert_sound().await;
    world.pass(DAY_MS);
    world.service.operations().drop_history().await.unwrap();
    assert_eq!(count(&world, &customer).await, 0);
    world.assert_sound().await;
    assert_eq!(world.balance(&customer.live).await, balance);

    world.send(&customer.live, "12345678").await.unwrap();
    let spent = balance.checked_sub(money("0.05")).unwrap();
    assert_eq!(world.balance(&customer.live).await, spent);
    world.assert_sound().await;
}

async fn old_numbers_are_masked_once_their_messages_are_final(backend: Backend) {
    let mut world = World::new(backend).await;
    world.limits.mask_numbers_days = 30;
    let world = world.reopen().await;
    let customer = world.active("one@example.org", "10").await;
    let prefix = Prefix::parse("49").unwrap();
    let price = PriceChange::Prefix(prefix, Some(money("0.4")));
    world.service.money().set_price(&Actor::CommandLine, price, None).await.unwrap();
    world.pass(1);
    for number in ["12345678", "4915100000123"] {
        world.send(&customer.live, number).await.unwrap();
        world.pass(1);
    }
    end_all(&world).await;
    let numbers = async || {
        let access = world.access(&customer.live).await;
        let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
        let found = world.service.messages().list(&access, &filter).await.unwrap();
        let numbers = found.items.into_iter().map(|message| message.number);
        numbers.collect::<Vec<_>>()
    };
    // The day of the messages is the oldest one whose numbers are kept.
    world.pass(30 * DAY_MS);
    world.service.delivery().expire().await.unwrap();
    world.service.operations().mask_numbers().await.unwrap();
    assert_eq!(numbers().await, ["4915100000123", "12345678"]);
    world.send(&customer.live, "12345679").await.unwrap();
    world.pass(DAY_MS);
    world.service.delivery().expire().await.unwrap();
    for _ in 0..2 {
        world.service.operations().mask_numbers().await.unwrap();
        assert_eq!(numbers().await, ["12345679", "••••••••••123", "•••••678"]);
    }
    let access = world.access(&customer.live).await;
    let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
    for message in world.service.messages().list(&access, &filter).await.unwrap().items {
        assert_eq!(world.message(&customer, message.transid).await.charge.pages, 1);
    }
    // The first message was refused.
    assert_eq!(world.balance(&customer.live).await, money("9.55"));
    world.assert_sound().await;
}

async fn a_day_with_a_message_that_is_not_final_is_not_dropped(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    world.send(&customer.live, "12345678").await.unwrap();
    world.pass(500 * DAY_MS);
    world.service.operations().drop_history().await.unwrap();
    assert_eq!(count(&world, &customer).await, 1);
    world.assert_sound().await;
    world.service.delivery().expire().await.unwrap();
    world.service.operations().drop_history().await.unwrap();
    assert_eq!(count(&world, &customer).await, 0);
    assert_eq!(world.balance(&customer.live).await, money("10"));
    world.assert_sound().await;
}

/// Returns the numbers of count rows for the first day: those of single writers, those that are
/// folded, and those with a count of 0.
async fn rows_of_first_day(world: &World) -> [i64; 3] {
    const FIRST: &str = "FROM message_days WHERE day = (SELECT MIN(day) FROM message_days)";
    let mut conn = world.database.connect().await;
    let mut found = [0; 3];
    let conditions = ["(node <> 0 OR writer <> 1)", "node = 0 AND writer = 1", "n = 0"];
    for (found, condition) in found.iter_mut().zip(conditions) {
        let count = AssertSqlSafe(format!("SELECT COUNT(*) {FIRST} AND {condition}"));
        *found = conn.fetch_one(count).await.unwrap().get(0);
    }
    found
}

async fn the_counts_of_a_day_are_merged_once_all_its_messages_are_final(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    upload(&world.service, &customer.live, None, "12345678,a\n", plain()).await.unwrap();
    world.expand_all().await;
    end_all(&world).await;
    world.send(&customer.live, "12345678").await.unwrap();
    world.pass(DAY_MS);
    world.send(&customer.live, "12345678").await.unwrap();

    // One of the first day's messages still waits.
    world.service.delivery().expire().await.unwrap();
    let parts = rows_of_first_day(&world).await;
    assert!(parts[0] > 0);
    world.service.operations().fold_days().await.unwrap();
    assert_eq!(rows_of_first_day(&world).await, parts);

    world.pass(2 * DAY_MS);
    world.service.delivery().expire().await.unwrap();
    let days = async || {
        let messages = world.service.messages();
        let days = messages.account_days(customer.account.id, None, None, (0, i64::MAX));
        days.await.unwrap()
    };
    let before = days().await;
    let counts = &before[0].counts;
    assert_eq!(
        (
            counts.get(MessageStatus::Delivered),
            counts.get(MessageStatus::Rejected),
            counts.get(MessageStatus::Expired)
        ),
        (3, 1, 1)
    );
    for _ in 0..2 {
        world.service.operations().fold_days().await.unwrap();
        assert_eq!(rows_of_first_day(&world).await, [0, 3, 0]);
        assert_eq!(days().await, before);
        world.assert_sound().await;
    }
    // The next day isn't folded yet.
    let mut conn = world.database.connect().await;
    let unfolded = "SELECT COUNT(DISTINCT day) FROM message_days WHERE writer = 0";
    let unfolded: i64 = conn.fetch_one(unfolded).await.unwrap().get(0);
    assert_eq!(unfolded, 1);
}
