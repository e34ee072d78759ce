//! `/sms/webhooks` and `/sms/events` over HTTP, and deliveries to a receiver on a socket.

use serde_json::Value;
use service::WebhookSecret;
use testing::receiver::Receiver;

use crate::client::{Answer, bare, form, posted};
use crate::harness::{Place, TestServer, until};

const FORM: &str = "application/x-www-form-urlencoded";

fn post(server: &TestServer, path: &str, pairs: &[(&str, &str)]) -> Answer {
    server.exchange(&posted(path, FORM, form(pairs).as_bytes()))
}

/// Creates an endpoint, and returns its ID and its secret.
fn create(server: &TestServer, key: &str, url: &str, events: Option<&str>) -> (String, String) {
    let mut pairs = vec![("url", url)];
    pairs.extend(events.map(|events| ("events", events)));
    let created = post(server, &format!("/sms/webhooks/{key}"), &pairs);
    created.is(200, 200, "");
    let created = created.json();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&created["webhook"]["webhookid"]), text(&created["secret"]))
}

fn attempts(server: &TestServer, key: &str, id: &str) -> Vec<Value> {
    let answer = server.get(&format!("/sms/webhooks/{key}/{id}")).json();
    answer["attempts"].as_array().unwrap().clone()
}

#[test]
fn a_message_reaches_an_endpoint_signed_and_as_the_list_of_events_has_it() {
    let server = TestServer::demo();
    let key = server.key();
    let receiver = Receiver::start(|_, _| 200);
    let (id, secret) = create(&server, key, &receiver.url(), None);
    let transid = server.accepted(key, "57000001");
    let delivery = until("the delivery", || receiver.received().into_iter().next());
    let event = delivery.json();
    assert_eq!(event["type"], "message.delivered");
    assert_eq!(event["application"], server.reference());
    assert_eq!((&event["test"], &event["data"]["transid"]), (&Value::Bool(false), &transid.into()));
    assert_eq!(event["data"]["status"], "delivered");
    assert!(event["data"].get("message").is_none(), "{event}");
    assert_eq!(event["id"], delivery.header("webhook-id"));
    assert_eq!(delivery.header("content-type"), "application/json");
    let timestamp = delivery.header("webhook-timestamp").parse().unwrap();
    let secret: WebhookSecret = secret.parse().unwrap();
    let signature = secret.sign(delivery.header("webhook-id"), timestamp, &delivery.body);
    assert_eq!(delivery.header("webhook-signature"), signature);
    let listed = server.get(&format!("/sms/events/{key}?type=message.delivered")).json();
    assert_eq!(listed["events"], Value::Array(vec![event]));
    let attempt = until("the attempt", || attempts(&server, key, &id).pop());
    assert_eq!((&attempt["status"], &attempt["error"]), (&200.into(), &Value::Null));
    server.place.check();
}

#[test]
fn requests_are_refused_with_what_is_allowed() {
    let server = TestServer::demo();
    let key = server.key();
    let path = format!("/sms/webhooks/{key}");
    let (id, _) = create(&server, key, "https://example.com/a", Some("message.failed,batch.done"));
    for (pairs, status, reason) in [
        (&[][..], 400, "missing_parameter"),
        (&[("url", "")], 400, "invalid_url"),
        (&[("url", "nonsense")], 400, "invalid_url"),
        (&[("url", "ftp://example.com")], 400, "invalid_url"),
        (&[("url", "https://user:secret@example.com")], 400, "invalid_url"),
        (&[("url", "https://10.0.0.1/")], 400, "invalid_url"),
        (&[("url", "https://169.254.169.254/")], 400, "invalid_url"),
        (&[("url", "https://a.example"), ("events", "nonsense")], 400, "invalid_parameter"),
        (&[("url", "https://a.example"), ("events", "")], 400, "invalid_parameter"),
        (&[("url", "https://a.example"), ("event", "batch.done")], 400, "invalid_parameter"),
        (&[("url", "https://a.example"), ("url", "https://b.example")], 400, "duplicate_parameter"),
    ] {
        post(&server, &path, pairs).is(status, 500, reason);
    }
    let one = format!("{path}/{id}");
    for (pairs, status, reason) in [
        (&[][..], 400, "missing_parameter"),
        (&[("enable", "1"), ("rotate", "1")], 400, "invalid_parameter"),
        (&[("enable", "0")], 400, "invalid_parameter"),
        (&[("rotat", "1")], 400, "invalid_parameter"),
        (&[("replay", "e_1")], 400, "invalid_parameter"),
        (&[("replay", "e_0000000000000000000l")], 404, "not_found"),
        (&[("replay_from", "yesterday")], 400, "invalid_parameter"),
        (&[("url", "http://[::1]:1/")], 200, ""),
        (&[("url", "http://10.0.0.1/")], 400, "invalid_url"),
    ] {
        let code = if status == 200 { 200 } else { 500 };
        post(&server, &one, pairs).is(status, code, reason);
    }
    post(&server, &format!("{path}/w_0000000000000"), &[("test", "1")]).is(404, 500, "not_found");
    server.get(&format!("{path}/nonsense")).is(404, 500, "not_found");
    server.get(&format!("{path}?limit=1")).is(400, 500, "invalid_parameter");
    let test = format!("/sms/webhooks/{}", server.test_key());
    assert_eq!(server.get(&test).json()["webhooks"], Value::Array(Vec::new()));
    let other = format!("{test}/{id}");
    server.get(&other).is(404, 500, "not_found");
    for query in ["type=nonsense", "cursor=nonsense", "from=now", "limit=0", "colour=blue"] {
        let answer = server.get(&format!("/sms/events/{key}?{query}"));
        answer.is(400, 500, "invalid_parameter");
    }
    for _ in 1..10 {
        create(&server, key, "https://example.com/b", None);
    }
    post(&server, &path, &[("url", "https://example.com/c")]).is(409, 500, "too_many_webhooks");
    for method in ["PUT", "DELETE"] {
        server.exchange(&bare(method, &one, &[])).is(405, 500, "method_not_allowed");
    }
}

