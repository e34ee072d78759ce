//! Tests that prepare every statement once, so that a misspelled column fails here and not in
//! production.

use sqlx::{
    AssertSqlSafe, Connection as _, Executor as _, PgConnection, Row as _, SqlSafeStr as _,
};

use super::history::MessageTables;
use super::sql::{Dialect, Sql};
use super::{Missing, Store};

mod statements_on_citus;

/// The databases to prepare statements for: SQLite, and the PostgreSQL that the test command
/// starts.
pub(crate) async fn stores(folder: &std::path::Path) -> [Store; 2] {
    let server = std::env::var("HELIOGRAPH_TEST_POSTGRES")
        .expect("HELIOGRAPH_TEST_POSTGRES is not set: `make test-rust` starts PostgreSQL");
    let (start, _) = server.rsplit_once('/').unwrap();
    let name = format!("statements_{}", folder.file_name().unwrap().display())
        .replace(['.', '-'], "_")
        .to_lowercase();
    let mut conn = PgConnection::connect(&server).await.unwrap();
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

pub(crate) fn open_file(store: &Store) -> rusqlite::Connection {
    rusqlite::Connection::open(store.dialect().file(store.url()).unwrap()).unwrap()
}

/// Returns the steps of SQLite's plan for a statement. Unbound parameters are null.
pub(crate) fn sqlite_plan(conn: &rusqlite::Connection, sql: &str) -> Vec<String> {
    let mut plan = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let steps = plan.raw_query().mapped(|row| row.get("detail"));
    steps.map(Result::unwrap).collect()
}

#[tokio::test]
async fn every_statement_can_be_prepared_for_each_database() {
    let folder = tempfile::tempdir().unwrap();
    let [sqlite, postgres] = stores(folder.path()).await;
    let conn = open_file(&sqlite);
    let mut failed = Vec::new();
    for (name, sql) in all_statements(Dialect::Sqlite) {
        let prepared = conn.prepare(&sql);
        failed.extend(prepared.err().map(|error| format!("{name}: {error}")));
    }
    let mut conn = postgres.connect().await.unwrap();
    for (name, sql) in all_statements(Dialect::Postgres) {
        let prepared = conn.prepare(AssertSqlSafe(sql).into_sql_str()).await;
        failed.extend(prepared.err().map(|error| format!("{name}: {error}")));
    }
    assert_eq!(failed, Vec::<String>::new());
}

/// The statements of every file that declares statements.
const FILES: &[&[(&str, Sql)]] = &[
    super::account_notes::STATEMENTS,
    super::accounts::STATEMENTS,
    super::alarms::STATEMENTS,
    super::api_calls::STATEMENTS,
    super::api_keys::STATEMENTS,
    super::applications::STATEMENTS,
    super::approvals::STATEMENTS,
    super::audit::STATEMENTS,
    super::audit_chain::STATEMENTS,
    super::audit_check::STATEMENTS,
    super::balances::STATEMENTS,
    super::batches::STATEMENTS,
    super::billing::STATEMENTS,
    super::carrier_commands::STATEMENTS,
    super::carrier_figures::STATEMENTS,
    super::carriers::STATEMENTS,
    super::check::STATEMENTS,
    super::claims::STATEMENTS,
    super::confirmations::STATEMENTS,
    super::copy::STATEMENTS,
    super::data_folders::STATEMENTS,
    super::deposits::STATEMENTS,
    super::distribute::STATEMENTS,
    super::erasure::STATEMENTS,
    super::events::STATEMENTS,
    super::history::STATEMENTS,
    super::unpaid::STATEMENTS,
    super::recount::STATEMENTS,
    super::idempotency::STATEMENTS,
    super::inbound::STATEMENTS,
    super::inbound_numbers::STATEMENTS,
    super::incidents::STATEMENTS,
    super::hold::STATEMENTS,
    super::installation::STATEMENTS,
    super::known_devices::STATEMENTS,
    super::margins::STATEMENTS,
    super::messages::STATEMENTS,
    super::nodes::STATEMENTS,
    super::notices::STATEMENTS,
    super::opt_outs::STATEMENTS,
    super::verifications::STATEMENTS,
    super::outbox::STATEMENTS,
    super::unmatched_receipts::STATEMENTS,
    super::passkeys::STATEMENTS,
    super::postgres::STATEMENTS,
    super::prices::STATEMENTS,
    super::quarters::STATEMENTS,
    super::queue::STATEMENTS,
    super::raw_receipts::STATEMENTS,
    super::recent::STATEMENTS,
    super::recipients::STATEMENTS,
    super::reports::STATEMENTS,
    super::schema::STATEMENTS,
    super::second_factors::STATEMENTS,
    super::security_events::STATEMENTS,
    super::segments::STATEMENTS,
    super::senders::STATEMENTS,
    super::sessions::STATEMENTS,
    super::shared::STATEMENTS,
    super::staff_lists::STATEMENTS,
    super::case_viewers::STATEMENTS,
    super::statements::STATEMENTS,
    super::submits::STATEMENTS,
    super::tally::STATEMENTS,
    super::test_clocks::STATEMENTS,
    super::timeline::STATEMENTS,
    super::transfers::STATEMENTS,
    super::group_call::STATEMENTS,
    super::commit_groups::STATEMENTS,
    super::usual_times::STATEMENTS,
    super::webhooks::STATEMENTS,
];

/// Returns every declared statement with its name.
pub(crate) fn declared() -> impl Iterator<Item = (&'static str, Sql)> {
    FILES.iter().copied().flatten().copied()
}

/// No test would check the statements of a file that is missing from `FILES`.
#[test]
fn every_file_that_declares_statements_is_listed() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
    let files = std::fs::read_dir(folder).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let sources = paths.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    let declaring = sources.filter(|path| {
        let text = std::fs::read_to_string(path).unwrap();
        text.contains("\nstatements! {")
    });
    assert_eq!(declaring.count(), FILES.len());
}

