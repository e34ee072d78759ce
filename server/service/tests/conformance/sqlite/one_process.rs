//! Only one process serves a database. Commands may use it at the same time.

use service::{OpenError, Service};

use crate::database::Backend;
use crate::world::World;

#[tokio::test]
async fn a_second_process_may_work_beside_the_one_that_serves_but_not_serve() {
    let world = World::new(Backend::Sqlite).await;
    let second = Service::open(world.config()).await;
    assert!(matches!(second, Err(OpenError::Served(_))));
    let beside = Service::open_beside(world.config()).await.unwrap();
    beside.money().price_list().await.unwrap();
    beside.close().await;
    world.reopen().await.assert_sound().await;
}

#[tokio::test]
async fn a_command_beside_the_server_makes_no_database_and_keeps_the_prices() {
    let world = World::new(Backend::Sqlite).await;
    let mut config = world.config();
    config.database_url = format!("sqlite:{}/misspelt.db", world.folder().display());
    let missing = Service::open_beside(config).await;
    assert!(matches!(missing, Err(OpenError::Missing(_))));
    assert!(!world.folder().join("misspelt.db").exists());
    let mut config = world.config();
    config.prices = crate::world::prices("1", "2");
    let beside = Service::open_beside(config).await.unwrap();
    assert_eq!(beside.money().price_list().await.unwrap().prices, world.config().prices);
}

#[tokio::test]
async fn a_command_beside_the_server_sets_up_no_database() {
    let world = World::new(Backend::Sqlite).await;
    let mut config = world.config();
    let file = world.folder().join("empty.db");
    std::fs::write(&file, "").unwrap();
    config.database_url = format!("sqlite:{}", file.display());
    let empty = Service::open_beside(config).await.err();
    assert!(matches!(empty, Some(OpenError::Empty)));
}

#[tokio::test]
async fn a_database_that_is_served_is_not_migrated() {
    let world = World::new(Backend::Sqlite).await;
    let url = world.database.url();
    let refused = Service::migrate(&url).await.err();
    assert!(matches!(refused, Some(OpenError::Served(_))));
    world.service.close().await;
    Service::migrate(&url).await.unwrap();
    world.reopen().await.assert_sound().await;
}

#[tokio::test]
async fn a_data_folder_has_one_process_that_serves() {
    let world = World::new(Backend::Sqlite).await;
    let mut config = world.config();
    config.database_url = format!("sqlite:{}", world.folder().join("other.db").display());
    let refused = Service::open(config.clone()).await.err().unwrap();
    assert!(matches!(refused, OpenError::Served(_)), "{refused}");
    world.service.close().await;
    Service::open(config).await.unwrap();
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_closed_service_has_no_file_open() {
    let world = World::new(Backend::Sqlite).await;
    let folder = std::fs::canonicalize(world.folder()).unwrap();
    let open_files = || {
        let files = std::fs::read_dir("/proc/self/fd").unwrap();
        let paths = files.filter_map(|file| std::fs::read_link(file.ok()?.path()).ok());
        let of_service: Vec<_> = paths.filter(|path| path.starts_with(&folder)).collect();
        of_service
    };
    assert!(!open_files().is_empty());
    world.service.close().await;
    assert_eq!(open_files(), Vec::<std::path::PathBuf>::new());
}
