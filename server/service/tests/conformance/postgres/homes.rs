//! An installation with several homes: what belongs to an account is in the account's home, and
//! what goes over all applications goes home by home.

use domain::{MessageStatus, Reference, Transid};
use service::{Actor, BatchFilter, Claimed, Lease, MessageFilter, Network, Submitted};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::database::Backend;
use crate::network::{answered, network, taken_as};
use crate::sending::receipt;
use crate::uploads::{accepted, rows};
use crate::world::{Customer, HOUR_MS, World, money, name};

const STAFF: Actor = Actor::CommandLine;

async fn three_homes() -> (World, Vec<Customer>) {
    three_homes_with(network(&[])).await
}

/// A world with three homes, and a customer in each.
async fn three_homes_with(network: Network) -> (World, Vec<Customer>) {
    let world = World::with(Backend::Postgres, network).await;
    let mut conn = world.database.connect().await;
    let homes = "UPDATE installation SET homes = 3";
    conn.execute(homes).await.unwrap();
    let world = world.reopen().await;
    let mut customers = Vec::new();
    for email in ["one@example.org", "two@example.org", "three@example.org"] {
        customers.push(world.active(email, "10").await);
    }
    (world, customers)
}

/// How many rows of a table aren't in the home of their application.
async fn strays(world: &World, table: &str) -> i64 {
    let mut conn = world.database.connect().await;
    let strays = format!(
        "SELECT COUNT(*) FROM {table} t LEFT JOIN reference_homes h USING (application_id) \
         WHERE h.home IS DISTINCT FROM t.home"
    );
    let found = sqlx::query_scalar(AssertSqlSafe(strays)).fetch_one(&mut conn);
    found.await.unwrap()
}

#[tokio::test]
async fn what_belongs_to_an_account_is_in_its_home() {
    let (world, customers) = three_homes().await;
    let service = &world.service;
    let homes = "SELECT COUNT(DISTINCT home) FROM applications";
    assert_eq!(world.database.number(homes).await, 3);
    for customer in &customers {
        accepted(&world, customer, &rows(20)).await;
        let name = name(&format!("Acme{}", customer.account.id));
        let asking = service.request_sender_name(customer.account.id, customer.reference, &name);
        asking.await.unwrap();
    }
    world.expand_all().await;
    let all = service.all_applications().await.unwrap();
    let references: Vec<Reference> = all.iter().map(|record| record.reference).collect();
    let expected: Vec<Reference> = customers
        .iter()
        .map(|customer| customer.reference)
        .collect();
    assert_eq!(references, expected);
    for request in service.sender_requests(true).await.unwrap() {
        service.accept_sender(&STAFF, request.id).await.unwrap();
    }
    for customer in &customers {
        let access = world.access(&customer.live).await;
        let filter = MessageFilter {
            limit: 100,
            ..MessageFilter::default()
        };
        let page = service.messages(&access, &filter).await.unwrap();
        assert_eq!(page.items.len(), 20);
        let id = customer.account.id;
        let page = service.account_messages(id, None, &filter).await.unwrap();
        assert_eq!(page.items.len(), 20);
        let filter = BatchFilter {
            limit: 100,
            ..BatchFilter::default()
        };
        let page = service.account_batches(id, None, &filter).await.unwrap();
        assert_eq!(page.items.len(), 1);
        let statement = service.statement(id, customer.reference, None, 10);
        assert_eq!(statement.await.unwrap().items.len(), 2);
        assert_eq!(world.balance(&customer.live).await, money("9"));
    }
    assert_eq!(service.queue_state().await.unwrap().waiting, 60);
    for table in [
        "messages",
        "queue",
        "batches",
        "message_days",
        "sender_requests",
    ] {
        assert_eq!(strays(&world, table).await, 0, "{table}");
    }
    world.assert_sound().await;
}

