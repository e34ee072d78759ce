use std::sync::atomic::Ordering;

use service::{OpenError, Refusal, Service};

use crate::world::{HOUR_MS, World, money, plain, upload};

#[tokio::test]
async fn a_backup_is_a_whole_database() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "1").await;
    world.send(&customer.live, "12345678").await.unwrap();
    let copy = world.folder().join("copy.db");
    world.service.backup(&copy).await.unwrap();
    let again = world.service.backup(&copy).await.unwrap_err();
    assert_eq!(again.refusal(), Some(&Refusal::FileExists));
    world.send(&customer.live, "12345678").await.unwrap();
    let mut config = world.config();
    config.database_url = format!("sqlite:{}", copy.display());
    config.data_dir = world.folder().join("restored");
    let restored = Service::open(config).await.unwrap();
    assert_eq!(restored.check().await.unwrap(), Vec::<String>::new());
    let access = restored
        .authorize(Some(customer.live.expose()))
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

#[tokio::test]
async fn a_second_process_may_work_beside_the_one_that_serves_but_not_serve() {
    let world = World::new().await;
    let second = Service::open(world.config()).await;
    assert!(matches!(second, Err(OpenError::Served(_))));
    let beside = Service::open_beside(world.config()).await.unwrap();
    beside.price_list().await.unwrap();
    beside.close().await;
    world.reopen().await.assert_sound().await;
}

#[tokio::test]
async fn a_command_beside_the_server_makes_no_database_and_keeps_the_prices() {
    let world = World::new().await;
    let mut config = world.config();
    config.database_url = format!("sqlite:{}/misspelt.db", world.folder().display());
    let missing = Service::open_beside(config).await;
    assert!(matches!(missing, Err(OpenError::Missing(_))));
    assert!(!world.folder().join("misspelt.db").exists());
    let mut config = world.config();
    config.prices = crate::world::prices("1", "2");
    let beside = Service::open_beside(config).await.unwrap();
    assert_eq!(
        beside.price_list().await.unwrap().prices,
        world.config().prices
    );
}

#[cfg(unix)]
#[tokio::test]
async fn the_database_and_its_copies_are_their_owners_alone() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = World::new().await;
    world.account("one@example.org").await;
    world
        .service
        .backup(&world.folder().join("data/copy.db"))
        .await
        .unwrap();
    for entry in std::fs::read_dir(world.folder().join("data")).unwrap() {
        let entry = entry.unwrap();
        if entry
            .path()
            .extension()
            .is_none_or(|extension| extension != "lock")
        {
            let mode = entry.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0, "{}", entry.path().display());
        }
    }
}

#[tokio::test]
async fn a_data_folder_has_one_process_that_serves() {
    let world = World::new().await;
    let mut config = world.config();
    config.database_url = format!("sqlite:{}", world.folder().join("other.db").display());
    let refused = Service::open(config.clone()).await.err().unwrap();
    assert!(matches!(refused, OpenError::Served(_)), "{refused}");
    world.service.close().await;
    Service::open(config).await.unwrap();
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