/// Returns every statement with its name, in the text for this database.
fn all_statements(dialect: Dialect) -> Vec<(&'static str, String)> {
    let declared = declared().map(|(name, sql)| (name, sql.of(dialect).to_owned()));
    let lists = super::reports::tests::every_list_sql(dialect).into_iter();
    declared.filter(|(_, sql)| !sql.is_empty()).chain(lists.map(|sql| ("list", sql))).collect()
}

/// SQLite builds a b-tree for a list of more than two constants: at every execution of a statement
/// with such a list, and at every change of a row whose table has one in a CHECK. So neither the
/// schemas nor the statements may have such a list.
#[test]
fn no_list_has_more_than_two_constants() {
    for dialect in [Dialect::Sqlite, Dialect::Postgres] {
        let schemas = dialect.migrations().iter();
        let schemas = schemas.map(|(_, name, sql)| (*name, (*sql).to_owned()));
        for (name, sql) in schemas.chain(all_statements(dialect)) {
            assert_eq!(long_lists(&sql), Vec::<String>::new(), "{dialect:?}: {name}");
        }
    }
    let found = long_lists(
        "CHECK (kind IN ('a', 'b', 'c')), -- IN (1, 2, 3)\n a in(0,1) AND (x, y) IN (SELECT a, b, c) OR b NOT IN\n(1, 2, 3)",
    );
    assert_eq!(found, ["('a', 'b', 'c')", "(1, 2, 3)"]);
}

/// Returns the lists of more than two constants that follow an IN.
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

/// A statement over messages reads only the days of its messages, however many days there are.
#[tokio::test]
async fn statements_over_messages_look_at_their_days_alone() {
    let folder = tempfile::tempdir().unwrap();
    let [_, store] = stores(folder.path()).await;
    let mut conn = store.connect().await.unwrap();
    for day in 20_000..20_030 {
        let mut tx = conn.begin().await.unwrap();
        assert!(store.dialect().make_day(&mut tx, day, MessageTables::Day).await.unwrap());
        tx.commit().await.unwrap();
    }
    let id = domain::ids::id_of_day(20_007);
    let names = ["LOCK", "OPEN", "ROUTED"];
    let statements = [super::messages::STATEMENTS, super::queue::STATEMENTS];
    let statements = statements.concat();
    for wanted in names {
        let (_, sql) = statements.iter().find(|(name, _)| *name == wanted).unwrap();
        let plan = AssertSqlSafe(format!("EXPLAIN {}", sql.postgres));
        let rows = sqlx::query(plan)
            .bind(format!("[{id}]"))
            .bind(id)
            .bind(id + 1)
            .bind(1_i64)
            .fetch_all(&mut conn)
            .await
            .unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let days = steps.iter().filter(|step| step.contains("on messages_"));
        assert_eq!(days.count(), 1, "{steps:#?}");
    }
}

