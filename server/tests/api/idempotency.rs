//! Requests with idempotency keys, which are safe to repeat.

use std::sync::Mutex;

use crate::client::{Answer, MULTIPART, bare, form, multipart, posted};
use crate::harness::{TestServer, until};

const FORM: &str = "application/x-www-form-urlencoded";

/// Returns a request with an idempotency key.
fn keyed(method: &str, target: &str, key: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let headers = [
        ("Idempotency-Key", key),
        ("Content-Type", content_type),
        ("Content-Length", length.as_str()),
    ];
    let mut request = bare(method, target, &headers);
    request.extend_from_slice(body);
    request
}

fn send(server: &TestServer, api_key: &str, key: &str, pairs: &[(&str, &str)]) -> Answer {
    let target = format!("/sms/send/{api_key}?{}", form(pairs));
    server.exchange(&keyed("GET", &target, key, FORM, b""))
}

fn upload(server: &TestServer, api_key: &str, key: &str, parts: &[(&str, &[u8])]) -> Answer {
    let target = format!("/sms/bulk/{api_key}");
    server.exchange(&keyed("POST", &target, key, MULTIPART, &multipart(parts)))
}

fn is_replay_of(replay: &Answer, first: &Answer) {
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!((replay.status, replay.text()), (200, first.text()));
    assert_eq!(replay.header("idempotency-replayed"), Some("true"));
}

const HELLO: [(&str, &str); 3] = [("number", "57000001"), ("message", "Hi"), ("requestid", "r")];
const ROWS: [(&str, &[u8]); 2] = [("bulksms", b"57000001,Hi\n26657000002,Ho"), ("requestid", b"r")];

#[test]
fn a_repeated_send_is_answered_as_before() {
    let server = TestServer::demo();
    let first = send(&server, server.key(), "k", &HELLO);
    is_replay_of(&send(&server, server.key(), "k", &HELLO), &first);
    // Requests are compared by their parameters, not by their bytes.
    let target = format!("/sms/send/{}", server.key());
    let body = form(&[HELLO[1], HELLO[2], HELLO[0]]);
    let posted = server.exchange(&keyed("POST", &target, "k", FORM, body.as_bytes()));
    is_replay_of(&posted, &first);
    let json = br#"{"number":"57000001","message":"\u0048i","requestid":"r","dryrun":"0"}"#;
    is_replay_of(&server.exchange(&keyed("POST", &target, "k", "application/json", json)), &first);
    assert_eq!(server.count(server.key()), 1);
    assert_eq!(server.balance(server.key()), "9.95");
    server.place.check();
}

#[test]
fn a_repeated_upload_is_answered_as_before() {
    let server = TestServer::demo();
    let first = upload(&server, server.key(), "k", &ROWS);
    assert_eq!(first.json()["warnings"][0]["count"], 1);
    is_replay_of(&upload(&server, server.key(), "k", &ROWS), &first);
    let target = format!("/sms/bulk/{}?requestid=r", server.key());
    let body = form(&[("bulksms", std::str::from_utf8(ROWS[0].1).unwrap())]);
    is_replay_of(&server.exchange(&keyed("POST", &target, "k", FORM, body.as_bytes())), &first);
    assert_eq!(server.batches(server.key(), "").len(), 1);
    assert_eq!(server.balance(server.key()), "9.7");
    let batchid = first.json()["batchid"].as_str().unwrap().to_owned();
    server.done_batch(server.key(), &batchid);
    until("no file", || server.place.spooled().is_empty().then_some(()));
    server.place.check();
}

#[test]
fn an_answer_outlives_suspension_and_an_empty_balance() {
    let server = TestServer::empty();
    let keys = server.place.funded("steady@example.org", "0.35");
    let (key, reference) = (keys.live.expose(), keys.reference.to_string());
    let sent = send(&server, key, "a", &HELLO);
    let uploaded = upload(&server, key, "b", &ROWS);
    assert_eq!(server.balance(key), "0");
    is_replay_of(&send(&server, key, "a", &HELLO), &sent);
    is_replay_of(&upload(&server, key, "b", &ROWS), &uploaded);
    send(&server, key, "c", &HELLO).is(402, 501, "insufficient_funds");
    server.place.json(&["application", "suspend", &reference, "--reason", "unpaid"]);
    is_replay_of(&send(&server, key, "a", &HELLO), &sent);
    is_replay_of(&upload(&server, key, "b", &ROWS), &uploaded);
    send(&server, key, "c", &HELLO).is(403, 503, "api_suspended");
    upload(&server, key, "c", &ROWS).is(403, 503, "api_suspended");
    server.place.check();
}

