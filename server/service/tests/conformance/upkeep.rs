use std::sync::atomic::Ordering;

use service::Service;

use crate::world::{HOUR_MS, World, money, plain, upload};

#[tokio::test]
async fn ids_grow_even_when_the_clock_is_set_back_over_a_restart() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "1").await;
    let first = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    world.clock.fetch_sub(5000, Ordering::Relaxed);
    let second = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    let world = world.reopen().await;
    let third = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid
        .unwrap();
    assert!(first < second && second < third);
    world.assert_sound().await;
}

#[tokio::test]
async fn urls_that_cannot_hold_money_are_refused() {
    let world = World::new().await;
    for url in [
        "sqlite::memory:",
        "postgres:x",
        "mysql://x",
        "x",
        "sqlite:",
        "",
    ] {
        let mut config = world.config();
        config.database_url = url.to_owned();
        assert!(Service::open(config).await.is_err(), "{url:?}");
    }
}

#[tokio::test]
async fn an_upload_after_the_clock_was_set_back_expires_all_the_same() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "10").await;
    world.pass(72 * HOUR_MS);
    world.send(&customer.live, "12345678").await.unwrap();
    world.pass(72 * HOUR_MS);
    world.service.expire().await.unwrap();
    world.pass(-144 * HOUR_MS);
    // The recount goes by the moment of the last sweep.
    world.service.expire().await.unwrap();
    let file = "12345678,a\n12345678,b\n";
    upload(&world.service, &customer.live, None, file, plain())
        .await
        .unwrap();
    let world = world.reopen().await;
    world.expand_all().await;
    world.assert_sound().await;
    world.pass(200 * HOUR_MS);
    assert_eq!(world.service.expire().await.unwrap(), 2);
    assert_eq!(world.balance(&customer.live).await, money("10"));
    world.assert_sound().await;
}
