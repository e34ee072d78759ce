//! An installation with several shards. The rows of an account are in its shard, and work for all
//! applications is done shard by shard.

use std::time::Duration;

use domain::{MessageStatus, Reference, Transid};
use service::{
    Actor, BatchFilter, CarrierReceipt, Claimed, Lease, MessageFilter, Network, Submitted,
    user_reference,
};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::database::Backend;
use crate::network::{answered, lost, network, taken_as};
use crate::sending::receipt;
use crate::uploads::{accepted, rows};
use crate::world::{Customer, HOUR_MS, World, money, name, whole};

const STAFF: Actor = Actor::CommandLine;
/// Longer than any wait in these tests.
const SOON: Duration = Duration::from_secs(20);

async fn three_shards() -> (World, Vec<Customer>) {
    three_shards_with(network(&[])).await
}

/// A world with three shards, and a customer in each.
async fn three_shards_with(network: Network) -> (World, Vec<Customer>) {
    let world = World::with(Backend::Postgres, network).await;
    let mut conn = world.database.connect().await;
    let shards = "UPDATE installation SET shards = 3";
    conn.execute(shards).await.unwrap();
    let world = world.reopen().await;
    let mut customers = Vec::new();
    for email in ["one@example.org", "two@example.org", "three@example.org"] {
        customers.push(world.active(email, "10").await);
    }
    (world, customers)
}

/// Returns the number of rows in a table that aren't in the shard of their application.
async fn strays(world: &World, table: &str) -> i64 {
    let mut conn = world.database.connect().await;
    let strays = format!(
        "SELECT COUNT(*) FROM {table} t LEFT JOIN reference_shards h USING (application_id) \
         WHERE h.shard IS DISTINCT FROM t.shard"
    );
    let found = sqlx::query_scalar(AssertSqlSafe(strays)).fetch_one(&mut conn);
    found.await.unwrap()
}

#[tokio::test]
async fn what_belongs_to_an_account_is_in_its_shard() {
    let (world, customers) = three_shards().await;
    let service = &world.service;
    let shards = "SELECT COUNT(DISTINCT shard) FROM applications";
    assert_eq!(world.database.number(shards).await, 3);
    for customer in &customers {
        accepted(&world, customer, &rows(20)).await;
        let name = name(&format!("Acme{}", customer.account.id));
        let applications = service.applications();
        let asking =
            applications.request_sender_name(customer.account.id, customer.reference, &name);
        asking.await.unwrap();
    }
    world.expand_all().await;
    let all = service.applications().all_applications().await.unwrap();
    let references: Vec<Reference> = all.iter().map(|record| record.reference).collect();
    let expected: Vec<Reference> = customers.iter().map(|customer| customer.reference).collect();
    assert_eq!(references, expected);
    for request in service.applications().sender_requests(true).await.unwrap() {
        service.applications().accept_sender(&STAFF, request.id).await.unwrap();
    }
    for customer in &customers {
        let access = world.access(&customer.live).await;
        let filter = MessageFilter { limit: 100, ..MessageFilter::default() };
        let page = service.messages().list(&access, &filter).await.unwrap();
        assert_eq!(page.items.len(), 20);
        let id = customer.account.id;
        let page = service.messages().account_messages(id, None, &filter).await.unwrap();
        assert_eq!(page.items.len(), 20);
        let filter = BatchFilter { limit: 100, ..BatchFilter::default() };
        let page = service.messages().account_batches(id, None, &filter).await.unwrap();
        assert_eq!(page.items.len(), 1);
        let applications = service.applications();
        let statement = applications.statement(id, customer.reference, whole(None, 10));
        assert_eq!(statement.await.unwrap().items.len(), 2);
        assert_eq!(world.balance(&customer.live).await, money("9"));
    }
    assert_eq!(service.delivery().queue_state().await.unwrap().waiting, 60);
    for table in
        ["messages", "queue", "batches", "message_days", "message_quarters", "sender_requests"]
    {
        assert_eq!(strays(&world, table).await, 0, "{table}");
    }
    world.assert_sound().await;
}

/// Claims messages from all shards, each with the lease of its shard.
async fn claim_all(world: &World, count: usize) -> Vec<(Lease, Claimed)> {
    let mut consumer = world.service.delivery().consume("acme");
    consumer.credit().refresh(|| 4);
    let mut claimed = Vec::new();
    while claimed.len() < count {
        let (lease, messages) = consumer.next().await;
        let received = messages.len();
        assert!(received <= 4);
        claimed.extend(messages.into_iter().map(|message| (lease, message)));
        consumer.submit(received, || (), || 4);
    }
    claimed
}

