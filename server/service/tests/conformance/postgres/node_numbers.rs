//! Each process has a unique node number, which is part of the IDs that it generates.

use std::collections::{BTreeMap, BTreeSet};

use domain::records::{ConnectionRecord, ConnectionState};
use futures_util::future::join_all;
use service::{Limits, OpenError, SANDBOX_CARRIER, Service};
use sqlx::Executor as _;

use crate::database::Backend;
use crate::processes::{open, peer};
use crate::uploads::{plain, rows, upload};
use crate::world::{HOUR_MS, World, request};

/// Returns the slot in an ID.
fn slot(id: i64) -> i64 {
    (id >> 11) & 1023
}

#[tokio::test(flavor = "multi_thread")]
async fn each_process_has_its_own_node_number_and_ids_never_collide() {
    let world = World::new(Backend::Postgres).await;
    let customer = world.active("one@example.org", "100").await;
    let services = [world.service.clone(), peer(&world, 1).await, peer(&world, 2).await];
    let sends = (0..300).map(|n| {
        let (service, key) = (services[n % 3].clone(), customer.live.clone());
        async move { service.messages().send(request(&key, "12345678", "hello")).await }
    });
    let mut by_service: BTreeMap<usize, BTreeSet<i64>> = BTreeMap::new();
    for (n, sent) in join_all(sends).await.into_iter().enumerate() {
        let id = sent.unwrap().transid.unwrap().0;
        assert!(by_service.entry(n % 3).or_default().insert(id));
    }
    let slots = by_service.values().map(|ids| ids.iter().map(|id| slot(*id)).collect());
    let slots: Vec<BTreeSet<i64>> = slots.collect();
    assert!(slots.iter().all(|slots| slots.len() == 1), "{slots:?}");
    assert_eq!(slots.iter().flatten().collect::<BTreeSet<_>>().len(), 3);
    assert_eq!(world.database.number("SELECT COUNT(*) FROM messages").await, 300);
    // Each process counts in its own rows.
    let counting = "SELECT COUNT(DISTINCT node) FROM message_days WHERE writer = 0 AND n > 0";
    assert_eq!(world.database.number(counting).await, 3);
    // Messages of uploads have separate node numbers.
    for service in &services {
        let accepted = upload(service, &customer.live, None, &rows(3), plain()).await;
        accepted.unwrap();
    }
    world.expand_all().await;
    let of_uploads = "SELECT COUNT(DISTINCT (id >> 11) & 1023) FROM messages \
                      WHERE batch_id IS NOT NULL AND (id >> 11) & 1023 >= 512";
    assert_eq!(world.database.number(of_uploads).await, 3);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_node_number_is_not_given_again_for_an_hour() {
    let world = World::new(Backend::Postgres).await;
    let mut conn = world.database.connect().await;
    conn.execute(
        "INSERT INTO nodes (slot, token, name, started_at, seen_at) \
         SELECT n, 0, 'gone', 1, (SELECT seen_at FROM nodes) + ABS(n - 77) FROM \
         generate_series(1, 511) n",
    )
    .await
    .unwrap();
    world.pass(HOUR_MS);
    world.service.operations().renew_node().await.unwrap();
    let refused = open(&world, 1, Limits::default()).await;
    assert!(matches!(refused.err(), Some(OpenError::TooManyNodes)));
    world.pass(1);
    // It gets the number that has been free the longest.
    let service = peer(&world, 1).await;
    let customer = world.active("one@example.org", "1").await;
    let sent = service.messages().send(request(&customer.live, "12345678", "hello")).await;
    assert_eq!(slot(sent.unwrap().transid.unwrap().0), 77);
    let refused = open(&world, 2, Limits::default()).await;
    assert!(matches!(refused.err(), Some(OpenError::TooManyNodes)));
    // A process that ended without releasing its number, while no other one ran.
    let killed = "UPDATE nodes SET token = 5, seen_at = 1 WHERE slot = 78";
    conn.execute(killed).await.unwrap();
    peer(&world, 2).await;
}

#[tokio::test]
async fn a_process_that_was_not_seen_for_half_a_minute_gets_another_number() {
    const LIVING: &str = "SELECT COUNT(*) FROM nodes WHERE token <> 0";
    const CONNECTIONS: &str = "SELECT COUNT(*) FROM connections";
    let world = World::new(Backend::Postgres).await;
    let customer = world.active("one@example.org", "5").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let send = async |service: &Service| {
        let sent = service.messages().send(request(&customer.live, "12345678", "hello")).await;
        slot(sent.unwrap().transid.unwrap().0)
    };
    let connection = ConnectionRecord {
        carrier: SANDBOX_CARRIER.to_owned(),
        node: 0,
        number: 1,
        state: ConnectionState::Bound,
        since: world.now(),
        in_flight: 0,
        window: 10,
        rate: 0,
        throttled: 0,
        last_error: None,
        last_error_at: None,
        updated_at: world.now(),
    };
    a.delivery().report_connections(vec![connection.clone()]).await.unwrap();
    b.delivery().report_connections(vec![connection]).await.unwrap();
    assert_eq!(world.database.number(CONNECTIONS).await, 2);
    let before = send(&a).await;
    world.pass(30_000);
    b.operations().renew_node().await.unwrap();
    assert!(!b.operations().nodes_ended().await.unwrap(), "half a minute isn't too long");
    world.pass(1);
    assert!(b.operations().nodes_ended().await.unwrap());
    assert!(!b.operations().nodes_ended().await.unwrap(), "said once");
    assert_eq!(world.database.number(LIVING).await, 1);
    assert_eq!(world.database.number(CONNECTIONS).await, 1);
    // The process was only suspended.
    assert_eq!(send(&a).await, before);
    a.operations().renew_node().await.unwrap();
    assert_eq!(world.database.number(LIVING).await, 2);
    let after = send(&a).await;
    assert!(after != before && after != send(&b).await);
    // A process that stops releases its number.
    b.close().await;
    assert_eq!(world.database.number(LIVING).await, 1);
    assert!(a.operations().nodes_ended().await.unwrap());
    assert_eq!(world.database.number(CONNECTIONS).await, 0);
    world.assert_sound().await;
}
