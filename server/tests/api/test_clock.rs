//! `/sms/test/clock` over HTTP: days pass in a test of seconds.

use serde_json::{Value, json};
use testing::receiver::Receiver;

use crate::client::{Answer, MULTIPART, bare, encode, form, multipart, posted};
use crate::harness::{TestServer, until};

const FORM: &str = "application/x-www-form-urlencoded";
const DAY: i64 = 86_400;

fn post(server: &TestServer, path: &str, key: &str, pairs: &[(&str, &str)]) -> Answer {
    server.exchange(&posted(&format!("/sms/{path}/{key}"), FORM, form(pairs).as_bytes()))
}

fn advance(server: &TestServer, seconds: i64) -> Value {
    let seconds = seconds.to_string();
    let moved = post(server, "test/clock", server.test_key(), &[("advance", &seconds)]);
    moved.is(200, 200, "");
    moved.json()
}

/// Returns the time in RFC 3339, some seconds from now.
fn seconds_ahead(seconds: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let ms = i64::try_from(now.as_millis()).unwrap() + seconds * 1000;
    domain::Timestamp::from_unix_ms(ms).to_string()
}

fn send(server: &TestServer, key: &str, number: &str, sendat: Option<&str>) -> String {
    let mut path = format!("/sms/send/{key}?number={number}&message=Hi");
    if let Some(sendat) = sendat {
        path = format!("{path}&sendat={}", encode(sendat));
    }
    let sent = server.get(&path);
    sent.is(200, 200, "");
    sent.json()["transid"].as_str().unwrap().to_owned()
}

/// Waits until a message has a status, and returns its report.
fn reaches(server: &TestServer, key: &str, transid: &str, status: &str) -> Value {
    until(status, || {
        let report = server.report(key, transid);
        (report["status"] == status).then_some(report)
    })
}

/// Creates an endpoint, and returns its path.
fn endpoint(server: &TestServer, key: &str, receiver: &Receiver) -> String {
    let pairs = [("url", receiver.url()), ("events", "message.delivered".to_owned())];
    let pairs = pairs.each_ref().map(|(name, value)| (*name, value.as_str()));
    let created = post(server, "webhooks", key, &pairs);
    created.is(200, 200, "");
    format!("/sms/webhooks/{key}/{}", created.json()["webhook"]["webhookid"].as_str().unwrap())
}

/// Waits until this many attempts are stored, and returns them, newest first.
fn attempts(server: &TestServer, path: &str, count: usize) -> Vec<Value> {
    until("the attempt", || {
        let found = server.get(path).json()["attempts"].as_array().unwrap().clone();
        (found.len() >= count).then_some(found)
    })
}

#[test]
fn days_pass_for_test_messages_alone() {
    let server = TestServer::demo();
    let (live, test) = (server.key(), server.test_key());
    let other = server.place.funded("other@example.org", "10");
    let other = other.test.expose();
    let sendat = seconds_ahead(2 * DAY);
    let [of_live, of_test, of_other] =
        [live, test, other].map(|key| send(&server, key, "57000001", Some(&sendat)));
    let later = send(&server, test, "57000001", Some(&seconds_ahead(3 * DAY)));
    // Its receipt comes after 30 seconds.
    let slow = send(&server, test, "00000005", None);
    reaches(&server, test, &slow, "submitted");
    let slow_live = send(&server, live, "00000005", None);
    reaches(&server, live, &slow_live, "submitted");
    let moved = advance(&server, 2 * DAY);
    assert_eq!(moved["offset"], 2 * DAY);
    assert!(moved["now"].as_str().unwrap() >= sendat.as_str(), "{moved}");
    let delivered = reaches(&server, test, &of_test, "delivered");
    assert_eq!(delivered["send_at"], sendat);
    assert!(delivered["final_at"].as_str().unwrap() < sendat.as_str(), "{delivered}");
    reaches(&server, test, &slow, "delivered");
    assert_eq!(server.report(live, &slow_live)["status"], "submitted");
    for (key, transid) in [(live, &of_live), (other, &of_other), (test, &later)] {
        assert_eq!(server.report(key, transid)["status"], "scheduled");
    }
    // By this clock, tomorrow has passed.
    let tomorrow = encode(&seconds_ahead(DAY));
    let path = format!("/sms/send/{test}?number=57000001&message=Hi&sendat={tomorrow}");
    server.get(&path).is(400, 500, "invalid_parameter");
    let back = post(&server, "test/clock", test, &[("reset", "1")]);
    assert_eq!(back.json()["offset"], 0);
    assert_eq!(server.report(test, &later)["status"], "scheduled");
    server.get(&path).is(200, 200, "");
    server.place.check();
}

#[test]
fn an_unsubmitted_message_expires_after_48_hours_of_the_clock() {
    let server = TestServer::demo();
    let path = |key: &str, id: &str| format!("batches/{key}/{id}");
    // A paused batch isn't submitted.
    let sendat = seconds_ahead(DAY);
    let [(live, of_live), (test, of_test)] = [server.key(), server.test_key()].map(|key| {
        let file = multipart(&[("bulksms", b"57000001,a\n"), ("sendat", sendat.as_bytes())]);
        let sent = server.exchange(&posted(&format!("/sms/bulk/{key}"), MULTIPART, &file));
        let id = sent.json()["batchid"].as_str().unwrap().to_owned();
        let paused = posted(&format!("/sms/{}", path(key, &id)), FORM, b"pause=1");
        server.exchange(&paused).is(200, 200, "");
        (key, id)
    });
    advance(&server, 3 * DAY);
    advance(&server, 3 * DAY);
    let expired = server.done_batch(test, &of_test);
    assert_eq!(expired["counts"]["expired"], 1);
    assert_eq!(server.batch(live, &of_live)["status"], "paused");
    server.place.check();
}

