//! Keys, numbers and texts never appear in a log, wherever a client puts them. Only the hash of a
//! key is stored.

use std::path::Path;

use domain::printable::is_control;

use crate::client::{MULTIPART, bare, encode, form, multipart, posted};
use crate::harness::{Place, TestServer};

const NUMBER: &str = "57424242";
const TEXT: &str = "canary in the coal mine";
const REQUESTID: &str = "canary-request";
const FALSE_KEY: &str = "123456hk_CanaryCanaryCanaryCanaryCanary123456";

/// Returns requests with the secrets in every possible position.
fn requests(key: &str) -> Vec<Vec<u8>> {
    let pairs = form(&[("number", NUMBER), ("message", TEXT), ("requestid", REQUESTID)]);
    let json = format!("{{\"number\":\"{NUMBER}\",\"message\":\"{TEXT}\"}}");
    let broken = format!("{{\"number\":\"{NUMBER}\",\"message\":\"{TEXT}");
    let form_type = "application/x-www-form-urlencoded";
    let text = encode(TEXT);
    let mut requests = Vec::new();
    for target in [
        format!("/sms/send/{key}?{pairs}"),
        format!("/sms/send/{key}?{pairs}&{pairs}"),
        format!("/sms/send/{key}?number={NUMBER}{NUMBER}&message={text}"),
        format!("/sms/send/{key}?number={NUMBER}&message={text}%00"),
        format!("/sms/reports/{key}?number={NUMBER}"),
        format!("/sms/reports/{key}?{text}={text}"),
        format!("/sms/reports/{key}/{text}"),
        format!("/sms/balance/{key}?{pairs}"),
        format!("/sms/bulk/{key}?{pairs}"),
        format!("/sms/{NUMBER}/{text}/{key}"),
        format!("/sms/send/{key}/{NUMBER}"),
        // Paths outside the API.
        format!("/{key}?{pairs}"),
        format!("/{text}/{NUMBER}"),
        format!("/applications/{key}?{pairs}"),
        format!("/fn/{key}?{pairs}"),
        format!("/pkg/{key}"),
    ] {
        for method in ["GET", "POST", "DELETE", "OPTIONS"] {
            requests.push(bare(method, &target, &[]));
        }
        requests.push(posted(&target, form_type, pairs.as_bytes()));
        requests.push(posted(&target, "application/json", json.as_bytes()));
        requests.push(posted(&target, "application/json", broken.as_bytes()));
        requests.push(posted(&target, &format!("text/{key}"), TEXT.as_bytes()));
    }
    let rows = format!("{NUMBER},{TEXT}\n");
    let bad_rows = format!("{NUMBER},{TEXT}\n{key},{TEXT}\n{TEXT}\n");
    for target in [format!("/sms/bulk/{key}"), format!("/sms/bulk/{key}/{TEXT}")] {
        for rows in [&rows, &bad_rows] {
            let parts = [
                ("bulksms", rows.as_bytes()),
                ("requestid", REQUESTID.as_bytes()),
                (TEXT, key.as_bytes()),
            ];
            requests.push(posted(&target, MULTIPART, &multipart(&parts)));
            requests.push(posted(&target, MULTIPART, rows.as_bytes()));
            let form = form(&[("bulksms", rows)]);
            requests.push(posted(&target, form_type, form.as_bytes()));
        }
    }
    let bearer = format!("Bearer {key}");
    let headers = [
        ("Authorization", bearer.as_str()),
        ("User-Agent", TEXT),
        ("Referer", key),
        ("X-Forwarded-For", NUMBER),
        ("X-Request-Id", key),
        ("Cookie", key),
        ("Idempotency-Key", key),
    ];
    requests.push(bare("GET", &format!("/sms/send?{pairs}"), &headers));
    requests.push(bare("GET", "/", &headers));
    // Terminal escape sequences, and text that looks like a log line.
    let forged = "%1B%5B2J%0A2026-01-01T00:00:00Z%20ERROR%20forged";
    for target in [format!("/sms/{forged}"), format!("/{forged}?{forged}")] {
        requests.push(bare("GET", &target, &[("User-Agent", "\u{9b}2J\t")]));
        requests.push(format!("GET {target}\u{1b}[2J\n\u{2028} HTTP/1.1\r\n\r\n").into());
    }
    requests.push(format!("GET /sms/send/{key} {TEXT}\r\n\r\n").into_bytes());
    requests.push(format!("{key} /sms/send HTTP/1.1\r\nHost: x\r\n\r\n").into_bytes());
    requests.push(format!("GET /sms/send/{key} HTTP/1.1\r\n{TEXT}\r\n\r\n").into_bytes());
    requests
}

fn contains(folder: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contains(&path, needle));
            continue;
        }
        let bytes = std::fs::read(&path).unwrap();
        if bytes.windows(needle.len()).any(|window| window == needle.as_bytes()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn secrets_stay_out_of_logs_and_keys_out_of_the_database() {
    let environment = [("HELIOGRAPH_ALLOW_SANDBOX", "true"), ("HELIOGRAPH_LOG", "debug")];
    let server = TestServer::start(Place::new(), &[], &environment);
    let keys = server.place.funded("quiet@example.org", "100");
    for key in [keys.live.expose(), keys.test.expose(), FALSE_KEY] {
        for request in requests(key) {
            let mut connection = server.connect();
            connection.write(&request);
            // Any answer is fine, or none.
            let _ = connection.read();
        }
    }
    assert!(server.count(keys.live.expose()) > 0);
    let (code, place) = server.stop();
    assert_eq!(code, Some(0));
    place.check();

    let log = std::fs::read_to_string(place.path().join("log.txt")).unwrap();
    assert!(log.lines().count() > 300, "the log is there");
    let is_obeyed = |c: char| c != '\n' && is_control(c);
    let line = log.lines().find(|line| line.contains(is_obeyed) || line.contains("forged"));
    assert_eq!(line, None);
    let text = encode(TEXT);
    let secrets =
        [keys.live.expose(), keys.test.expose(), FALSE_KEY, NUMBER, TEXT, &text, REQUESTID];
    for secret in secrets {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
    for key in [keys.live.expose(), keys.test.expose(), FALSE_KEY] {
        assert_eq!(contains(place.path(), key), Vec::<String>::new(), "{key}");
    }
    assert!(!contains(place.path(), &keys.live.hash()).is_empty(), "the hash is stored");
}
