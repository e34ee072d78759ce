//! A carrier with an HTTP API: its answers and its receipts.

use std::sync::{Arc, OnceLock};

use serde_json::{Value, json};
use testing::client::{Answer, bare, exchange, form, posted};
use testing::faults::Disk;
use testing::harness::{Place, TestServer, until};

use crate::started::Started;
use crate::upstream::{Reply, Upstream, accept};

const SECRET: &str = "a-secret-of-the-tests";
const FORM: &str = "application/x-www-form-urlencoded";

pub fn settings(address: &str) -> String {
    format!(
        r#"
        [[carrier]]
        name = "upstream"
        kind = "http"
        url = "http://{address}/send"
        json = '{{"to":"{{number}}","ref":"{{transid}}","text":"{{message}}"}}'
        connections = 4
        [[carrier.answer]]
        http = 200
        field = "/id"
        outcome = "accepted"
        message_id = "/id"
        [[carrier.answer]]
        http = 400
        field = "/why"
        outcome = "refused"
        [carrier.receipt]
        secret = "{SECRET}"
        message_id = "id"
        status = "status"
        error = "reason"
        delivered = "DELIVRD"
        failed = "UNDELIV"
        expired = "EXPIRED"
        enroute = "ENROUTE"
        errors = {{ 27 = "handset_unavailable" }}
        "#
    )
}

fn accepting() -> (Upstream, Started) {
    let upstream = Upstream::start(|request, _| accept(request));
    let started = Started::start(&settings(&upstream.address));
    (upstream, started)
}

fn target() -> String {
    format!("/carriers/upstream/{SECRET}")
}

/// Sends a receipt in the query.
fn get(server: &TestServer, pairs: &[(&str, &str)]) -> Answer {
    server.get(&format!("{}?{}", target(), form(pairs)))
}

fn post(server: &TestServer, kind: &str, body: &str) -> Answer {
    server.exchange(&posted(&target(), kind, body.as_bytes()))
}

fn name(transid: &str) -> String {
    format!("up-{transid}")
}

