//! Work that several processes share: claims, uploads, and notifications.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::{LimitField, MessageStatus};
use futures_util::future::join_all;
use service::{
    Actor, BatchChange, CancelTarget, Leases, MessageFilter, SANDBOX_CARRIER, StopAuthor,
    SubmitOutcome,
};

use crate::cases::limits::limit;
use crate::database::Backend;
use crate::network::{answered, network, refused, taken_as};
use crate::processes::peer;
use crate::uploads::{batch, plain, rows, upload};
use crate::world::{Customer, World, money};

const STAFF: Actor = Actor::CommandLine;
/// Longer than anything takes that works.
const SOON: Duration = Duration::from_secs(20);

#[tokio::test(flavor = "multi_thread")]
async fn claims_of_several_processes_never_overlap() {
    const MESSAGES: usize = 400;
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    upload(&world.service, &customer.live, None, &rows(MESSAGES / 2), plain()).await.unwrap();
    world.expand_all().await;
    let sends = (0..MESSAGES / 2).map(|_| world.send(&customer.live, "12345678"));
    assert!(join_all(sends).await.iter().all(Result::is_ok));
    let services = [world.service.clone(), peer(&world, 1).await, peer(&world, 2).await];
    let mut seen = BTreeSet::new();
    while seen.len() < MESSAGES {
        let claims = services
            .iter()
            .map(|service| async move { service.delivery().claim(SANDBOX_CARRIER, 7).await });
        let claims = join_all(claims).await;
        let found: Vec<_> = claims.into_iter().flat_map(|claim| claim.unwrap().1).collect();
        assert!(!found.is_empty(), "{} were never claimed", MESSAGES - seen.len());
        for message in found {
            assert!(seen.insert(message.id), "claimed twice");
        }
    }
    for service in &services {
        assert!(service.delivery().claim(SANDBOX_CARRIER, 7).await.unwrap().1.is_empty());
    }
    world.assert_sound().await;
}

async fn statuses(world: &World, customer: &Customer) -> Vec<MessageStatus> {
    let access = world.access(&customer.live).await;
    let filter = MessageFilter { limit: 1000, ..MessageFilter::default() };
    let page = world.service.messages().list(&access, &filter).await.unwrap();
    page.items.iter().map(|message| message.status).collect()
}