/// Counts the steps of SQLite's virtual machine that a statement takes. They grow with the rows
/// that it reads.
fn sqlite_steps(conn: &rusqlite::Connection, sql: &str, values: &[i64]) -> i32 {
    let mut statement = conn.prepare(sql).unwrap();
    // SQLite numbers `$1` and so on in the order in which they appear.
    let place = |statement: &rusqlite::Statement<'_>, number: usize| {
        statement.parameter_index(&format!("${number}")).unwrap().unwrap()
    };
    let first = place(&statement, 1);
    statement.raw_bind_parameter(first, "acme").unwrap();
    for (value, number) in values.iter().zip(2..) {
        let place = place(&statement, number);
        statement.raw_bind_parameter(place, value).unwrap();
    }
    let mut rows = statement.raw_query();
    while rows.next().unwrap().is_some() {}
    drop(rows);
    statement.get_status(rusqlite::StatementStatus::VmStep)
}

/// PostgreSQL has the same test in `group_call/plans.rs`, for all statements of a group.
#[tokio::test]
async fn scheduled_messages_cost_nothing_until_they_are_due() {
    const NOW: i64 = 1_000_000;
    const LATER: i64 = NOW + 24 * 60 * 60 * 1000;
    let folder = tempfile::tempdir().unwrap();
    let [store, _] = stores(folder.path()).await;
    let conn = open_file(&store);
    // A claim looks up the applications of the rows that it finds.
    conn.execute_batch(
        "PRAGMA foreign_keys = OFF;
         INSERT INTO applications (id, account_id, category, reference, live_hash, test_hash,
             status, sender_state, balance, test_balance, test_day, created_at)
         VALUES (1, 1, 'sms', 1, 'live', 'test', 'Active', 'none', 0, 0, 0, 0)",
    )
    .unwrap();
    let fill = |count: i64, ids_from: i64, due_at: i64| {
        conn.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
             INSERT INTO queue (message_id, application_id, carrier, deferred, bulk, due_at,
                 lease_token, attempts, expires_at)
             SELECT ?2 + i, 1, 'acme', 0, i % 2, ?3, 0, 0, ?3 + 1 FROM n",
            [count, ids_from, due_at],
        )
        .unwrap();
    };
    let find = |name: &str| {
        let mut statements = super::claims::STATEMENTS.iter().chain(super::queue::STATEMENTS);
        statements.find(|(its, _)| *its == name).unwrap().1.sqlite
    };
    // The parameters of the first statement are the time, the least ID, the limits and the lower
    // bounds. Those of the second are the least ID, the lower bounds and the time.
    let taken = || {
        let due = sqlite_steps(&conn, find("DUE"), &[NOW, 0, 100, 100, 0, 0]);
        let waiting = sqlite_steps(&conn, find("WAITING"), &[NOW, NOW + 1]);
        let unrouted = sqlite_steps(&conn, find("UNROUTED"), &[100, NOW]);
        let others = [waiting, unrouted, sqlite_steps(&conn, find("NEXT_CARRIER"), &[])];
        (due, sqlite_steps(&conn, find("NEXT_DUE"), &[0, 0, 0, NOW]), others)
    };
    fill(10, 0, NOW);
    fill(2, 1_000, LATER);
    let before = taken();
    fill(10_000, 10_000, LATER);
    assert_eq!(taken(), before);
    // Otherwise, the count wouldn't show which rows are read.
    fill(10, 100_000, NOW);
    let after = taken();
    assert!(after.0 > before.0 && after.2[0] > before.2[0] && after.2[1] > before.2[1]);
}

/// `group_call/plans.rs` has the plans of claims.
#[tokio::test]
async fn postgres_counts_the_queue_without_its_scheduled_messages() {
    let folder = tempfile::tempdir().unwrap();
    let [_, store] = stores(folder.path()).await;
    let mut conn = store.connect().await.unwrap();
    for statement in [
        "INSERT INTO queue (shard, message_id, application_id, carrier, deferred, bulk, due_at,
             lease_token, attempts, expires_at)
         SELECT 1, i, 1, CASE WHEN i % 4 = 0 THEN 'acme' ELSE 'beta' END, 0, i % 2, 1000000 + i, 0,
             0, 2000000
         FROM generate_series(1::bigint, 20000) i",
        "ANALYZE queue",
    ] {
        conn.execute(statement).await.unwrap();
    }
    for (name, values) in [
        ("WAITING", "('acme', 1000, 2000, 1)"),
        ("UNROUTED", "('acme', 100, 1000, 1)"),
        ("NEXT_CARRIER", "('acme', 1)"),
    ] {
        let (_, sql) = super::queue::STATEMENTS.iter().find(|(its, _)| *its == name).unwrap();
        let prepared = format!("PREPARE {name} AS {}", sql.postgres);
        conn.execute(AssertSqlSafe(prepared)).await.unwrap();
        let plan = AssertSqlSafe(format!("EXPLAIN EXECUTE {name} {values}"));
        let rows = conn.fetch_all(plan).await.unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        let plan = steps.join("\n");
        assert!(!plan.contains("Seq Scan on queue") && plan.contains("queue_due"), "{plan}");
        assert!(name == "NEXT_CARRIER" || plan.contains("due_at <="), "{plan}");
    }
}

