//! Old messages are dropped by day once they are final. Their cost stays in the ledger.

use domain::{MessageStatus, MessageText, Number, Prefix, PriceChange, Transid};
use service::{
    Actor, BatchRequest, CancelTarget, MessageFilter, Receipt, SANDBOX_CARRIER, SendRequest,
    StopAuthor, SubmitOutcome,
};
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use super::schedules::at;
use crate::database::Backend;
use crate::network::{answered, refused};
use crate::uploads::{accepted, plain, upload};
use crate::world::{Customer, HOUR_MS, World, money, request};

on_each_backend![
    old_days_are_dropped_and_the_sums_of_money_still_agree,
    old_numbers_are_masked_once_their_messages_are_final,
    old_texts_are_erased_once_their_messages_are_final,
    a_clock_that_was_fast_keeps_no_text,
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
    // A message that waits for its time holds back no other.
    let schedule = at(&world, 34 * DAY_MS);
    let late = SendRequest { schedule, ..request(&customer.live, "12345670", "hello") };
    world.service.messages().send(late).await.unwrap();
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
    assert_eq!(numbers().await, ["12345670", "4915100000123", "12345678"]);
    world.send(&customer.live, "12345679").await.unwrap();
    world.pass(DAY_MS);
    world.service.delivery().expire().await.unwrap();
    for _ in 0..2 {
        world.service.operations().mask_numbers().await.unwrap();
        assert_eq!(numbers().await, ["12345679", "12345670", "••••••••••123", "•••••678"]);
    }
    let access = world.access(&customer.live).await;
    let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
    for message in world.service.messages().list(&access, &filter).await.unwrap().items {
        assert_eq!(world.message(&customer, message.transid).await.charge.pages, 1);
    }
    // The first message was refused.
    assert_eq!(world.balance(&customer.live).await, money("9.5"));
    world.assert_sound().await;
}

/// Returns all that is stored. SQLite keeps erased bytes in free space until a vacuum.
pub async fn contents(world: &World) -> String {
    world.database.connect().await.execute("VACUUM").await.unwrap();
    let contents = world.database.contents(&world.service).await;
    String::from_utf8_lossy(&contents).into_owned()
}

/// Returns a batch whose rows share a text.
fn shared(text: &str) -> BatchRequest {
    let message = MessageText::parse(text.to_owned(), 10).unwrap();
    BatchRequest { message: Some(message), ..plain() }
}

/// Sends messages with texts that are erased in every way. Returns the ID of one that is scheduled.
async fn fill_with_texts(world: &World, customer: &Customer) -> Transid {
    let messages = world.service.messages();
    messages.send(request(&customer.live, "12345678", "refused whisper")).await.unwrap();
    messages.send(request(&customer.live, "12345678", "single whisper")).await.unwrap();
    messages.send(request(&customer.test, "12345678", "test whisper")).await.unwrap();
    accepted(world, customer, "12345678,row whisper\n").await;
    let batch = shared("shared whisper");
    upload(&world.service, &customer.live, None, "12345678\n12345679\n", batch).await.unwrap();
    world.expand_all().await;
    end_all(world).await;
    let schedule = at(world, 20 * DAY_MS);
    let batch = BatchRequest { schedule, ..shared("withdrawn whisper") };
    let batch = upload(&world.service, &customer.live, None, "12345678\n", batch).await.unwrap();
    let access = world.access(&customer.live).await;
    let target = CancelTarget::Batch(batch.batchid.unwrap());
    messages.cancel(&access, target, StopAuthor::Program, None).await.unwrap();
    let schedule = at(world, 34 * DAY_MS);
    let late = SendRequest { schedule, ..request(&customer.live, "12345678", "late text") };
    messages.send(late).await.unwrap().transid.unwrap()
}

async fn old_texts_are_erased_once_their_messages_are_final(backend: Backend) {
    let mut world = World::new(backend).await;
    world.limits.text_days = 30;
    let world = world.reopen().await;
    let customer = world.active("one@example.org", "10").await;
    let late = fill_with_texts(&world, &customer).await;
    let erase = async |days: i64| {
        world.pass(days * DAY_MS);
        world.service.delivery().expire().await.unwrap();
        world.service.operations().erase_texts().await.unwrap();
        world.assert_sound().await;
    };
    // The day of the messages is the oldest one whose texts are kept.
    erase(30).await;
    let found = contents(&world).await;
    for whisper in ["refused", "single", "test", "row", "shared"] {
        assert!(found.contains(&format!("{whisper} whisper")), "{whisper}");
    }
    erase(1).await;
    let found = contents(&world).await;
    assert!(!found.contains(" whisper") && found.contains("late text"));
    let access = world.access(&customer.live).await;
    let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
    let found = world.service.messages().list(&access, &filter).await.unwrap().items;
    assert_eq!(found.len(), 6);
    for message in &found {
        let text = if message.transid == late { "late text" } else { "" };
        assert_eq!(message.message, text);
        let detail = world.message(&customer, message.transid).await;
        assert_eq!((detail.charge.pages, &*detail.record.number), (1, &*message.number));
    }
    let (number, owner) = (Number::parse("12345678").unwrap(), customer.account.id);
    let actor = Actor::Account(owner);
    let messages = world.service.messages();
    let mut export = messages.export_number(&actor, owner, &number).await.unwrap();
    let mut file = String::new();
    while let Some(part) = export.next_part().await.unwrap() {
        file += &part;
    }
    let file: serde_json::Value = serde_json::from_str(&file).unwrap();
    let of_file = file["records"].as_array().unwrap().iter();
    assert_eq!(of_file.filter(|record| record["message"] == "").count(), 5, "{file:#}");

    // The scheduled message is sent on day 34. Its text is kept for 30 days from then on.
    erase(4).await;
    end_all(&world).await;
    assert!(world.message(&customer, late).await.record.final_at.is_some());
    erase(29).await;
    assert!(contents(&world).await.contains("late text"));
    erase(1).await;
    assert!(!contents(&world).await.contains("late text"));

    // An upload keeps its text until its rows are messages and final.
    let batch = shared("unexpanded text");
    upload(&world.service, &customer.live, None, "12345678\n", batch).await.unwrap();
    erase(40).await;
    assert!(contents(&world).await.contains("unexpanded text"));
    world.expand_all().await;
    erase(0).await;
    assert!(!contents(&world).await.contains("unexpanded text"));
}

async fn a_clock_that_was_fast_keeps_no_text(backend: Backend) {
    let mut world = World::new(backend).await;
    world.limits.text_days = 30;
    let world = world.reopen().await;
    let customer = world.active("one@example.org", "10").await;
    let erase = async |days: i64| {
        world.pass(days * DAY_MS);
        world.service.operations().erase_texts().await.unwrap();
    };
    erase(100).await;
    erase(-100).await;
    let messages = world.service.messages();
    messages.send(request(&customer.live, "12345678", "late text")).await.unwrap();
    end_all(&world).await;
    world.pass(3 * DAY_MS);
    world.service.delivery().expire().await.unwrap();
    erase(28).await;
    assert!(!contents(&world).await.contains("late text"));
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