#[test]
fn receipts_are_taken_from_a_query_a_form_and_json() {
    let (upstream, started) = accepting();
    let server = &started.server;
    let sent = started.send_to(57_000_001..57_000_005);
    started.until_all(&sent, "submitted");
    let ids: Vec<String> = sent.iter().map(|transid| name(transid)).collect();

    let on_the_way = get(server, &[("id", &ids[0]), ("status", "ENROUTE")]);
    assert_eq!(on_the_way.status, 200);
    assert_eq!(started.report(&sent[0])["status"], "submitted");

    assert_eq!(get(server, &[("id", &ids[0]), ("status", "DELIVRD")]).status, 200);
    let failed = form(&[("id", &ids[1]), ("status", "UNDELIV"), ("reason", "27")]);
    assert_eq!(post(server, FORM, &failed).status, 200);
    let expired = json!({ "id": ids[2], "status": "EXPIRED", "text": ["x"] });
    let kind = "application/json; charset=utf-8";
    assert_eq!(post(server, kind, &expired.to_string()).status, 200);
    // A form in another encoding, together with a query in the address that the upstream was given.
    let mixed = format!("{}?status=DELIVRD", target());
    let body = form(&[("id", &ids[3])]) + "&text=%E9t%E9";
    let answer = server.exchange(&posted(&mixed, FORM, body.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());

    // The receipt is stored before the answer, so there is no need to wait.
    for (transid, status, error) in [
        (&sent[0], "delivered", Value::Null),
        (&sent[1], "failed", json!("handset_unavailable_27")),
        (&sent[2], "expired", json!("validity_expired")),
        (&sent[3], "delivered", Value::Null),
    ] {
        let report = started.report(transid);
        assert_eq!(report["status"], status, "{report}");
        assert_eq!(report["error"], error, "{report}");
        assert_eq!(report["charge"]["released"].to_string(), "0", "{report}");
    }
    // Neither a repeated nor a contradicting receipt changes a final status.
    assert_eq!(get(server, &[("id", &ids[0]), ("status", "DELIVRD")]).status, 200);
    assert_eq!(get(server, &[("id", &ids[0]), ("status", "UNDELIV")]).status, 200);
    assert_eq!(started.report(&sent[0])["status"], "delivered");
    for number in 57_000_001..57_000_005 {
        assert_eq!(upstream.requests_for(&format!("266{number}")).len(), 1);
    }
    started.stop();
}

/// The carrier gets what is left of a message's validity.
#[test]
fn a_request_has_the_rest_of_the_validity() {
    let upstream = Upstream::start(|request, _| accept(request));
    let with_validity = r#""ref":"{transid}","ttl":{validity_s},"#;
    let settings = settings(&upstream.address).replace(r#""ref":"{transid}","#, with_validity);
    let started = Started::start(&settings);
    let fields = [("number", "57000001"), ("message", "Hello"), ("validity", "30")];
    let sent = started.server.send(started.key(), &fields).json();
    started.until(sent["transid"].as_str().unwrap(), "submitted");
    let left = upstream.requests_for("26657000001")[0]["ttl"].as_u64().unwrap();
    assert!((1_700..=1_800).contains(&left), "{left}");
    started.stop();
}

/// The receipt comes as a request, so the program that waits for it is another one.
#[test]
fn a_test_message_is_followed_to_the_receipt_of_an_http_carrier() {
    let (upstream, started) = accepting();
    let place = &started.server.place;
    let test = ["carrier", "test", "upstream", "57000001", "Hello"];
    let tested = std::thread::scope(|scope| {
        let testing = scope.spawn(|| place.json(&test));
        let request = until("the request", || upstream.requests_for("26657000001").pop());
        let id = name(request["ref"].as_str().unwrap());
        assert_eq!(get(&started.server, &[("id", &id), ("status", "DELIVRD")]).status, 200);
        testing.join().unwrap()
    });
    assert_eq!(tested["ok"], true, "{tested}");
    let steps = tested["steps"].to_string();
    for step in ["accepted with the message ID up-", "receipt for up-", "\"delivered\""] {
        assert!(steps.contains(step), "{step}: {steps}");
    }
    let refused = place.refused(&["carrier", "trace", "upstream", "--seconds", "1"]);
    assert!(refused.contains("no SMPP connection"), "{refused}");
    started.stop();
}

/// Once the settings name the status, the receipt counts.
#[test]
fn an_unknown_status_is_logged_once_a_minute_and_changes_nothing_until_it_is_named() {
    let (upstream, started) = accepting();
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    let id = name(&transid);
    for status in ["ENROUTE", "SKIPPED", "REPLACED"] {
        let receipt = [("id", &*id), ("status", status), ("reason", "27")];
        assert_eq!(get(&started.server, &receipt).status, 200);
    }
    let log = until("a line about the status", || {
        let log = started.server.log();
        log.contains("unknown state").then_some(log)
    });
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("unknown state")).collect();
    assert_eq!(lines.len(), 1, "{log}");
    for part in ["upstream", &id, "SKIPPED", "set it in the carrier's settings"] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }
    assert_eq!(started.report(&transid)["status"], "submitted");
    let named = r#"failed = ["UNDELIV", "SKIPPED"]"#;
    started.write(&settings(&upstream.address).replace(r#"failed = "UNDELIV""#, named));
    started.server.place.json(&["carrier", "reload"]);
    assert_eq!(started.until(&transid, "failed")["error"], "handset_unavailable_27");
    started.stop();
}

/// Either all receipts of a list are stored or none.
#[test]
fn a_list_of_receipts_is_taken_whole() {
    let (_upstream, started) = accepting();
    let server = &started.server;
    let sent = started.send_to(57_000_001..57_000_004);
    started.until_all(&sent, "submitted");
    let entry = |transid: &str| json!({ "id": name(transid), "status": "DELIVRD" });
    let bad = json!([entry(&sent[0]), { "id": name(&sent[1]) }]);
    assert_eq!(post(server, "application/json", &bad.to_string()).status, 400);
    assert_eq!(started.report(&sent[0])["status"], "submitted");
    let all: Vec<Value> = sent.iter().map(|transid| entry(transid)).collect();
    assert_eq!(post(server, "application/json", &json!(all).to_string()).status, 200);
    for transid in &sent {
        assert_eq!(started.report(transid)["status"], "delivered");
    }
    started.stop();
}

#[test]
fn a_request_that_is_no_receipt_is_refused_without_naming_the_secret() {
    let (_upstream, started) = accepting();
    let server = &started.server;
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    let receipt = form(&[("id", &name(&transid)), ("status", "DELIVRD")]);

    let wrong_secret = "another-secret-00";
    let refusals = [
        format!("/carriers/upstream/{wrong_secret}"),
        format!("/carriers/upstream/{SECRET}x"),
        format!("/carriers/nobody/{SECRET}"),
        // Its settings have no secret for inbound messages.
        format!("/carriers/upstream/inbound/{SECRET}"),
        "/carriers/upstream/%FF".to_owned(),
    ]
    .map(|target| server.get(&format!("{target}?{receipt}")));
    for refusal in &refusals {
        assert_eq!(refusal.status, 404);
        assert_eq!(refusal.body, refusals[0].body);
        assert_eq!(refusal.header("cache-control"), Some("no-store"));
    }
    for method in ["HEAD", "PUT", "DELETE", "OPTIONS"] {
        let mut connection = server.connect();
        connection.write(&bare(method, &format!("{}?{receipt}", target()), &[]));
        // The answer to HEAD has a length but no body.
        let answer = connection.read_beginning();
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("GET, POST"), "{method}");
    }
    assert_eq!(started.report(&transid)["status"], "submitted");

    for query in ["", "status=DELIVRD", "id=&status=DELIVRD", "id=a%00b&status=DELIVRD"] {
        let answer = server.get(&format!("{}?{query}", target()));
        assert_eq!(answer.status, 400, "{query}");
    }
    for (chars, status) in [(255, 200), (256, 400), (3000, 400)] {
        let query = format!("id={}&status=DELIVRD", "x".repeat(chars));
        let answer = server.get(&format!("{}?{query}", target()));
        assert_eq!(answer.status, status, "{chars}: {}", answer.text());
    }
    assert_eq!(server.place.rows("unmatched_receipts"), 1);
    for body in ["", "{", "[]", "{\"id\":{}}", "{\"status\":\"DELIVRD\"}"] {
        assert_eq!(post(server, "application/json", body).status, 400, "{body}");
    }
    let large = format!("{receipt}&text={}", "x".repeat(64 * 1024));
    assert_eq!(post(server, FORM, &large).status, 413);
    assert_eq!(started.report(&transid)["status"], "submitted");

    assert_eq!(post(server, FORM, &receipt).status, 200);
    assert_eq!(started.report(&transid)["status"], "delivered");
    let log = until("the log's line about a receipt", || {
        let log = server.log();
        log.contains("/carriers/{name}/{secret}").then_some(log)
    });
    assert!(!log.contains(SECRET) && !log.contains(wrong_secret), "{log}");
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("wrong secret")).collect();
    assert_eq!(lines.len(), 1, "once a minute: {log}");
    for part in ["WARN", "upstream", "a receipt for the carrier", "[carrier.receipt]"] {
        assert!(lines[0].contains(part), "{}", lines[0]);
    }
    assert!(log.contains("its settings have no [carrier.inbound]"), "{log}");
    started.stop();
}