#[test]
fn an_answer_outlives_a_restart() {
    let server = TestServer::demo();
    let (api_key, first) = (server.key().to_owned(), send(&server, server.key(), "k", &HELLO));
    let server = TestServer::start(server.kill(), &["--demo"], &[]);
    is_replay_of(&send(&server, &api_key, "k", &HELLO), &first);
    assert_eq!(server.count(&api_key), 1);
    server.place.check();
}

#[test]
fn another_request_under_the_key_is_refused() {
    let server = TestServer::demo();
    let api_key = server.key();
    send(&server, api_key, "s", &HELLO);
    upload(&server, api_key, "b", &ROWS);
    let mismatch = |answer: &Answer| answer.is(422, 500, "idempotency_mismatch");
    for pairs in [
        &[("number", "57000002"), ("message", "Hi"), ("requestid", "r")][..],
        &[("number", "+57000001"), ("message", "Hi"), ("requestid", "r")],
        &[("number", "57000001"), ("message", "hi"), ("requestid", "r")],
        &[("number", "57000001"), ("message", "Hi"), ("requestid", "")],
        &[("number", "57000001"), ("message", "Hi")],
        &[("number", "1"), ("message", "Hi")],
        &[],
    ] {
        mismatch(&send(&server, api_key, "s", pairs));
        mismatch(&send(&server, api_key, "b", pairs));
    }
    for parts in [
        &[("bulksms", &b"57000001,Hi\n26657000002,Ho\n"[..]), ("requestid", b"r")][..],
        &[("bulksms", b"57000001,Hi"), ("requestid", b"r")],
        &[("bulksms", b"57000001,Hi\n26657000002,Ho")],
        &[("numbers", b"57000001"), ("message", b"Hi"), ("requestid", b"r")],
        &[("bulksms", b"x")],
        &[("bulksms", b"57000001,Hi"), ("message", b"Hi")],
        &[],
    ] {
        mismatch(&upload(&server, api_key, "b", parts));
        mismatch(&upload(&server, api_key, "s", parts));
    }
    let target = format!("/sms/bulk/{api_key}");
    mismatch(&server.exchange(&keyed("POST", &target, "b", "text/csv", b"57000001,Hi")));
    let target = format!("/sms/send/{api_key}");
    mismatch(&server.exchange(&keyed("POST", &target, "s", "text/plain", b"Hi")));
    assert_eq!(server.batches(api_key, "").len(), 1);
    assert_eq!(server.balance(api_key), "9.65");
    server.place.check();
}

#[test]
fn equal_requests_at_once_are_charged_once() {
    let server = TestServer::demo();
    let answers = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let answer = send(&server, server.key(), "s", &HELLO);
                    answers.lock().unwrap().push((answer.status, answer.text()));
                }
            });
        }
    });
    let mut answers = answers.into_inner().unwrap();
    answers.dedup();
    assert_eq!(answers.len(), 1);
    assert_eq!(answers[0].0, 200, "{}", answers[0].1);
    assert_eq!(server.count(server.key()), 1);
    let statuses = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let answer = upload(&server, server.key(), "b", &ROWS);
                    if answer.status == 409 {
                        answer.is(409, 500, "idempotency_in_progress");
                        assert_eq!(answer.header("retry-after"), Some("1"));
                    }
                    statuses.lock().unwrap().push(answer.status);
                }
            });
        }
    });
    let statuses = statuses.into_inner().unwrap();
    assert!(statuses.contains(&200));
    assert!(statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
    assert_eq!(server.batches(server.key(), "").len(), 1);
    assert_eq!(server.balance(server.key()), "9.65");
    server.place.check();
}

