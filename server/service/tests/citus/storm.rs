//! Several processes send, claim, and record results and receipts at the same time, for
//! applications in all shards.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::{MessageStatus, Transid};
use futures_util::future::join_all;
use service::{Entropy, Sent, Service, SubmitOutcome, Submitted};

use crate::database::{Backend, SHARDS};
use crate::network::{answered, network, refused, taken_as};
use crate::processes::peer;
use crate::sending::receipt;
use crate::world::{Customer, World, keyed, money, request};

const CARRIER: &str = "acme";
const ROUNDS: usize = 40;

/// Claims messages, and records their results and receipts, until all sends are done and no message
/// is left. Returns the IDs of the claimed messages.
async fn carry(service: Service, seed: u64, done: Arc<AtomicBool>) -> Vec<Transid> {
    let entropy = Entropy::seeded(seed);
    let mut claimed_ids = Vec::new();
    loop {
        let was_done = done.load(Ordering::Relaxed);
        let (lease, claimed) = service.delivery().claim(CARRIER, 30).await.unwrap();
        if claimed.is_empty() {
            if was_done {
                return claimed_ids;
            }
            tokio::task::yield_now().await;
            continue;
        }
        let outcome = |id: Transid| match entropy.number() % 5 {
            0 => refused(),
            _ => taken_as(&id.to_string()),
        };
        let results = claimed
            .iter()
            .map(|message| Submitted { lease, ..answered(message, outcome(message.id)) });
        let results: Vec<_> = results.collect();
        let taken = results.iter().filter(|result| {
            let (_, outcome) = &result.outcomes[0];
            matches!(outcome, SubmitOutcome::Accepted { .. })
        });
        let receipts =
            taken.map(|result| receipt(&result.id.to_string(), MessageStatus::Delivered));
        let receipts: Vec<_> = receipts.collect();
        // In parallel, because a receipt may arrive before the response to its submit.
        let delivery = service.delivery();
        let (recorded, received) = tokio::join!(
            delivery.record_submitted(CARRIER, results),
            delivery.record_carrier_receipts(CARRIER, receipts),
        );
        recorded.unwrap();
        received.unwrap();
        claimed_ids.extend(claimed.iter().map(|message| message.id));
    }
}

/// Sends with one idempotency key through two processes at once, and without a key through a third.
async fn send(services: &[Service], customer: &Customer, round: usize) -> [Sent; 2] {
    let service = |n: usize| &services[(round + n) % services.len()];
    let plain = || request(&customer.live, "12345678", "hello");
    let with_key = || keyed(&format!("round {round}"), plain());
    let [first, second, third] = [0, 1, 2].map(|n| service(n).messages());
    let (one, two, three) =
        tokio::join!(first.send(with_key()), second.send(with_key()), third.send(plain()),);
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.replayed, two.replayed, "one of the two must be a replay");
    assert_eq!(one.transid, two.transid);
    assert_eq!(one.balance, two.balance);
    [one, three.unwrap()]
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_or_charged_twice_when_several_processes_work_at_once() {
    let world = World::with(Backend::SHARED, network(&[(CARRIER, 1, None)])).await;
    let mut customers = Vec::new();
    for n in 0..2 * SHARDS {
        customers.push(world.active(&format!("{n}@example.org"), "100").await);
    }
    let services = [world.service.clone(), peer(&world, 1).await, peer(&world, 2).await];
    let done = Arc::new(AtomicBool::new(false));
    let carrying: Vec<_> = (0..)
        .zip(&services)
        .map(|(seed, service)| tokio::spawn(carry(service.clone(), seed, Arc::clone(&done))))
        .collect();
    let mut sent: HashMap<_, BTreeSet<Transid>> = HashMap::new();
    for round in 0..ROUNDS {
        let sending = customers.iter().map(|customer| send(&services, customer, round));
        for (customer, answers) in customers.iter().zip(join_all(sending).await) {
            let of_customer = sent.entry(customer.reference).or_default();
            for answer in answers {
                assert!(of_customer.insert(answer.transid.unwrap()), "two messages have one id");
            }
        }
        world.pass(1);
    }
    done.store(true, Ordering::Relaxed);
    let mut claimed = BTreeSet::new();
    for ids in join_all(carrying).await {
        for id in ids.unwrap() {
            assert!(claimed.insert(id), "claimed twice");
        }
    }
    let all: BTreeSet<Transid> = sent.values().flatten().copied().collect();
    assert_eq!(claimed, all);
    // No message is left in the queue, although some receipts arrived before the responses.
    assert_eq!(world.service.delivery().queue_state().await.unwrap().waiting, 0);
    for customer in &customers {
        let mut charged = 0;
        for id in &sent[&customer.reference] {
            let status = world.status(customer, *id).await;
            charged += match status {
                MessageStatus::Delivered => 50_000,
                MessageStatus::Rejected | MessageStatus::Failed => 0,
                other => panic!("{id} is {other}"),
            };
        }
        let left = money("100").micros() - charged;
        assert_eq!(world.balance(&customer.live).await.micros(), left);
    }
    world.assert_sound().await;
}
