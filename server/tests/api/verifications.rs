//! `/sms/verify` over HTTP.

use serde_json::{Value, json};

use crate::client::{Answer, form, posted};
use crate::harness::{Place, TestServer};

const FORM: &str = "application/x-www-form-urlencoded";

fn call(server: &TestServer, what: &str, key: &str, pairs: &[(&str, &str)]) -> Answer {
    let path = format!("/sms/verify/{what}/{key}");
    server.exchange(&posted(&path, FORM, form(pairs).as_bytes()))
}

#[test]
fn a_code_is_started_shown_masked_and_checked() {
    let server = TestServer::demo();
    let key = server.key();
    let answer = call(&server, "start", key, &[("number", "00000001"), ("locale", "pt-BR")]);
    answer.is(200, 200, "");
    let started = answer.json();
    let id = started["verifyid"].as_str().unwrap().to_owned();
    let transid = started["transid"].as_str().unwrap();
    let report = server.get(&format!("/sms/reports/{key}/{transid}")).json();
    let text = report["report"]["message"].as_str().unwrap();
    assert!(text.starts_with("•••••• é a sua chave de acesso"), "{text}");
    let again = call(&server, "start", key, &[("verifyid", &id)]);
    again.is(429, 500, "rate_limited");
    call(&server, "start", key, &[("number", "00000001")]).is(429, 500, "rate_limited");
    let wrong = call(&server, "check", key, &[("verifyid", &id), ("otp", "００ 0000")]);
    let wrong = wrong.json();
    assert_eq!((&wrong["tries_left"], &wrong["reason"]), (&json!(4), &json!("wrong_code")));
    let unknown = call(&server, "check", key, &[("verifyid", "x"), ("otp", "0000")]).json();
    let fields = ["verified", "tries_left", "expires_at", "reason"].map(|name| &unknown[name]);
    assert_eq!(fields, [&json!(false), &json!(0), &Value::Null, &json!("unknown")]);
}

#[test]
fn bad_input_is_named_and_costs_no_attempt() {
    let server = TestServer::demo();
    let key = server.key();
    for (pairs, reason) in [
        (&[][..], "missing_parameter"),
        (&[("number", "x")], "invalid_number"),
        (&[("number", "57000001"), ("locale", "tlh")], "invalid_parameter"),
        (&[("number", "57000001"), ("length", "3")], "invalid_parameter"),
        (&[("number", "57000001"), ("ttl", "59")], "invalid_parameter"),
        (&[("number", "57000001"), ("name", "two words")], "invalid_parameter"),
        (&[("number", "57000001"), ("dryrun", "1")], "invalid_parameter"),
        (&[("number", "57000001"), ("verifyid", "v_0000000000000")], "invalid_parameter"),
    ] {
        call(&server, "start", key, pairs).is(400, 500, reason);
    }
    call(&server, "start", key, &[("verifyid", "v_0000000000000")]).is(404, 500, "not_found");
    let started = call(&server, "start", key, &[("number", "57000001")]).json();
    let id = started["verifyid"].as_str().unwrap();
    call(&server, "check", key, &[("verifyid", id)]).is(400, 500, "missing_parameter");
    call(&server, "check", key, &[("otp", "123456")]).is(400, 500, "missing_parameter");
    for otp in ["", "12345a", "123", "1234567"] {
        let answer = call(&server, "check", key, &[("verifyid", id), ("otp", otp)]);
        answer.is(400, 500, "invalid_parameter");
    }
    // An attempt with another number of attempts left would show that one of these cost one.
    let checked = call(&server, "check", key, &[("verifyid", id), ("otp", "00000 0")]).json();
    assert!(checked["tries_left"] == 4, "{checked}");
}

#[test]
fn a_refused_start_counts_as_a_request() {
    let one = [("HELIOGRAPH_REQUESTS_PER_SECOND", "1")];
    let server = TestServer::start(Place::new(), &["--demo"], &one);
    let unknown = [("verifyid", "v_0000000000000")];
    let refused = call(&server, "start", server.key(), &unknown);
    refused.is(404, 500, "not_found");
    assert_eq!(refused.header("ratelimit"), Some("\"requests\";r=0;t=1"));
}