#[test]
fn all_attempts_of_a_failing_endpoint_pass_and_it_is_disabled() {
    let server = TestServer::demo();
    let (live, test) = (server.key(), server.test_key());
    let receiver = Receiver::start(|_, _| 500);
    let path = endpoint(&server, test, &receiver);
    let of_live = Receiver::start(|earlier, _| if earlier == 0 { 500 } else { 200 });
    let live_path = endpoint(&server, live, &of_live);
    send(&server, live, "57000001", None);
    let next = attempts(&server, &live_path, 1)[0]["next_attempt_at"].clone();
    send(&server, test, "57000001", None);
    // The pauses vary by a fifth.
    let pauses = [5, 60, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000].map(|s| s * 6 / 5 + 1);
    for (count, pause) in (1..).zip(pauses) {
        let found = attempts(&server, &path, count);
        assert_eq!((found.len(), found[0]["next_attempt_at"].is_null()), (count, false));
        advance(&server, pause);
    }
    let found = attempts(&server, &path, 10);
    assert_eq!((found.len(), &found[0]["next_attempt_at"]), (10, &Value::Null));
    assert_eq!(server.get(&path).json()["webhook"]["status"], "active");
    // The header keeps to real time.
    let sent: i64 = receiver.received()[9].header("webhook-timestamp").parse().unwrap();
    let first: i64 = receiver.received()[0].header("webhook-timestamp").parse().unwrap();
    assert!(sent - first < DAY, "{first} {sent}");

    // Three days of failures while another event waits.
    send(&server, test, "57000001", None);
    for (count, pause) in (11..).zip(pauses).take(7) {
        attempts(&server, &path, count);
        advance(&server, pause.max(120));
    }
    attempts(&server, &path, 18);
    advance(&server, 3 * DAY);
    let disabled = until("the endpoint is disabled", || {
        let webhook = server.get(&path).json()["webhook"].clone();
        (webhook["status"] == "disabled").then_some(webhook)
    });
    assert_eq!(disabled["disabled_reason"], "failing");
    let first = attempts(&server, &live_path, 1).pop().unwrap();
    assert_eq!(first["next_attempt_at"], next);
    assert_eq!(server.get(&live_path).json()["webhook"]["status"], "active");
    server.place.check();
}

#[test]
fn wrong_moves_are_refused() {
    let server = TestServer::demo();
    let test = server.test_key();
    let max = (35 * DAY).to_string();
    let beyond = (35 * DAY + 1).to_string();
    for (pairs, reason) in [
        (&[][..], "missing_parameter"),
        (&[("advance", "0")], "invalid_parameter"),
        (&[("advance", "-1")], "invalid_parameter"),
        (&[("advance", "+1")], "invalid_parameter"),
        (&[("advance", "1.5")], "invalid_parameter"),
        (&[("advance", "")], "invalid_parameter"),
        (&[("advance", &beyond)], "invalid_parameter"),
        (&[("advance", "99999999999999999999")], "invalid_parameter"),
        (&[("reset", "0")], "invalid_parameter"),
        (&[("advance", "1"), ("reset", "1")], "invalid_parameter"),
        (&[("advance", "1"), ("advance", "1")], "duplicate_parameter"),
        (&[("advanc", "1")], "missing_parameter"),
    ] {
        let refused = post(&server, "test/clock", test, pairs);
        refused.is(400, 500, reason);
    }
    let allowed = [("advance", "1")];
    post(&server, "test/clock", server.key(), &allowed).is(403, 500, "test_key_required");
    server.get(&format!("/sms/test/clock/{test}?advance=1")).is(405, 500, "method_not_allowed");
    let query = bare("POST", &format!("/sms/test/clock/{test}?advance={max}"), &[]);
    assert_eq!(server.exchange(&query).json()["offset"], 35 * DAY);
    post(&server, "test/clock", test, &allowed).is(400, 500, "invalid_parameter");
    let body = json!({ "reset": true }).to_string();
    let target = format!("/sms/test/clock/{test}");
    let back = server.exchange(&posted(&target, "application/json", body.as_bytes()));
    assert_eq!(back.json()["offset"], 0);
}

#[test]
fn codes_expire_by_the_clock_and_are_checked_by_it() {
    let server = TestServer::demo();
    let key = server.test_key();
    advance(&server, 3_600);
    let started = post(&server, "verify/start", key, &[("number", "57000001")]);
    started.is(200, 200, "");
    let started = started.json();
    let id = started["verifyid"].as_str().unwrap();
    let check =
        |otp: &str| post(&server, "verify/check", key, &[("verifyid", id), ("otp", otp)]).json();
    let wrong = check("000000");
    assert_eq!((&wrong["reason"], &wrong["tries_left"]), (&json!("wrong_code"), &json!(4)));
    assert_eq!(wrong["expires_at"], started["expires_at"]);
    // The pause before the code may be sent again passes by the clock, too.
    let again = || post(&server, "verify/start", key, &[("verifyid", id)]);
    again().is(429, 500, "rate_limited");
    advance(&server, 60);
    assert_eq!(check("000000")["expires_at"], started["expires_at"]);
    again().is(200, 200, "");
    advance(&server, 600);
    let expired = check("987654");
    assert_eq!((&expired["verified"], &expired["reason"]), (&json!(false), &json!("expired")));
    again().is(409, 500, "verify_ended");
}
