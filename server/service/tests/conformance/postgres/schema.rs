//! Compares the schemas of both databases. Intended differences are listed here with their reasons.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use service::Service;
use sqlx::{AnyConnection, AssertSqlSafe, Connection as _, Executor as _, Row as _};

use crate::database::{Backend, Database};

/// Tables that only PostgreSQL has, and where SQLite's only process keeps the same data.
const ONLY_POSTGRES: [(&str, &str); 7] = [
    ("data_folders", "a restored file is recognized by its place on the disk"),
    ("reference_shards", "nowhere: a reference is unique by its application's row"),
    ("rate_buckets", "in memory"),
    ("spool_chunks", "in files of the data folder"),
    ("commit_groups", "the commit to a file is answered"),
    ("unusual_messages", "in the index messages_unusual"),
    ("uploads", "in memory"),
];

/// Tables that can be distributed. On PostgreSQL each of their unique keys ends with the shard.
const DISTRIBUTED: [&str; 25] = [
    "applications",
    "batch_counts",
    "batches",
    "dropped_days",
    "event_streams",
    "events",
    "idempotency",
    "inbound_messages",
    "limit_alarms",
    "limit_refusals",
    "message_days",
    "message_timeline",
    "message_quarters",
    "messages",
    "opt_outs",
    "queue",
    "segments",
    "sender_requests",
    "test_clocks",
    "transfers",
    "verifications",
    "webhook_attempts",
    "webhook_replays",
    "webhook_retries",
    "webhooks",
];

/// Columns that only PostgreSQL has, and their purpose.
const OTHER_COLUMNS: [(&str, &str, &str); 4] = [
    ("installation", "shards", "accounts are given shards"),
    ("installation", "distribution", "tables can be distributed"),
    ("accounts", "shard", "what belongs to the account has it"),
    (
        "applications",
        "last_transfer_id",
        "an application's transfers are numbered; SQLite numbers all transfers",
    ),
];

/// Foreign keys that PostgreSQL doesn't have. A distributed table may refer only to accounts, and
/// nothing may refer to it.
const OTHER_REFERENCES: [(&str, &str); 2] =
    [("deposits", "applications"), ("sender_requests", "applications")];

/// Primary keys that differ, SQLite's first, and why.
const OTHER_KEYS: [(&str, &[&str], &[&str], &str); 2] = [
    ("message_timeline", &["id"], &["message_id", "id"], "events are partitioned by the message"),
    (
        "transfers",
        &["id"],
        &["application_id", "id"],
        "transfers are numbered within their application",
    ),
];

/// Indexes that differ, and why.
const OTHER_INDEXES: [(&str, &str); 5] = [
    ("transfers_by_application", "with PostgreSQL the primary key does it"),
    ("queue_due", "with PostgreSQL rows of one time are in order"),
    (
        "message_timeline_by_message",
        "with PostgreSQL the primary key begins with the message, by which events are partitioned",
    ),
    ("message_timeline_pkey", "likewise"),
    (
        "messages_unusual",
        "with PostgreSQL these messages are noted in another table: an index over the status would \
         be written at each change of a status",
    ),
];

/// Indexes that don't have to end with the row's ID on SQLite, which adds the ID to each entry.
const ENDING_IN_THE_ID: [&str; 6] = [
    "messages_by_application",
    "messages_by_number",
    "messages_by_requestid",
    "batches_by_requestid",
    "messages_with_codes",
    "verifications_by_application",
];

/// A table's definition, in a form that both databases share.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    /// Type, whether it can't be null, default.
    columns: BTreeMap<String, (String, bool, Vec<String>)>,
    primary_key: Vec<String>,
    /// Name unless a constraint created the index, columns, unique, condition.
    indexes: BTreeSet<(String, Vec<String>, bool, Vec<String>)>,
    /// Columns, the other table's name and columns.
    references: BTreeSet<(Vec<String>, String, Vec<String>)>,
    checks: BTreeSet<Vec<String>>,
    has_triggers: bool,
}

