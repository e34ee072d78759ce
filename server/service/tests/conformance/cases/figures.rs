//! Message figures by quarter hour, and their sums by hour and by the days of a time zone.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use domain::quarter::{Figures, QUARTER_MS, QuarterRange};
use domain::{KeyKind, MessageStatus, Timestamp};
use service::Refusal;
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::database::Backend;
use crate::network::{network, refused, taken_as};
use crate::sending::{Sending, receipt};
use crate::uploads::accepted;
use crate::world::{HOUR_MS, World, money};

on_each_backend![
    messages_are_counted_in_the_quarter_hour_of_their_acceptance,
    rows_of_an_upload_are_counted_with_what_they_cost,
    days_are_those_of_a_time_zone,
    days_that_are_long_over_are_told_as_they_are,
];

const DAY_MS: i64 = 24 * HOUR_MS;

/// All quarter hours, each separately.
const EACH: QuarterRange = QuarterRange { first: 0, below: i64::MAX, ahead: 0, length: 1 };

async fn figures(sending: &Sending, range: QuarterRange) -> BTreeMap<i64, Figures> {
    let (account, key) = (sending.customer.account.id, Some(KeyKind::Live));
    let service = &sending.world.service;
    let found = service.messages().account_figures(account, None, key, &[range]).await;
    let [(reference, periods)] = found.unwrap().try_into().unwrap();
    assert_eq!(reference, sending.customer.reference);
    periods
}

async fn messages_are_counted_in_the_quarter_hour_of_their_acceptance(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let world = &sending.world;
    // The middle of a quarter hour.
    let into = world.now().unix_ms().rem_euclid(QUARTER_MS);
    world.pass(QUARTER_MS - into + QUARTER_MS / 2);
    let quarter = world.now().quarter();
    for name in ["soon", "late", "lost"] {
        let handed = sending.submitted().await;
        sending.answer(&handed, taken_as(name)).await;
    }
    let handed = sending.submitted().await;
    sending.answer(&handed, refused()).await;
    world.pass(1500);
    sending.receive(receipt("soon", MessageStatus::Delivered)).await;
    world.pass(QUARTER_MS);
    sending.receive(receipt("late", MessageStatus::Delivered)).await;
    sending.receive(receipt("lost", MessageStatus::Failed)).await;
    // No carrier has this one yet.
    world.send(&sending.customer.live, "12345678").await.unwrap();
    let test = &sending.customer.test;
    world.send(test, "12345678").await.unwrap();

    let found = figures(&sending, EACH).await;
    let quarters: Vec<_> = found.keys().copied().collect();
    assert_eq!(quarters, [quarter, quarter + 1]);
    let first = found[&quarter];
    // The charge for the rejected message was released.
    assert_eq!((first.accepted, first.cost), (4, money("0.15")));
    assert_eq!(
        (
            first.of_status(MessageStatus::Failed),
            first.of_status(MessageStatus::Rejected),
            first.of_status(MessageStatus::Expired)
        ),
        (1, 1, 0)
    );
    let mut delivered = Figures::default().delivered;
    (delivered[1], delivered[11]) = (1, 1);
    assert_eq!((first.delivered, first.under_way()), (delivered, 0));
    let second = found[&(quarter + 1)];
    assert_eq!((second.accepted, second.under_way()), (1, 1));
    assert_eq!(second.cost, money("0.05"));

    // The rows of single writers are merged once all messages are final.
    world.pass(3 * DAY_MS);
    sending.send().await;
    world.service.delivery().expire().await.unwrap();
    let before = figures(&sending, EACH).await;
    assert_eq!(before[&(quarter + 1)].of_status(MessageStatus::Expired), 1);
    assert_eq!(before[&(quarter + 1)].cost, money("0"));
    world.service.operations().fold_days().await.unwrap();
    let mut conn = world.database.connect().await;
    let parts = format!(
        "SELECT COUNT(*) FROM message_quarters \
         WHERE (node <> 0 OR writer <> 1) AND quarter <= {}",
        quarter + 1
    );
    let parts: i64 = conn.fetch_one(AssertSqlSafe(parts)).await.unwrap().get(0);
    assert_eq!(parts, 0);
    assert_eq!(figures(&sending, EACH).await, before);
    sending.assert_sound().await;

    let account = world.pending("other@example.org").await.account.id;
    let reference = Some(sending.customer.reference);
    let foreign = world
        .service
        .messages()
        .account_figures(account, reference, None, &[EACH])
        .await
        .unwrap_err();
    assert_eq!(foreign.refusal(), Some(&Refusal::NoSuchApplication));
}

