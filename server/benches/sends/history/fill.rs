//! Fills a database with ten million messages by copying a few messages that were really sent. The
//! copies therefore have the same columns as real messages, and nothing here has to repeat what
//! each column holds.

use std::ops::Range;
use std::path::Path;

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use crate::http;
use crate::server::Server;
use crate::stored::{self, block_on};

pub const MESSAGES: i64 = 10_000_000;
/// A number with 100,000 messages. The other numbers have ten each.
pub const COMMON_NUMBER: &str = "57999999";
pub const NUMBERS: Range<u64> = 58_000_000..59_000_000;
pub const REQUEST_IDS: Range<u64> = 10_000_000..19_000_000;

const DAY_MS: i64 = 86_400_000;
/// The messages are spread over this many days, up to yesterday.
const DAYS: i64 = 29;
/// The epoch of IDs, 2024-01-01. An ID is the milliseconds since then, shifted left by 21 bits, as
/// the domain composes it.
const EPOCH_MS: i64 = 1_704_067_200_000;

/// Copies of one message.
struct Kind {
    /// The number of the copied message. The sandbox decides by the number what happens to the
    /// message.
    number: &'static str,
    copies: i64,
    copied_number: &'static str,
    requestid: &'static str,
}

const KINDS: [Kind; 3] = [
    Kind {
        number: "57000001",
        copies: MESSAGES - 1001,
        copied_number: "CASE WHEN i % 100 = 0 THEN '57999999' ELSE CAST(58000000 + i * 7919 % \
            1000000 AS TEXT) END",
        requestid: "'r' || CAST(10000000 + i AS TEXT)",
    },
    Kind { number: "00000004", copies: 1000, copied_number: "'57999999'", requestid: "NULL" },
    // Expired; its single copy is the oldest message of all.
    Kind { number: "00000003", copies: 1, copied_number: "'56000001'", requestid: "NULL" },
];

/// What differs between the databases.
struct Dialect {
    before: &'static [&'static str],
    after: &'static [&'static str],
    columns: &'static str,
    indexes: &'static str,
    series: &'static str,
    shard: &'static str,
}

const SQLITE: Dialect = Dialect {
    // A power cut may corrupt this database.
    before: &[
        "PRAGMA journal_mode = OFF",
        "PRAGMA synchronous = OFF",
        "PRAGMA cache_size = -1000000",
        "PRAGMA threads = 2",
    ],
    after: &[],
    columns: "SELECT name FROM pragma_table_info(TABLE)",
    indexes: "SELECT name, sql FROM sqlite_master \
              WHERE type = 'index' AND tbl_name IN ('messages', 'transfers') AND sql IS NOT NULL",
    series: "WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < COPIES - 1)",
    shard: "",
};

const POSTGRES: Dialect = Dialect {
    before: &[
        "ALTER SYSTEM SET max_wal_size = '16GB'",
        "SELECT pg_reload_conf()",
        "SET synchronous_commit = off",
        "SET maintenance_work_mem = '1GB'",
    ],
    after: &[
        "UPDATE applications a SET last_transfer_id = COALESCE( \
         (SELECT MAX(id) FROM transfers t WHERE t.shard = a.shard AND t.application_id = a.id), 0)",
        "VACUUM ANALYZE messages",
        "VACUUM ANALYZE transfers",
        "CHECKPOINT",
    ],
    columns: "SELECT CAST(column_name AS TEXT) AS name FROM information_schema.columns \
              WHERE table_schema = current_schema() AND table_name = TABLE ORDER BY \
              ordinal_position",
    indexes: "SELECT CAST(indexname AS TEXT) AS name, REPLACE(indexdef, ' ON ONLY ', ' ON ') AS \
        sql FROM pg_indexes \
              WHERE schemaname = current_schema() AND tablename IN ('messages', 'transfers') \
                AND indexname NOT LIKE '%pkey'",
    series: "WITH n (i) AS (SELECT generate_series(CAST(0 AS BIGINT), CAST(COPIES - 1 AS BIGINT)))",
    shard: "shard, ",
};

