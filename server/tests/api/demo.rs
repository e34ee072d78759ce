//! `serve --demo` shows the same data at every start, whatever happened in between.

use std::os::unix::fs::PermissionsExt as _;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use crate::harness::{Place, Running, TestServer, until_at_once};

const SEED: u64 = 7;

/// Returns the part of the output that stays the same from start to start.
fn lasting(ready: &Value) -> Value {
    let mut lasting = ready.clone();
    for name in ["url", "ops_url"] {
        lasting.as_object_mut().unwrap().remove(name);
    }
    lasting
}

#[test]
fn one_line_has_all_that_is_needed() {
    let server = TestServer::demo();
    let ready = &server.ready;
    let mut names: Vec<&String> = ready.as_object().unwrap().keys().collect();
    names.sort();
    assert_eq!(names, ["api_key", "customer", "ops_url", "reference", "staff", "test_key", "url"]);
    assert!(ready["api_key"].as_str().unwrap().starts_with(ready["reference"].as_str().unwrap()));
    for who in ["customer", "staff"] {
        assert!(ready[who]["email"].is_string() && ready[who]["password"].is_string());
    }
    let secret = ready["staff"]["totp_secret"].as_str().unwrap();
    assert!(service::TotpSecret::parse(secret).is_some());
    assert!(ready["customer"].get("totp_secret").is_none());
    assert_eq!(server.balance(server.key()), "10");
    let shown = server.place.json(&["application", "show", server.reference()]);
    assert_eq!(shown["status"], "Active");
    let file = server.place.path().join("data/demo.json");
    let mode = std::fs::metadata(file).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn the_next_start_prints_the_same() {
    let server = TestServer::demo();
    let first = lasting(&server.ready);
    server.accepted(server.key(), "57000001");
    let (_, place) = server.stop();
    let server = TestServer::start(place, &["--demo"], &[]);
    assert_eq!(lasting(&server.ready), first);
    assert_eq!(server.balance(server.key()), "9.95");
}

#[test]
fn a_replaced_key_and_a_changed_password_are_null() {
    let server = TestServer::demo();
    let reference = domain::Reference::parse(server.reference()).unwrap();
    let password = server.ready["customer"]["password"].as_str().unwrap().to_owned();
    let (_, place) = server.stop();
    place.with_service(async |service| {
        let account =
            service.accounts().find_account("customer@example.org").await.unwrap().unwrap();
        let kind = domain::KeyKind::Live;
        service
            .applications()
            .replace_key(account.id, reference, kind, &password, "", None)
            .await
            .unwrap();
        let new = domain::Password::parse("another password").unwrap();
        service.accounts().change_password(&account, &password, &new, "").await.unwrap();
    });
    let server = TestServer::start(place, &["--demo"], &[]);
    assert_eq!(server.ready["api_key"], Value::Null);
    assert!(server.ready["test_key"].is_string());
    assert_eq!(server.ready["customer"]["password"], Value::Null);
    assert!(server.ready["staff"]["password"].is_string());
    assert!(server.ready["staff"]["totp_secret"].is_string());
    let (_, place) = server.stop();
    place.json(&["account", "reset-factor", "staff@example.org"]);
    let server = TestServer::start(place, &["--demo"], &[]);
    assert_eq!(server.ready["staff"]["totp_secret"], Value::Null);
}

#[test]
fn the_printed_text_has_a_code_of_staff() {
    let place = Place::new();
    let (line, _server) = printed_line(&place, "staff ");
    let (_, after) = line.split_once(" code ").expect("a code");
    let code: String = after.chars().take_while(char::is_ascii_digit).collect();
    assert_eq!(code.len(), 6, "{line}");
    let (_, secret) = after.split_once("secret for later codes: ").expect("the secret");
    let secret = service::TotpSecret::parse(secret.trim_end_matches(')')).unwrap();
    let now = service::Clock::system().now();
    let shown = [0, -30_000].map(|ms| secret.code(now.plus_ms(ms)));
    assert!(shown.contains(&code), "{line}");
}

#[test]
fn half_made_data_is_completed() {
    let server = TestServer::demo();
    let reference = server.reference().to_owned();
    let (_, place) = server.stop();
    let file = place.path().join("data/demo.json");
    // As if the first start had ended after creating the application and before saving its keys.
    let mut kept: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    kept["settled"] = Value::Bool(false);
    kept["api_key"] = Value::Null;
    kept["test_key"] = Value::Null;
    kept["reference"] = Value::Null;
    std::fs::write(&file, kept.to_string()).unwrap();
    let server = TestServer::start(place, &["--demo"], &[]);
    assert_eq!(server.reference(), reference);
    server.accepted(server.key(), "57000001");
    server.accepted(server.test_key(), "57000001");
    let (_, place) = server.stop();
    // If the file is missing, the demo gets new passwords and keys for the same data.
    std::fs::remove_file(&file).unwrap();
    let server = TestServer::start(place, &["--demo"], &[]);
    assert_eq!(server.reference(), reference);
    server.accepted(server.key(), "57000001");
}

#[test]
fn the_sign_ins_of_another_database_are_not_overwritten() {
    let server = TestServer::demo();
    let first = lasting(&server.ready);
    let (_, place) = server.stop();
    let file = place.path().join("data/demo.json");
    let kept = std::fs::read(&file).unwrap();
    let elsewhere = ["--database-url", "sqlite:data/other.db"];
    let output = place.command(&["serve", "--demo"]).args(elsewhere).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let words = String::from_utf8(output.stderr).unwrap();
    for said in ["demo.json", "another database", "data_dir", "delete it"] {
        assert!(words.contains(said), "{words}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), kept);
    // Both solutions that the error names work.
    let (_, place) = TestServer::start(place, &["--demo"], &[]).stop();
    let arguments = [&["--demo", "--data-dir", "more"], &elsewhere[..]].concat();
    let server = TestServer::start(place, &arguments, &[]);
    assert_ne!(lasting(&server.ready), first);
    let (_, place) = server.stop();
    let server = TestServer::start(place, &["--demo"], &[]);
    assert_eq!(lasting(&server.ready), first);
    let (_, place) = server.stop();
    std::fs::remove_file(&file).unwrap();
    let arguments = [&["--demo"], &elsewhere[..]].concat();
    let server = TestServer::start(place, &arguments, &[]);
    server.accepted(server.key(), "57000001");
}

/// Returns how far a start has got, judged by the files that it has written.
fn progress(place: &Place) -> usize {
    let data = place.path().join("data");
    let kept = std::fs::read_to_string(data.join("demo.json")).unwrap_or_default();
    let steps = [
        data.exists(),
        data.join("heliograph.db").exists(),
        data.join("heliograph.db-wal").exists(),
        kept.contains("\"settled\": false"),
        kept.contains("\"settled\": true"),
    ];
    steps.iter().rposition(|done| *done).map_or(0, |step| step + 1)
}

#[test]
fn kills_during_the_first_start_leave_a_good_next_one() {
    use std::process::Stdio;

    let mut random = StdRng::seed_from_u64(SEED);
    for step in (0..=5).chain([4, 4, 4]) {
        let place = Place::new();
        let mut command = place.command(&["serve", "--demo", "--json"]);
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut child = Running(child);
        // The number of checks between the step and the kill, so that the kill comes at a random
        // time after the step.
        let looks = random.random_range(0..2_000);
        until_at_once("a step of the first start", || {
            let ended = child.0.try_wait().unwrap();
            assert_eq!(ended, None, "the start failed before step {step}");
            (progress(&place) >= step).then_some(())
        });
        for _ in 0..looks {
            progress(&place);
        }
        drop(child);
        let server = TestServer::start(place, &["--demo"], &[]);
        server.accepted(server.key(), "57000001");
        server.accepted(server.test_key(), "57000001");
        let first = lasting(&server.ready);
        let (_, place) = server.stop();
        let server = TestServer::start(place, &["--demo"], &[]);
        assert_eq!(lasting(&server.ready), first);
    }
}

#[test]
fn the_demo_is_refused_where_it_would_do_harm() {
    let place = Place::new();
    let output = place
        .command(&["serve", "--demo"])
        .env("HELIOGRAPH_ADDR", "0.0.0.0:0")
        .env("HELIOGRAPH_BEHIND_PROXY", "true")
        .env("HELIOGRAPH_BASE_URL", "https://sms.example.org")
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--demo"));
    assert!(!place.path().join("data").exists(), "nothing was touched");

    let place = Place::new();
    place.application("somebody@example.com", domain::Category::Sms, None);
    let output = place.run(&["serve", "--demo"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("accounts"));
    assert!(output.stdout.is_empty());
    assert!(!place.path().join("data/demo.json").exists());
}

#[test]
fn the_printed_curl_line_sends() {
    use std::process::Command;

    let place = Place::new();
    let (line, _server) = printed_line(&place, "curl ");
    let answer =
        Command::new("sh").args(["-c", &format!("{line} --silent --show-error")]).output().unwrap();
    let json: Value = serde_json::from_slice(&answer.stdout).unwrap();
    assert_eq!(json["code"], 200, "{line}");
}

/// Starts the demo without `--json`, as a person does. Returns the process and its first line that
/// begins with `beginning`.
fn printed_line(place: &Place, beginning: &str) -> (String, Running) {
    use std::io::{BufRead as _, BufReader};
    use std::process::Stdio;

    let child = place
        .command(&["serve", "--demo"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut child = Running(child);
    let line = BufReader::new(child.0.stdout.take().unwrap())
        .lines()
        .map(Result::unwrap)
        .find(|line| line.starts_with(beginning))
        .unwrap_or_else(|| panic!("no line begins with {beginning:?}"));
    (line, child)
}
