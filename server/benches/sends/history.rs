//! Ten million stored messages beside none: what is looked at must not grow with what is kept.

use std::path::Path;
use std::str::FromStr as _;
use std::time::{Duration, Instant};

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqliteSynchronous};
use sqlx::{AssertSqlSafe, ConnectOptions as _, Connection as _, SqliteConnection};

use crate::load::Measured;
use crate::rounds::{alternate, run};
use crate::row;
use crate::server::Server;

const MESSAGES: i64 = 10_000_000;
const RUN: Duration = Duration::from_secs(2);
const SENDS: usize = 256;
const READS: usize = 8;

pub fn measure() {
    println!("\n{MESSAGES} stored messages beside an empty database");
    let started = Instant::now();
    let full = Server::start().start_again(fill);
    println!("(made in {:.0?})", started.elapsed());
    let empty = Server::start();
    let servers = [&full, &empty];
    let requests = servers.map(Server::send_request);
    compare("single sends, 256 connections", servers, requests, SENDS);
    // The empty one has as many messages as a page holds by now.
    let requests = servers.map(Server::report_request);
    compare(
        "first page of reports, 100 messages",
        servers,
        requests,
        READS,
    );
    let requests = servers.map(|server| {
        let page = server.page_requests(&["/reports".to_owned()]);
        page.into_iter().next().unwrap()
    });
    compare("/reports in the portal", servers, requests, READS);
    for (filter, target) in FILTERS {
        let measured = run(full.address(), &full.filtered_request(filter), 1, RUN);
        let what = format!("first page of reports, {}", &filter[1..]);
        row(&what, measured, target);
    }
}

/// Filters, and how long the first page of what they find may take: few messages, then many.
const FILTERS: [(&str, &str); 10] = [
    ("&requestid=few", "p50 ≤ 10 ms"),
    ("&number=57000042", "p50 ≤ 10 ms"),
    ("&status=failed", "p50 ≤ 10 ms"),
    ("&status=expired", "p50 ≤ 10 ms"),
    ("&status=rejected", "p50 ≤ 10 ms"),
    ("&status=unknown", "p50 ≤ 10 ms"),
    ("&status=queued", "p50 ≤ 10 ms"),
    ("&status=delivered", "p50 ≤ 30 ms"),
    ("&requestid=many", "p50 ≤ 30 ms"),
    ("&requestid=many&status=failed", "p50 ≤ 30 ms"),
];

fn compare(what: &str, servers: [&Server; 2], requests: [Vec<u8>; 2], connections: usize) {
    let mut contenders: Vec<_> = servers
        .iter()
        .zip(requests)
        .map(|(server, request)| server.contender(request))
        .collect();
    let runs: Vec<Measured> = alternate(&mut contenders, connections, RUN);
    let (full, empty) = (runs[0], runs[1]);
    let ratio = full.per_second / empty.per_second;
    row(what, format!("{ratio:.2} × ({full} : {empty})"), "≥ 0.90");
}

/// Puts messages of the last thirty days into the demo's application, with all that belongs to them: they are
/// charged and delivered, but for one in ten thousand that failed, and one of the first that expired.
fn fill(database: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let url = format!("sqlite:{}", database.display());
        let mut db = SqliteConnectOptions::from_str(&url)
            .unwrap()
            // A power cut may spoil this database.
            .journal_mode(SqliteJournalMode::Off)
            .synchronous(SqliteSynchronous::Off)
            .pragma("cache_size", "-1000000")
            .pragma("threads", "2")
            .connect()
            .await
            .unwrap();
        let indexes: Vec<(String, String)> = sqlx::query_as(
            "SELECT name, sql FROM sqlite_master \
             WHERE type = 'index' AND tbl_name IN ('messages', 'transfers') AND sql IS NOT NULL",
        )
        .fetch_all(&mut db)
        .await
        .unwrap();
        // Built at the end from sorted rows they take a fraction of the time.
        for (name, _) in &indexes {
            execute(&mut db, &format!("DROP INDEX {name}")).await;
        }
        for statement in STATEMENTS {
            execute(
                &mut db,
                &statement.replace(":messages", &MESSAGES.to_string()),
            )
            .await;
        }
        for (_, sql) in &indexes {
            execute(&mut db, sql).await;
        }
        db.close().await.unwrap();
    });
    std::fs::File::open(database).unwrap().sync_all().unwrap();
}

async fn execute(db: &mut SqliteConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(db).await;
    assert!(done.is_ok(), "{sql}: {done:?}");
}

/// Ids are milliseconds since 2024 and 21 bits below them, as the domain composes them.
const STATEMENTS: [&str; 5] = [
    "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :messages - 1), \
     start (ms, application_id) AS (SELECT CAST(unixepoch() AS INTEGER) * 1000 - 30 * 86400000, MAX(id) FROM applications) \
     INSERT INTO messages (id, application_id, test, number, kind, body, requestid, status, error, pages, segments, \
                           unit_price, cost, released, carrier, created_at, sending_at, submitted_at, final_at) \
     SELECT (at - 1704067200000) << 21, application_id, 0, CAST(57000000 + i * 7919 % 1000000 AS TEXT), 'local', \
            'Your code is ' || i, CASE WHEN i % 10 = 1 THEN 'many' WHEN i % 20000 = 2 THEN 'few' END, \
            CASE WHEN i % 10000 = 11 THEN 5 WHEN i = 5000 THEN 6 ELSE 4 END, \
            CASE WHEN i % 10000 = 11 THEN 'unreachable' WHEN i = 5000 THEN 'no_receipt' END, \
            1, 1, 50000, 50000, 0, 'sandbox', at, at + 10, at + 20, at + 520 \
     FROM (SELECT i, application_id, ms + i * (29 * 86400000) / :messages AS at FROM n, start)",
    "INSERT INTO transfers (debit_account, credit_account, amount, kind, application_id, message_id, \
                            balance_after, created_at) \
     SELECT m.application_id, -3, m.cost, 2, m.application_id, m.id, \
            a.balance - 50000 * ROW_NUMBER() OVER (ORDER BY m.id), m.created_at \
     FROM messages m JOIN applications a ON a.id = m.application_id ORDER BY m.id",
    "UPDATE applications SET balance = balance - 50000 * :messages WHERE id = (SELECT MAX(id) FROM applications)",
    "INSERT INTO message_days (application_id, test, day, status, node, writer, n) \
     SELECT application_id, test, created_at / 86400000, status, 0, 1, COUNT(*) FROM messages GROUP BY 1, 2, 3, 4",
    "UPDATE installation SET sweep_low_id = (SELECT MAX(id) + 1 FROM messages)",
];
