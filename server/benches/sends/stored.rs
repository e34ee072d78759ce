//! Queries on a server's database.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

/// Conditions on the status of a message, in the schema's numbers.
const DELIVERED: &str = "status = 5";
const UNDER_WAY: &str = "status BETWEEN 1 AND 4";
const CANCELLED: &str = "status = 9";

/// Connects to a database without the limits of the program's own connections.
pub async fn connect(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(url).await.unwrap()
}

/// Returns the number of messages stored as delivered.
pub fn delivered(url: &str) -> u64 {
    count(url, DELIVERED)
}

/// Returns the number of stored messages.
pub fn messages(url: &str) -> u64 {
    count(url, "TRUE")
}

/// Returns the number of messages that are neither final nor scheduled.
pub fn unfinished(url: &str) -> u64 {
    count(url, UNDER_WAY)
}

/// Returns the number of cancelled messages.
pub fn cancelled(url: &str) -> u64 {
    count(url, CANCELLED)
}

/// Returns the times from acceptance to submission, of messages accepted in a period. A message
/// that isn't submitted yet counts until now.
pub fn submitted(url: &str, accepted_ms: Range<i64>) -> Vec<Duration> {
    let since = "SELECT COALESCE(submitted_at, $1) - created_at FROM messages \
                 WHERE created_at >= $2 AND created_at < $3";
    times(url, since, accepted_ms)
}

/// Returns the times by which scheduled messages were submitted late, of those due in a period. A
/// message that isn't submitted yet counts until now.
pub fn late(url: &str, due_ms: Range<i64>) -> Vec<Duration> {
    let since = "SELECT COALESCE(submitted_at, $1) - send_at FROM messages \
                 WHERE send_at >= $2 AND send_at < $3";
    times(url, since, due_ms)
}

fn times(url: &str, sql: &'static str, period_ms: Range<i64>) -> Vec<Duration> {
    let times: Vec<i64> = block_on(async {
        let mut db = connect(url).await;
        let query = sqlx::query_scalar(sql).bind(now_ms());
        let query = query.bind(period_ms.start).bind(period_ms.end);
        let times = query.fetch_all(&mut db).await.unwrap();
        db.close().await.unwrap();
        times
    });
    let duration = |ms: i64| Duration::from_millis(ms.max(0).unsigned_abs());
    times.into_iter().map(duration).collect()
}

/// Returns the time as the database stores it, in Unix milliseconds.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// Returns the number of rows in all tables that an attacker can add rows to.
pub fn strangers_rows(url: &str) -> u64 {
    const TABLES: [&str; 9] = [
        "accounts",
        "sessions",
        "security_events",
        "password_resets",
        "confirmations",
        "outbox",
        "applications",
        "unmatched_receipts",
        "audit",
    ];
    let counts = TABLES.map(|table| format!("(SELECT COUNT(*) FROM {table})"));
    number(url, format!("SELECT {}", counts.join(" + ")))
}

/// Returns the number of bank statements that aren't fully credited yet.
pub fn statements_under_way(url: &str) -> u64 {
    let sql = "SELECT COUNT(*) FROM bank_statements WHERE done_at IS NULL";
    number(url, sql.to_owned())
}

fn count(url: &str, condition: &str) -> u64 {
    let sql =
        format!("SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM message_days WHERE {condition}");
    number(url, sql)
}

/// Returns the result of a query for one number.
fn number(url: &str, sql: String) -> u64 {
    block_on(async {
        let mut db = connect(url).await;
        let query = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql));
        let count = query.fetch_one(&mut db).await.unwrap();
        db.close().await.unwrap();
        count.unsigned_abs()
    })
}

/// Runs a future on a new runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}
