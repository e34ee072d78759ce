use std::sync::atomic::Ordering;

use service::Service;

use crate::world::{World, money};

#[tokio::test]
async fn a_backup_is_a_whole_database() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let copy = world.folder().join("copy.db");
    world.service.backup(&copy).await.unwrap();
    assert!(
        world.service.backup(&copy).await.is_err(),
        "a file that exists is left alone"
    );
    world.send(&customer.live, "12345678").await.unwrap();
    let mut config = world.config();
    config.database_url = format!("sqlite:{}", copy.display());
    let restored = Service::open(config).await.unwrap();
    assert_eq!(restored.check().await.unwrap(), Vec::<String>::new());
    let access = restored
        .authorize(Some(customer.live.expose()), service::Use::Read)
        .await
        .unwrap();
    assert_eq!(restored.balance(&access).await.unwrap(), money("0.95"));
}

#[tokio::test]
async fn ids_grow_even_when_the_clock_is_set_back_over_a_restart() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "1").await;
    let first = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid;
    world.clock.fetch_sub(5000, Ordering::Relaxed);
    let second = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid;
    let world = world.reopen().await;
    let third = world
        .send(&customer.live, "12345678")
        .await
        .unwrap()
        .transid;
    assert!(first < second && second < third);
    world.assert_sound().await;
}

#[tokio::test]
async fn urls_that_cannot_hold_money_are_refused() {
    let world = World::new().await;
    for url in [
        "sqlite::memory:",
        "postgres://localhost/x",
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
