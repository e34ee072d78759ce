//! Tests the plans of the statements that find messages, with the statistics of many messages. A
//! list that reads too many messages is fast in every other test.

use domain::{BatchId, MessageStatus};
use rusqlite::Connection;
use sqlx::{Connection as _, Executor as _, PgConnection};

use super::super::history::MessageTables;
use super::super::postgres::{READER, SESSION};
use super::super::query::{At, query_in_shard};
use super::super::sql::Dialect;
use super::super::tests::{open_file, sqlite_plan, stores};
use super::paths;
use super::paths::list_scheduled;
use super::{Condition, Path};
use crate::names::with_names;
use domain::ids::{Shard, id_of_day};

/// Possible results of SQLite's ANALYZE for ten million messages of one customer, whose uploads
/// share a request ID: the number of rows, and how many of them share the first column, the first
/// two columns and so on.
const STATISTICS: &str = "
    ANALYZE;
    DELETE FROM sqlite_stat1;
    INSERT INTO sqlite_stat1 VALUES
        ('messages', 'messages_by_application', '10000000 10000000 10000000'),
        ('messages', 'messages_by_number', '10000000 10000000 5000000 5000000'),
        ('messages', 'messages_by_requestid', '9000000 9000000 9000000 9000000'),
        ('messages', 'messages_unusual', '9000000 9000000 9000000 9000000'),
        ('batches', 'batches_by_application', '1000000 200000 200000 1'),
        ('batches', 'batches_by_requestid', '1000000 200000 200000 100000'),
        ('batch_counts', 'batch_counts', '10000000 10 1'),
        ('queue', NULL, '1000000'),
        ('message_days', NULL, '10000000');
    ANALYZE sqlite_schema";

/// Returns the steps of SQLite's plan that read or sort rows.
fn reads(conn: &Connection, sql: &str) -> Vec<String> {
    let reads = |step: &String| {
        let of_the_list = step.ends_with(" m") || step.ends_with(" (subquery-1)");
        (step.starts_with("SEARCH") || step.starts_with("SCAN") || step.contains("B-TREE"))
            && !(step.starts_with("SCAN") && of_the_list)
    };
    sqlite_plan(conn, sql).into_iter().filter(reads).collect()
}

/// Returns how SQLite's plan names the index or table of a path.
fn sqlite_search(path: Path) -> &'static str {
    match path {
        Path::Application => "messages_by_application (application_id=? AND test=?",
        Path::Requestid => "messages_by_requestid (application_id=? AND test=? AND requestid=?",
        Path::Number => "messages_by_number (application_id=? AND number=? AND test=?",
        Path::Unusual => "messages_unusual (application_id=? AND test=? AND status=?",
        Path::Queue => "queue USING INTEGER PRIMARY KEY (",
    }
}

#[tokio::test]
async fn sqlite_goes_the_path_that_it_is_told_whatever_its_statistics_say() {
    let folder = tempfile::tempdir().unwrap();
    let [store, _] = stores(folder.path()).await;
    let conn = open_file(&store);
    for statistics in ["", STATISTICS] {
        conn.execute_batch(statistics).unwrap();
        for path in Path::ALL {
            for chosen in 0..16 {
                assert_sqlite_goes(&conn, path, chosen);
            }
        }
    }
}

fn assert_sqlite_goes(conn: &Connection, path: Path, chosen: u32) {
    let conditions = some_conditions(chosen);
    let leads = |condition: &&Condition| condition.path() == Some(path);
    let leading = conditions.iter().find(leads);
    let without = matches!(path, Path::Application | Path::Queue);
    if leading.is_none() && !without {
        return;
    }
    let mut statements = vec![path.list(Dialect::Sqlite, &conditions)];
    if path != Path::Queue {
        statements.push(path.count(Dialect::Sqlite, leading));
    }
    for sql in statements {
        let steps = reads(conn, &sql);
        let range =
            if path == Path::Queue { "rowid>? AND rowid<?" } else { " AND rowid>? AND rowid<?" };
        let expected = format!("{}{range})", sqlite_search(path));
        assert!(steps[0].ends_with(&expected), "{sql}: {steps:#?}");
        // The steps that follow read the messages one by one, and the batches of those messages
        // that have no text of their own.
        for step in &steps[1..] {
            let one_by_one = ["m", "b"]
                .map(|table| format!("SEARCH {table} USING INTEGER PRIMARY KEY (rowid=?)"));
            assert!(one_by_one.contains(step), "{sql}: {steps:#?}");
        }
    }
}

