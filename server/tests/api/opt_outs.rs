//! `/sms/optouts` over HTTP, and what opt-outs do to sends and uploads.

use serde_json::{Value, json};

use crate::client::{Answer, MULTIPART, bare, form, multipart, posted};
use crate::harness::{TestServer, money, until};
use crate::portal::Browser;

const FORM: &str = "application/x-www-form-urlencoded";

fn path(key: &str) -> String {
    format!("/sms/optouts/{key}")
}

fn post(server: &TestServer, key: &str, pairs: &[(&str, &str)]) -> Answer {
    server.exchange(&posted(&path(key), FORM, form(pairs).as_bytes()))
}

fn post_file(server: &TestServer, key: &str, numbers: &[u8]) -> Answer {
    let body = multipart(&[("numbers", numbers)]);
    server.exchange(&posted(&path(key), MULTIPART, &body))
}

/// Asserts that a change is accepted, and its counts.
fn changed(answer: &Answer, rows: u64, added: u64, removed: u64) {
    answer.is(200, 200, "");
    let json = answer.json();
    assert_eq!(
        (&json["rows"], &json["added"], &json["removed"]),
        (&json!(rows), &json!(added), &json!(removed))
    );
}

fn numbers(server: &TestServer, key: &str, query: &str) -> Vec<String> {
    let answer = server.get(&format!("{}{query}", path(key)));
    answer.is(200, 200, "");
    let listed = answer.json()["optouts"].as_array().unwrap().clone();
    listed.iter().map(|one| one["number"].as_str().unwrap().to_owned()).collect()
}

/// Asserts that the owner downloads the list of the live key, which has one number, in both forms.
fn is_downloaded(server: &TestServer) {
    let mut owner = Browser::of_customer(server);
    let page = format!("/applications/{}/optouts", server.reference());
    let file = format!("{page}.csv");
    let shown = owner.get(&page).text();
    for address in [file.clone(), format!("{file}?for=spreadsheets")] {
        assert!(shown.contains(&format!("href=\"{address}\"")), "{address}: {shown}");
    }
    let plain = owner.get(&file);
    let name = plain.header("content-disposition").unwrap();
    let begin = format!("attachment; filename=\"opt-outs-live-{}_", server.reference());
    assert!(name.starts_with(&begin), "{name}");
    let text = plain.text();
    assert!(text.starts_with("number,source,created_at\r\n26671234568,api,20"), "{text}");
    let text = owner.get(&format!("{file}?for=spreadsheets")).text();
    assert!(text.starts_with("\u{feff}number,source,created_at (UTC)\r\n26671234568,"), "{text}");
    assert!(!text.contains('Z'), "{text}");
    let text = owner.get(&format!("{file}?key=test")).text();
    assert_eq!(text, "number,source,created_at\r\n");
}

#[test]
fn a_number_is_added_listed_and_removed_in_every_form() {
    let server = TestServer::demo();
    let (key, balance) = (server.key(), server.balance(server.key()));
    changed(&post(&server, key, &[("number", "71234568")]), 1, 1, 0);
    changed(&post(&server, key, &[("number", "+26671234568")]), 1, 0, 0);
    let json = br#"{"number": "26671234568"}"#;
    changed(&server.exchange(&posted(&path(key), "application/json", json)), 1, 0, 0);
    // An unescaped plus sign is decoded to a space.
    let query = format!("{}?number=+26671234568", path(key));
    changed(&server.exchange(&posted(&query, FORM, b"")), 1, 0, 0);
    let found = server.get(&path(key)).json();
    assert_eq!(found["next"], Value::Null);
    let [one] = found["optouts"].as_array().unwrap().as_slice() else { panic!("{found}") };
    assert_eq!((&one["number"], &one["source"]), (&json!("26671234568"), &json!("api")));
    assert_eq!(numbers(&server, key, "?number=71234568"), ["26671234568"]);
    assert_eq!(numbers(&server, key, "?number=71234567"), [""; 0]);
    for form in ["71234568", "+26671234568"] {
        let refused = server.send(key, &[("number", form), ("message", "Hi")]);
        refused.is(403, 500, "opted_out");
    }
    assert_eq!(server.balance(key), balance);
    assert_eq!(numbers(&server, server.test_key(), ""), [""; 0]);
    is_downloaded(&server);
    server.send(server.test_key(), &[("number", "71234568"), ("message", "Hi")]).is(200, 200, "");
    let json = br#"{"number": "71234568", "remove": true}"#;
    changed(&server.exchange(&posted(&path(key), "application/json", json)), 1, 0, 1);
    changed(&post(&server, key, &[("number", "71234568"), ("remove", "1")]), 1, 0, 0);
    server.accepted(key, "71234568");
    server.place.check();
}

