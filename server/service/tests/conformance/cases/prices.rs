//! Prices: they apply from their time on, and a charge keeps its price.

use domain::{
    BulkMode, BulkWriting, MessageText, Money, Number, Prefix, PriceChange, PriceRecord, Prices,
    Refusal, Timestamp,
};
use service::{Actor, BatchRequest, Error, Service};
use sqlx::Executor as _;

use crate::database::Backend;
use crate::uploads::{batch, plain};
use crate::world::{Customer, HOUR_MS, World, money, prices, request};

on_each_backend![
    a_price_is_charged_from_its_time_on_and_a_charge_keeps_it,
    a_change_between_two_sends_is_charged_at_once,
    the_price_of_a_prefix_is_named_by_the_charge,
    changes_that_begin_in_the_past_or_twice_or_too_cheap_are_refused,
    an_upload_is_priced_by_its_acceptance_and_keeps_its_prices,
    settings_change_nothing_once_staff_have_set_a_price,
    no_price_is_0,
];

const STAFF: Actor = Actor::CommandLine;
const ABROAD: &str = "27821234567";

fn of_prefix(digits: &str, price: Option<&str>) -> PriceChange {
    PriceChange::Prefix(Prefix::parse(digits).unwrap(), price.map(money))
}

fn base(local: &str, international: &str) -> PriceChange {
    PriceChange::Base(prices(local, international))
}

async fn set(world: &World, change: PriceChange, from: Option<Timestamp>) {
    world.pass(1);
    let money = world.service.money();
    let set = money.set_price(&STAFF, change, from);
    set.await.unwrap();
}

async fn refused(world: &World, change: PriceChange, from: Option<Timestamp>) -> Refusal {
    match world.service.money().set_price(&STAFF, change, from).await {
        Err(Error::Refused(refusal)) => refusal,
        other => panic!("{other:?}"),
    }
}

/// Sends a page abroad and returns its cost.
async fn cost(world: &World, customer: &Customer) -> String {
    let sent = world.send(&customer.live, ABROAD).await.unwrap();
    sent.cost.to_string()
}

async fn a_price_is_charged_from_its_time_on_and_a_charge_keeps_it(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    let first = world.send(&customer.live, ABROAD).await.unwrap();
    set(&world, of_prefix("27", Some("0.2")), None).await;
    let later = world.now().plus_ms(HOUR_MS);
    set(&world, of_prefix("2782", Some("0.1")), Some(later)).await;
    set(&world, base("0.06", "0.3"), Some(later)).await;
    set(&world, of_prefix("27821", Some("0.9")), Some(later)).await;
    let mistake = world.service.money().price_changes().await.unwrap()[0].id;
    set(&world, PriceChange::Cancel(mistake), None).await;
    let twice = refused(&world, PriceChange::Cancel(mistake), None).await;
    assert_eq!(twice, Refusal::PriceNotCancellable);
    assert_eq!(cost(&world, &customer).await, "0.2");
    let table = world.service.money().price_table().await.unwrap();
    let shown = |record: &PriceRecord| record.per_page.unwrap().to_string();
    let in_force: Vec<_> = table.in_force.iter().map(shown).collect();
    assert_eq!(in_force, ["0.05", "0.25", "0.2"]);
    let coming: Vec<_> = table.coming.iter().map(shown).collect();
    assert_eq!(coming, ["0.06", "0.3", "0.1"]);
    world.pass(HOUR_MS - 5);
    assert_eq!(cost(&world, &customer).await, "0.2");
    world.pass(HOUR_MS);
    assert_eq!(cost(&world, &customer).await, "0.1");
    let local = world.send(&customer.live, "12345678").await.unwrap();
    assert_eq!(local.cost, money("0.06"));
    set(&world, of_prefix("2782", None), None).await;
    assert_eq!(cost(&world, &customer).await, "0.2");
    set(&world, of_prefix("27", None), None).await;
    assert_eq!(cost(&world, &customer).await, "0.3");
    let kept = world.message(&customer, first.transid.unwrap()).await;
    assert_eq!(kept.charge.unit_price, money("0.25"));
    assert_eq!(kept.charge.rule, "international_not_8_digits");
    let changes = world.service.money().price_changes().await.unwrap();
    assert_eq!(changes.len(), 8);
    assert_eq!(changes[7].set_by, "settings");
    assert!(changes[0].set_by.starts_with("command line"));
    world.assert_sound().await;
}

