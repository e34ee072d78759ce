//! A commit group commits on one worker, without a two-phase commit.

use domain::MessageStatus;
use futures_util::future::join_all;
use service::{CarrierReceipt, SubmitOutcome, user_reference};
use sqlx::{AnyConnection, Connection as _, Executor as _, Row as _};

use crate::database::{Backend, SHARDS};
use crate::network::{answered, lost, network, refused, taken_as, throttled};
use crate::sending::receipt;
use crate::world::{World, keyed, request};

/// Counts two-phase commits. A server stores a row in this table before each two-phase commit, and
/// deletes the row when it recovers transactions.
const NOTED: &str = "SELECT count(*) FROM pg_dist_transaction";
const KEEP: &str = "ALTER SYSTEM SET citus.recover_2pc_interval = -1";
const CARRIER: &str = "acme";

/// Returns the number of two-phase commits of a database's servers.
async fn noted(world: &World) -> i64 {
    let mut sum = 0;
    for server in world.database.servers() {
        let mut conn = AnyConnection::connect(&server).await.unwrap();
        let row = conn.fetch_one(NOTED).await.unwrap();
        sum += row.get::<i64, _>(0);
    }
    sum
}

async fn keep_notes(world: &World) {
    for server in world.database.servers() {
        let mut conn = AnyConnection::connect(&server).await.unwrap();
        conn.execute(KEEP).await.unwrap();
        conn.execute("SELECT pg_reload_conf()").await.unwrap();
    }
}

/// Makes commit groups store everything that they can store, in all shards: sends with and without
/// idempotency keys, claims, each response of a carrier to a submit, and each kind of receipt.
async fn life(world: &World) {
    let service = &world.service;
    let mut customers = Vec::new();
    for n in 0..2 * SHARDS {
        customers.push(world.active(&format!("{n}@example.org"), "100").await);
    }
    let before = noted(world).await;
    assert!(before > 0, "a change that belongs to no shard takes two phases");
    for round in 0..2 {
        for _ in 0..2 {
            let messages = service.messages();
            let sends = customers.iter().map(|customer| {
                let plain = request(&customer.live, "12345678", "hello");
                messages.send(keyed(&format!("key {round}"), plain))
            });
            assert!(join_all(sends).await.iter().all(Result::is_ok));
        }
        let sends = customers.iter().map(|customer| world.send(&customer.live, "12345678"));
        assert!(join_all(sends).await.iter().all(Result::is_ok));
    }
    let mut claimed = Vec::new();
    loop {
        let (lease, messages) = service.delivery().claim(CARRIER, 100).await.unwrap();
        if messages.is_empty() {
            break;
        }
        claimed.extend(messages.into_iter().map(|message| (lease, message)));
    }
    assert_eq!(claimed.len(), customers.len() * 4);
    for (n, (lease, message)) in claimed.iter().enumerate() {
        let outcome = match n % 6 {
            0 => refused(),
            1 => throttled(),
            2 => lost(),
            3 => SubmitOutcome::NotSent,
            _ => taken_as(&n.to_string()),
        };
        world.record(CARRIER, lease, vec![answered(message, outcome)]).await;
        let receipt = CarrierReceipt {
            user_reference: (n % 2 == 0).then(|| user_reference(message.id, 1)),
            number: message.address.clone(),
            ..receipt(&n.to_string(), MessageStatus::Delivered)
        };
        // Twice, because a carrier may repeat a receipt.
        for _ in 0..2 {
            let receipts = vec![receipt.clone()];
            service.delivery().record_carrier_receipts(CARRIER, receipts).await.unwrap();
        }
    }
    assert_eq!(noted(world).await, before);
}

#[tokio::test(flavor = "multi_thread")]
async fn sends_claims_results_and_receipts_are_committed_in_one_phase() {
    let world = World::with(Backend::SHARED, network(&[(CARRIER, 1, None)])).await;
    keep_notes(&world).await;
    life(&world).await;
    world.assert_sound().await;
}