#[test]
fn a_file_adds_many_and_uploads_count_them() {
    let server = TestServer::demo();
    let key = server.key();
    changed(&post_file(&server, key, b"57000001\n+26657000002\r\n57000001"), 3, 2, 0);
    let encoded = [("numbers", "57000002\n+26657000003")];
    changed(&post(&server, key, &encoded), 2, 1, 0);
    let mut listed = numbers(&server, key, "?limit=2");
    let next = server.get(&format!("{}?limit=2", path(key))).json()["next"].clone();
    listed.extend(numbers(&server, key, &format!("?cursor={}", next.as_str().unwrap())));
    listed.sort();
    assert_eq!(listed, ["26657000001", "26657000002", "26657000003"]);
    let csv = server.get(&format!("{}?format=csv&limit=1", path(key)));
    assert_eq!(csv.header("content-type"), Some("text/csv; charset=utf-8"));
    assert!(csv.header("x-next-cursor").is_some());
    let lines = csv.text();
    let lines: Vec<&str> = lines.lines().collect();
    assert_eq!(lines[0].trim_start_matches('\u{feff}'), "number,source,created_at");
    assert!(lines[1].starts_with("26657000003,api,20"), "{lines:?}");

    let balance = server.balance(key);
    let rows = b"57000001,a\n57000009,b\n+26657000003,c\n";
    let dry = server.upload(key, &[("bulksms", rows), ("dryrun", b"1")]).json();
    let accepted = server.upload(key, &[("bulksms", rows)]).json();
    let warnings = json!([
        {"warning": "looks_local", "count": 1}, {"warning": "opted_out", "count": 2}
    ]);
    assert_eq!((&dry["warnings"], &accepted["warnings"]), (&warnings, &warnings));
    let batch = server.done_batch(key, accepted["batchid"].as_str().unwrap());
    assert_eq!(
        (&batch["counts"]["rejected"], &batch["counts"]["delivered"]),
        (&json!(2), &json!(1))
    );
    let rejected = server.reports(key, "status=rejected");
    assert!(rejected.iter().all(|report| report["error"] == "opted_out"), "{rejected:?}");
    assert!(rejected.iter().all(|report| report["released"] == report["cost"]));
    let paid = money(&balance).checked_sub(money(&server.balance(key)));
    assert_eq!(paid, Some(money("0.05")));
    let events = until("the events", || {
        let found = server.get(&format!("/sms/events/{key}?type=optout.added")).json();
        found["events"].as_array().cloned().filter(|events| events.len() == 3)
    });
    assert_eq!(events[2]["data"]["number"], "26657000003");
    server.place.check();
}

#[test]
fn bad_requests_and_bad_files_change_nothing() {
    let server = TestServer::demo();
    let key = server.key();
    for (pairs, reason) in [
        (&[][..], "missing_parameter"),
        (&[("remove", "1")], "missing_parameter"),
        (&[("number", "")], "invalid_number"),
        (&[("number", "abc")], "invalid_number"),
        (&[("number", "71234568"), ("remove", "0")], "invalid_parameter"),
        (&[("number", "71234568"), ("number", "71234567")], "duplicate_parameter"),
        (&[("number", "71234568"), ("numbers", "71234567")], "invalid_parameter"),
        (&[("numbers", "71234567"), ("remove", "1")], "invalid_parameter"),
        (&[("numbers", "71234567"), ("numbers", "71234568")], "duplicate_parameter"),
        (&[("number", "71234568"), ("message", "Hi")], "invalid_parameter"),
        (&[("numbers", "")], "invalid_file"),
    ] {
        post(&server, key, pairs).is(400, 500, reason);
    }
    for (file, lines) in [
        (&b""[..], &[1][..]),
        (b"number\n57000001\n", &[1]),
        (b"57000001\n\n57000002\n", &[2]),
        (b"57000001,Hi\n57000002\n 57000003\n", &[1, 3]),
        (b"57000001\ncaf\xe9\n", &[2]),
        (b"PK\x03\x04\x14\0x\n\ny\n", &[1]),
    ] {
        let refused = post_file(&server, key, file);
        refused.is(400, 500, "invalid_file");
        let errors = refused.json()["errors"].as_array().unwrap().clone();
        let found: Vec<_> = errors.iter().map(|error| error["line"].as_u64().unwrap()).collect();
        assert_eq!(found, lines);
    }
    let many: String = (0..30).map(|_| "x\n").collect();
    let refused = post_file(&server, key, many.as_bytes()).json();
    assert_eq!(
        (&refused["error_count"], refused["errors"].as_array().unwrap().len()),
        (&json!(30), 20)
    );
    assert!(!refused["message"].as_str().unwrap().contains("dryrun"), "{refused}");
    let json = br#"{"number": 71234568}"#;
    server.exchange(&posted(&path(key), "application/json", json)).is(400, 500, "invalid_number");
    server.exchange(&posted(&path(key), "text/csv", b"71234568")).is(
        415,
        500,
        "unsupported_media_type",
    );
    for query in ["?cursor=o_1", "?limit=0", "?format=xml", "?colour=blue"] {
        server.get(&format!("{}{query}", path(key))).is(400, 500, "invalid_parameter");
    }
    server.get(&format!("{}/o_0000000000000", path(key))).is(404, 500, "not_found");
    server.get("/sms/optouts/wrong").is(401, 504, "api_invalid");
    for method in ["PUT", "DELETE"] {
        server.exchange(&bare(method, &path(key), &[])).is(405, 500, "method_not_allowed");
    }
    assert_eq!(numbers(&server, key, ""), [""; 0]);
}

#[test]
fn a_change_is_replayed_and_the_key_may_be_in_the_header() {
    let server = TestServer::demo();
    let bearer = format!("Bearer {}", server.key());
    let change = |target: &str| {
        let headers = [("Authorization", bearer.as_str()), ("Idempotency-Key", "k")];
        server.exchange(&bare("POST", target, &headers))
    };
    let first = change("/sms/optouts?number=71234568");
    changed(&first, 1, 1, 0);
    assert_eq!(first.header("idempotency-replayed"), None);
    let again = change("/sms/optouts?number=%2B26671234568");
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.body, first.body);
    change("/sms/optouts?number=71234567").is(422, 500, "idempotency_mismatch");
    let listed = bare("GET", "/sms/optouts", &[("Authorization", bearer.as_str())]);
    assert_eq!(server.exchange(&listed).json()["optouts"].as_array().unwrap().len(), 1);
}
