//! Prepares every statement once: a misspelt column fails here and not at three in the morning.

use sqlx::{AssertSqlSafe, Executor as _};

use super::{Missing, Store};

#[tokio::test]
async fn every_statement_can_be_prepared() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("statements.db").display());
    let store = Store::open(&url, Missing::Make).await.unwrap();
    store.migrate().await.unwrap();
    let modules = [
        super::accounts::STATEMENTS,
        super::applications::STATEMENTS,
        super::audit::STATEMENTS,
        super::batches::STATEMENTS,
        super::carriers::STATEMENTS,
        super::check::STATEMENTS,
        super::deposits::STATEMENTS,
        super::idempotency::STATEMENTS,
        super::installation::STATEMENTS,
        super::messages::STATEMENTS,
        super::queue::STATEMENTS,
        super::reports::STATEMENTS,
        super::segments::STATEMENTS,
        super::senders::STATEMENTS,
        super::sessions::STATEMENTS,
        super::tally::STATEMENTS,
        super::throttles::STATEMENTS,
        super::transfers::STATEMENTS,
    ];
    let mut statements: Vec<(&str, String)> = modules
        .iter()
        .flat_map(|module| module.iter().map(|(name, sql)| (*name, (*sql).to_owned())))
        .collect();
    statements.extend(
        store
            .dialect()
            .batch()
            .all()
            .map(|(name, sql)| (name, sql.to_owned())),
    );
    statements.extend(
        super::reports::every_list_sql(store.dialect().batch())
            .into_iter()
            .map(|sql| ("list", sql)),
    );
    let mut conn = store.exclusive().await.unwrap();
    for (name, sql) in statements {
        let prepared = conn.prepare(AssertSqlSafe(sql).into_sql_str()).await;
        assert!(prepared.is_ok(), "{name}: {:?}", prepared.err());
    }
}

/// A batch's statement that goes through a whole table is fast in every test, and takes seconds once there are a
/// million rows.
#[tokio::test]
async fn no_statement_of_a_batch_scans_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("statements.db").display());
    let store = Store::open(&url, Missing::Make).await.unwrap();
    store.migrate().await.unwrap();
    let mut conn = store.exclusive().await.unwrap();
    for (name, sql) in store.dialect().batch().all() {
        if name == "copy" {
            continue;
        }
        let plan = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        // Parameters that aren't bound are null.
        for row in sqlx::query(plan).fetch_all(&mut *conn).await.unwrap() {
            let step: String = row.get("detail");
            let through_json = step.contains("VIRTUAL TABLE");
            let grows = [
                "messages",
                "segments",
                "s",
                "queue",
                "parked_receipts",
                "p",
                "i",
            ];
            let scans = grows.iter().any(|table| {
                step.strip_prefix("SCAN ")
                    .and_then(|rest| rest.split(' ').next())
                    == Some(table)
            });
            assert!(!scans || through_json, "{name}: {step}");
        }
    }
}

use sqlx::{Row as _, SqlSafeStr as _};