async fn a_change_between_two_sends_is_charged_at_once(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "100").await;
    for n in 1..=20 {
        assert!(cost(&world, &customer).await.parse::<f64>().unwrap() < 1.0);
        let price = format!("0.3{n:02}");
        set(&world, of_prefix("27", Some(&price)), None).await;
        let sent = world.send(&customer.live, ABROAD).await.unwrap();
        assert_eq!(sent.cost, money(&price));
    }
    // Sends while prices change: each costs one of the prices, and no send costs an old price once
    // the change was answered.
    let sending: Vec<_> = (0..100)
        .map(|_| {
            let (service, request) = (world.service.clone(), request(&customer.live, ABROAD, "x"));
            tokio::spawn(async move { service.messages().send(request).await })
        })
        .collect();
    set(&world, of_prefix("27", Some("0.07")), None).await;
    assert_eq!(cost(&world, &customer).await, "0.07");
    for sent in sending {
        if let Ok(sent) = sent.await.unwrap() {
            let known = [money("0.32"), money("0.07")];
            assert!(known.contains(&sent.cost), "{}", sent.cost);
        }
    }
    world.assert_sound().await;
}

async fn the_price_of_a_prefix_is_named_by_the_charge(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    set(&world, of_prefix("27", Some("0.2")), None).await;
    let sent = world.send(&customer.live, ABROAD).await.unwrap();
    let charge = world.message(&customer, sent.transid.unwrap()).await.charge;
    assert_eq!((charge.rule.as_str(), charge.unit_price), ("prefix_27", money("0.2")));
    assert!(charge.why.contains("begins with 27"), "{}", charge.why);
    let number = Number::parse(ABROAD).unwrap();
    let price = world.service.money().price_of(&number).await.unwrap();
    assert_eq!((price.rule.as_str(), price.price.per_page), ("prefix_27", money("0.2")));
    // The charge keeps its rule when the price changes.
    set(&world, of_prefix("27", Some("0.3")), None).await;
    let charge = world.message(&customer, sent.transid.unwrap()).await.charge;
    assert_eq!((charge.rule.as_str(), charge.unit_price), ("prefix_27", money("0.2")));
}

async fn changes_that_begin_in_the_past_or_twice_or_too_cheap_are_refused(backend: Backend) {
    let world = World::new(backend).await;
    world.pass(10);
    let past = Some(world.now().plus_ms(-1));
    let change = || of_prefix("27", Some("0.2"));
    assert_eq!(refused(&world, change(), past).await, Refusal::PriceInPast);
    let later = world.now().plus_ms(HOUR_MS);
    set(&world, change(), Some(later)).await;
    let twice = Refusal::PriceSetTwice { at: later };
    assert_eq!(refused(&world, change(), Some(later)).await, twice);
    let cheap = refused(&world, base("0.2", "0.3"), None).await;
    let named = Refusal::PriceNotDearer {
        prefix: Prefix::parse("27").unwrap(),
        at: later,
        price: money("0.2"),
        local: money("0.2"),
    };
    assert_eq!(cheap, named);
    let nothing = refused(&world, of_prefix("27", None), None).await;
    assert_eq!(nothing, Refusal::NoSuchPrefix);
    assert_eq!(world.service.money().price_changes().await.unwrap().len(), 2);
    world.assert_sound().await;
}