/// Restarts the server with all messages in the demo's application.
pub fn filled(server: Server) -> Server {
    for kind in KINDS {
        let target = format!(
            "/sms/send/{}?number={}&message={}&requestid=first",
            server.key(),
            kind.number,
            http::query_text()
        );
        http::json(&http::fetch(server.address(), &target));
    }
    server.wait_until_final();
    server.start_again(|server| {
        let url = server.database_url();
        block_on(fill(&url));
        // Otherwise the kernel would write the file back during the measurement.
        if let Some(file) = url.strip_prefix("sqlite:") {
            std::fs::File::open(Path::new(file)).unwrap().sync_all().unwrap();
        }
    })
}

async fn fill(url: &str) {
    let is_sqlite = url.starts_with("sqlite:");
    let dialect = if is_sqlite { SQLITE } else { POSTGRES };
    let mut db = stored::connect(url).await;
    for statement in dialect.before {
        run(&mut db, statement).await;
    }
    // Creating the indexes at the end, from sorted rows, takes a fraction of the time.
    let indexes: Vec<(String, String)> =
        sqlx::query_as(dialect.indexes).fetch_all(&mut db).await.unwrap();
    for (name, _) in &indexes {
        run(&mut db, &format!("DROP INDEX {name}")).await;
    }
    let today = stored::now_ms() / DAY_MS;
    if !is_sqlite {
        make_days(&mut db, today).await;
    }
    for (number, kind) in KINDS.iter().enumerate() {
        copy(&mut db, &dialect, kind, number, (today - DAYS) * DAY_MS).await;
    }
    count_quarters(&mut db, dialect.shard, today).await;
    count_margins(&mut db, today).await;
    let sweep = "UPDATE installation SET sweep_low_id = (SELECT MAX(id) + 1 FROM messages)";
    run(&mut db, sweep).await;
    for (_, sql) in &indexes {
        run(&mut db, sql).await;
    }
    for statement in dialect.after {
        run(&mut db, statement).await;
    }
    db.close().await.unwrap();
}

/// Fills the counts by quarter-hour for the copies. Each quarter-hour has ten different delivery
/// times, as it would with real messages.
async fn count_quarters(db: &mut AnyConnection, shard: &str, today: i64) {
    let sql = format!(
        "INSERT INTO message_quarters ({shard}application_id, test, quarter, figure, node, writer, \
             n, cost) \
         SELECT {shard}application_id, test, quarter, figure, 0, 1, COUNT(*), SUM(cost) \
         FROM (SELECT {shard}application_id, test, created_at / 900000 AS quarter, \
                   CASE WHEN accepted = 1 THEN 0 \
                       WHEN status = 5 THEN 100 + created_at / 1000 % 10 ELSE status END AS figure, \
                   CASE accepted WHEN 1 THEN cost - released ELSE 0 END AS cost \
               FROM messages CROSS JOIN (SELECT 0 AS accepted UNION ALL SELECT 1) f \
               WHERE created_at < {}) m \
         GROUP BY {shard}application_id, test, quarter, figure",
        today * DAY_MS
    );
    run(db, &sql).await;
}

/// Fills the counts of margins for all past days, because otherwise a job would count them during
/// the measurement. Nothing here reads their amounts.
async fn count_margins(db: &mut AnyConnection, today: i64) {
    let sql = format!(
        "INSERT INTO margin_days (day, reference, rule, carrier, unfinished, messages, pages, \
             segments, unpriced, charged, cost) \
         SELECT m.created_at / {DAY_MS} AS day, a.reference, m.kind, 'sandbox', 0, COUNT(*), \
             SUM(m.pages), SUM(m.segments), 0, SUM(m.cost - m.released), 0 \
         FROM messages m JOIN applications a ON a.id = m.application_id \
         WHERE m.created_at < {} GROUP BY 1, a.reference, m.kind",
        today * DAY_MS
    );
    run(db, &sql).await;
}

/// Creates a partition for each day. PostgreSQL keeps each day's messages in one.
async fn make_days(db: &mut AnyConnection, today: i64) {
    for day in today - DAYS..today {
        let [from, below] = [day, day + 1].map(|day| (day * DAY_MS - EPOCH_MS) << 21);
        let sql = format!(
            "CREATE TABLE messages_past{day} PARTITION OF messages FOR VALUES FROM ({from}) TO \
             ({below}) WITH (fillfactor = 60)"
        );
        run(db, &sql).await;
    }
}