/// My Applications sums the scheduled batches of each application, which may have had many others.
#[tokio::test]
async fn lists_of_an_application_read_only_their_rows() {
    let folder = tempfile::tempdir().unwrap();
    let [sqlite, postgres] = stores(folder.path()).await;
    let file = open_file(&sqlite);
    let mut conn = postgres.connect().await.unwrap();
    for statement in [
        "INSERT INTO batches (shard, id, application_id, test, rows, pages, cost, price_local,
             price_international, first_message_id, last_message_id, spool, created_at, price_id,
             waits_until, spool_offset, expanded_rows, expanded_cost, open, released)
         SELECT 1, i, i % 97, 0, 1, 1, 1, 1, 1, i, i, '', 0, 1, CASE WHEN i % 20 = 0 THEN i END, 0,
             0, 0, 1, 0
         FROM generate_series(1::bigint, 20000) i",
        "ANALYZE batches",
    ] {
        conn.execute(statement).await.unwrap();
    }
    for (name, values) in
        [("SCHEDULED_ROWS", "(1, 0, 1000, 1)"), ("LIST_SCHEDULED", "(1, 0, 20000, 50, NULL, 1)")]
    {
        let (_, sql) = super::batches::STATEMENTS.iter().find(|(its, _)| *its == name).unwrap();
        let plan = sqlite_plan(&file, sql.sqlite).join("\n");
        assert!(plan.contains("batches_scheduled"), "{name}: {plan}");
        let prepared = format!("PREPARE {name} AS {}", sql.postgres);
        conn.execute(AssertSqlSafe(prepared)).await.unwrap();
        let plan = AssertSqlSafe(format!("EXPLAIN EXECUTE {name} {values}"));
        let rows = conn.fetch_all(plan).await.unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.get(0)).collect();
        assert!(steps.join("\n").contains("batches_scheduled"), "{name}: {steps:#?}");
    }
    let wanted = super::audit::Wanted {
        of_application: Some("012345".to_owned()),
        action: Some("batch.cancel".to_owned()),
        ..super::audit::Wanted::default()
    };
    let (sql, _) = wanted.listing();
    conn.prepare(AssertSqlSafe(sql.clone()).into_sql_str()).await.unwrap();
    let plan = sqlite_plan(&file, &sql);
    for index in ["audit_by_subject (subject=? AND ", "audit_by_application (application=? AND "] {
        assert!(plan.iter().any(|step| step.contains(index)), "{plan:#?}");
    }
}

/// Traffic statements are those that take many rows, or that lock rows on PostgreSQL. A statement
/// that scans a whole table is fast in every test, but takes seconds when the table has a million
/// rows.
#[tokio::test]
async fn no_statement_of_the_traffic_scans_a_table() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite:{}", folder.path().join("statements.db").display());
    let store = Store::open(&url, Missing::Make).await.unwrap();
    store.migrate().await.unwrap();
    let conn = open_file(&store);
    let of_traffic = |(_, sql): &(&str, Sql)| {
        let many = sql.sqlite.contains("?1") || sql.sqlite.contains("json_");
        many || (sql.postgres.contains("FOR UPDATE") && !sql.sqlite.is_empty())
    };
    for (name, sql) in declared().filter(of_traffic) {
        for step in sqlite_plan(&conn, sql.sqlite) {
            let through_json = step.contains("VIRTUAL TABLE");
            let grows = [
                "messages",
                "m",
                "segments",
                "s",
                "queue",
                "unmatched_receipts",
                "raw_receipts",
                "p",
                "i",
                "inbound_seen",
                "inbound_parts",
                "inbound_messages",
                "opt_outs",
                "o",
            ];
            let scans = grows.iter().any(|table| {
                step.strip_prefix("SCAN ").and_then(|rest| rest.split(' ').next()) == Some(table)
            });
            assert!(!scans || through_json, "{name}: {step}");
        }
    }
}