#[test]
fn an_upload_under_way_holds_its_key() {
    let server = TestServer::demo();
    let target = format!("/sms/bulk/{}", server.key());
    let request = keyed("POST", &target, "k", MULTIPART, &multipart(&ROWS));
    let mut connection = server.connect();
    connection.write(&request[..request.len() - 10]);
    until("a file", || (!server.place.spooled().is_empty()).then_some(()));
    upload(&server, server.key(), "k", &ROWS).is(409, 500, "idempotency_in_progress");
    // An upload with another key isn't blocked.
    assert_eq!(upload(&server, server.key(), "l", &ROWS).status, 200);
    connection.write(&request[request.len() - 10..]);
    let first = connection.read().unwrap();
    is_replay_of(&upload(&server, server.key(), "k", &ROWS), &first);
    // A client that disconnects releases its key. The test first waits for the file, which shows
    // that the upload holds the key. An earlier request with the key would hold it itself.
    until("no file", || server.place.spooled().is_empty().then_some(()));
    let request = keyed("POST", &target, "m", MULTIPART, &multipart(&ROWS));
    let mut connection = server.connect();
    connection.write(&request[..request.len() - 10]);
    until("a file", || (!server.place.spooled().is_empty()).then_some(()));
    assert_eq!(upload(&server, server.test_key(), "m", &[]).status, 400);
    assert_eq!(upload(&server, server.key(), "m", &[]).status, 409);
    drop(connection);
    until("a released key", || {
        (upload(&server, server.key(), "m", &ROWS).status == 200).then_some(())
    });
    server.place.check();
}

#[test]
fn keys_belong_to_the_application() {
    let server = TestServer::empty();
    let keys = server.place.funded("one@example.org", "1");
    let other = server.place.funded("two@example.org", "1");
    let key = keys.live.expose();
    let first = send(&server, key, "k", &HELLO);
    // Keys of other applications are separate, and so are those of the test key.
    for key in [other.live.expose(), keys.test.expose()] {
        let answer = send(&server, key, "k", &HELLO);
        assert_eq!(answer.header("idempotency-replayed"), None);
        assert_ne!(answer.json()["transid"], first.json()["transid"]);
    }
    // After its API key is replaced, an application still gets its stored answers.
    let replaced = server.place.with_service(async |service| {
        let password = "correct horse battery";
        let kind = domain::KeyKind::Live;
        service
            .applications()
            .replace_key(keys.account_id, keys.reference, kind, password, "", None)
            .await
            .unwrap()
    });
    is_replay_of(&send(&server, replaced.expose(), "k", &HELLO), &first);
    send(&server, key, "k", &HELLO).is(401, 504, "api_invalid");
    server.place.check();
}

#[test]
fn refusals_are_not_kept() {
    let server = TestServer::empty();
    let keys = server.place.funded("poor@example.org", "0.04");
    let (key, reference) = (keys.live.expose(), keys.reference.to_string());
    send(&server, key, "k", &[("number", "1")]).is(400, 500, "invalid_number");
    send(&server, key, "k", &HELLO).is(402, 501, "insufficient_funds");
    upload(&server, key, "l", &[("bulksms", b"x")]).is(400, 500, "invalid_file");
    upload(&server, key, "l", &ROWS).is(402, 501, "insufficient_funds");
    server.place.json(&["deposit", "add", &reference, "1", "--bank-id", "more"]);
    for answer in [send(&server, key, "k", &HELLO), upload(&server, key, "l", &ROWS)] {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("idempotency-replayed"), None);
    }
    server.place.check();
}

#[test]
fn the_header_must_be_one_good_key() {
    let server = TestServer::demo();
    let target = format!("/sms/send/{}?{}", server.key(), form(&HELLO));
    let long = "k".repeat(256);
    for headers in [
        &[("Idempotency-Key", "")][..],
        &[("Idempotency-Key", long.as_str())],
        &[("Idempotency-Key", "a\tb")],
        &[("Idempotency-Key", "é")],
        &[("Idempotency-Key", "a"), ("Idempotency-Key", "a")],
    ] {
        let answer = server.exchange(&bare("GET", &target, headers));
        answer.is(400, 500, "invalid_parameter");
        assert!(answer.text().contains("Idempotency-Key"));
        server.is_untouched("header");
        let body = multipart(&ROWS);
        let mut request = posted(&format!("/sms/bulk/{}", server.key()), MULTIPART, &body);
        let lines: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let at = request.windows(2).position(|pair| pair == b"\r\n").unwrap() + 2;
        request.splice(at..at, lines.concat().into_bytes());
        server.exchange(&request).is(400, 500, "invalid_parameter");
        server.is_untouched("header");
    }
    // The header is checked last.
    let bad = format!("/sms/send/{}?number=1", server.key());
    let answer = server.exchange(&bare("GET", &bad, &[("Idempotency-Key", "")]));
    answer.is(400, 500, "invalid_number");
    assert_eq!(send(&server, server.key(), &long[1..], &HELLO).status, 200);
}