type Schema = BTreeMap<String, Table>;

/// Splits an expression into words, in a form that both databases share.
fn words(expression: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rest = expression.trim_start();
    while let Some(first) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let end = match first {
            '\'' => 2 + rest[1..].find('\'').unwrap(),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            '<' | '>' | ':' => 1 + rest[1..].chars().take_while(|c| "=>:".contains(*c)).count(),
            _ => 1,
        };
        let (word, after) = rest.split_at(end);
        if !"()[],\"".contains(first) {
            found.push(word.to_owned());
        }
        rest = after.trim_start();
    }
    // PostgreSQL adds types to constants, and has its own syntax for IN and BETWEEN.
    let mut same: Vec<String> = Vec::new();
    let mut words = found.into_iter().peekable();
    while let Some(word) = words.next() {
        match word.to_lowercase().as_str() {
            "::" => drop(words.next()),
            "array" => {}
            "any" => {
                assert_eq!(same.pop().as_deref(), Some("="));
                same.push("IN".to_owned());
            }
            "between" => {
                let column = same.last().unwrap().clone();
                same.extend([">=".to_owned(), words.next().unwrap()]);
                same.extend([words.next().unwrap(), column, "<=".to_owned()]);
            }
            "in" | "and" | "is" | "not" | "null" => same.push(word.to_uppercase()),
            _ => same.push(word),
        }
    }
    same
}

/// Returns the text in the parentheses after each occurrence of a keyword.
fn enclosed<'a>(sql: &'a str, keyword: &str) -> Vec<&'a str> {
    let starts = sql.match_indices(keyword);
    let starts = starts.map(|(at, _)| at + sql[at..].find('(').unwrap());
    starts
        .map(|start| {
            let mut depth = 0;
            let end = sql[start..].find(|c| {
                depth += i32::from(c == '(') - i32::from(c == ')');
                depth == 0
            });
            &sql[start..start + end.unwrap()]
        })
        .collect()
}

