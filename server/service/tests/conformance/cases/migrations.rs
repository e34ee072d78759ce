//! A made-up migration of the next release, on a database that is in use.

use domain::MessageStatus::{Delivered, Submitted};
use service::{OpenError, Service};
use sqlx::{AssertSqlSafe, Executor as _, Row as _};
use store::dialect::SchemaChange;
use store::{Missing, Store};

use super::holds::{sent_to, submit_all};
use crate::database::{Backend, Database};
use crate::sending::{Sending, receipt};
use crate::uploads::{accepted, rows};

on_each_backend![
    a_migration_keeps_all_rows_and_the_previous_release_goes_on,
    a_failed_migration_changes_nothing,
];

/// Adds to the tables that every send uses. Can't run twice.
pub const NEXT: SchemaChange = (
    2,
    "next release",
    "CREATE TABLE made_up (id INTEGER PRIMARY KEY);
     INSERT INTO made_up (id) SELECT id FROM accounts;
     ALTER TABLE applications ADD COLUMN made_up INTEGER NOT NULL DEFAULT 7;
     ALTER TABLE accounts ADD COLUMN made_up TEXT;
     ALTER TABLE batches ADD COLUMN made_up TEXT;
     ALTER TABLE messages ADD COLUMN made_up TEXT;
     ALTER TABLE message_timeline ADD COLUMN made_up TEXT;
     ALTER TABLE queue ADD COLUMN made_up TEXT;
     ALTER TABLE segments ADD COLUMN made_up TEXT;
     ALTER TABLE transfers ADD COLUMN made_up TEXT;
     ALTER TABLE events ADD COLUMN made_up TEXT;
     ALTER TABLE carriers ADD COLUMN made_up TEXT;
     ALTER TABLE installation ADD COLUMN made_up TEXT;",
);
/// Its number says that programs of this release can't work with it.
const INCOMPATIBLE: SchemaChange = (4, "incompatible", "CREATE TABLE made_up_too (id INTEGER)");
const BROKEN: SchemaChange = (
    2,
    "broken",
    "CREATE TABLE made_up (id INTEGER PRIMARY KEY);
     INSERT INTO made_up (id) SELECT id FROM nothing_of_this_name;",
);

/// Migrates a database as a program does that has these migrations beyond those of this release.
pub async fn migrate(database: &Database, more: &[SchemaChange]) -> Result<(), OpenError> {
    let store = Store::open(&database.url(), Missing::Refuse).await?;
    let changes = [store.dialect().migrations(), more].concat();
    let migrated = store.migrate_by(&changes).await;
    store.close().await;
    migrated
}

/// Returns how many rows each table has.
pub async fn counts(database: &Database) -> Vec<i64> {
    let mut conn = database.connect().await;
    let mut counts = Vec::new();
    for table in store::copy::TABLES {
        let count = AssertSqlSafe(format!("SELECT COUNT(*) FROM {table}"));
        counts.push(sqlx::query(count).fetch_one(&mut conn).await.unwrap().get(0));
    }
    counts
}

/// Returns a customer with a delivered, a submitted and a queued message, and an upload half of
/// whose chunks are messages.
pub async fn in_use(backend: Backend) -> Sending {
    let sending = Sending::by_acme(backend).await;
    let delivered = sent_to(&sending, "12345670").await;
    sent_to(&sending, "12345671").await;
    assert_eq!(submit_all(&sending).await.len(), 2);
    sending.receive(receipt(&delivered.to_string(), Delivered)).await;
    sending.assert_status(delivered, Delivered).await;
    let upload = accepted(&sending.world, &sending.customer, &rows(600)).await;
    sending.world.service.messages().expand(upload).await.unwrap();
    sent_to(&sending, "12345672").await;
    sending
}

/// Sends and submits a message, and expands an upload.
pub async fn assert_works(sending: &Sending) {
    let id = sent_to(sending, "12345673").await;
    accepted(&sending.world, &sending.customer, "12345674,a\n").await;
    sending.world.expand_all().await;
    while !submit_all(sending).await.is_empty() {}
    sending.assert_status(id, Submitted).await;
    sending.receive(receipt(&id.to_string(), Delivered)).await;
    sending.assert_status(id, Delivered).await;
    sending.assert_sound().await;
}

async fn a_migration_keeps_all_rows_and_the_previous_release_goes_on(backend: Backend) {
    let sending = in_use(backend).await;
    let database = &sending.world.database;
    // On PostgreSQL, a node of this release works meanwhile.
    if backend != Backend::SHARED {
        sending.world.service.close().await;
    }
    let before = counts(database).await;
    migrate(database, &[NEXT]).await.unwrap();
    assert_eq!(counts(database).await, before);
    assert_eq!(database.number("SELECT COUNT(*) FROM made_up").await, before[2]);
    if backend == Backend::SHARED {
        assert_works(&sending).await;
    }
    let sending = sending.reopen().await;
    assert_works(&sending).await;
    let database = &sending.world.database;
    let beside = Service::open_beside(sending.world.config()).await.unwrap();
    assert_eq!(beside.operations().check().await.unwrap(), Vec::<String>::new());
    beside.close().await;

    sending.world.service.close().await;
    migrate(database, &[NEXT, INCOMPATIBLE]).await.unwrap();
    for refused in [
        Service::open(sending.world.config()).await.err(),
        Service::open_beside(sending.world.config()).await.err(),
        Service::migrate(&database.url()).await.err(),
        migrate(database, &[NEXT]).await.err(),
    ] {
        assert!(matches!(refused, Some(OpenError::Newer(4))), "{refused:?}");
    }
}

async fn a_failed_migration_changes_nothing(backend: Backend) {
    let sending = in_use(backend).await;
    let database = &sending.world.database;
    sending.world.service.close().await;
    let before = counts(database).await;
    migrate(database, &[BROKEN]).await.unwrap_err();
    assert_eq!(counts(database).await, before);
    assert!(database.connect().await.execute("SELECT id FROM made_up").await.is_err());
    migrate(database, &[NEXT]).await.unwrap();
    assert_works(&sending.reopen().await).await;
}
