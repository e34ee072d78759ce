//! Processes whose clocks differ.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::future::join_all;
use service::{Clock, Config, Entropy, Leases, Limits, SANDBOX_CARRIER, Service};

use crate::database::Backend;
use crate::network::{answered, taken_as};
use crate::uploads::{plain, rows, upload};
use crate::world::{HOUR_MS, START_MS, World, keyed, money, request};

async fn with_clock(world: &World, clock: Clock) -> Service {
    let config = Config { clock, entropy: Entropy::seeded(3_000_000), ..world.config() };
    Service::open(config).await.ok().unwrap()
}

/// A process may count with a time that is slightly older than the time another process counted
/// with.
#[tokio::test]
async fn a_process_whose_clock_is_behind_gets_no_extra_requests() {
    const LIMIT: u32 = 20;
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let times = [0, 1].map(|_| Arc::new(AtomicI64::new(START_MS)));
    let mut services = Vec::new();
    for (n, time) in (0..).zip(&times) {
        let config = Config {
            clock: Clock::fixed(Arc::clone(time)),
            entropy: Entropy::seeded(4_000_000 + n),
            limits: Limits { requests_per_second: Some(LIMIT), ..Limits::default() },
            ..world.config()
        };
        services.push(Service::open(config).await.ok().unwrap());
    }
    let access = world.access(&customer.live).await;
    let mut taken = 0;
    for step in 0..400 {
        let (now, late) = (START_MS + step * 5, START_MS + step * 5 - 15);
        for (service, (time, ms)) in services.iter().zip(times.iter().zip([now, late])) {
            time.store(ms, Ordering::Relaxed);
            taken += u32::from(service.messages().take_request(&access).await.is_ok());
        }
    }
    // The limit at the start, and its refill in the two seconds that passed.
    assert!((LIMIT..=3 * LIMIT).contains(&taken), "{taken}");
}

/// This can't happen while both use the server's clock. If it does, no money is lost or spent
/// twice.
#[tokio::test(flavor = "multi_thread")]
async fn clocks_that_are_an_hour_apart_change_no_balance_wrongly() {
    let world = World::new(Backend::SHARED).await;
    let customer = world.active("one@example.org", "100").await;
    let ahead = Clock::fixed(Arc::new(AtomicI64::new(START_MS + HOUR_MS)));
    let services = [world.service.clone(), with_clock(&world, ahead).await];
    let mut ids = BTreeSet::new();
    for n in 0..40 {
        let once = || {
            let key = format!("key {n}");
            keyed(&key, request(&customer.live, "12345678", "hello"))
        };
        let sends = services.iter().flat_map(|service| {
            [once(), request(&customer.live, "12345678", "hello")]
                .map(|order| async move { service.messages().send(order).await })
        });
        let sent: Vec<_> = join_all(sends).await.into_iter().map(Result::unwrap).collect();
        let new = sent.iter().filter(|sent| !sent.replayed);
        assert_eq!(new.clone().count(), 3, "one is the other's replay");
        for sent in new {
            assert!(ids.insert(sent.transid.unwrap()), "an id was given twice");
        }
        if n % 10 == 0 {
            let service = &services[(n / 10) % 2];
            upload(service, &customer.live, None, &rows(10), plain()).await.unwrap();
        }
        for service in &services {
            let (lease, claimed) = service.delivery().claim(SANDBOX_CARRIER, 2).await.unwrap();
            // For the other process, the lease is over or lies in the future.
            let other = &services[usize::from(std::ptr::eq(service, &raw const services[0]))];
            other.delivery().end_leases(Leases::Over).await.unwrap();
            other.delivery().expire().await.unwrap();
            let results = claimed
                .iter()
                .map(|message| service::Submitted { lease, ..answered(message, taken_as("c")) });
            let results = results.collect();
            service.delivery().record_submitted(SANDBOX_CARRIER, results).await.unwrap();
        }
    }
    for service in &services {
        while let Some(id) = service.messages().next_unexpanded(None).await.unwrap() {
            service.messages().expand(id).await.unwrap();
        }
    }
    // 120 single messages and 40 of uploads.
    assert_eq!(world.balance(&customer.live).await, money("92"));
    world.assert_sound().await;
    assert_eq!(services[1].operations().check().await.unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn the_clock_of_a_process_follows_the_database_servers() {
    const SERVER: &str = "SELECT CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS bigint)";
    let world = World::new(Backend::SHARED).await;
    let clock = Clock::system();
    let service = with_clock(&world, clock.clone()).await;
    for _ in 0..3 {
        service.operations().renew_node().await.unwrap();
        let before = world.database.number(SERVER).await;
        let shown = clock.now().unix_ms();
        let after = world.database.number(SERVER).await;
        // The duration of the query, and the tolerated difference of the clocks.
        assert!((before - 300..=after + 300).contains(&shown), "{before} {shown} {after}");
    }
}