fn without_comments(sql: &str) -> String {
    let lines = sql.lines().map(|line| line.split("--").next().unwrap());
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads the rows of a statement that returns them as one JSON value.
async fn rows(conn: &mut AnyConnection, statement: String) -> Vec<Value> {
    let row = sqlx::query(AssertSqlSafe(statement)).fetch_one(conn).await;
    serde_json::from_str(&row.unwrap().get::<String, _>(0)).unwrap()
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// SQLite returns a nested array as an array or as its text.
fn texts(value: &Value) -> Vec<String> {
    if let Some(text) = value.as_str() {
        return serde_json::from_str(text).unwrap();
    }
    value.as_array().unwrap().iter().map(text).collect()
}

fn default_of(value: &Value) -> Vec<String> {
    let default = value.as_str().unwrap_or_default();
    // A number that the database assigns.
    if default.contains("nextval") { Vec::new() } else { words(default) }
}

async fn of_sqlite(conn: &mut AnyConnection) -> Schema {
    const TABLES: &str =
        "m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE '_sqlx_%'";
    let mut schema = Schema::new();
    let columns = format!(
        "SELECT json_group_array(json_array(m.name, c.name, c.type, c.\"notnull\" + c.pk > 0, \
         CASE WHEN c.hidden > 1 THEN 'generated' ELSE c.dflt_value END)) \
         FROM sqlite_master m, pragma_table_xinfo(m.name) c WHERE {TABLES}"
    );
    for row in rows(conn, columns).await {
        let (table, column) = (text(&row[0]), text(&row[1]));
        let kind = match row[2].as_str().unwrap() {
            "INTEGER" => "bigint".to_owned(),
            other => other.to_lowercase(),
        };
        let facts = (kind, row[3].as_i64() == Some(1), default_of(&row[4]));
        let table = schema.entry(table).or_default();
        table.columns.insert(column, facts);
    }
    let keys = format!(
        "SELECT json_group_array(json_array(name, columns)) FROM (SELECT m.name, \
            (SELECT json_group_array(name) \
             FROM (SELECT name FROM pragma_table_info(m.name) WHERE pk > 0 ORDER BY pk)) \
             AS columns FROM sqlite_master m WHERE {TABLES})"
    );
    for row in rows(conn, keys).await {
        schema.get_mut(&text(&row[0])).unwrap().primary_key = texts(&row[1]);
    }
    let indexes = format!(
        "SELECT json_group_array(json_array(m.name, i.name, i.\"unique\", i.origin, \
            (SELECT json_group_array(name) \
             FROM (SELECT name FROM pragma_index_info(i.name) ORDER BY seqno)), \
            (SELECT sql FROM sqlite_master WHERE name = i.name))) \
         FROM sqlite_master m, pragma_index_list(m.name) i WHERE {TABLES} AND i.origin <> 'pk'"
    );
    for row in rows(conn, indexes).await {
        let mut columns = texts(&row[4]);
        let name = if row[3] == "c" { text(&row[1]) } else { String::new() };
        if ENDING_IN_THE_ID.contains(&name.as_str()) {
            columns.push("id".to_owned());
        }
        let sql = row[5].as_str().unwrap_or_default();
        let condition = sql.split_once(" WHERE ").map_or("", |(_, condition)| condition);
        let index = (name, columns, row[2].as_i64() == Some(1), words(condition));
        schema.get_mut(&text(&row[0])).unwrap().indexes.insert(index);
    }
    let references = format!(
        "SELECT json_group_array(json_array(m.name, f.\"from\", f.\"table\", f.\"to\")) \
         FROM sqlite_master m, pragma_foreign_key_list(m.name) f WHERE {TABLES}"
    );
    for row in rows(conn, references).await {
        let reference = (vec![text(&row[1])], text(&row[2]), vec![text(&row[3])]);
        schema.get_mut(&text(&row[0])).unwrap().references.insert(reference);
    }
    let statements = format!(
        "SELECT json_group_array(json_array(m.name, m.sql)) FROM sqlite_master m WHERE {TABLES}"
    );
    for row in rows(conn, statements).await {
        let sql = without_comments(row[1].as_str().unwrap());
        let checks = enclosed(&sql, "CHECK").into_iter().map(words).collect();
        schema.get_mut(&text(&row[0])).unwrap().checks = checks;
    }
    let triggers = "SELECT json_group_array(tbl_name) FROM sqlite_master WHERE type = 'trigger'";
    for row in rows(conn, triggers.to_owned()).await {
        schema.get_mut(&text(&row)).unwrap().has_triggers = true;
    }
    schema
}

/// Builds a statement that returns its rows as one JSON value.
fn json(columns: &str, from: &str) -> String {
    format!("SELECT COALESCE(json_agg(json_build_array({columns})), '[]')::text FROM {from}")
}

async fn of_postgres(conn: &mut AnyConnection) -> Schema {
    const TABLES: &str = "c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') \
                          AND NOT c.relispartition AND c.relname NOT LIKE '\\_sqlx\\_%'";
    let names = |keys: &str, table: &str| {
        format!(
            "(SELECT json_agg(a.attname ORDER BY k.place) FROM unnest({keys}) WITH ORDINALITY AS \
             k (number, place) \
              JOIN pg_attribute a ON a.attrelid = {table} AND a.attnum = k.number)"
        )
    };
    let mut schema = Schema::new();
    let columns = json(
        "c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, \
         CASE WHEN a.attgenerated <> '' THEN 'generated' ELSE pg_get_expr(d.adbin, d.adrelid) END",
        &format!(
            "pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT \
             a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum \
             WHERE {TABLES}"
        ),
    );
    for row in rows(conn, columns).await {
        let facts = (text(&row[2]), row[3] == true, default_of(&row[4]));
        let table = schema.entry(text(&row[0])).or_default();
        table.columns.insert(text(&row[1]), facts);
    }
    let indexes = json(
        &format!(
            "c.relname, i.relname, x.indisprimary, x.indisunique, {}, pg_get_expr(x.indpred, \
             x.indrelid), \
             EXISTS (SELECT 1 FROM pg_constraint WHERE conindid = i.oid AND contype = 'u')",
            names("x.indkey::smallint[]", "x.indrelid")
        ),
        &format!(
            "pg_index x JOIN pg_class c ON c.oid = x.indrelid JOIN pg_class i ON i.oid = \
             x.indexrelid WHERE {TABLES}"
        ),
    );
    for row in rows(conn, indexes).await {
        let table = schema.get_mut(&text(&row[0])).unwrap();
        if row[2] == true {
            table.primary_key = texts(&row[4]);
            continue;
        }
        let name = if row[6] == true { String::new() } else { text(&row[1]) };
        let condition = words(row[5].as_str().unwrap_or_default());
        let index = (name, texts(&row[4]), row[3] == true, condition);
        table.indexes.insert(index);
    }
    let references = json(
        &format!(
            "c.relname, {}, r.relname, {}",
            names("f.conkey", "f.conrelid"),
            names("f.confkey", "f.confrelid")
        ),
        &format!(
            "pg_constraint f JOIN pg_class c ON c.oid = f.conrelid JOIN pg_class r ON r.oid = \
             f.confrelid WHERE f.contype = 'f' AND {TABLES}"
        ),
    );
    for row in rows(conn, references).await {
        let reference = (texts(&row[1]), text(&row[2]), texts(&row[3]));
        schema.get_mut(&text(&row[0])).unwrap().references.insert(reference);
    }
    let checks = json(
        "c.relname, pg_get_expr(k.conbin, k.conrelid)",
        &format!(
            "pg_constraint k JOIN pg_class c ON c.oid = k.conrelid WHERE k.contype = 'c' AND \
             {TABLES}"
        ),
    );
    for row in rows(conn, checks).await {
        let check = words(row[1].as_str().unwrap());
        schema.get_mut(&text(&row[0])).unwrap().checks.insert(check);
    }
    let triggers = json(
        "c.relname",
        &format!(
            "pg_class c WHERE {TABLES} AND EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = c.oid \
             AND NOT tgisinternal)"
        ),
    );
    for row in rows(conn, triggers).await {
        schema.get_mut(&text(&row[0])).unwrap().has_triggers = true;
    }
    schema
}

struct Both {
    _folder: tempfile::TempDir,
    _database: Database,
    sqlite: AnyConnection,
    postgres: AnyConnection,
}

async fn migrated() -> Both {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::make(Backend::Postgres, folder.path()).await;
    let url = format!("sqlite:{}", folder.path().join("heliograph.db").display());
    Service::migrate(&url).await.unwrap();
    Both {
        sqlite: AnyConnection::connect(&url).await.unwrap(),
        postgres: database.connect().await,
        _folder: folder,
        _database: database,
    }
}

/// Removes the shard from a table that can be distributed.
fn without_shard(name: &str, table: &mut Table) {
    let (kind, is_filled, _) = table.columns.remove("shard").unwrap();
    assert_eq!((kind.as_str(), is_filled), ("bigint", true), "{name}");
    let unhoused = |columns: &[String]| {
        let (last, others) = columns.split_last().unwrap();
        assert_eq!(last, "shard", "{name}: {columns:?}");
        others.to_vec()
    };
    table.primary_key = unhoused(&table.primary_key);
    let indexes = std::mem::take(&mut table.indexes).into_iter();
    let indexes = indexes.map(|(index, columns, unique, condition)| {
        let columns = if unique { unhoused(&columns) } else { columns };
        (index, columns, unique, condition)
    });
    table.indexes = indexes.collect();
    let to = table.references.iter().map(|(_, to, _)| to.as_str());
    assert!(to.into_iter().all(|to| to == "accounts"), "{name}");
}

/// Removes the intended differences from the schemas. Fails if one of them doesn't exist.
fn compared(mut sqlite: Schema, mut postgres: Schema) -> (Schema, Schema) {
    for (table, instead) in ONLY_POSTGRES {
        assert!(!sqlite.contains_key(table));
        assert!(postgres.remove(table).is_some(), "{table}: {instead}");
    }
    for table in DISTRIBUTED {
        without_shard(table, postgres.get_mut(table).unwrap());
    }
    for (table, column, what_for) in OTHER_COLUMNS {
        let columns = &mut postgres.get_mut(table).unwrap().columns;
        assert!(columns.remove(column).is_some(), "{column}: {what_for}");
    }
    let checks = &mut postgres.get_mut("installation").unwrap().checks;
    for check in ["shards > 0", "distribution = 'begun' OR distribution = 'done'"] {
        assert!(checks.remove(&words(check)), "{check}");
    }
    for (table, other) in OTHER_REFERENCES {
        let references = &mut sqlite.get_mut(table).unwrap().references;
        let before = references.len();
        references.retain(|(_, to, _)| to != other);
        assert_eq!(references.len(), before - 1, "{table}");
    }
    for (table, of_sqlite, of_postgres, why) in OTHER_KEYS {
        let tables = [sqlite.get_mut(table), postgres.get_mut(table)];
        let keys = tables.map(|table| std::mem::take(&mut table.unwrap().primary_key));
        assert_eq!(keys, [of_sqlite, of_postgres], "{table}: {why}");
    }
    for table in sqlite.values_mut().chain(postgres.values_mut()) {
        table.indexes.retain(|(name, ..)| OTHER_INDEXES.iter().all(|(other, _)| other != name));
    }
    (sqlite, postgres)
}

#[tokio::test]
async fn both_schemas_have_the_same_tables_columns_and_constraints() {
    let mut both = migrated().await;
    let sqlite = of_sqlite(&mut both.sqlite).await;
    let postgres = of_postgres(&mut both.postgres).await;
    let (sqlite, postgres) = compared(sqlite, postgres);
    let names = |schema: &Schema| schema.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&sqlite), names(&postgres));
    for (name, table) in &sqlite {
        assert_eq!(table, &postgres[name], "{name}");
    }
    // Checks that rows of each kind were read.
    let some = |has: fn(&Table) -> bool| sqlite.values().filter(|table| has(table)).count();
    assert!(some(|table| !table.columns.is_empty()) > 20);
    assert!(some(|table| !table.indexes.is_empty()) > 8);
    assert!(some(|table| !table.checks.is_empty()) > 8);
    assert!(some(|table| !table.references.is_empty()) > 3);
    assert_eq!(some(|table| table.has_triggers), 3);
}

