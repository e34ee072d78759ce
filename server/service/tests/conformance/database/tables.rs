//! Helpers for databases on one PostgreSQL server and on a cluster. They name and remove databases,
//! and change their tables.

use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::{AnyConnection, AssertSqlSafe, Executor as _, Row as _};

/// See [`super::Database::no_bytes`].
pub const NO_BYTES: &str = r"'\x'";

static COUNT: AtomicU32 = AtomicU32::new(0);

/// Returns a database name that isn't in use.
pub fn new_name() -> String {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    format!("test_{}_{count}", std::process::id())
}

/// Removes a database when its test drops it. Uses its own runtime, because the test's runtime may
/// be about to end.
pub fn remove_by(removing: impl Future<Output = ()> + Send + 'static) {
    let removing = std::thread::spawn(move || {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(removing);
    });
    assert!(removing.join().is_ok() || std::thread::panicking());
}

/// Returns the number that a statement selects.
pub async fn number(mut conn: AnyConnection, statement: &'static str) -> i64 {
    let row = sqlx::query(statement).fetch_one(&mut conn).await.unwrap();
    row.get(0)
}

/// Blocks all commit groups with live messages until `ROLLBACK`, and no reads. On Citus a lock of
/// the table would not reach the shards.
pub const HOLD: &str = "BEGIN; UPDATE applications SET balance = balance";

pub fn refuse_number(number: &str) -> String {
    format!("ALTER TABLE messages ADD CONSTRAINT refused CHECK (number <> '{number}')")
}

pub async fn assert_spools(conn: &mut AnyConnection, count: usize) {
    let count = i64::try_from(count).unwrap();
    loop {
        let row = sqlx::query("SELECT COUNT(DISTINCT spool) FROM spool_chunks")
            .fetch_one(&mut *conn)
            .await
            .unwrap();
        let found: i64 = row.get(0);
        assert!(found >= count, "{found}");
        if found == count {
            return;
        }
    }
}

pub async fn lose_spool(conn: &mut AnyConnection) {
    conn.execute("DELETE FROM spool_chunks").await.unwrap();
}

pub async fn damage_spool(conn: &mut AnyConnection) {
    conn.execute(
        "UPDATE spool_chunks SET chunk = set_byte(chunk, length(chunk) - 3, 1) \
         WHERE start = (SELECT MAX(start) FROM spool_chunks)",
    )
    .await
    .unwrap();
}

pub async fn contents(conn: &mut AnyConnection) -> Vec<u8> {
    let tables = sqlx::query(
        "SELECT table_name::text AS name \
         FROM information_schema.tables WHERE table_schema = 'public'",
    );
    let mut contents = Vec::new();
    for table in tables.fetch_all(&mut *conn).await.unwrap() {
        let name: String = table.get("name");
        let rows = format!("SELECT COALESCE(string_agg(t::text, ' '), '') AS rows FROM {name} t");
        let row = sqlx::query(AssertSqlSafe(rows)).fetch_one(&mut *conn).await;
        contents.extend(row.unwrap().get::<String, _>("rows").into_bytes());
    }
    contents
}