#[tokio::test]
async fn sends_results_and_receipts_go_to_the_shard_of_their_application() {
    let (world, customers) = three_shards_with(network(&[("acme", 1, None)])).await;
    let mut sent = Vec::new();
    for _ in 0..10 {
        for customer in &customers {
            sent.push((customer, world.send(&customer.live, "91234567").await.unwrap()));
        }
    }
    let claimed = claim_all(&world, sent.len()).await;
    let results = claimed.iter().map(|(lease, message)| Submitted {
        lease: *lease,
        ..answered(message, taken_as(&message.id.to_string()))
    });
    let delivery = world.service.delivery();
    let taken = delivery.record_submitted("acme", results.collect());
    assert_eq!(taken.await.unwrap().len(), sent.len());
    // A process that didn't submit the messages looks for them in each shard.
    let world = world.reopen().await;
    let receipt = |id: Transid| receipt(&id.to_string(), MessageStatus::Delivered);
    let receipts = claimed.iter().map(|(_, message)| receipt(message.id));
    let unknown = receipt(Transid(7));
    let receipts: Vec<_> = receipts.chain([unknown]).collect();
    world.service.delivery().record_carrier_receipts("acme", receipts).await.unwrap();
    for (customer, sent) in &sent {
        let status = world.status(customer, sent.transid.unwrap()).await;
        assert_eq!(status, MessageStatus::Delivered);
    }
    let unmatched = "SELECT COUNT(*) FROM unmatched_receipts";
    assert_eq!(world.database.number(unmatched).await, 1);
    for customer in &customers {
        assert_eq!(world.balance(&customer.live).await, money("9.5"));
    }
    for table in ["messages", "segments", "transfers", "message_days"] {
        assert_eq!(strays(&world, table).await, 0, "{table}");
    }
    world.assert_sound().await;
}

/// A receipt is kept as unmatched while the shard of its message is unreachable. Another shard has
/// an older message with the same carrier message ID.
#[tokio::test]
async fn an_unmatched_receipt_is_for_the_newest_message_in_whichever_shard() {
    let delivered = MessageStatus::Delivered.code();
    let insert = format!(
        "INSERT INTO unmatched_receipts (receipt, carrier, carrier_message_id, status, received_at, \
             form, state, number, sender) \
         SELECT MAX(id) + 1, 'acme', 'again', {delivered}, MAX(created_at), '', '', '', '' \
         FROM messages"
    );
    let (world, customers) = three_shards_with(network(&[("acme", 1, None)])).await;
    // The newest message is first in the last shard, then in the first one.
    for order in [[0, 1, 2], [2, 1, 0]] {
        let mut sent = Vec::new();
        for customer in order.map(|place| &customers[place]) {
            world.pass(1);
            let id = world.send(&customer.live, "91234567").await.unwrap().transid;
            sent.push((customer, id.unwrap()));
        }
        let results = claim_all(&world, sent.len()).await;
        let results = results.iter().map(|(lease, message)| Submitted {
            lease: *lease,
            ..answered(message, taken_as("again"))
        });
        let delivery = world.service.delivery();
        let taken = delivery.record_submitted("acme", results.collect());
        assert_eq!(taken.await.unwrap().len(), sent.len());
        let mut conn = world.database.connect().await;
        conn.execute(AssertSqlSafe(insert.clone())).await.unwrap();
        assert_eq!(world.service.delivery().match_crossed().await.unwrap(), 1);
        let expected =
            [MessageStatus::Submitted, MessageStatus::Submitted, MessageStatus::Delivered];
        for ((customer, id), expected) in sent.into_iter().zip(expected) {
            assert_eq!(world.status(customer, id).await, expected);
        }
        world.pass(HOUR_MS);
    }
    world.assert_sound().await;
}

/// A shard's commit group reserves slots while it searches for messages, so other shards don't have
/// them.
#[tokio::test]
async fn the_only_place_goes_to_whichever_shard_has_a_message() {
    let (world, customers) = three_shards_with(network(&[("acme", 1, None)])).await;
    let mut consumer = world.service.delivery().consume("acme");
    consumer.credit().refresh(|| 1);
    for round in 0..60 {
        let customer = &customers[round % customers.len()];
        let sent = world.send(&customer.live, "91234567").await.unwrap();
        let handed = tokio::time::timeout(SOON, consumer.next()).await;
        let (_, messages) = handed.unwrap();
        let ids: Vec<Transid> = messages.iter().map(|message| message.id).collect();
        assert_eq!(ids, [sent.transid.unwrap()]);
        consumer.submit(1, || (), || 1);
    }
}

