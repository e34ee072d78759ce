//! Open pages follow batches, messages and carriers through event streams.

use serde_json::Value;

use crate::client::{Connection, bare};
use crate::harness::{Place, TestServer, until};
use crate::portal::Browser;

/// Starts a demo whose carrier accepts messages and never delivers them.
fn server_without_ends() -> TestServer {
    let delay = [("HELIOGRAPH_SANDBOX_DELAY_MS", "3600000")];
    TestServer::start(Place::new(), &["--demo"], &delay)
}

const CARRIERS: &str = "/support/carriers/events";

fn events_of(batchid: &str) -> String {
    format!("/reports/{batchid}/events")
}

/// The path of the events of an account's messages.
const REPORTS: &str = "/reports/events";

/// Starts following a batch. The response stays open.
fn follow(server: &TestServer, browser: &Browser, batchid: &str) -> Connection {
    listen(server, browser, &events_of(batchid))
}

/// Starts reading events. The response stays open.
fn listen(server: &TestServer, browser: &Browser, target: &str) -> Connection {
    let cookie = browser.cookie.clone().unwrap();
    let mut connection = server.connect();
    connection.write(&bare("GET", target, &[("Cookie", &cookie)]));
    let beginning = connection.read_beginning();
    assert_eq!(beginning.status, 200);
    assert_eq!(beginning.header("content-type"), Some("text/event-stream"));
    assert_eq!(beginning.header("cache-control"), Some("no-store"));
    connection
}

/// Returns the next event, skipping comments. `None` at the end of the stream.
fn event(connection: &mut Connection) -> Option<Value> {
    loop {
        let text = String::from_utf8(connection.read_chunk()?).unwrap();
        if let Some(data) = text.strip_prefix("data: ") {
            return Some(serde_json::from_str(data).unwrap());
        }
    }
}

/// Reads to the end and returns the last event.
fn last_event(connection: &mut Connection) -> Option<Value> {
    std::iter::from_fn(|| event(connection)).last()
}

#[test]
fn a_batch_is_followed_until_it_is_done() {
    let server = TestServer::demo();
    let browser = Browser::of_customer(&server);
    let batchid = server.accepted_batch(server.key(), "00000001\n00000002");
    let mut connection = follow(&server, &browser, &batchid);
    let mut events = Vec::new();
    while let Some(event) = event(&mut connection) {
        assert_ne!(events.last(), Some(&event), "nothing changed");
        events.push(event);
    }
    let last = events.last().unwrap();
    assert_eq!(last["batchid"], batchid);
    assert_eq!(last["status"], "done");
    assert_eq!(last["counts"]["delivered"], 1);
    assert_eq!(last["counts"]["failed"], 1);
    let before = &events[..events.len() - 1];
    assert!(before.iter().all(|event| event["status"] != "done"));

    // A later follower gets the same event, and the stream ends.
    let mut later = follow(&server, &browser, &batchid);
    assert_eq!(event(&mut later), Some(last.clone()));
    assert_eq!(event(&mut later), None);
}

#[test]
fn messages_are_followed_until_all_are_final() {
    let server = TestServer::demo();
    let browser = Browser::of_customer(&server);
    server.accepted(server.key(), "00000001");
    server.accepted(server.key(), "00000002");
    let mut connection = listen(&server, &browser, REPORTS);
    let last = last_event(&mut connection).unwrap();
    assert_eq!((&last["delivered"], &last["failed"]), (&1.into(), &1.into()));

    let of_test_key = format!("{REPORTS}?key=test&application={}", server.reference());
    let mut none = listen(&server, &browser, &of_test_key);
    assert_eq!(last_event(&mut none).unwrap()["delivered"], 0);
}

#[test]
fn only_its_own_account_follows_an_application() {
    let server = TestServer::demo();
    let of_application = format!("{REPORTS}?application={}", server.reference());
    assert_eq!(Browser::new(&server).get(&of_application).status, 401);
    let mut other = Browser::registered(&server, "other@example.org");
    assert_eq!(other.get(&of_application).status, 404);
    assert_eq!(other.get(&format!("{REPORTS}?key=x")).status, 404);
}

