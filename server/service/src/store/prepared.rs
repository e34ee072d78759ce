//! Prepares every statement once: a misspelt column fails here and not at three in the morning.

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _};

use super::dialect::Dialect;
use super::{Missing, Store};

/// The databases to prepare statements for: SQLite, and PostgreSQL, which the test command starts.
pub(super) async fn stores(folder: &std::path::Path) -> [Store; 2] {
    let server = std::env::var("HELIOGRAPH_TEST_POSTGRES")
        .expect("HELIOGRAPH_TEST_POSTGRES is not set: `make test-rust` starts PostgreSQL");
    let (start, _) = server.rsplit_once('/').unwrap();
    let name = format!("statements_{}", folder.file_name().unwrap().display())
        .replace(['.', '-'], "_")
        .to_lowercase();
    sqlx::any::install_default_drivers();
    let mut conn = AnyConnection::connect(&server).await.unwrap();
    let make = format!("CREATE DATABASE {name}");
    conn.execute(AssertSqlSafe(make)).await.unwrap();
    let sqlite = format!("sqlite:{}", folder.join("statements.db").display());
    let mut stores = Vec::new();
    for url in [sqlite, format!("{start}/{name}")] {
        let store = Store::open(&url, Missing::Make).await.unwrap();
        store.migrate().await.unwrap();
        stores.push(store);
    }
    stores.try_into().ok().unwrap()
}

#[tokio::test]
async fn every_statement_can_be_prepared_for_each_database() {
    let folder = tempfile::tempdir().unwrap();
    for store in stores(folder.path()).await {
        prepare_all(&store).await;
    }
}

/// Every statement with its name, in a database's own words.
fn all_statements(dialect: Dialect) -> Vec<(&'static str, String)> {
    let modules = [
        super::accounts::STATEMENTS,
        super::applications::STATEMENTS,
        super::audit::STATEMENTS,
        super::batches::STATEMENTS,
        super::carriers::STATEMENTS,
        super::check::STATEMENTS,
        super::copy::STATEMENTS,
        super::deposits::STATEMENTS,
        super::history::STATEMENTS,
        super::idempotency::STATEMENTS,
        super::installation::STATEMENTS,
        super::messages::STATEMENTS,
        super::nodes::STATEMENTS,
        super::queue::STATEMENTS,
        super::reports::STATEMENTS,
        super::segments::STATEMENTS,
        super::senders::STATEMENTS,
        super::sessions::STATEMENTS,
        super::tally::STATEMENTS,
        super::throttles::STATEMENTS,
        super::transfers::STATEMENTS,
    ];
    let mut statements: Vec<(&'static str, String)> = modules
        .iter()
        .flat_map(|module| module.iter().map(|(name, sql)| (*name, (*sql).to_owned())))
        .collect();
    statements.extend(
        dialect
            .batch()
            .all()
            .into_iter()
            .map(|(name, sql)| (name, sql.to_owned())),
    );
    if dialect.is_shared() {
        let shared = super::shared::SHARED_STATEMENTS;
        statements.extend(shared.iter().map(|(name, sql)| (*name, (*sql).to_owned())));
    }
    statements.extend(
        super::reports::every_list_sql(dialect.batch())
            .into_iter()
            .map(|sql| ("list", sql)),
    );
    statements
}

async fn prepare_all(store: &Store) {
    let mut conn = store.connect().await.unwrap();
    let mut failed = Vec::new();
    for (name, sql) in all_statements(store.dialect()) {
        let prepared = conn.prepare(AssertSqlSafe(sql).into_sql_str()).await;
        failed.extend(prepared.err().map(|error| format!("{name}: {error}")));
    }
    assert_eq!(failed, Vec::<String>::new());
}

/// SQLite builds a b-tree for a list of more than two constants, at every execution of the
/// statement, and at every change of a row whose table checks one. Neither schema nor any statement
/// has one.
#[test]
fn no_list_has_more_than_two_constants() {
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let schemas = dialect.migrations().iter();
        let schemas = schemas.map(|(_, name, sql)| (*name, (*sql).to_owned()));
        for (name, sql) in schemas.chain(all_statements(dialect)) {
            assert_eq!(
                long_lists(&sql),
                Vec::<String>::new(),
                "{dialect:?}: {name}"
            );
        }
    }
    let found = long_lists(
        "CHECK (kind IN ('a', 'b', 'c')), -- IN (1, 2, 3)\n a in(0,1) AND (x, y) IN (SELECT a, b, c) OR b NOT IN\n(1, 2, 3)",
    );
    assert_eq!(found, ["('a', 'b', 'c')", "(1, 2, 3)"]);
}

/// The lists of more than two constants that stand after an IN.
fn long_lists(sql: &str) -> Vec<String> {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap());
    let sql = lines.collect::<Vec<_>>().join("\n");
    let lists = sql.match_indices('(').filter_map(|(start, _)| {
        let before = sql[..start].trim_end().to_uppercase();
        let is_list = before.ends_with(" IN") || before.ends_with("\nIN");
        let list = &sql[start..=start + sql[start..].find(')')?];
        (is_list && !list.to_uppercase().contains("SELECT") && list.matches(',').count() > 1)
            .then(|| list.to_owned())
    });
    lists.collect()
}

/// Of messages only the days that a batch is about are looked at, however many there are.
#[tokio::test]
async fn statements_over_messages_look_at_their_days_alone() {
    let folder = tempfile::tempdir().unwrap();
    let [_, store] = stores(folder.path()).await;
    let mut conn = store.connect().await.unwrap();
    for day in 20_000..20_030 {
        let mut tx = conn.begin().await.unwrap();
        assert!(store.dialect().make_day(&mut tx, day).await.unwrap());
        tx.commit().await.unwrap();
    }
    let batch = store.dialect().batch();
    let id = domain::ids::id_of_day(20_007);
    for statement in [
        batch.lock_messages.unwrap(),
        batch.open_messages,
        batch.claimed_messages,
        batch.routed_messages,
    ] {
        let plan = AssertSqlSafe(format!("EXPLAIN {statement}"));
        let rows = sqlx::query(plan)
            .bind(format!("[{id}]"))
            .bind(id)
            .bind(id + 1)
            .bind("{1}")
            .fetch_all(&mut conn)
            .await
            .unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let days = steps.iter().filter(|step| step.contains("on messages_"));
        assert_eq!(days.count(), 1, "{steps:#?}");
    }
}

/// A batch's statement that goes through a whole table is fast in every test, and takes seconds
/// once there are a million rows.
#[tokio::test]
async fn no_statement_of_a_batch_scans_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("statements.db").display());
    let store = Store::open(&url, Missing::Make).await.unwrap();
    store.migrate().await.unwrap();
    let mut conn = store.connect().await.unwrap();
    for (name, sql) in store.dialect().batch().all() {
        let plan = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {sql}"));
        // Parameters that aren't bound are null.
        for row in sqlx::query(plan).fetch_all(&mut conn).await.unwrap() {
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