/// The upstream repeats a receipt unless the answer is 200.
#[test]
fn a_receipt_that_cannot_be_stored_is_answered_so_that_it_comes_again() {
    let upstream = Upstream::start(|request, _| accept(request));
    let place = Place::new();
    let disk = Disk::new(place.path());
    let keys = place.funded("a@example.org", "100");
    std::fs::write(place.path().join("heliograph.toml"), settings(&upstream.address)).unwrap();
    let server = TestServer::start(place, &[], &disk.environment());
    let started = Started { server, keys };
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    let id = name(&transid);
    let receipt = [("id", id.as_str()), ("status", "DELIVRD")];

    disk.fail("write", "-wal");
    let answer = get(&started.server, &receipt);
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").is_some());
    for _ in 0..30 {
        assert_eq!(get(&started.server, &receipt).status, 503);
    }
    disk.heal();
    // The log, which may be on that disk, has a line per second, and not one per receipt.
    let log = until("the log's line", || {
        let log = started.server.log();
        log.contains("a post can't be stored").then_some(log)
    });
    assert!(log.matches("a post can't be stored").count() < 15, "{log}");
    assert_eq!(started.report(&transid)["status"], "submitted");
    assert_eq!(get(&started.server, &receipt).status, 200);
    assert_eq!(started.report(&transid)["status"], "delivered");
    started.stop();
}

