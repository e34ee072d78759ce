//! Several processes that migrate one database at once.

use crate::cases::migrations::{NEXT, assert_works, counts, in_use, migrate};
use crate::database::Backend;

/// SQLite has one process at a time.
#[tokio::test]
async fn processes_that_start_at_once_migrate_once() {
    let sending = in_use(Backend::SHARED).await;
    let database = &sending.world.database;
    let before = counts(database).await;
    let migrated = futures_util::future::join_all((0..4).map(|_| migrate(database, &[NEXT]))).await;
    assert!(migrated.iter().all(Result::is_ok), "{migrated:?}");
    assert_eq!(counts(database).await, before);
    assert_eq!(database.number("SELECT COUNT(*) FROM _sqlx_migrations").await, 2);
    assert_works(&sending).await;
}