#[tokio::test]
async fn a_change_to_one_schema_alone_is_found() {
    const CHANGES: [&str; 6] = [
        "ALTER TABLE audit ADD COLUMN more TEXT",
        "CREATE INDEX audit_by_actor ON audit (actor)",
        "CREATE TABLE more (id BIGINT PRIMARY KEY)",
        "ALTER TABLE receipt_counts ALTER COLUMN unmatched DROP NOT NULL",
        "ALTER TABLE nodes ADD CHECK (token >= 0)",
        "ALTER TABLE queue ALTER COLUMN submission SET DEFAULT 1",
    ];
    let mut both = migrated().await;
    let before = of_postgres(&mut both.postgres).await;
    for change in CHANGES {
        both.postgres.execute("BEGIN").await.unwrap();
        both.postgres.execute(change).await.unwrap();
        assert_ne!(of_postgres(&mut both.postgres).await, before, "{change}");
        both.postgres.execute("ROLLBACK").await.unwrap();
    }
    let before = of_sqlite(&mut both.sqlite).await;
    for change in &CHANGES[..2] {
        both.sqlite.execute(*change).await.unwrap();
        let after = of_sqlite(&mut both.sqlite).await;
        assert_ne!(after, before, "{change}");
    }
}

/// Asserts that a statement is refused because the table is append-only.
async fn refuses(conn: &mut AnyConnection, statement: &'static str) {
    let error = conn.execute(statement).await.unwrap_err().to_string();
    assert!(error.contains("append-only"), "{statement}: {error}");
}

