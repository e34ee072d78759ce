//! What only a database that is a file has: one process that serves it, copies, and uploads in
//! files beside it.

use domain::records::BatchStatus;
use service::{Config, OpenError, Refusal, Service};
use sqlx::{AssertSqlSafe, Executor as _, Row as _};

use crate::batches::{accepted, batch, rows};
use crate::world::{World, money};

#[tokio::test]
async fn what_a_crash_left_is_taken_up_or_swept() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "400").await;
    let id = accepted(&world, &customer, &rows(4500)).await;
    world.service.expand(id).await.unwrap();
    let ticket = world
        .service
        .begin_bulk(Some(customer.live.expose()), None)
        .await
        .unwrap();
    let mut cut_off = ticket
        .upload(domain::BulkMode::OneToOne, domain::BulkWriting::Plain)
        .await
        .unwrap();
    cut_off.write(b"12345678,a\n").await.unwrap();
    assert_eq!(world.database.spools().len(), 2);
    // As a killed process: its destructors never run.
    std::mem::forget(cut_off);
    drop(ticket);
    let world = world.reopen().await;
    assert_eq!(world.database.spools().len(), 1);
    world.expand_all().await;
    assert_eq!(batch(&world, &customer, id).await.counts.queued, 4500);
    assert!(world.database.spools().is_empty());
    world.assert_sound().await;
}

#[tokio::test]
async fn a_backup_carries_what_is_not_expanded_yet() {
    let world = World::new().await;
    let customer = world.active("one@example.org", "400").await;
    let id = accepted(&world, &customer, &rows(4500)).await;
    world.service.expand(id).await.unwrap();
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("heliograph.db");
    world.service.backup(&file).await.unwrap();
    assert!(world.service.backup(&file).await.is_err());
    world.expand_all().await;
    // As the docs say how to restore: the folder becomes the data folder's.
    std::fs::rename(
        place.path().join("heliograph.db.spool"),
        place.path().join("spool"),
    )
    .unwrap();
    let restored = Service::open(Config {
        database_url: format!("sqlite:{}", file.display()),
        data_dir: place.path().to_owned(),
        ..world.config()
    })
    .await
    .unwrap();
    restored.expand(id).await.unwrap();
    let access = world.access(&customer.live).await;
    let record = restored.batch(&access, id).await.unwrap().unwrap();
    assert_eq!(
        (record.status, record.counts.queued),
        (BatchStatus::Sending, 4500)
    );
    assert_eq!(restored.check().await.unwrap(), Vec::<String>::new());
    restored.close().await;
}

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

#[tokio::test]
async fn a_command_of_another_release_changes_nothing() {
    const VERSION: &str = "SELECT version FROM _sqlx_migrations";
    let world = World::new().await;
    let mut conn = world.database.connect().await;
    for (change, word) in [
        ("version = 9999", "newer release"),
        ("version = 0", "older release"),
        ("version = 1, checksum = x'00'", "earlier build"),
    ] {
        let change = format!("UPDATE _sqlx_migrations SET {change}");
        conn.execute(AssertSqlSafe(change)).await.unwrap();
        let before = conn.fetch_one(VERSION).await.unwrap().get::<i64, _>(0);
        let refused = Service::open_beside(world.config()).await.err().unwrap();
        assert!(refused.to_string().contains(word), "{refused}");
        let after = conn.fetch_one(VERSION).await.unwrap().get::<i64, _>(0);
        assert_eq!(before, after);
    }
    world.service.close().await;
    for refused in [
        Service::open(world.config()).await.err(),
        Service::migrate(&world.database.url()).await.err(),
    ] {
        assert!(matches!(refused, Some(OpenError::EarlierBuild)));
    }
}

#[tokio::test]
async fn a_command_beside_the_server_sets_up_no_database() {
    let world = World::new().await;
    let mut config = world.config();
    let file = world.folder().join("empty.db");
    std::fs::write(&file, "").unwrap();
    config.database_url = format!("sqlite:{}", file.display());
    let empty = Service::open_beside(config).await.err();
    assert!(matches!(empty, Some(OpenError::Empty)));
}

#[tokio::test]
async fn a_database_that_is_served_is_not_migrated() {
    let world = World::new().await;
    let url = world.database.url();
    let refused = Service::migrate(&url).await.err();
    assert!(matches!(refused, Some(OpenError::Served(_))));
    world.service.close().await;
    Service::migrate(&url).await.unwrap();
    world.reopen().await.assert_sound().await;
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
