//! Ten million messages, put into a database by copying a few that were sent: so they have what
//! such messages have, and what a column holds is said nowhere twice.

use std::ops::Range;
use std::path::Path;

use sqlx::{AnyConnection, AssertSqlSafe, Connection as _};

use crate::http;
use crate::server::Server;
use crate::stored::{self, block_on};

pub const MESSAGES: i64 = 10_000_000;
/// A number of 100,000 messages. The others have ten each.
pub const COMMON_NUMBER: &str = "57999999";
pub const NUMBERS: Range<u64> = 58_000_000..59_000_000;
pub const REQUEST_IDS: Range<u64> = 10_000_000..19_000_000;

const DAY_MS: i64 = 86_400_000;
/// The messages are of so many days, up to yesterday.
const DAYS: i64 = 29;
/// Ids are milliseconds since 2024 and 21 bits below them, as the domain composes them.
const EPOCH_MS: i64 = 1_704_067_200_000;

/// Copies of a message.
struct Kind {
    /// The one that is copied, by what the sandbox does with its number.
    number: &'static str,
    copies: i64,
    copied_number: &'static str,
    requestid: &'static str,
}

const KINDS: [Kind; 3] = [
    // Delivered.
    Kind {
        number: "57000001",
        copies: MESSAGES - 1001,
        copied_number: "CASE WHEN i % 100 = 0 THEN '57999999' ELSE CAST(58000000 + i * 7919 % \
            1000000 AS TEXT) END",
        requestid: "'r' || CAST(10000000 + i AS TEXT)",
    },
    // Rejected.
    Kind {
        number: "00000004",
        copies: 1000,
        copied_number: "'57999999'",
        requestid: "NULL",
    },
    // Expired, as the oldest of all.
    Kind {
        number: "00000003",
        copies: 1,
        copied_number: "'56000001'",
        requestid: "NULL",
    },
];

/// What the databases say differently.
struct Dialect {
    before: &'static [&'static str],
    after: &'static [&'static str],
    columns: &'static str,
    indexes: &'static str,
    series: &'static str,
    shard: &'static str,
}

const SQLITE: Dialect = Dialect {
    // A power cut may spoil this database.
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

/// The server with all of them in the demo's application.
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
        // What is written back meanwhile would disturb what is measured.
        if let Some(file) = url.strip_prefix("sqlite:") {
            std::fs::File::open(Path::new(file))
                .unwrap()
                .sync_all()
                .unwrap();
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
    // Built at the end from sorted rows they take a fraction of the time.
    let indexes: Vec<(String, String)> = sqlx::query_as(dialect.indexes)
        .fetch_all(&mut db)
        .await
        .unwrap();
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

/// The figures by quarter hour of the copies, as if they had been delivered after times that differ
/// as those of real messages do: each quarter hour has ten.
async fn count_quarters(db: &mut AnyConnection, shard: &str, today: i64) {
    let sql = format!(
        "INSERT INTO message_quarters ({shard}application_id, test, quarter, figure, node, writer, \
             n, cost) \
         SELECT {shard}application_id, test, quarter, figure, 0, 1, COUNT(*), SUM(cost) \
         FROM (SELECT {shard}application_id, test, created_at / 900000 AS quarter, \
                   CASE WHEN accepted = 1 THEN 0 \
                       WHEN status = 4 THEN 100 + created_at / 1000 % 10 ELSE status END AS figure, \
                   CASE accepted WHEN 1 THEN cost - released ELSE 0 END AS cost \
               FROM messages CROSS JOIN (SELECT 0 AS accepted UNION ALL SELECT 1) f \
               WHERE created_at < {}) m \
         GROUP BY {shard}application_id, test, quarter, figure",
        today * DAY_MS
    );
    run(db, &sql).await;
}

/// Notes the days that are over as counted for the margins: else a job would count them, beside
/// what is measured. Nothing here reads their amounts.
async fn count_margins(db: &mut AnyConnection, today: i64) {
    let sql = format!(
        "INSERT INTO margin_days (day, reference, rule, carrier, is_final, messages, pages, \
             segments, unpriced, charged, cost) \
         SELECT m.created_at / {DAY_MS} AS day, a.reference, m.kind, 'sandbox', 1, COUNT(*), \
             SUM(m.pages), SUM(m.segments), 0, SUM(m.cost - m.released), 0 \
         FROM messages m JOIN applications a ON a.id = m.application_id \
         WHERE m.created_at < {} GROUP BY 1, a.reference, m.kind",
        today * DAY_MS
    );
    run(db, &sql).await;
}

/// PostgreSQL keeps each day in a table of its own.
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

/// Copies one message with its charge and its place in the counts by day.
async fn copy(db: &mut AnyConnection, dialect: &Dialect, kind: &Kind, number: usize, from_ms: i64) {
    for (template, source) in [
        ("one", format!("messages WHERE number = '{}'", kind.number)),
        ("charge", CHARGE.to_owned()),
        ("counts", COUNTS.to_owned()),
    ] {
        run(
            db,
            &format!("CREATE TEMPORARY TABLE {template} AS SELECT * FROM {source}"),
        )
        .await;
    }
    let copies = kind.copies;
    let series = dialect.series.replace("COPIES", &copies.to_string());
    let at = format!("({from_ms} + i * {} / {copies})", DAYS * DAY_MS);
    let id = format!("((({at} - {EPOCH_MS}) << 21) + {number})");
    for rows in [
        messages(kind, &series, &id, &at),
        charges(&series, &id, &at),
        counts(),
    ] {
        rows.insert(db, dialect).await;
    }
    run(db, &format!("{PAY} * {copies} {PAYER}")).await;
    for template in ["one", "charge", "counts"] {
        run(db, &format!("DROP TABLE {template}")).await;
    }
}

/// What a message cost is the first of its transfers.
const CHARGE: &str = "transfers WHERE message_id = (SELECT id FROM one) ORDER BY id LIMIT 1";
const COUNTS: &str = "message_days WHERE status = (SELECT status FROM one) AND n > 0 LIMIT 1";
const PAY: &str = "UPDATE applications SET balance = balance - (SELECT amount FROM charge)";
const PAYER: &str = "WHERE id = (SELECT application_id FROM one)";

/// Copies of a row `t`, in which some columns have values of their own.
struct Rows {
    table: &'static str,
    own: Vec<(&'static str, String)>,
    /// What stands before SELECT and behind FROM.
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
            // In the application's order, with either database's numbering.
            ("id", "t.id * 100000000 + i".to_owned()),
            ("message_id", id.to_owned()),
            ("balance_after", balance),
            ("created_at", at.to_owned()),
        ],
        with: series.to_owned(),
        from: "charge t CROSS JOIN n".to_owned(),
    }
}

/// Of the days on which copies were sent.
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
        let Self {
            table,
            own,
            with,
            from,
        } = self;
        let columns = dialect.columns.replace("TABLE", &format!("'{table}'"));
        let columns: Vec<String> = sqlx::query_scalar(AssertSqlSafe(columns))
            .fetch_all(&mut *db)
            .await
            .unwrap();
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
