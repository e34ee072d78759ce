//! What is read from a server's database, by SQL of its own.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

/// Statuses of messages, as the schema numbers them.
const DELIVERED: &str = "status = 4";
const NOT_FINAL: &str = "status < 4";

/// A database by its URL, without the limits that the program gives its own connections.
pub async fn connect(url: &str) -> AnyConnection {
    sqlx::any::install_default_drivers();
    AnyConnection::connect(url).await.unwrap()
}

/// How many messages are stored as delivered.
pub fn delivered(url: &str) -> u64 {
    count(url, DELIVERED)
}

/// How many messages are stored.
pub fn messages(url: &str) -> u64 {
    count(url, "TRUE")
}

/// How many messages something must still become of.
pub fn unfinished(url: &str) -> u64 {
    count(url, NOT_FINAL)
}

/// From acceptance to being taken by the carrier, of messages that were accepted within a time;
/// until now, of those that weren't taken yet.
pub fn submitted(url: &str, accepted_ms: Range<i64>) -> Vec<Duration> {
    const TIMES: &str = "SELECT COALESCE(submitted_at, $1) - created_at FROM messages \
                         WHERE created_at >= $2 AND created_at < $3";
    let times: Vec<i64> = block_on(async {
        let mut db = connect(url).await;
        let query = sqlx::query_scalar(TIMES).bind(now_ms());
        let query = query.bind(accepted_ms.start).bind(accepted_ms.end);
        let times = query.fetch_all(&mut db).await.unwrap();
        db.close().await.unwrap();
        times
    });
    let duration = |ms: i64| Duration::from_millis(ms.max(0).unsigned_abs());
    times.into_iter().map(duration).collect()
}

/// As times are stored.
pub fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    i64::try_from(now.as_millis()).unwrap()
}

/// How many rows there are of what strangers can have written.
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

/// How many bank statements are not credited yet.
pub fn statements_under_way(url: &str) -> u64 {
    let sql = "SELECT COUNT(*) FROM bank_statements WHERE done_at IS NULL";
    number(url, sql.to_owned())
}

fn count(url: &str, condition: &str) -> u64 {
    let sql =
        format!("SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM message_days WHERE {condition}");
    number(url, sql)
}

/// What a statement counts.
fn number(url: &str, sql: String) -> u64 {
    block_on(async {
        let mut db = connect(url).await;
        let query = sqlx::query_scalar::<_, i64>(AssertSqlSafe(sql));
        let count = query.fetch_one(&mut db).await.unwrap();
        db.close().await.unwrap();
        count.unsigned_abs()
    })
}

/// Runs to its end what needs a runtime.
pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Runtime::new().unwrap().block_on(work)
}