#[tokio::test]
async fn sqlite_finds_uploads_and_counts_by_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let [store, _] = stores(folder.path()).await;
    let conn = open_file(&store);
    let statements = [super::super::batches::STATEMENTS, super::super::tally::STATEMENTS].concat();
    for statistics in ["", STATISTICS] {
        conn.execute_batch(statistics).unwrap();
        for (wanted, index) in [
            ("LIST", "batches_by_application (application_id=? AND test=?"),
            (
                "LIST_OF_REQUEST",
                "batches_by_requestid (application_id=? AND test=? AND requestid=?",
            ),
            ("DAYS_OF_STATUS", "PRIMARY KEY (application_id=? AND test=? AND day>? AND day<?"),
        ] {
            let (_, sql) = statements.iter().find(|(name, _)| *name == wanted).unwrap();
            let steps = reads(&conn, sql.sqlite);
            assert!(steps[0].contains(index), "{steps:#?}");
            // The counts of the batches on the page, `b`, are looked up batch by batch.
            let one_by_one = ["SCAN b", "SEARCH c USING PRIMARY KEY (batch_id=?)"];
            assert!(wanted == "DAYS_OF_STATUS" || steps[1..] == one_by_one, "{steps:#?}");
        }
    }
}

#[tokio::test]
async fn sqlite_lists_scheduled_messages_in_the_order_of_their_index() {
    let folder = tempfile::tempdir().unwrap();
    let [store, _] = stores(folder.path()).await;
    let conn = open_file(&store);
    for statistics in ["", STATISTICS] {
        conn.execute_batch(statistics).unwrap();
        let steps = reads(&conn, &list_scheduled(Dialect::Sqlite));
        let index = "messages_scheduled (application_id=? AND test=? AND send_at>?)";
        assert!(steps[0].ends_with(index), "{steps:#?}");
        // Nothing is sorted. The other steps look up the batches of messages without a text.
        let batch = "SEARCH b USING INTEGER PRIMARY KEY (rowid=?)";
        assert!(steps[1..].iter().all(|step| step == batch), "{steps:#?}");
    }
}

/// The days that have partitions of their own.
const DAYS: std::ops::Range<i64> = 20_000..20_010;

/// One customer sends 20,000 messages a day to 10,000 numbers. Every tenth message has a request ID
/// that many messages share, and some messages have one that few share. Most messages are
/// delivered. There are many batches, and some of them have these messages.
const FILL: &str = with_names!(
    "
    INSERT INTO messages (shard, id, application_id, test, number, kind, body, requestid, batch_id,
        status, pages, segments, unit_price, cost, released, created_at)
    SELECT 1, ((day * 86400000 + i * 4000 - 1704067200000) << 21), 1, 0,
        (57000000 + i * 7919 % 10000)::text, 'local', 'x',
        CASE WHEN i % 10 = 0 THEN 'all' WHEN i % 1000 = 1 THEN 'few' END,
        CASE WHEN i BETWEEN 50 AND 90 THEN day END,
        CASE WHEN i % 5000 = 3 THEN {rejected} WHEN i % 20 = 4 THEN {expired} ELSE {delivered} END,
        1, 1, 50000, 50000, 0, day * 86400000 + i * 4000
    FROM generate_series(20000::bigint, 20009) day, generate_series(1, 20000) i;
    INSERT INTO batches (shard, id, application_id, test, body, rows, pages, cost, price_local,
        price_international, price_id, first_message_id, last_message_id, spool, spool_offset,
        expanded_rows, expanded_cost, open, released, created_at, expanded_at)
    SELECT 1, n, 1, 0, 'x', 1, 1, 50000, 50000, 250000, 1, n, n, '', 0, 1, 50000, 1, 0, 0, 0
    FROM generate_series(10000, 30000) n;
    INSERT INTO unusual_messages (shard, application_id, test, status, message_id)
    SELECT shard, application_id, test, status, id FROM messages WHERE status > {delivered};
    ANALYZE"
);