#[tokio::test]
async fn an_expired_claim_is_ended_by_another_process() {
    let world = World::with(Backend::SHARED, network(&[("acme", 1, None)])).await;
    let customer = world.active("one@example.org", "5").await;
    let b = peer(&world, 1).await;
    for _ in 0..3 {
        world.send(&customer.live, "12345678").await.unwrap();
    }
    let (lease, claimed) = world.service.delivery().claim("acme", 10).await.unwrap();
    assert_eq!(claimed.len(), 3);
    assert_eq!(b.delivery().end_leases(Leases::Over).await.unwrap(), 0);
    world.pass(60_000);
    assert_eq!(b.delivery().end_leases(Leases::Over).await.unwrap(), 3);
    assert_eq!(statuses(&world, &customer).await, [MessageStatus::Unknown; 3]);
    // The results of the first process come late, and settle what is still open. What wasn't sent
    // stays unknown, because the other process may have sent it.
    let outcomes = [taken_as("one"), refused(), SubmitOutcome::NotSent];
    let results = claimed.iter().zip(outcomes).map(|(message, outcome)| answered(message, outcome));
    let taken = world.record("acme", &lease, results.collect()).await;
    assert!(taken.is_empty());
    let settled = [MessageStatus::Unknown, MessageStatus::Rejected, MessageStatus::Submitted];
    assert_eq!(statuses(&world, &customer).await, settled);
    assert_eq!(world.balance(&customer.live).await, money("4.9"));
    let named = "SELECT COUNT(*) FROM segments WHERE carrier_message_id = 'one'";
    assert_eq!(world.database.number(named).await, 1);
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_several_processes_expand_becomes_each_message_once() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "1000").await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let file = rows(20_000);
    let accepted = upload(&a, &customer.live, None, &file, plain()).await.unwrap();
    let id = accepted.batchid.unwrap();
    // First only B, then both.
    b.messages().expand(id).await.unwrap();
    while let Some(id) = b.messages().next_unexpanded(None).await.unwrap() {
        let (of_a, of_b) = (a.messages(), b.messages());
        let (one, two) = tokio::join!(of_a.expand(id), of_b.expand(id));
        one.unwrap();
        two.unwrap();
    }
    assert_eq!(world.database.number("SELECT COUNT(*) FROM messages").await, 20_000);
    assert_eq!(world.database.number("SELECT COUNT(*) FROM queue").await, 20_000);
    assert_eq!(world.balance(&customer.live).await, money("0"));
    world.database.assert_spools(0).await;
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn uploads_that_are_expanded_at_once_share_the_limit_of_a_recipient() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "1000").await;
    limit(&world, &customer, &[(LimitField::PerRecipientHour, "1")]).await;
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let mut ids = Vec::new();
    for service in [&a, &b] {
        let accepted = upload(service, &customer.live, None, &rows(3000), plain()).await.unwrap();
        ids.push(accepted.batchid.unwrap());
    }
    while world.service.messages().next_unexpanded(None).await.unwrap().is_some() {
        let (of_a, of_b) = (a.messages(), b.messages());
        let (one, two) = tokio::join!(of_a.expand(ids[0]), of_b.expand(ids[1]));
        one.unwrap();
        two.unwrap();
    }
    assert_eq!(world.database.number("SELECT COUNT(*) FROM messages").await, 6000);
    assert_eq!(world.database.number("SELECT COUNT(*) FROM queue").await, 3000);
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_batch_stops_none_that_another_process_accepted_at_the_same_time() {
    const ROWS: usize = 5000;
    let world = World::new(Backend::SHARED).await;
    let (one, two) = (
        world.active("one@example.org", "1000").await,
        world.active("two@example.org", "1000").await,
    );
    let (a, b) = (world.service.clone(), peer(&world, 1).await);
    let stopped = upload(&a, &one.live, None, &rows(ROWS), plain()).await.unwrap();
    let going = upload(&b, &two.live, None, &rows(ROWS), plain()).await.unwrap();
    let (stopped, going) = (stopped.batchid.unwrap(), going.batchid.unwrap());
    world.expand_all().await;
    let mixed = "SELECT COUNT(*) FROM (
            SELECT MAX(first_message_id) AS low, MIN(last_message_id) AS high FROM batches) b
        WHERE b.low <= b.high";
    assert!(world.database.number(mixed).await > 0, "the IDs don't lie between each other");

    let (owner, other) = (world.access(&one.live).await, world.access(&two.live).await);
    let change = BatchChange::Pause;
    a.messages().change_batch(&owner, stopped, change, StopAuthor::Program, None).await.unwrap();
    let mut seen = 0;
    while seen < 200 {
        let (_, claimed) = b.delivery().claim(SANDBOX_CARRIER, 100).await.unwrap();
        assert!(claimed.iter().all(|message| message.application_id == other.application_id));
        seen += claimed.len();
    }
    let target = CancelTarget::Batch(stopped);
    let cancelled = a.messages().cancel(&owner, target, StopAuthor::Program, None).await.unwrap();
    assert_eq!(cancelled.messages, 5000);
    while b.messages().follow_stops().await.unwrap() {}
    let counts = batch(&world, &one, stopped).await.counts;
    assert_eq!(counts.get(MessageStatus::Cancelled), 5000);
    let counts = batch(&world, &two, going).await.counts;
    let open = counts.get(MessageStatus::Queued) + counts.get(MessageStatus::Sending);
    assert_eq!(open, 5000);
    assert_eq!(world.balance(&one.live).await, money("1000"));
    world.assert_sound().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_processes_finish_the_upload_of_a_process_that_vanished() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "1000").await;
    let gone = peer(&world, 1).await;
    let ticket = gone.messages().begin_bulk(Some(customer.live.expose()), None).await.unwrap();
    let accepted = upload(&gone, &customer.live, None, &rows(9000), plain()).await.unwrap();
    let id = accepted.batchid.unwrap();
    gone.messages().expand(id).await.unwrap();
    // The process stops in the middle of a step, which must be atomic.
    let step = tokio::spawn({
        let gone = gone.clone();
        async move { gone.messages().expand(id).await }
    });
    tokio::task::yield_now().await;
    step.abort();
    std::mem::forget((gone, ticket));
    world.expand_all().await;
    assert_eq!(world.database.number("SELECT COUNT(*) FROM messages").await, 9000);
    assert_eq!(world.database.number("SELECT COUNT(*) FROM uploads").await, 1);
    // The upload that it had begun ends with it.
    world.pass(31_000);
    world.service.operations().renew_node().await.unwrap();
    assert!(world.service.operations().nodes_ended().await.unwrap());
    assert_eq!(world.database.number("SELECT COUNT(*) FROM uploads").await, 0);
    world.database.assert_spools(0).await;
    world.assert_sound().await;
}

#[tokio::test]
async fn a_process_wakes_the_others_when_it_leaves_work_for_them() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "50").await;
    let b = peer(&world, 1).await;
    // It gets no notification before it listens.
    let queued = b.queued();
    let first = async {
        loop {
            world.send(&customer.live, "12345678").await.unwrap();
            let wait = tokio::time::timeout(Duration::from_millis(200), queued.notified());
            if wait.await.is_ok() {
                return;
            }
        }
    };
    tokio::time::timeout(SOON, first).await.unwrap();
    let batch = b.batch_accepted();
    upload(&world.service, &customer.live, None, &rows(2), plain()).await.unwrap();
    tokio::time::timeout(SOON, batch.notified()).await.unwrap();
    let reinstated = b.reinstated();
    world.service.applications().suspend(&STAFF, customer.reference, "a reason").await.unwrap();
    world.service.applications().reinstate(&STAFF, customer.reference).await.unwrap();
    tokio::time::timeout(SOON, reinstated.notified()).await.unwrap();
}