#[tokio::test]
async fn the_ledger_and_the_audit_log_refuse_changes_in_both_schemas() {
    let mut both = migrated().await;
    let inserts = [
        [
            "INSERT INTO transfers (id, debit_account, credit_account, amount, kind, \
             application_id, created_at) VALUES (1, -1, -2, 5, 1, 0, 1)",
            "INSERT INTO accounts (id, email, password_hash, role, created_at, \
             password_changed_at) VALUES (1, 'a', 'b', 'staff', 1, 1)",
        ],
        [
            "INSERT INTO transfers (id, debit_account, credit_account, amount, kind, \
             application_id, created_at, shard) VALUES (1, -1, -2, 5, 1, 0, 1, 1)",
            "INSERT INTO accounts (id, email, password_hash, role, created_at, \
             password_changed_at, shard) VALUES (1, 'a', 'b', 'staff', 1, 1, 1)",
        ],
    ];
    for (conn, insert) in [&mut both.sqlite, &mut both.postgres].into_iter().zip(inserts) {
        for insert in insert {
            conn.execute(insert).await.unwrap();
        }
        for row in [
            "INSERT INTO audit (at, actor, action, subject, chain, number, hash) \
             VALUES (1, 'a', 'b', 'c', 0, 1, 'd')",
            "INSERT INTO account_notes (account_id, at, author, text) VALUES (1, 1, 'a', 'b')",
        ] {
            conn.execute(row).await.unwrap();
        }
        for statement in [
            "UPDATE transfers SET amount = 6",
            "DELETE FROM transfers",
            "UPDATE audit SET at = 2",
            "DELETE FROM audit",
            "UPDATE account_notes SET at = 2",
            "DELETE FROM account_notes",
        ] {
            refuses(conn, statement).await;
        }
    }
    for statement in ["TRUNCATE transfers", "TRUNCATE audit"] {
        refuses(&mut both.postgres, statement).await;
    }
}

