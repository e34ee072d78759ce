//! Databases that the service refuses to open.

use service::{KeyPlace, OpenError, Service, examine};
use sqlx::{AssertSqlSafe, Executor as _};

use super::second_factors::set_up;
use crate::database::Backend;
use crate::world::{HOUR_MS, World};

on_each_backend![
    a_command_of_another_release_changes_nothing,
    database_urls_without_a_durable_database_are_refused,
    an_examination_changes_nothing,
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

async fn an_examination_changes_nothing(backend: Backend) {
    let world = World::new(backend).await;
    let customer = world.active("one@example.org", "10").await;
    world.send(&customer.live, "57000001").await.unwrap();
    let examined = examine(&world.config()).await.unwrap();
    let is_file = world.database.url().starts_with("sqlite:");
    let program = if is_file { "SQLite 3." } else { "PostgreSQL 1" };
    assert!(examined.program.starts_with(program), "{}", examined.program);
    let found = examined.installation.unwrap();
    assert!(found.newest_ahead_ms < 1000 && found.backup_age_ms < HOUR_MS, "{found:?}");
    assert!(found.secret_key.is_ok() && found.held_since.is_none(), "{found:?}");
    assert_eq!(found.form_key, world.service.form_key().await.unwrap());

    set_up(&world, &customer.account).await;
    world.pass(-HOUR_MS);
    let found = examine(&world.config()).await.unwrap().installation.unwrap();
    assert!(found.newest_ahead_ms > HOUR_MS / 2);
    let file = world.folder().join("data/secret.key");
    let place = if is_file { KeyPlace::File(file) } else { KeyPlace::Database };
    assert_eq!(found.secret_key.unwrap(), place);
    let mut config = world.config();
    "EUR".clone_into(&mut config.currency);
    assert!(matches!(examine(&config).await, Err(OpenError::Currency { .. })));
}