/// The receipt comes on a connection of its own, so it can overtake the answer.
#[test]
fn a_receipt_may_come_before_the_answer() {
    let server = Arc::new(OnceLock::<String>::new());
    let known = Arc::clone(&server);
    let upstream = Upstream::start(move |request, _| {
        let id = name(request["ref"].as_str().unwrap());
        let receipt = form(&[("id", &id), ("status", "DELIVRD")]);
        let get = bare("GET", &format!("{}?{receipt}", target()), &[]);
        assert_eq!(exchange(known.wait(), &get).status, 200);
        accept(request)
    });
    let started = Started::start(&settings(&upstream.address));
    server.set(started.server.address().to_owned()).unwrap();
    let sent = started.send_to(57_000_001..57_000_011);
    started.until_all(&sent, "delivered");
    started.stop();
}

#[test]
fn a_message_that_the_upstream_refuses_costs_nothing() {
    let upstream =
        Upstream::start(|_, _| Reply::Answer(400, "{\"why\":\"unknown sender\"}".into()));
    let started = Started::start(&settings(&upstream.address));
    let transid = started.send("57000001", "Hello");
    let report = started.until(&transid, "rejected");
    // The upstream's own words are for operators.
    assert_eq!(report["error"], "refused");
    assert!(!report.to_string().contains("unknown sender"), "{report}");
    assert_eq!(report["charge"]["released"].to_string(), "0.05");
    assert_eq!(started.balance(), "100");
    assert_eq!(upstream.requests_for("26657000001").len(), 1);
    until("a counted refusal", || {
        let counted =
            "heliograph_carrier_refused_total{carrier=\"upstream\",reason=\"refused\"} 1\n";
        let metrics = started.server.get_ops("/metrics").text();
        metrics.contains(counted).then_some(())
    });
    until("an error of the connection", || {
        let connection = started.connection("upstream");
        let error = connection["last_error"].as_str().unwrap_or_default();
        let said = error.contains(
            "(HTTP status 400 unknown sender: {\"why\":\"unknown sender\"}). If it refuses one",
        );
        (said && connection["last_error_at"].is_string()).then_some(())
    });
    started.stop();
}

#[test]
fn a_message_that_the_upstream_throttles_is_sent_later() {
    let upstream = Upstream::start(|request, before| {
        if before < 5 { Reply::Answer(429, String::new()) } else { accept(request) }
    });
    let started = Started::start(&settings(&upstream.address));
    let sent = started.send_to(57_000_001..57_000_009);
    started.until_all(&sent, "submitted");
    let requests: usize = (57_000_001..57_000_009)
        .map(|number| upstream.requests_for(&format!("266{number}")).len())
        .sum();
    assert_eq!(requests, 8 + 5, "each accepted once");
    started.stop();
}

