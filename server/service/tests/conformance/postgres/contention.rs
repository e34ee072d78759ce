//! Many processes write at the same time.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use domain::MessageStatus;
use domain::records::LineOutcome;
use futures_util::future::join_all;
use service::{Actor, Claimed, Entropy, Leases, Limits, Service, SubmitOutcome, Submitted};
use sqlx::Executor as _;

use crate::cases::statements;
use crate::database::Backend;
use crate::network::{answered, network, refused, taken_as};
use crate::processes::peer_with;
use crate::sending::receipt;
use crate::uploads::{plain, rows, upload};
use crate::world::{Customer, HOUR_MS, World, request};

const STAFF: Actor = Actor::CommandLine;

/// Repeats everything that a process does except sending.
async fn work(service: Service, seed: u64, done: Arc<AtomicBool>) {
    let entropy = Entropy::seeded(seed);
    let mut claims: Vec<(service::Lease, Vec<Claimed>)> = Vec::new();
    while !done.load(Ordering::Relaxed) {
        let claim = service.delivery().claim("acme", 40).await.unwrap();
        claims.push(claim);
        let place = usize::try_from(entropy.number() % claims.len() as u64).unwrap();
        let (lease, claimed) = claims.swap_remove(place);
        let outcome = |message: &Claimed| match entropy.number() % 4 {
            0 => refused(),
            1 => SubmitOutcome::NotSent,
            _ => taken_as(&format!("{}", message.id)),
        };
        let results: Vec<_> = claimed
            .iter()
            .map(|message| Submitted { lease, ..answered(message, outcome(message)) })
            .rev()
            .collect();
        service.delivery().record_submitted("acme", results).await.unwrap();
        // Also for messages that were held too long or that the carrier never accepted.
        let receipts = claimed
            .iter()
            .map(|message| receipt(&message.id.to_string(), MessageStatus::Delivered));
        let receipts = receipts.collect();
        service.delivery().record_carrier_receipts("acme", receipts).await.unwrap();
        service.delivery().end_leases(Leases::Over).await.unwrap();
        service.delivery().expire().await.unwrap();
        if let Some(id) = service.messages().next_unexpanded(None).await.unwrap() {
            service.messages().expand(id).await.unwrap();
        }
    }
}

/// The service retries after a deadlock or a conflict, so no caller notices.
#[tokio::test(flavor = "multi_thread")]
async fn no_call_fails_because_other_processes_write_at_the_same_time() {
    // The server checks for deadlocks after this wait, by default after a second.
    const SOON_SEEN: &str = "DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = \
        20', current_database()); END $$";
    // The number of sends per customer. `make soak` raises it.
    let sends = std::env::var("SOAK_SENDS").map_or(30, |text| text.parse().unwrap());
    let world = World::with(Backend::SHARED, network(&[("acme", 1, None)])).await;
    world.database.connect().await.execute(SOON_SEEN).await.unwrap();
    let mut customers = Vec::new();
    for n in 0..6 {
        customers.push(world.active(&format!("{n}@example.org"), "100").await);
    }
    let limits = Limits {
        // Each lease ends before or while its results are recorded.
        lease_ms: 1,
        ..Limits::default()
    };
    let services = [
        peer_with(&world, 1, limits).await,
        peer_with(&world, 2, limits).await,
        peer_with(&world, 3, limits).await,
    ];
    let done = Arc::new(AtomicBool::new(false));
    let mut workers = Vec::new();
    for (seed, service) in (0..).zip(&services) {
        for more in [0, 100] {
            workers.push(tokio::spawn(work(service.clone(), seed + more, Arc::clone(&done))));
        }
    }
    for n in 0..sends {
        let sending = customers.iter().zip(services.iter().cycle().skip(n)).map(
            |(customer, service)| async move {
                let order = request(&customer.live, "12345678", "hello");
                service.messages().send(order).await
            },
        );
        let mut text = "id,reference,amount\n".to_owned();
        for Customer { reference, .. } in customers.iter().rev() {
            writeln!(text, "{n} {reference},{reference},0.05").unwrap();
        }
        let id = statements::stored(&world, &text).await;
        let money = services[n % 3].money();
        money.confirm_statement(STAFF, id).await.unwrap();
        let (sent, credited) = tokio::join!(join_all(sending), money.credit_statements());
        assert!(sent.iter().all(Result::is_ok), "{sent:?}");
        credited.unwrap();
        let report = money.statement_report(id).await.unwrap().unwrap();
        assert_eq!(report.counts, [(LineOutcome::Credited, 6)]);
        world.pass(1);
        if n % 25 == 0 {
            let (customer, service) = (&customers[n % 6], &services[n % 3]);
            upload(service, &customer.live, None, &rows(50), plain()).await.unwrap();
            service
                .applications()
                .suspend(&STAFF, customers[0].reference, "a reason")
                .await
                .unwrap();
            service.applications().reinstate(&STAFF, customers[0].reference).await.unwrap();
        }
    }
    done.store(true, Ordering::Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
    world.expand_all().await;
    world.assert_sound().await;
    world.pass(49 * HOUR_MS);
    services[0].delivery().end_leases(Leases::All).await.unwrap();
    world.service.delivery().expire().await.unwrap();
    world.assert_sound().await;
}