/// The messages that are claimed from all homes, under the lease of each.
async fn claim_all(world: &World, count: usize) -> Vec<(Lease, Claimed)> {
    let mut consumer = world.service.consume("acme");
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
async fn sends_results_and_receipts_go_to_the_home_of_their_application() {
    let (world, customers) = three_homes_with(network(&[("acme", 1, None)])).await;
    let mut sent = Vec::new();
    for _ in 0..10 {
        for customer in &customers {
            sent.push((
                customer,
                world.send(&customer.live, "91234567").await.unwrap(),
            ));
        }
    }
    let claimed = claim_all(&world, sent.len()).await;
    let results = claimed.iter().map(|(lease, message)| Submitted {
        lease: *lease,
        ..answered(message, taken_as(&message.id.to_string()))
    });
    let taken = world.service.record_submitted("acme", results.collect());
    assert_eq!(taken.await.unwrap().len(), sent.len());
    // A process that didn't submit the messages asks each home.
    let world = world.reopen().await;
    let receipt = |id: Transid| receipt(&id.to_string(), MessageStatus::Delivered);
    let receipts = claimed.iter().map(|(_, message)| receipt(message.id));
    let unknown = receipt(Transid(7));
    let receipts: Vec<_> = receipts.chain([unknown]).collect();
    world
        .service
        .record_carrier_receipts("acme", receipts)
        .await
        .unwrap();
    for (customer, sent) in &sent {
        let status = world.status(customer, sent.transid.unwrap()).await;
        assert_eq!(status, MessageStatus::Delivered);
    }
    let parked = "SELECT COUNT(*) FROM parked_receipts";
    assert_eq!(world.database.number(parked).await, 1);
    for customer in &customers {
        assert_eq!(world.balance(&customer.live).await, money("9.5"));
    }
    for table in ["messages", "segments", "transfers", "message_days"] {
        assert_eq!(strays(&world, table).await, 0, "{table}");
    }
    world.assert_sound().await;
}

#[tokio::test]
async fn sweeps_and_deposits_go_over_all_homes() {
    let (world, customers) = three_homes().await;
    let service = &world.service;
    for customer in &customers {
        accepted(&world, customer, &rows(20)).await;
    }
    world.expand_all().await;
    world
        .deposit("nobody's", Reference::from_number(1), "5")
        .await;
    world.assert_sound().await;
    let assigning = service.assign_deposit(&STAFF, "nobody's", customers[1].reference);
    assigning.await.unwrap();
    world.pass(49 * HOUR_MS);
    assert_eq!(service.expire().await.unwrap(), 60);
    assert_eq!(world.balance(&customers[0].live).await, money("10"));
    assert_eq!(world.balance(&customers[1].live).await, money("15"));
    service.fold_days().await.unwrap();
    for customer in &customers {
        let access = world.access(&customer.live).await;
        let filter = MessageFilter {
            status: Some(MessageStatus::Expired),
            limit: 100,
            ..MessageFilter::default()
        };
        let page = service.messages(&access, &filter).await.unwrap();
        assert_eq!(page.items.len(), 20);
    }
    for table in ["message_days", "unusual_messages"] {
        assert_eq!(strays(&world, table).await, 0, "{table}");
    }
    world.assert_sound().await;
    world.pass(401 * 24 * HOUR_MS);
    service.expire().await.unwrap();
    service.drop_history().await.unwrap();
    let left = "SELECT COUNT(*) FROM messages";
    assert_eq!(world.database.number(left).await, 0);
    assert_eq!(strays(&world, "dropped_days").await, 0);
    world.assert_sound().await;
}

#[tokio::test]
async fn a_home_that_cannot_be_written_holds_up_no_other() {
    let (world, customers) = three_homes().await;
    for customer in &customers {
        accepted(&world, customer, &rows(20)).await;
    }
    world.expand_all().await;
    world.pass(49 * HOUR_MS);
    // Whoever gives back a price in this home waits for the row until the time for locks is over.
    let mut conn = world.database.connect().await;
    let hold = "BEGIN; SELECT * FROM applications WHERE home = 2 FOR UPDATE";
    conn.execute(hold).await.unwrap();
    assert_eq!(world.service.expire().await.unwrap(), 40);
    assert_eq!(world.service.homes_skipped(), 1);
    conn.execute("ROLLBACK").await.unwrap();
    assert_eq!(world.service.expire().await.unwrap(), 20);
    world.assert_sound().await;
}
