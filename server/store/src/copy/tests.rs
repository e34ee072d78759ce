use std::collections::BTreeSet;

use super::super::tests::stores;
use super::*;

/// Tables that aren't copied: they hold the state of running processes or the schema's version.
const LEFT: [&str; 7] = [
    "_sqlx_migrations",
    "carrier_commands",
    "carrier_command_answers",
    "connections",
    "refused_reloads",
    "nodes",
    "case_viewers",
];
/// Tables that only PostgreSQL has. With SQLite, their contents are in memory or in files.
const SHARED: [&str; 5] =
    ["rate_buckets", "spool_chunks", "commit_groups", "uploads", "data_folders"];
/// Tables that only PostgreSQL has, and that the copy fills from other tables.
const FILLED: [&str; 2] = ["reference_shards", "unusual_messages"];
/// Columns that only PostgreSQL has.
const ADDED: [(&str, &str); 4] = [
    ("installation", "shards"),
    ("installation", "distribution"),
    ("accounts", "shard"),
    ("applications", "last_transfer_id"),
];
const TABLES_OF_SQLITE: Sql =
    Sql::sqlite("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'");
const COLUMNS_OF_POSTGRES: Sql = Sql::postgres(
    r"
    SELECT column_name::text AS name FROM information_schema.columns
    WHERE table_schema = current_schema() AND table_name = $1 AND is_generated = 'NEVER'",
);

async fn names(conn: Conn<'_>, statement: Sql, table: Option<&str>) -> BTreeSet<String> {
    let listing = query(statement, ()).bind(table.map(Argument::from));
    let names = listing.fetch_all(conn, |row| row.get("name")).await;
    names.unwrap().into_iter().collect()
}

/// A forgotten table or column would be lost without an error.
#[tokio::test]
async fn every_table_is_copied_or_left_on_purpose_and_every_column_is_on_both_sides() {
    let folder = tempfile::tempdir().unwrap();
    let [from, to] = stores(folder.path()).await;
    let mut from = from.read().await.unwrap();
    let mut to = to.read().await.unwrap();
    let known = |lists: &[&[&str]]| -> BTreeSet<String> {
        lists.concat().into_iter().map(str::to_owned).collect()
    };
    assert_eq!(names(&mut from, TABLES_OF_SQLITE, None).await, known(&[&TABLES, &LEFT]));
    assert_eq!(names(&mut to, EVERY_TABLE, None).await, known(&[&TABLES, &LEFT, &SHARED, &FILLED]));
    for table in TABLES {
        let mut columns = names(&mut from, COLUMNS, Some(table)).await;
        let added = ADDED.iter().filter(|(to, _)| *to == table);
        columns.extend(added.map(|(_, column)| (*column).to_owned()));
        if shard_of(table).is_some() {
            columns.insert("shard".to_owned());
        }
        assert_eq!(columns, names(&mut to, COLUMNS_OF_POSTGRES, Some(table)).await, "{table}");
    }
}