#[tokio::test]
async fn postgres_finds_messages_by_the_index_of_what_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let [_, store] = stores(folder.path()).await;
    let mut conn = store.connect().await.unwrap();
    for statements in [SESSION, READER] {
        conn.execute(statements).await.unwrap();
    }
    for day in DAYS {
        let mut tx = conn.begin().await.unwrap();
        assert!(store.dialect().make_day(&mut tx, day, MessageTables::Day).await.unwrap());
        tx.commit().await.unwrap();
    }
    sqlx::raw_sql(FILL).execute(&mut conn).await.unwrap();
    let number = || Condition::Number("57000007".to_owned());
    let few = || Condition::Requestid("few".to_owned());
    let rejected = || Condition::Status(MessageStatus::Rejected);
    for (path, conditions, index) in [
        (Path::Number, vec![number()], "application_id_number_test_id_idx"),
        (Path::Requestid, vec![few()], "application_id_test_requestid_id_idx"),
        (Path::Unusual, vec![rejected()], "unusual_messages_pkey"),
        (Path::Number, vec![number(), rejected()], "application_id_number_test_id_idx"),
        (Path::Unusual, vec![number(), rejected()], "unusual_messages_pkey"),
    ] {
        let dialect = Dialect::Postgres;
        let leading = conditions.iter().find(|condition| condition.path() == Some(path));
        let counted: Vec<Condition> = leading.cloned().into_iter().collect();
        let list = path.list(dialect, &conditions);
        for (sql, bound) in [(path.count(dialect, leading), counted), (list, conditions)] {
            let steps = postgres_plan(&mut conn, &sql, bound).await;
            assert!(steps.iter().any(|step| step.contains(index)), "{steps:#?}");
            let bad = |step: &String| step.contains("Seq Scan") || step.contains("Sort");
            assert!(!steps.iter().any(bad), "{steps:#?}");
        }
    }
    let mut conn = At { conn: &mut conn, shard: Shard::FIRST };
    let sql = format!("EXPLAIN {}", list_scheduled(Dialect::Postgres));
    let query = query_in_shard(sql, (1_i64, 0_i64, 0_i64, 0_i64, id_of_day(DAYS.start), 51_i64));
    let steps: Vec<String> = query.fetch_all(&mut conn, |row| row.get("QUERY PLAN")).await.unwrap();
    let index = "application_id_test_send_at_idx";
    assert!(steps.iter().any(|step| step.contains(index)), "{steps:#?}");
    assert!(!steps.iter().any(|step| step.contains("Seq Scan on messages_2")), "{steps:#?}");
}

async fn postgres_plan(
    conn: &mut PgConnection,
    sql: &str,
    conditions: Vec<Condition>,
) -> Vec<String> {
    let (from, below) = (id_of_day(DAYS.start), id_of_day(DAYS.end));
    let mut conn = At { conn, shard: Shard::FIRST };
    let query = query_in_shard(format!("EXPLAIN {sql}"), (1_i64, 0_i64, from, below, 101_i64));
    let query = query.bind(conditions.iter().map(Condition::value));
    query.fetch_all(&mut conn, |row| row.get("QUERY PLAN")).await.unwrap()
}

/// Returns every statement that [`super::list`] and [`super::count`] can build.
pub(crate) fn every_list_sql(dialect: Dialect) -> Vec<String> {
    let mut statements = vec![paths::list_by_id(dialect), paths::list_scheduled(dialect)];
    for path in Path::ALL {
        for chosen in 0..16 {
            let conditions = some_conditions(chosen);
            let leading = conditions.iter().find(|condition| condition.path() == Some(path));
            // A path that needs a condition is never taken without it.
            if leading.is_some() || path == Path::Application {
                statements.push(path.count(dialect, leading));
            }
            if leading.is_some() || matches!(path, Path::Application | Path::Queue) {
                statements.push(path.list(dialect, &conditions));
            }
        }
    }
    statements
}

/// Returns those of the four conditions whose bit is set in `chosen`.
fn some_conditions(chosen: u32) -> Vec<Condition> {
    let all = [
        Condition::Requestid(String::new()),
        Condition::Batch(BatchId(0)),
        Condition::Number(String::new()),
        Condition::Status(MessageStatus::Rejected),
    ];
    let chosen = all.into_iter().enumerate().filter(|(place, _)| chosen >> place & 1 == 1);
    chosen.map(|(_, condition)| condition).collect()
}