/// Begins an upload, changes a price, and finishes the upload.
async fn uploaded_across(
    world: &World,
    customer: &Customer,
    (file, order): (&str, BatchRequest),
    change: PriceChange,
) -> service::AcceptedBatch {
    let messages = world.service.messages();
    let permit = messages.begin_bulk(Some(customer.live.expose()), None);
    let permit = permit.await.unwrap();
    let mode = match order.message {
        Some(_) => BulkMode::OneToMany,
        None => BulkMode::OneToOne,
    };
    let mut upload = permit.upload(mode, BulkWriting::Plain).await.unwrap();
    upload.write(file.as_bytes()).await.unwrap();
    set(world, change, None).await;
    let spooled = upload.finish().await.unwrap();
    let accepted = world.service.messages().accept_batch(&permit, spooled, order).await;
    accepted.unwrap()
}

async fn an_upload_is_priced_by_its_acceptance_and_keeps_its_prices(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1000").await;
    set(&world, of_prefix("44", Some("0.4")), None).await;
    // 600 rows to local numbers, and 600 to each of two countries.
    let rows = (0..600).map(|n| format!("{:08},a\n2782{n:07},b\n4479{n:07},c\n", n + 10));
    let file = rows.collect::<Vec<_>>().concat();
    let change = of_prefix("27", Some("0.2"));
    let batched = uploaded_across(&world, &customer, (&file, plain()), change).await;
    assert_eq!((batched.rows, batched.pages), (1800, 1800));
    assert_eq!(batched.cost, money("390"));
    let numbers = (0..600).map(|n| format!("2782{n:07}\n"));
    let numbers = numbers.collect::<Vec<_>>().concat();
    let to_all =
        BatchRequest { message: Some(MessageText::parse("x".repeat(200), 10).unwrap()), ..plain() };
    let change = of_prefix("2782", Some("0.1"));
    let shared = uploaded_across(&world, &customer, (&numbers, to_all), change).await;
    assert_eq!((shared.pages, shared.cost), (1200, money("120")));
    // Later changes don't affect accepted uploads.
    set(&world, of_prefix("27", None), None).await;
    set(&world, of_prefix("2782", Some("0.9")), None).await;
    set(&world, base("0.07", "0.35"), None).await;
    world.assert_sound().await;
    world.expand_all().await;
    for accepted in [batched, shared] {
        let record = batch(&world, &customer, accepted.batchid.unwrap()).await;
        assert_eq!(record.cost, accepted.cost);
    }
    world.assert_sound().await;
}

async fn settings_change_nothing_once_staff_have_set_a_price(backend: Backend) {
    let world = World::new(backend).await;
    let tomorrow = world.now().plus_ms(24 * HOUR_MS);
    set(&world, of_prefix("27", Some("0.2")), Some(tomorrow)).await;
    world.service.close().await;
    let mut config = world.config();
    config.prices = prices("0.1", "0.2");
    let service = Service::open(config).await.unwrap();
    let list = service.money().price_list().await.unwrap();
    assert_eq!(list.prices, prices("0.05", "0.25"));
    service.close().await;
}

async fn no_price_is_0(backend: Backend) {
    let world = World::new(backend).await;
    let free = PriceChange::Base(Prices { local: Money::ZERO, international: money("0.25") });
    assert_eq!(refused(&world, free, None).await, Refusal::PricesInvalid);
    let free = of_prefix("27", Some("0"));
    let refusal = refused(&world, free, None).await;
    assert!(matches!(refusal, Refusal::PriceNotDearer { .. }), "{refusal}");
    // The database doesn't accept one either.
    let mut conn = world.database.connect().await;
    let row = "INSERT INTO prices (local, international, in_force_at, set_at, set_by) \
               VALUES (0, 250000, 1, 1, 'test')";
    let error = conn.execute(row).await.unwrap_err().to_string();
    assert!(error.contains("check constraint") || error.contains("CHECK constraint"), "{error}");
    assert_eq!(world.service.money().price_changes().await.unwrap().len(), 1);
}
