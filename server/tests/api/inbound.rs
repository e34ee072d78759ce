//! `/sms/inbound` over HTTP, its events, and `heliograph number`.

use serde_json::{Value, json};
use service::{InboundContent, InboundDelivery};

use crate::client::{Answer, bare, form};
use crate::harness::{TestServer, until};

const OURS: &str = "26650000009";

/// Starts a server whose application has a number.
fn with_number() -> TestServer {
    let server = TestServer::demo();
    let arguments = ["number", "add", "5000 0009", "--application", server.reference()];
    let added = server.place.json(&arguments);
    assert_eq!(added, json!({ "number": "50000009", "keyword": null }));
    server
}

/// Stores messages of handsets, as if a carrier had delivered them.
fn receive(server: &TestServer, messages: &[(&str, &str)]) {
    for (number, text) in messages {
        let delivery = InboundDelivery {
            number: (*number).to_owned(),
            recipient: OURS.to_owned(),
            content: InboundContent::Text { text: (*text).to_owned(), message_id: None },
        };
        server.place.with_service(async |service| {
            service.delivery().record_inbound("acme", vec![delivery]).await.unwrap();
        });
    }
}

fn inbound(server: &TestServer, query: &str) -> Value {
    let answer = server.get(&format!("/sms/inbound/{}{query}", server.key()));
    answer.is(200, 200, "");
    answer.json()
}

fn texts(answer: &Value) -> Vec<&str> {
    let messages = answer["inbound"].as_array().unwrap().iter();
    messages.map(|message| message["message"].as_str().unwrap()).collect()
}

#[test]
fn messages_are_listed_filtered_and_written_as_csv() {
    let server = with_number();
    receive(&server, &[("26657000001", "one"), ("+4915112345678", "STOP"), ("57000001", "=1+1")]);
    let all = inbound(&server, "");
    assert_eq!(texts(&all), ["=1+1", "STOP", "one"]);
    assert_eq!(all["next"], Value::Null);
    let stop = &all["inbound"][1];
    let expected = json!({
        "inboundid": stop["inboundid"], "number": "4915112345678", "recipient": OURS,
        "message": "STOP", "segments": 1, "keyword": null, "optout": "stop", "test": false,
        "received_at": stop["received_at"],
    });
    assert_eq!(*stop, expected);
    assert!(stop["inboundid"].as_str().unwrap().starts_with("i_"));
    for (query, expected) in [
        ("?number=57000001", &["=1+1", "one"][..]),
        ("?number=26657000001&limit=1", &["=1+1"]),
        ("?number=%2B4915112345678", &["STOP"]),
        ("?recipient=50000009&to=2020-01-01", &[]),
        ("?from=2020-01-01", &["=1+1", "STOP", "one"]),
        ("?recipient=26650000008", &[]),
    ] {
        assert_eq!(texts(&inbound(&server, query)), expected, "{query}");
    }
    let first = inbound(&server, "?limit=2");
    let next = first["next"].as_str().unwrap();
    assert_eq!(texts(&inbound(&server, &format!("?limit=2&cursor={next}"))), ["one"]);
    let csv = server.get(&format!("/sms/inbound/{}?format=csv&limit=1", server.key()));
    assert_eq!(csv.header("x-next-cursor"), Some(all["inbound"][0]["inboundid"].as_str().unwrap()));
    let text = csv.text();
    let names = "inboundid,number,recipient,message,segments,keyword,optout,test,received_at\r\n";
    assert!(text.starts_with(names), "{text}");
    assert!(text.contains(",26657000001,26650000009,'=1+1,1,,,false,"), "{text}");
    let tests = server.get(&format!("/sms/inbound/{}", server.test_key())).json();
    assert_eq!(texts(&tests), [""; 0]);
}

#[test]
fn wrong_parameters_are_refused() {
    let server = TestServer::demo();
    let path = format!("/sms/inbound/{}", server.key());
    for (query, reason) in [
        ("status=delivered", "invalid_parameter"),
        ("number=abc", "invalid_number"),
        ("recipient=", "invalid_number"),
        ("from=yesterday", "invalid_parameter"),
        ("limit=0", "invalid_parameter"),
        ("cursor=nonsense", "invalid_parameter"),
        ("format=xml", "invalid_parameter"),
        ("limit=1&limit=1", "duplicate_parameter"),
    ] {
        server.get(&format!("{path}?{query}")).is(400, 500, reason);
    }
    server.get(&format!("{path}/i_0000000000000")).is(404, 500, "not_found");
    server.get("/sms/inbound/wrong").is(401, 504, "api_invalid");
}