/// The second answer quotes the message as a URL does, and the third has its number.
#[test]
fn an_answer_that_no_rule_reads_is_kept_without_what_is_private() {
    let upstream = Upstream::start(|_, before| {
        let body = match before {
            0 => "<h1>It works!</h1>",
            1 => "no such field: text=Meet+me+at+the+old+bridge%2C+at+9",
            _ => "unknown handset 5700 0003",
        };
        Reply::Answer(200, body.to_owned())
    });
    let started = Started::start(&settings(&upstream.address));
    let raw_of = |number: &str| {
        let transid = started.send(number, "Meet me at the old bridge, at 9");
        started.until(&transid, "unknown");
        let answers = until("the kept answer", || {
            let number = format!("266{number}");
            let arguments = ["carrier", "receipts", "upstream", "--number", &number];
            let found = started.server.place.json(&arguments)["receipts"].clone();
            found.as_array().is_some_and(|found| !found.is_empty()).then_some(found)
        });
        let answer = &answers[0];
        assert_eq!(
            (&answer["outcome"], &answer["transid"]),
            (&"unknown_outcome".into(), &transid.into())
        );
        assert_eq!(answer["state"], "HTTP 200");
        answer["raw"].as_str().unwrap().to_owned()
    };
    assert_eq!(raw_of("57000001"), "HTTP status 200: <h1>It works!</h1>");
    let private = "HTTP status 200; the body isn't kept, because it may contain the number, the \
                   message or a secret";
    assert_eq!(raw_of("57000002"), private);
    assert_eq!(raw_of("57000003"), private);
    started.stop();
}

/// An HTTP carrier needs no bind, so without a check it could get messages as soon as the process
/// starts.
#[test]
fn a_drained_carrier_is_handed_nothing_at_a_start() {
    let (upstream, mut started) = accepting();
    let settings = settings(&upstream.address);
    started.server.place.json(&["carrier", "drain", "upstream", "--yes"]);
    let mut sent = Vec::new();
    for number in 57_000_001..57_000_007_u32 {
        sent.push(started.send(&number.to_string(), "Hello"));
        started = started.restarted(&settings);
    }
    let last = started.send("57000009", "Hello");
    let before_resume = started.report(&last)["created_at"].clone();
    started.server.place.json(&["carrier", "resume", "upstream"]);
    started.until_all(&sent, "submitted");
    for transid in &sent {
        let report = started.report(transid);
        let timeline = report["timeline"].as_array().unwrap();
        let begun = timeline.iter().find(|event| event["status"] == "sending");
        let begun = begun.unwrap()["at"].as_str().unwrap();
        assert!(begun >= before_resume.as_str().unwrap(), "{report}");
    }
    for number in 57_000_001..57_000_007 {
        assert_eq!(upstream.requests_for(&format!("266{number}")).len(), 1);
    }
    started.stop();
}

#[test]
fn messages_wait_for_an_upstream_that_is_down() {
    let address = Upstream::nobody();
    let started = Started::start(&settings(&address));
    let sent = started.send_to(57_000_001..57_000_004);
    // At least one attempt was made.
    until("a refused connection", || {
        let statuses = sent.iter().map(|transid| started.report(transid)["status"].clone());
        statuses.into_iter().any(|status| status == "sending").then_some(())
    });
    let upstream = Upstream::start_at(&address, |request, _| accept(request));
    started.until_all(&sent, "submitted");
    for number in 57_000_001..57_000_004 {
        assert_eq!(upstream.requests_for(&format!("266{number}")).len(), 1);
    }
    assert_eq!(started.balance(), "99.85");
    started.stop();
}

#[test]
fn a_message_whose_answer_is_lost_is_unknown_and_not_sent_again() {
    let upstream =
        Upstream::start(|request, before| if before == 0 { Reply::Cut } else { accept(request) });
    let started = Started::start(&settings(&upstream.address));
    let lost = started.send("57000001", "Hello");
    let report = started.until(&lost, "unknown");
    assert_eq!(report["charge"]["released"].to_string(), "0", "{report}");
    let next = started.send("57000002", "Hello");
    started.until(&next, "submitted");
    // A message that is still pending would be sent at the next start at the latest.
    let started = started.restarted(&settings(&upstream.address));
    let next = started.send("57000003", "Hello");
    started.until(&next, "submitted");
    assert_eq!(started.report(&lost)["status"], "unknown");
    assert_eq!(upstream.requests_for("26657000001").len(), 1);
    assert_eq!(started.balance(), "99.85");
    started.stop();
}

