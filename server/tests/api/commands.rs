//! The command line: exit codes, help, and the commands for the machine's operator.

use std::fs;

use serde_json::Value;
use sqlx::{Connection as _, Executor as _};

use crate::harness::{Place, TestServer};

#[test]
fn wrong_usage_is_2_and_help_is_0() {
    let place = Place::new();
    for arguments in [
        &["nonsense"] as &[&str],
        &[],
        &["serve", "--nonsense"],
        &["account", "add"],
        &["account", "add", "a@example.org"],
        &["account", "add", "not an address", "--password-stdin"],
        &["application", "approve"],
        &["application", "approve", "12345"],
        &["application", "approve", "12345x"],
        &["application", "suspend", "123456"],
        &["sender", "accept", "x"],
        &["webhook", "list"],
        &["deposit", "add", "123456", "1"],
        &["deposit", "add", "123456", "0", "--bank-id", "a"],
        &["deposit", "add", "123456", "1.0000001", "--bank-id", "a"],
        &["deposit", "add", "123456", "1e3", "--bank-id", "a"],
        &["deposit", "assign", "a"],
        &["carrier", "drain"],
        &["carrier", "resume"],
        &["incident", "open"],
        &["incident", "end", "x"],
        &["staff-list", "show", "nonsense"],
        &["staff-list", "set", "reserved-words"],
        &["backup"],
        &["copy", "--from", "sqlite:a"],
        &["copy", "--from", "sqlite:a", "--to", "b", "--to-file", "c"],
        &["distribute"],
    ] {
        let output = place.run(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {output:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    for arguments in [&["--help"] as &[&str], &["serve", "--help"], &["--version"]] {
        assert_eq!(place.run(arguments).status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn only_a_server_is_distributed() {
    let place = Place::new();
    place.json(&["migrate"]);
    let words = place.refused(&["distribute", "--shards", "4"]);
    assert!(words.contains("a SQLite database can't be distributed"), "{words}");
    let words = place.refused(&["distribute", "--shards", "0"]);
    assert!(words.contains("at least one shard"), "{words}");
}

#[test]
fn backups_are_whole_and_openable() {
    let server = TestServer::demo();
    server.accepted(server.key(), "57000001");
    server.place.json(&["backup", "copy.db"]);
    let copy = server.place.path().join("copy.db");
    assert!(copy.exists());
    let output = server.place.run(&["--database-url", "sqlite:copy.db", "check", "--json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let list =
        server.place.run(&["--database-url", "sqlite:copy.db", "application", "list", "--json"]);
    let list: Value = serde_json::from_slice(&list.stdout).unwrap();
    assert_eq!(list[0]["balance"].to_string(), "9.95");
    // A restored backup is held until its messages are reconciled.
    let flags = ["--database-url", "sqlite:restored.db", "--data-dir", "restored"];
    let restored = |arguments: &[&str]| server.place.json(&[&flags[..], arguments].concat());
    restored(&["restore", "copy.db"]);
    let held = restored(&["messages", "reconcile"]);
    assert!(held["held_since"].is_string(), "{held}");
    let carrier = restored(&["carrier", "show", "sandbox"]);
    assert_eq!(carrier["held_since"], held["held_since"]);
    let done = restored(&["messages", "reconcile", "--receipts", "--rest", "unknown"]);
    assert_eq!(done["ended"], true, "{done}");
    assert!(restored(&["messages", "reconcile"])["held_since"].is_null());
    let words =
        server.place.refused(&["--database-url", "sqlite:restored.db", "restore", "copy.db"]);
    assert!(words.contains("exists already"), "{words}");
    // The command never overwrites an existing file.
    let whole = fs::read(&copy).unwrap();
    let words = server.place.refused(&["backup", "copy.db"]);
    assert!(words.contains("copy.db") && words.contains("exists"), "{words}");
    assert_eq!(fs::read(&copy).unwrap(), whole);
    let words = server.place.refused(&["backup", "nowhere/copy.db"]);
    assert!(words.contains("nowhere/copy.db") && words.contains("No such file"), "{words}");
}

#[test]
fn the_url_names_the_file_as_it_is() {
    let place = Place::new();
    let name = "50%25 off%2F #1.db";
    let url = format!("sqlite:{name}");
    for command in ["migrate", "check"] {
        let output = place.run(&["--database-url", &url, command]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
    }
    let files = fs::read_dir(place.path()).unwrap();
    let paths = files.map(|file| file.unwrap().path());
    let databases: Vec<_> = paths.filter(|path| path.extension() == Some("db".as_ref())).collect();
    assert_eq!(databases, [place.path().join(name)]);
}

#[test]
fn what_is_no_database_is_called_so() {
    let place = Place::new();
    let text = "bank_id,reference,amount\n".repeat(100);
    fs::write(place.path().join("bank.csv"), &text).unwrap();
    for command in [&["check"] as &[&str], &["migrate"], &["serve", "--demo"]] {
        let arguments = [&["--database-url", "sqlite:bank.csv"], command].concat();
        let words = place.refused(&arguments);
        assert!(words.contains("isn't a SQLite database"), "{words}");
    }
    let after = fs::read_to_string(place.path().join("bank.csv")).unwrap();
    assert_eq!(after, text);
}

#[test]
fn upkeep_prints_what_it_should() {
    let place = Place::new();
    assert_eq!(place.json(&["migrate"])["status"], "migrated");
    assert_eq!(place.json(&["migrate"])["status"], "migrated");
    place.check();
    let config = place.json(&["config"]);
    assert_eq!(config["country_code"], "266");
    let openapi: Value = serde_json::from_slice(&place.run(&["openapi"]).stdout).unwrap();
    assert_eq!(openapi["openapi"], "3.1.0");
    for path in [
        "/sms/send/{key}",
        "/sms/reports/{key}",
        "/sms/reports/{key}/{transid}",
        "/sms/balance/{key}",
    ] {
        assert!(openapi["paths"][path].is_object(), "{path}");
    }
}

#[test]
fn a_database_is_made_by_migrate_or_serve_alone() {
    let place = Place::new();
    for arguments in [
        &["check"] as &[&str],
        &["application", "list"],
        &["deposit", "add", "123456", "1", "--bank-id", "a"],
        &["--database-url", "sqlite:misspelt.db", "sender", "list"],
    ] {
        assert!(place.refused(arguments).contains("migrate"), "{arguments:?}");
    }
    assert!(!place.path().join("data").exists());
    assert!(!place.path().join("misspelt.db").exists());
}

#[test]
fn one_process_serves_a_database() {
    let server = TestServer::demo();
    let words = server.place.refused(&["serve", "--demo"]);
    assert!(words.contains("another process"), "{words}");
    assert_eq!(server.balance(server.key()), "10");
}

/// Creates an empty database on the PostgreSQL server that the test command started, and returns
/// its URL.
fn postgres() -> String {
    let server = std::env::var("HELIOGRAPH_TEST_POSTGRES")
        .expect("HELIOGRAPH_TEST_POSTGRES is not set: `make test-rust` starts PostgreSQL");
    let name = format!("copied_{}", std::process::id());
    let making = async {
        sqlx::any::install_default_drivers();
        let mut conn = sqlx::AnyConnection::connect(&server).await.unwrap();
        let make = sqlx::AssertSqlSafe(format!("CREATE DATABASE {name}"));
        conn.execute(make).await.unwrap();
    };
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(making);
    let (start, _) = server.rsplit_once('/').unwrap();
    format!("{start}/{name}")
}

#[test]
fn a_copy_says_what_arrived_and_is_made_once() {
    let place = Place::new();
    place.json(&["migrate"]);
    place.funded("one@example.org", "12.5");
    let to = postgres();
    let copy = ["copy", "--from", "sqlite:data/heliograph.db", "--to", &to];
    let copied = place.json(&copy);
    assert_eq!(copied["ok"], true);
    let tables = copied["tables"].as_array().unwrap();
    let transfers = serde_json::json!({"table": "transfers", "from": 1, "to": 1});
    assert!(tables.contains(&transfers), "{copied}");
    let deposits = serde_json::json!({"name": "deposit", "from": 12.5, "to": 12.5});
    assert!(copied["ledger"].as_array().unwrap().contains(&deposits));
    let checked = place.json(&["check", "--database-url", &to]);
    assert_eq!(checked["ok"], true, "{checked}");
    assert!(place.refused(&copy).contains("empty"));
    // The URL contains a password, so it may be given in a private file.
    fs::write(place.path().join("to"), format!("{to}\n")).unwrap();
    let by_file = ["copy", "--from", "sqlite:data/heliograph.db", "--to-file", "to"];
    assert!(place.refused(&by_file).contains("empty"));
    let missing = ["copy", "--from", "sqlite:data/missing.db", "--to", &to];
    assert!(place.refused(&missing).contains("missing.db"));
}

#[test]
fn a_copy_doesnt_leave_the_machine_in_the_clear() {
    let place = Place::new();
    let words = place.refused(&[
        "copy",
        "--from",
        "sqlite:a.db",
        "--to",
        "postgres://u:hidden@db.example/d",
    ]);
    assert!(words.contains("--to: ") && words.contains("sslmode=verify-full"), "{words}");
    assert!(!words.contains("hidden"), "{words}");
    let words = place.refused(&["copy", "--from", "sqlite:a.db", "--to-file", "none"]);
    assert!(words.contains("--to-file"), "{words}");
}