#[test]
fn a_message_is_an_event() {
    let server = with_number();
    let path = format!("/sms/events/{}?type=message.received", server.key());
    assert_eq!(server.get(&path).json()["events"], json!([]));
    receive(&server, &[("26657000001", "Hello")]);
    let listed = inbound(&server, "");
    let events = server.get(&path).json()["events"].clone();
    assert_eq!(events.as_array().unwrap().len(), 1);
    assert_eq!(
        (&events[0]["type"], &events[0]["test"]),
        (&"message.received".into(), &false.into())
    );
    assert_eq!(events[0]["data"], listed["inbound"][0]);
    server.place.check();
}

#[test]
fn numbers_are_managed_by_command() {
    let server = with_number();
    let place = &server.place;
    let reference = server.reference();
    let news = ["number", "add", OURS, "--application", reference, "--keyword", "news"];
    assert_eq!(place.json(&news)["keyword"], "NEWS");
    let refusal = place.refused(&news);
    assert!(refusal.contains("has this number with this keyword already"), "{refusal}");
    let refusal = place.refused(&["number", "add", OURS, "--application", "000000"]);
    assert!(refusal.contains("application"), "{refusal}");
    let listed = place.json(&["number", "list"]);
    let keywords: Vec<_> = listed.as_array().unwrap().iter().map(|it| &it["keyword"]).collect();
    assert_eq!(keywords, [&Value::Null, &"NEWS".into()]);
    assert_eq!((&listed[0]["number"], &listed[0]["reference"]), (&OURS.into(), &reference.into()));
    place.json(&["number", "remove", OURS]);
    let refusal = place.refused(&["number", "remove", OURS]);
    assert!(refusal.contains("No application has this number"), "{refusal}");
    receive(&server, &[("26657000001", "News, please"), ("26657000001", "to nobody")]);
    assert_eq!(texts(&inbound(&server, "")), ["News, please"]);
    assert_eq!(inbound(&server, "")["inbound"][0]["keyword"], "NEWS");
}

/// Lets a test message arrive. Its idempotency key is its text.
fn simulate(server: &TestServer, key: &str, text: &str) -> Answer {
    let body = form(&[("number", "57000001"), ("recipient", "50000009"), ("message", text)]);
    let length = body.len().to_string();
    let headers = [
        ("Idempotency-Key", text),
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", length.as_str()),
    ];
    let mut request = bare("POST", &format!("/sms/test/inbound/{key}"), &headers);
    request.extend_from_slice(body.as_bytes());
    server.exchange(&request)
}

#[test]
fn a_test_message_arrives_at_the_test_key_alone() {
    let server = TestServer::demo();
    let (live, test) = (server.key(), server.test_key());
    server.get(&format!("/sms/events/{test}")).is(200, 200, "");
    let arrived = simulate(&server, test, "Hello");
    arrived.is(200, 200, "");
    let record = arrived.json()["inbound"].clone();
    assert_eq!((&record["number"], &record["test"]), (&"26657000001".into(), &true.into()));
    let again = simulate(&server, test, "Hello");
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["inbound"], record);
    let listed = server.get(&format!("/sms/inbound/{test}")).json();
    assert_eq!(listed["inbound"], json!([record]));
    assert_eq!(texts(&inbound(&server, "")), [""; 0]);
    let path = format!("/sms/events/{test}?type=message.received");
    assert_eq!(server.get(&path).json()["events"][0]["data"], record);
    simulate(&server, live, "Hello").is(403, 500, "test_key_required");
    let path = format!("/sms/test/inbound/{test}");
    for (parameters, status, reason) in [
        ("number=57000001&recipient=50000009", 400, "missing_parameter"),
        ("number=57000001&message=x", 400, "missing_parameter"),
        ("number=x&recipient=50000009&message=x", 400, "invalid_number"),
        ("number=57000001&recipient=50000009&message=", 400, "invalid_message"),
        ("number=57000001&recipient=50000009&message=x&to=1", 400, "invalid_parameter"),
    ] {
        let answer = server.exchange(&bare("POST", &format!("{path}?{parameters}"), &[]));
        answer.is(status, 500, reason);
    }
    server.get(&path).is(405, 500, "method_not_allowed");
    server.place.check();
}

#[test]
fn test_commands_change_the_opt_outs_of_the_test_key() {
    let server = TestServer::demo();
    let test = server.test_key();
    let send = |key: &str| server.get(&format!("/sms/send/{key}?number=57000001&message=x"));
    let stop = simulate(&server, test, "stop");
    assert_eq!(stop.json()["inbound"]["optout"], "stop");
    send(test).is(403, 500, "opted_out");
    send(server.key()).is(200, 200, "");
    let confirmed = until("the reply", || {
        let reports = server.get(&format!("/sms/reports/{test}?status=delivered")).json();
        reports["reports"].as_array().unwrap().first().cloned()
    });
    assert_eq!(confirmed["cost"].to_string(), "0");
    simulate(&server, test, "START").is(200, 200, "");
    send(test).is(200, 200, "");
    server.place.check();
}