/// Copies one message with its charge, and adds the copies to the counts by day.
async fn copy(db: &mut AnyConnection, dialect: &Dialect, kind: &Kind, number: usize, from_ms: i64) {
    for (template, source) in [
        ("one", format!("messages WHERE number = '{}'", kind.number)),
        ("charge", CHARGE.to_owned()),
        ("counts", COUNTS.to_owned()),
    ] {
        run(db, &format!("CREATE TEMPORARY TABLE {template} AS SELECT * FROM {source}")).await;
    }
    let copies = kind.copies;
    let series = dialect.series.replace("COPIES", &copies.to_string());
    let at = format!("({from_ms} + i * {} / {copies})", DAYS * DAY_MS);
    let id = format!("((({at} - {EPOCH_MS}) << 21) + {number})");
    for rows in [messages(kind, &series, &id, &at), charges(&series, &id, &at), counts()] {
        rows.insert(db, dialect).await;
    }
    run(db, &format!("{PAY} * {copies} {PAYER}")).await;
    for template in ["one", "charge", "counts"] {
        run(db, &format!("DROP TABLE {template}")).await;
    }
}

/// The charge is the first transfer of a message.
const CHARGE: &str = "transfers WHERE message_id = (SELECT id FROM one) ORDER BY id LIMIT 1";
const COUNTS: &str = "message_days WHERE status = (SELECT status FROM one) AND n > 0 LIMIT 1";
const PAY: &str = "UPDATE applications SET balance = balance - (SELECT amount FROM charge)";
const PAYER: &str = "WHERE id = (SELECT application_id FROM one)";

/// Copies of a row `t` in which some columns get other values.
struct Rows {
    table: &'static str,
    own: Vec<(&'static str, String)>,
    /// The clauses before SELECT and after FROM.
    with: String,
    from: String,
}

fn messages(kind: &Kind, series: &str, id: &str, at: &str) -> Rows {
    let submitted = format!("CASE WHEN t.submitted_at IS NOT NULL THEN {at} + 20 END");
    Rows {
        table: "messages",
        own: vec![
            ("id", id.to_owned()),
            ("number", kind.copied_number.to_owned()),
            ("requestid", kind.requestid.to_owned()),
            ("created_at", at.to_owned()),
            ("sending_at", format!("{at} + 10")),
            ("submitted_at", submitted),
            ("final_at", format!("{at} + 520")),
        ],
        with: series.to_owned(),
        from: "one t CROSS JOIN n".to_owned(),
    }
}

fn charges(series: &str, id: &str, at: &str) -> Rows {
    let balance = "t.balance_after - t.amount * (i + 1)".to_owned();
    Rows {
        table: "transfers",
        own: vec![
            // Keeps the application's order with the IDs of either database.
            ("id", "t.id * 100000000 + i".to_owned()),
            ("message_id", id.to_owned()),
            ("balance_after", balance),
            ("created_at", at.to_owned()),
        ],
        with: series.to_owned(),
        from: "charge t CROSS JOIN n".to_owned(),
    }
}

/// Returns the counts per day, for the days of the copies.
fn counts() -> Rows {
    let counted = format!(
        "(SELECT created_at / {DAY_MS} AS day, COUNT(*) AS n FROM messages \
          WHERE status = (SELECT status FROM one) GROUP BY created_at / {DAY_MS}) d"
    );
    Rows {
        table: "message_days",
        own: vec![("day", "d.day".to_owned()), ("n", "d.n".to_owned())],
        with: String::new(),
        from: format!("counts t JOIN {counted} ON d.day <> t.day"),
    }
}

impl Rows {
    async fn insert(&self, db: &mut AnyConnection, dialect: &Dialect) {
        let Self { table, own, with, from } = self;
        let columns = dialect.columns.replace("TABLE", &format!("'{table}'"));
        let columns: Vec<String> =
            sqlx::query_scalar(AssertSqlSafe(columns)).fetch_all(&mut *db).await.unwrap();
        let (mut names, mut values) = (Vec::new(), Vec::new());
        for column in columns {
            let value = match own.iter().find(|(name, _)| *name == column) {
                Some((_, value)) => value.clone(),
                None => format!("t.{column}"),
            };
            names.push(column);
            values.push(value);
        }
        let (names, values) = (names.join(", "), values.join(", "));
        let sql = format!("INSERT INTO {table} ({names}) {with} SELECT {values} FROM {from}");
        run(db, &sql).await;
    }
}

async fn run(db: &mut AnyConnection, sql: &str) {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(db).await;
    assert!(done.is_ok(), "{sql}: {done:?}");
}
