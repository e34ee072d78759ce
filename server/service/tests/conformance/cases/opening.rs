//! Databases that the service refuses to open.

use service::{OpenError, Service};
use sqlx::{AssertSqlSafe, Executor as _};

use crate::database::Backend;
use crate::world::World;

on_each_backend![
    a_command_of_another_release_changes_nothing,
    database_urls_without_a_durable_database_are_refused,
];

async fn a_command_of_another_release_changes_nothing(backend: Backend) {
    const VERSION: &str = "SELECT version FROM _sqlx_migrations";
    let world = World::new(backend).await;
    let database = &world.database;
    let mut conn = database.connect().await;
    let other_checksum = format!("version = 1, checksum = {}", database.no_bytes());
    for (change, word) in [
        ("version = 9999", "newer release"),
        ("version = 0", "older release"),
        (other_checksum.as_str(), "earlier build"),
    ] {
        let change = format!("UPDATE _sqlx_migrations SET {change}");
        conn.execute(AssertSqlSafe(change)).await.unwrap();
        let before = database.number(VERSION).await;
        let refused = Service::open_beside(world.config()).await.err().unwrap();
        assert!(refused.to_string().contains(word), "{refused}");
        assert_eq!(database.number(VERSION).await, before);
    }
    world.service.close().await;
    for refused in
        [Service::open(world.config()).await.err(), Service::migrate(&database.url()).await.err()]
    {
        assert!(matches!(refused, Some(OpenError::EarlierBuild)));
    }
}

async fn database_urls_without_a_durable_database_are_refused(backend: Backend) {
    let world = World::new(backend).await;
    for url in ["sqlite::memory:", "postgres:x", "mysql://x", "x", "sqlite:", ""] {
        let mut config = world.config();
        config.database_url = url.to_owned();
        assert!(Service::open(config).await.is_err(), "{url:?}");
    }
}
