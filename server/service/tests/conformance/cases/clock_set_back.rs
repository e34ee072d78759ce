//! A clock that is set back, while the service runs or between two starts.

use std::sync::atomic::Ordering;

use crate::database::Backend;
use crate::uploads::{plain, upload};
use crate::world::{HOUR_MS, World, money};

on_each_backend![
    ids_grow_even_when_the_clock_is_set_back_over_a_restart,
    an_upload_after_the_clock_was_set_back_expires_all_the_same,
];

async fn ids_grow_even_when_the_clock_is_set_back_over_a_restart(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "1").await;
    let first = world.send(&customer.live, "12345678").await.unwrap().transid.unwrap();
    world.clock.fetch_sub(5000, Ordering::Relaxed);
    let second = world.send(&customer.live, "12345678").await.unwrap().transid.unwrap();
    let world = world.reopen().await;
    let third = world.send(&customer.live, "12345678").await.unwrap().transid.unwrap();
    assert!(first < second && second < third);
    world.assert_sound().await;
}

async fn an_upload_after_the_clock_was_set_back_expires_all_the_same(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    world.pass(72 * HOUR_MS);
    world.send(&customer.live, "12345678").await.unwrap();
    world.pass(72 * HOUR_MS);
    world.service.delivery().expire().await.unwrap();
    world.pass(-144 * HOUR_MS);
    // The recount uses the time of the last sweep.
    world.service.delivery().expire().await.unwrap();
    let file = "12345678,a\n12345678,b\n";
    upload(&world.service, &customer.live, None, file, plain()).await.unwrap();
    let world = world.reopen().await;
    world.expand_all().await;
    world.assert_sound().await;
    world.pass(200 * HOUR_MS);
    assert_eq!(world.service.delivery().expire().await.unwrap(), 2);
    assert_eq!(world.balance(&customer.live).await, money("10"));
    world.assert_sound().await;
}