/// Receipts without a known carrier message ID still have the number and the submit date.
#[tokio::test]
async fn a_receipt_without_a_known_name_is_matched_if_exactly_one_message_of_all_shards_fits() {
    let (world, customers) = three_shards_with(network(&[("acme", 1, None)])).await;
    let mut sent = Vec::new();
    for (customer, number) in
        [(&customers[0], "91234567"), (&customers[1], "91234567"), (&customers[2], "97654321")]
    {
        let id = world.send(&customer.live, number).await.unwrap().transid;
        sent.push((customer, id.unwrap()));
    }
    let claimed = claim_all(&world, sent.len()).await;
    let results = claimed
        .iter()
        .map(|(lease, message)| Submitted { lease: *lease, ..answered(message, lost()) });
    let delivery = world.service.delivery();
    let recording = delivery.record_submitted("acme", results.collect());
    recording.await.unwrap();
    for (_, message) in &claimed {
        let receipt = CarrierReceipt {
            message_ids: Vec::new(),
            number: message.address.clone(),
            sender: message.sender.clone(),
            submitted_at: Some(world.now()),
            ..receipt("", MessageStatus::Delivered)
        };
        let delivery = world.service.delivery();
        let recording = delivery.record_carrier_receipts("acme", vec![receipt]);
        recording.await.unwrap();
    }
    let expected = [MessageStatus::Unknown, MessageStatus::Unknown, MessageStatus::Delivered];
    for ((customer, id), expected) in sent.iter().zip(expected) {
        assert_eq!(world.status(customer, *id).await, expected);
    }
    // The echoed reference distinguishes the two messages to one number.
    let other = claimed.iter().find(|(_, message)| message.id == sent[1].1);
    let echoed = CarrierReceipt {
        message_ids: vec!["unheard of".to_owned()],
        user_reference: Some(user_reference(sent[1].1, 1)),
        number: other.unwrap().1.address.clone(),
        ..receipt("", MessageStatus::Delivered)
    };
    let delivery = world.service.delivery();
    let recording = delivery.record_carrier_receipts("acme", vec![echoed]);
    recording.await.unwrap();
    let (first, second) = (&sent[0], &sent[1]);
    assert_eq!(world.status(first.0, first.1).await, MessageStatus::Unknown);
    assert_eq!(world.status(second.0, second.1).await, MessageStatus::Delivered);
    world.assert_sound().await;
}

#[tokio::test]
async fn sweeps_and_deposits_go_over_all_shards() {
    let (world, customers) = three_shards().await;
    let service = &world.service;
    for customer in &customers {
        accepted(&world, customer, &rows(20)).await;
    }
    world.expand_all().await;
    world.deposit("nobody's", Reference::from_number(1), "5").await;
    world.assert_sound().await;
    let ledger = service.money();
    let assigning = ledger.assign_deposit(&STAFF, "nobody's", customers[1].reference);
    assigning.await.unwrap();
    world.pass(49 * HOUR_MS);
    assert_eq!(service.delivery().expire().await.unwrap(), 60);
    assert_eq!(world.balance(&customers[0].live).await, money("10"));
    assert_eq!(world.balance(&customers[1].live).await, money("15"));
    service.operations().fold_days().await.unwrap();
    for customer in &customers {
        let access = world.access(&customer.live).await;
        let filter = MessageFilter {
            status: Some(MessageStatus::Expired),
            limit: 100,
            ..MessageFilter::default()
        };
        let page = service.messages().list(&access, &filter).await.unwrap();
        assert_eq!(page.items.len(), 20);
    }
    for table in ["message_days", "message_quarters", "unusual_messages"] {
        assert_eq!(strays(&world, table).await, 0, "{table}");
    }
    world.assert_sound().await;
    world.pass(401 * 24 * HOUR_MS);
    service.delivery().expire().await.unwrap();
    service.operations().drop_history().await.unwrap();
    let left = "SELECT COUNT(*) FROM messages";
    assert_eq!(world.database.number(left).await, 0);
    assert_eq!(strays(&world, "dropped_days").await, 0);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_shard_that_cannot_be_written_holds_up_no_other() {
    let (world, customers) = three_shards().await;
    for customer in &customers {
        accepted(&world, customer, &rows(20)).await;
    }
    world.expand_all().await;
    world.pass(49 * HOUR_MS);
    // A release in this shard waits for the locked row until the lock timeout.
    let mut conn = world.database.connect().await;
    let hold = "BEGIN; SELECT * FROM applications WHERE shard = 2 FOR UPDATE";
    conn.execute(hold).await.unwrap();
    assert_eq!(world.service.delivery().expire().await.unwrap(), 40);
    assert_eq!(world.service.shards_skipped(), 1);
    conn.execute("ROLLBACK").await.unwrap();
    assert_eq!(world.service.delivery().expire().await.unwrap(), 20);
    world.assert_sound().await;
}