/// Takes 30 s, because the server waits that long for a receipt before it sends the message again.
#[test]
fn a_message_whose_answer_is_lost_is_sent_once_more_if_the_application_wants_it() {
    let upstream = Upstream::start(|request, before| match before {
        0 => Reply::Cut,
        1 => Reply::Nothing,
        _ => accept(request),
    });
    let settings = settings(&upstream.address);
    let started = Started::start(&settings);
    started.resend_lost();
    let cut = started.send("57000001", "Hello");
    started.until(&cut, "unknown");
    let killed = started.send("57000002", "Hello");
    until("the second request", || {
        let requests = upstream.requests_for("26657000002");
        (!requests.is_empty()).then_some(())
    });
    let started = started.killed(&settings);
    started.until(&killed, "unknown");
    for (transid, number) in [(&cut, "26657000001"), (&killed, "26657000002")] {
        started.until(transid, "submitted");
        assert_eq!(upstream.requests_for(number).len(), 2);
        let id = name(transid);
        let receipt = [("id", id.as_str()), ("status", "DELIVRD")];
        assert_eq!(get(&started.server, &receipt).status, 200);
        assert_eq!(started.report(transid)["status"], "delivered");
    }
    assert_eq!(started.balance(), "99.9");
    started.stop();
}

/// Staff see why a message isn't submitted yet.
#[test]
fn a_message_that_is_under_way_or_deferred_says_so() {
    let (answer, answers) = std::sync::mpsc::channel();
    let answers = std::sync::Mutex::new(answers);
    let upstream = Upstream::start(move |request, _| {
        if request["to"] == "26657000002" {
            return Reply::Answer(400, "{\"why\":\"busy\"}".to_owned());
        }
        answers.lock().unwrap().recv().unwrap();
        accept(request)
    });
    let retrying = settings(&upstream.address).replace("\"refused\"", "\"retry\"");
    let started = Started::start(&retrying);
    started.until_up("upstream");
    let waits_for = |transid: &str| {
        started.server.place.json(&["message", "show", transid])["waits_for"].clone()
    };
    let under_way = started.send("57000001", "Hello");
    until("the request", || upstream.requests_for("26657000001").pop());
    assert_eq!(waits_for(&under_way), "upstream: it is being submitted");
    answer.send(()).unwrap();
    started.until(&under_way, "submitted");
    assert_eq!(waits_for(&under_way), Value::Null);

    let deferred = started.send("57000002", "Hello");
    let said = until("the time of the next attempt", || {
        let said = waits_for(&deferred);
        said.as_str().filter(|said| said.contains("it is submitted at 20")).map(str::to_owned)
    });
    assert!(said.starts_with("upstream"), "{said}");
    started.stop();
}

#[test]
fn a_stop_waits_for_the_requests_under_way() {
    let upstream = Upstream::start(|_, _| Reply::Nothing);
    let patient = settings(&upstream.address).replace("connections = 4", "timeout = 2");
    let started = Started::start(&patient);
    let sent = started.send_to(57_000_001..57_000_004);
    until("a request", || {
        let requests = upstream.requests_for("26657000001");
        (!requests.is_empty()).then_some(())
    });
    let (code, place) = started.server.stop();
    assert_eq!(code, Some(0));
    let accepting = Upstream::start(|request, _| accept(request));
    let settings = settings(&accepting.address);
    let started = Started::start_with(place, started.keys, &settings);
    // Usually the first request was sent and the others weren't.
    for (transid, number) in sent.iter().zip(57_000_001..) {
        let number = format!("266{number}");
        if upstream.requests_for(&number).is_empty() {
            started.until(transid, "submitted");
            continue;
        }
        let timeline = started.until(transid, "unknown")["timeline"].to_string();
        assert!(timeline.contains("no answer in time"), "{timeline}");
        assert_eq!(accepting.requests_for(&number).len(), 0);
    }
    started.stop();
}
