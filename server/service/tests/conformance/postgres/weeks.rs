//! Message tables by day and by week: changes of the setting, and processes with different
//! settings.

use service::{Limits, MessageFilter, MessageTables};

use crate::database::Backend;
use crate::processes::peer_with;
use crate::world::{Customer, HOUR_MS, START_MS, World};

const DAY_MS: i64 = 24 * HOUR_MS;
/// The number of days that messages are kept.
const KEPT: i64 = 400;

/// Returns the suffixes of the names of the message tables. The tables of events must have the
/// same.
async fn tables(world: &World) -> Vec<String> {
    const NAMES: &str = "SELECT array_to_string(array_agg(right(relname, $1) ORDER BY relname), ' \
        ') \
                         FROM pg_class WHERE relispartition AND relkind = 'r' AND relname LIKE $2";
    let mut conn = world.database.connect().await;
    let mut found = Vec::new();
    for table in ["messages_", "message_timeline_"] {
        let length = i32::try_from(table.len()).unwrap();
        let names = sqlx::query_scalar(NAMES).bind(-length);
        let names = names.bind(format!("{table}2%")).fetch_one(&mut conn);
        found.push(names.await.unwrap());
    }
    let [messages, events]: [Option<String>; 2] = found.try_into().unwrap();
    assert_eq!(messages, events);
    let names = messages.unwrap_or_default();
    names.split_whitespace().map(str::to_owned).collect()
}

/// Returns the number of messages outside the tables of days and weeks.
async fn strays(world: &World) -> i64 {
    world.database.number("SELECT COUNT(*) FROM messages_other").await
}

/// Opens the service again with this setting.
async fn with(mut world: World, tables: MessageTables) -> World {
    world.limits.message_tables = tables;
    world.reopen().await
}

async fn send(world: &World, customer: &Customer) {
    world.send(&customer.live, "12345678").await.unwrap();
}

/// Drops old messages so that this day of January 2026 is the first one that is kept. Returns the
/// number of remaining messages.
async fn left_from(world: &World, customer: &Customer, day: i64) -> usize {
    let days = (world.now().unix_ms() - START_MS) / DAY_MS;
    world.pass((day - 1 + KEPT - days) * DAY_MS);
    world.service.operations().drop_history().await.unwrap();
    world.assert_sound().await;
    let access = world.access(&customer.live).await;
    let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
    let found = world.service.messages().list(&access, &filter).await.unwrap();
    found.items.len()
}

#[tokio::test]
async fn days_become_weeks_and_weeks_days_and_each_table_is_dropped_in_its_time() {
    let mut world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "10").await;
    let mut other = None;
    // The first is a Thursday.
    for day in 1..=20 {
        world = match day {
            2 | 11 => with(world, MessageTables::Week).await,
            8 => with(world, MessageTables::Day).await,
            _ => world,
        };
        world.service.operations().make_days().await.unwrap();
        if day == 17 {
            // The table for the week that begins in two days exists, so its days go into it.
            other = Some(peer_with(&world, 1, Limits::default()).await);
        }
        if let Some(other) = &other {
            other.operations().make_days().await.unwrap();
        }
        send(&world, &customer).await;
        world.pass(DAY_MS);
    }
    let days = |days: std::ops::RangeInclusive<i64>| days.map(|day| format!("202601{day:02}"));
    let first_week = ["20260105_week".to_owned()];
    let mut expected: Vec<String> = days(1..=4).chain(first_week).collect();
    // When the setting changed, days of this week had tables already.
    expected.extend(days(12..=18).chain(["20260119_week".to_owned()]));
    assert_eq!(tables(&world).await, expected);
    assert_eq!(strays(&world).await, 0);

    world.pass(2 * DAY_MS);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 20);
    let account = customer.account.id;
    let counts = async || {
        let messages = world.service.messages();
        let days = messages.account_days(account, None, None, (0, i64::MAX));
        days.await.unwrap()
    };
    let before = counts().await;
    assert_eq!(before.len(), 20);
    assert_eq!(left_from(&world, &customer, 8).await, 16);
    assert_eq!(tables(&world).await, expected[4..]);
    assert_eq!(left_from(&world, &customer, 11).await, 16);
    assert_eq!(left_from(&world, &customer, 12).await, 9);
    assert_eq!(tables(&world).await, expected[5..]);
    assert_eq!(left_from(&world, &customer, 14).await, 7);
    assert_eq!(left_from(&world, &customer, 25).await, 2);
    assert_eq!(left_from(&world, &customer, 26).await, 0);
    assert_eq!(tables(&world).await, Vec::<String>::new());
    assert_eq!(counts().await, before);
    let dropped = "SELECT COUNT(*) FROM dropped_days WHERE charged = 50000 AND released = 50000";
    assert_eq!(world.database.number(dropped).await, 20);
}

#[tokio::test]
async fn a_week_with_messages_of_a_day_without_a_table_goes_on_by_days() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "10").await;
    // No process has created the tables of Tuesday the 13th.
    world.pass(12 * DAY_MS);
    send(&world, &customer).await;
    let world = with(world, MessageTables::Week).await;
    for _ in 0..3 {
        world.pass(DAY_MS);
        world.service.operations().make_days().await.unwrap();
    }
    let made = [14, 15, 16, 17, 18].map(|day| format!("202601{day}"));
    let tables = tables(&world).await;
    assert_eq!(tables[4..9], made);
    assert_eq!(tables[9..], ["20260119_week"]);
    assert_eq!(strays(&world).await, 1);
    send(&world, &customer).await;
    world.pass(3 * DAY_MS);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 2);
    assert_eq!(left_from(&world, &customer, 14).await, 1);
    assert_eq!(left_from(&world, &customer, 17).await, 0);
}