#[test]
fn only_its_own_account_follows_a_batch() {
    let server = server_without_ends();
    let batchid = server.accepted_batch(server.key(), "57000001");
    let events = events_of(&batchid);
    assert_eq!(Browser::new(&server).get(&events).status, 401);
    let mut other = Browser::registered(&server, "other@example.org");
    assert_eq!(other.get(&events).status, 404);
    assert_eq!(other.get(&format!("/reports/{batchid}")).status, 404);
    assert_eq!(other.get("/reports/x/events").status, 404);
}

#[test]
fn who_signs_out_follows_no_longer() {
    let server = server_without_ends();
    let mut browser = Browser::of_customer(&server);
    let batchid = server.accepted_batch(server.key(), "57000001");
    let mut connection = follow(&server, &browser, &batchid);
    assert_ne!(event(&mut connection).unwrap()["status"], "done");
    browser.post("sign-out", &[]);
    let last = last_event(&mut connection);
    assert!(last.is_none_or(|event| event["status"] != "done"));
}

#[test]
fn many_followers_of_an_account_give_way_to_new_ones() {
    let server = server_without_ends();
    let browser = Browser::of_customer(&server);
    let batchid = server.accepted_batch(server.key(), "57000001");
    let mut followers: Vec<_> = (0..5).map(|_| follow(&server, &browser, &batchid)).collect();
    assert_ne!(last_event(&mut followers[0]).unwrap()["status"], "done");
    for follower in &mut followers[1..] {
        assert_ne!(event(follower).unwrap()["status"], "done");
    }
    // A stopping server doesn't wait for followers.
    server.signal("TERM");
    for follower in &mut followers[1..] {
        last_event(follower);
    }
    let (code, place) = server.stop_begun();
    assert_eq!(code, Some(0));
    place.check();
}

#[test]
fn staff_follow_the_carriers_until_they_sign_out() {
    let server = TestServer::demo();
    let mut browser = Browser::of_staff(&server);
    let mut connection = listen(&server, &browser, CARRIERS);
    let first = event(&mut connection).unwrap();
    let record = &first["carriers"][0]["record"];
    assert_eq!(record["name"], "sandbox");
    assert_ne!(record["state"], "drained");

    server.place.json(&["carrier", "drain", "sandbox", "--yes"]);
    let drained = loop {
        let event = event(&mut connection).unwrap();
        if event["carriers"][0]["record"]["state"] == "drained" {
            break event;
        }
    };
    assert!(drained["carriers"][0]["record"]["drained_at"].is_number());

    browser.post("sign-out", &[]);
    last_event(&mut connection);
}

#[test]
fn staff_see_on_the_carriers_page_that_settings_were_not_reloaded() {
    let server = TestServer::demo();
    let file = server.place.path().join("heliograph.toml");
    let mut browser = Browser::of_staff(&server);
    let mut until_warned = |is_warned: bool| {
        until("the carriers page", || {
            let page = browser.get("/support/carriers").text();
            (page.contains("goes on with the earlier settings") == is_warned).then_some(page)
        })
    };
    until_warned(false);
    std::fs::write(&file, "price_lokal = \"1\"\n").unwrap();
    server.signal("HUP");
    let page = until_warned(true);
    assert!(page.contains("heliograph.toml") && page.contains("price_lokal"), "{page}");
    std::fs::remove_file(&file).unwrap();
    server.signal("HUP");
    until_warned(false);
}

#[test]
fn a_stream_ends_when_its_role_is_taken() {
    let server = TestServer::demo();
    let browser = Browser::of_staff(&server);
    let mut connection = listen(&server, &browser, CARRIERS);
    event(&mut connection).unwrap();
    server.place.take_roles();
    last_event(&mut connection);
}

#[test]
fn only_staff_follow_or_change_the_carriers() {
    let server = TestServer::demo();
    let change = [("act", "drain"), ("subject", "sandbox"), ("seen", "in use, the last one")];
    let mut visitor = Browser::new(&server);
    assert_eq!(visitor.get(CARRIERS).status, 401);
    visitor.post("act", &change);
    let mut customer = Browser::of_customer(&server);
    assert_eq!(customer.get(CARRIERS).status, 404);
    assert_eq!(customer.get("/support/carriers").status, 404);
    assert_eq!(customer.get("/support").status, 404);
    customer.post("act", &change);
    assert!(server.place.json(&["carrier", "list"])[0]["drained_at"].is_null());

    Browser::of_staff(&server).post("act", &change);
    assert!(server.place.json(&["carrier", "list"])[0]["drained_at"].is_string());
}
