//! A database of an earlier release, with data in it, is brought up to date.

use sqlx::Executor as _;

use super::{Missing, Store, check};

/// What a customer of the first release had: a deposit, and a message that was charged and delivered.
const BEFORE: &str = "\
    INSERT INTO installation VALUES (1, 'USD', 1, 0, 1); \
    INSERT INTO prices VALUES (1, 50000, 250000, 1); \
    INSERT INTO accounts VALUES (1, 'one@example.org', 'x', 'customer', 1, 1); \
    INSERT INTO applications (id, account_id, category, reference, live_hash, test_hash, status, \
        sender_state, balance, test_balance, test_day, created_at) \
    VALUES (1, 1, 'SMS', '123456', 'l', 't', 'Active', 'none', 950000, 0, -1, 1); \
    INSERT INTO deposits VALUES ('bank-1', '123456', 1000000, 1, 1, 1); \
    INSERT INTO transfers VALUES (1, -1, 1, 1000000, 'deposit', 1, NULL, 'bank-1', 1000000, 1); \
    INSERT INTO transfers VALUES (2, 1, -3, 50000, 'charge', 1, 7, NULL, 950000, 2); \
    INSERT INTO messages (id, application_id, test, number, kind, body, status, pages, segments, unit_price, \
        cost, released, created_at, submitted_at, final_at) \
    VALUES (7, 1, 0, '12345678', 'local', 'Hi', 'delivered', 1, 1, 50000, 50000, 0, 1704067200000, 2, 3)";

#[tokio::test]
async fn a_database_of_the_first_release_keeps_what_it_holds() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("old.db").display());
    let store = Store::open(&url, Missing::Make).await.unwrap();
    store.migrate_to(1).await.unwrap();
    let mut conn = store.connect().await.unwrap();
    conn.execute(BEFORE).await.unwrap();
    drop(conn);
    store.migrate().await.unwrap();
    let mut conn = store.connect().await.unwrap();
    assert_eq!(
        check::violations(&mut conn, 0).await.unwrap(),
        Vec::<String>::new()
    );
    let refused = conn.execute("UPDATE transfers SET amount = 1").await;
    assert!(refused.is_err());
    drop(conn);
    store.close().await;
}
