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

use sqlx::SqlSafeStr as _;