async fn rows_of_an_upload_are_counted_with_what_they_cost(backend: Backend) {
    let world = World::with(backend, network(&[("acme", 1, None)])).await;
    let customer = world.active("one@example.org", "225").await;
    let sending = Sending { world, customer };
    let world = &sending.world;
    // The IDs of the rows extend into the next quarter hour.
    let into = world.now().unix_ms().rem_euclid(QUARTER_MS);
    world.pass(QUARTER_MS - into - 1);
    let before = world.now().quarter();
    let mut file = String::new();
    for n in 0..3000_u32 {
        let length = if n % 2 == 0 { 161 } else { 1 };
        writeln!(file, "{},{}", 57_000_000 + n, "x".repeat(length)).unwrap();
    }
    accepted(world, &sending.customer, &file).await;
    world.expand_all().await;
    let found = figures(&sending, EACH).await;
    assert_eq!(found.keys().copied().collect::<Vec<_>>(), [before, before + 1]);
    let mut sum = Figures::default();
    for figures in found.values() {
        sum.add(figures);
    }
    assert_eq!((sum.accepted, sum.cost), (3000, money("225")));
    sending.assert_sound().await;
}

async fn days_are_those_of_a_time_zone(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let world = &sending.world;
    let midnight = Timestamp::of_day(world.now().day() + 1);
    // 18:14 and 18:15 UTC: the day begins at 18:15 in Kathmandu, at UTC+5:45.
    let begin = midnight.plus_ms(18 * HOUR_MS + QUARTER_MS);
    world.pass(begin.plus_ms(-60_000).ms_since(world.now()));
    for _ in 0..2 {
        world.send(&sending.customer.live, "12345678").await.unwrap();
        world.pass(60_000);
    }
    let day = begin.day();
    let of = |ahead, length| QuarterRange {
        first: midnight.quarter(),
        below: midnight.quarter() + 96,
        ahead,
        length,
    };
    let counts = async |range| {
        let found = figures(&sending, range).await.into_iter();
        found.map(|(period, figures)| (period, figures.accepted)).collect::<Vec<_>>()
    };
    assert_eq!(counts(of(0, 96)).await, [(day, 2)]);
    assert_eq!(counts(of(0, 4)).await, [(day * 24 + 18, 2)]);
    assert_eq!(counts(of(23, 96)).await, [(day, 1), (day + 1, 1)]);
    assert_eq!(counts(of(23, 4)).await, [(day * 24 + 23, 1), (day * 24 + 24, 1)]);
    // Only the messages in the range.
    let evening = QuarterRange { first: begin.quarter(), ..of(0, 96) };
    assert_eq!(counts(evening).await, [(day, 1)]);
}

/// The sums of a day are stored once all of its messages are final. Before and after that, they
/// must equal the sums of the quarter hours, which aren't stored.
async fn days_that_are_long_over_are_told_as_they_are(backend: Backend) {
    let sending = Sending::by_acme(backend).await;
    let world = &sending.world;
    let first_day = world.now().day() + 1;
    let midnight = Timestamp::of_day(first_day);
    world.pass(midnight.plus_ms(6 * HOUR_MS).ms_since(world.now()));
    for hours in [1, 12, 11, 72] {
        sending.send().await;
        world.pass(hours * HOUR_MS);
    }
    let days_told = async |(from, below): (i64, i64), ahead: i64| {
        let range = QuarterRange {
            first: midnight.quarter() + from,
            below: midnight.quarter() + below,
            ahead,
            length: 96,
        };
        let told = figures(&sending, range).await;
        let mut sums = BTreeMap::<i64, Figures>::new();
        for (quarter, found) in figures(&sending, QuarterRange { length: 1, ..range }).await {
            // The quarter hours are also counted in the time zone.
            sums.entry(quarter.div_euclid(96)).or_default().add(&found);
        }
        assert_eq!(told, sums, "{from} to {below}, {ahead} ahead");
        told
    };
    let whole = (-96, 10 * 96);
    let ranges = [whole, (0, 96), (30, 10 * 96), (0, 150), (2 * 96, 5 * 96), whole];
    for ahead in [0, 23, -20] {
        days_told(whole, ahead).await;
    }
    // A message that was pending when its day was first read must be shown as expired afterwards.
    let told = days_told(whole, 0).await;
    assert!(told.values().any(|figures| figures.under_way() > 0));
    world.service.delivery().expire().await.unwrap();
    for ahead in [0, 23, -20] {
        for range in ranges.into_iter().chain(ranges) {
            days_told(range, ahead).await;
        }
    }
    // Later days become final too.
    world.pass(2 * DAY_MS);
    sending.send().await;
    for range in ranges {
        days_told(range, 0).await;
    }
    let told = days_told(whole, 0).await;
    let sum: i64 = told.values().map(|figures| figures.accepted).sum();
    let expired: i64 = told.values().map(|figures| figures.of_status(MessageStatus::Expired)).sum();
    assert_eq!((sum, expired), (5, 4));
}