/// Checks the granted privileges, because the tests' role is a superuser and may do everything.
#[tokio::test]
async fn the_owner_of_the_tables_may_not_change_the_ledger_and_the_audit_log() {
    let mut both = migrated().await;
    let granted = rows(
        &mut both.postgres,
        json(
            "a.privilege_type",
            "pg_class c, aclexplode(c.relacl) a WHERE c.relname IN ('transfers', 'audit')",
        ),
    );
    let granted = granted.await;
    let granted: Vec<String> = granted.iter().map(|row| text(&row[0])).collect();
    let times = |privilege: &str| granted.iter().filter(|found| *found == privilege).count();
    assert_eq!([times("SELECT"), times("INSERT")], [2, 2]);
    assert_eq!([times("UPDATE"), times("DELETE"), times("TRUNCATE")], [0, 0, 0]);
}

fn migrations(dialect: &str) -> BTreeSet<String> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../migrations");
    let files = std::fs::read_dir(folder.join(dialect)).unwrap();
    let name = |file: std::io::Result<std::fs::DirEntry>| file.unwrap().file_name().into_string();
    files.map(|file| name(file).unwrap()).collect()
}

#[tokio::test]
async fn each_migration_exists_for_both_databases_and_is_applied() {
    const APPLIED: &str = "FROM _sqlx_migrations ORDER BY version";
    let mut both = migrated().await;
    let mut applied = Vec::new();
    for conn in [&mut both.sqlite, &mut both.postgres] {
        let found = sqlx::query(AssertSqlSafe(format!("SELECT version, description {APPLIED}")))
            .fetch_all(conn)
            .await
            .unwrap();
        let names = found.iter().map(|row| {
            let (version, name): (i64, String) = (row.get(0), row.get(1));
            format!("{version:04}_{name}.sql")
        });
        applied.push(names.collect::<BTreeSet<_>>());
    }
    assert_eq!(applied[0], migrations("sqlite"));
    assert_eq!(applied[1], migrations("postgres"));
    assert_eq!(applied[0], applied[1]);
}