#[test]
fn a_key_in_the_header_finds_an_endpoint_too() {
    let server = TestServer::demo();
    let (id, _) = create(&server, server.key(), "https://example.com/a", None);
    let bearer = format!("Bearer {}", server.key());
    let path = format!("/sms/webhooks/{id}");
    let found = server.exchange(&bare("GET", &path, &[("authorization", &bearer)]));
    assert_eq!(found.json()["webhook"]["webhookid"], Value::from(id));
    let change = format!("{path}?events=batch.done");
    let changed = server.exchange(&bare("POST", &change, &[("authorization", &bearer)]));
    assert_eq!(changed.json()["webhook"]["events"], Value::from(vec!["batch.done"]));
}

#[test]
fn a_test_event_is_delivered_at_once_and_its_attempt_is_the_answer() {
    let server = TestServer::demo();
    let key = server.key();
    let receiver = Receiver::start(|earlier, _| if earlier == 0 { 200 } else { 302 });
    let (id, _) = create(&server, key, &receiver.url(), None);
    let path = format!("/sms/webhooks/{key}/{id}");
    let good = post(&server, &path, &[("test", "1")]).json();
    assert_eq!(
        (&good["attempt"]["status"], &good["attempt"]["error"]),
        (&200.into(), &Value::Null)
    );
    let bad = post(&server, &path, &[("test", "1")]).json();
    assert_eq!(bad["attempt"]["status"], 302);
    assert!(bad["attempt"]["error"].as_str().unwrap().contains("redirect"), "{bad}");
    assert_eq!(bad["attempt"]["next_attempt_at"], Value::Null);
    let deliveries = receiver.received();
    assert!(deliveries.iter().all(|delivery| delivery.json()["type"] == "webhook.test"));
    assert_eq!(deliveries.len(), 2);
}

#[test]
fn a_secret_is_never_replayed() {
    let server = TestServer::demo();
    let path = format!("/sms/webhooks/{}", server.key());
    let body = form(&[("url", "https://example.com/a")]);
    let length = body.len().to_string();
    let headers =
        [("idempotency-key", "k"), ("content-type", FORM), ("content-length", length.as_str())];
    let request = [bare("POST", &path, &headers), body.into_bytes()].concat();
    let first = server.exchange(&request);
    assert!(first.json()["secret"].is_string());
    let again = server.exchange(&request);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(again.json()["secret"], Value::Null);
    assert_eq!(again.json()["webhook"], first.json()["webhook"]);
    assert_eq!(server.get(&path).json()["webhooks"].as_array().unwrap().len(), 1);
}

#[test]
fn a_killed_process_loses_no_event() {
    let receiver = Receiver::start(|earlier, _| if earlier % 3 == 0 { 500 } else { 200 });
    let mut server = TestServer::demo();
    create(&server, server.key(), &receiver.url(), Some("message.delivered"));
    let mut wanted = Vec::new();
    for _ in 0..3 {
        let key = server.key().to_owned();
        for _ in 0..5 {
            wanted.push(server.accepted(&key, "57000001"));
        }
        until("a delivery", || {
            let some = receiver.received().iter().any(|delivery| {
                delivery.json()["data"]["transid"] == wanted.last().unwrap().as_str()
            });
            some.then_some(())
        });
        server = again(server);
    }
    until("all deliveries", || {
        let deliveries = receiver.received();
        let taken = deliveries.iter().map(|delivery| delivery.json()["data"]["transid"].clone());
        let taken: Vec<Value> = taken.collect();
        wanted.iter().all(|transid| taken.contains(&Value::from(transid.as_str()))).then_some(())
    });
}

fn again(server: TestServer) -> TestServer {
    let place: Place = server.kill();
    TestServer::start(place, &["--demo"], &[])
}

#[test]
fn the_operator_lists_the_endpoints_of_an_application() {
    let server = TestServer::demo();
    let list = ["webhook", "list", server.reference()];
    assert_eq!(server.place.json(&list), Value::Array(Vec::new()));
    let url = "https://example.com/a";
    let (live, secret) = create(&server, server.key(), url, Some("batch.done"));
    let (test, _) = create(&server, server.test_key(), url, None);
    let listed = server.place.json(&list);
    let shown = |place: usize, name: &str| listed[place][name].clone();
    assert_eq!((shown(0, "webhookid"), shown(0, "key")), (live.into(), "live".into()));
    assert_eq!((shown(1, "webhookid"), shown(1, "key")), (test.into(), "test".into()));
    assert_eq!((shown(0, "url"), shown(0, "events")), (url.into(), "batch.done".into()));
    assert_eq!((shown(0, "status"), shown(0, "failing_since")), ("active".into(), Value::Null));
    let table = server.place.run(&list);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains(url) && !table.contains(&secret), "{table}");
    let words = server.place.refused(&["webhook", "list", "000000"]);
    assert!(words.contains("no such application"), "{words}");
}
