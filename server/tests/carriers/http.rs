//! A carrier behind an HTTP API: what it answers, and what it posts.

use serde_json::{Value, json};

use crate::client::{Answer, bare, form, posted};
use crate::faults::Disk;
use crate::harness::{Place, TestServer, until};
use crate::served::Served;
use crate::upstream::{Reply, Upstream, accept};

const SECRET: &str = "a-secret-of-the-tests";
const FORM: &str = "application/x-www-form-urlencoded";

fn settings(address: &str) -> String {
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
        "#
    )
}

fn accepting() -> (Upstream, Served) {
    let upstream = Upstream::start(|request, _| accept(request));
    let served = Served::start(&settings(&upstream.address));
    (upstream, served)
}

fn target() -> String {
    format!("/carriers/upstream/{SECRET}")
}

/// A receipt in the query.
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
    let (upstream, served) = accepting();
    let server = &served.server;
    let sent = served.send_to(57_000_001..57_000_005);
    served.until_all(&sent, "submitted");
    let ids: Vec<String> = sent.iter().map(|transid| name(transid)).collect();

    let on_the_way = get(server, &[("id", &ids[0]), ("status", "ENROUTE")]);
    assert_eq!(on_the_way.status, 200);
    assert_eq!(served.report(&sent[0])["status"], "submitted");

    assert_eq!(
        get(server, &[("id", &ids[0]), ("status", "DELIVRD")]).status,
        200
    );
    let failed = form(&[("id", &ids[1]), ("status", "UNDELIV"), ("reason", "27")]);
    assert_eq!(post(server, FORM, &failed).status, 200);
    let expired = json!({ "id": ids[2], "status": "EXPIRED", "text": ["x"] });
    let kind = "application/json; charset=utf-8";
    assert_eq!(post(server, kind, &expired.to_string()).status, 200);
    // A form in some other encoding, and the query of the address that the upstream was given.
    let mixed = format!("{}?status=DELIVRD", target());
    let body = form(&[("id", &ids[3])]) + "&text=%E9t%E9";
    let answer = server.exchange(&posted(&mixed, FORM, body.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());

    // Durable before the answer: no waiting.
    for (transid, status, error) in [
        (&sent[0], "delivered", Value::Null),
        (&sent[1], "failed", json!("27")),
        (&sent[2], "expired", json!("validity_expired")),
        (&sent[3], "delivered", Value::Null),
    ] {
        let report = served.report(transid);
        assert_eq!(report["status"], status, "{report}");
        assert_eq!(report["error"], error, "{report}");
        assert_eq!(report["charge"]["released"].to_string(), "0", "{report}");
    }
    // Once more, and another opinion: what is final stays.
    assert_eq!(
        get(server, &[("id", &ids[0]), ("status", "DELIVRD")]).status,
        200
    );
    assert_eq!(
        get(server, &[("id", &ids[0]), ("status", "UNDELIV")]).status,
        200
    );
    assert_eq!(served.report(&sent[0])["status"], "delivered");
    for number in 57_000_001..57_000_005 {
        assert_eq!(upstream.requests_for(&format!("266{number}")).len(), 1);
    }
    served.stop();
}

#[test]
fn what_is_no_receipt_is_refused_and_says_nothing_of_the_secret() {
    let (_upstream, served) = accepting();
    let server = &served.server;
    let transid = served.send("57000001", "Hello");
    served.until(&transid, "submitted");
    let receipt = form(&[("id", &name(&transid)), ("status", "DELIVRD")]);

    let wrong_secret = "another-secret-00";
    let refusals = [
        format!("/carriers/upstream/{wrong_secret}"),
        format!("/carriers/upstream/{SECRET}x"),
        format!("/carriers/nobody/{SECRET}"),
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
        // The answer to HEAD has a length and no body.
        let answer = connection.read_beginning();
        assert_eq!(answer.status, 405, "{method}");
        assert_eq!(answer.header("allow"), Some("GET, POST"), "{method}");
    }
    assert_eq!(served.report(&transid)["status"], "submitted");

    for query in [
        "",
        "status=DELIVRD",
        "id=&status=DELIVRD",
        "id=a%00b&status=DELIVRD",
    ] {
        let answer = server.get(&format!("{}?{query}", target()));
        assert_eq!(answer.status, 400, "{query}");
    }
    for body in ["", "{", "[]", "{\"id\":{}}", "{\"status\":\"DELIVRD\"}"] {
        assert_eq!(post(server, "application/json", body).status, 400, "{body}");
    }
    let large = format!("{receipt}&text={}", "x".repeat(64 * 1024));
    assert_eq!(post(server, FORM, &large).status, 413);
    assert_eq!(served.report(&transid)["status"], "submitted");

    assert_eq!(post(server, FORM, &receipt).status, 200);
    assert_eq!(served.report(&transid)["status"], "delivered");
    let log = server.log();
    assert!(log.contains("/carriers/{name}/{secret}"), "{log}");
    assert!(
        !log.contains(SECRET) && !log.contains(wrong_secret),
        "{log}"
    );
    served.stop();
}

/// The upstream repeats what wasn't answered 200.
#[test]
fn a_receipt_that_cannot_be_stored_is_asked_for_again() {
    let upstream = Upstream::start(|request, _| accept(request));
    let place = Place::new();
    let disk = Disk::new(place.path());
    let keys = place.funded("a@example.org", "100");
    std::fs::write(
        place.path().join("heliograph.toml"),
        settings(&upstream.address),
    )
    .unwrap();
    let server = TestServer::start(place, &[], &disk.environment());
    let served = Served { server, keys };
    let transid = served.send("57000001", "Hello");
    served.until(&transid, "submitted");
    let receipt = [("id", name(&transid)), ("status", "DELIVRD".to_owned())];
    let receipt = receipt
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));

    disk.fail("write", "-wal");
    let answer = get(&served.server, &receipt);
    assert_eq!(answer.status, 503);
    assert!(answer.header("retry-after").is_some());
    disk.heal();
    assert_eq!(served.report(&transid)["status"], "submitted");
    assert_eq!(get(&served.server, &receipt).status, 200);
    assert_eq!(served.report(&transid)["status"], "delivered");
    served.stop();
}

#[test]
fn what_the_upstream_refuses_costs_nothing() {
    let upstream =
        Upstream::start(|_, _| Reply::Answer(400, "{\"why\":\"unknown sender\"}".into()));
    let served = Served::start(&settings(&upstream.address));
    let transid = served.send("57000001", "Hello");
    let report = served.until(&transid, "rejected");
    assert_eq!(report["error"], "HTTP status 400 unknown sender");
    assert_eq!(report["charge"]["released"].to_string(), "0.05");
    assert_eq!(served.balance(), "100");
    assert_eq!(upstream.requests_for("26657000001").len(), 1);
    served.stop();
}

#[test]
fn what_is_too_much_at_once_is_sent_later() {
    let upstream = Upstream::start(|request, before| {
        if before < 5 {
            Reply::Answer(429, String::new())
        } else {
            accept(request)
        }
    });
    let served = Served::start(&settings(&upstream.address));
    let sent = served.send_to(57_000_001..57_000_009);
    served.until_all(&sent, "submitted");
    let requests: usize = (57_000_001..57_000_009)
        .map(|number| upstream.requests_for(&format!("266{number}")).len())
        .sum();
    assert_eq!(requests, 8 + 5, "each accepted once");
    served.stop();
}

#[test]
fn messages_wait_for_an_upstream_that_is_down() {
    let address = Upstream::nobody();
    let served = Served::start(&settings(&address));
    let sent = served.send_to(57_000_001..57_000_004);
    // One at least was tried.
    until("a refused connection", || {
        let statuses = sent
            .iter()
            .map(|transid| served.report(transid)["status"].clone());
        statuses
            .into_iter()
            .any(|status| status == "sending")
            .then_some(())
    });
    let upstream = Upstream::start_at(&address, |request, _| accept(request));
    served.until_all(&sent, "submitted");
    for number in 57_000_001..57_000_004 {
        assert_eq!(upstream.requests_for(&format!("266{number}")).len(), 1);
    }
    assert_eq!(served.balance(), "99.85");
    served.stop();
}

/// Cuts the connection under the first request to a number, and accepts everything else.
fn cutting() -> (Upstream, Served) {
    let upstream = Upstream::start(|request, before| {
        if before == 0 {
            Reply::Cut
        } else {
            accept(request)
        }
    });
    let served = Served::start(&settings(&upstream.address));
    (upstream, served)
}

#[test]
fn a_lost_answer_leaves_it_open_and_nothing_is_sent_again() {
    let (upstream, served) = cutting();
    let lost = served.send("57000001", "Hello");
    let report = served.until(&lost, "unknown");
    assert_eq!(report["charge"]["released"].to_string(), "0", "{report}");
    let next = served.send("57000002", "Hello");
    served.until(&next, "submitted");
    // What waits would be sent by a start at the latest.
    let served = served.restarted(&settings(&upstream.address));
    let next = served.send("57000003", "Hello");
    served.until(&next, "submitted");
    assert_eq!(served.report(&lost)["status"], "unknown");
    assert_eq!(upstream.requests_for("26657000001").len(), 1);
    assert_eq!(served.balance(), "99.85");
    served.stop();
}

/// Takes the 30 s that a receipt has before that.
#[test]
fn a_lost_answer_is_made_up_for_by_sending_once_more() {
    let (upstream, served) = cutting();
    served.resend_lost();
    let lost = served.send("57000001", "Hello");
    served.until(&lost, "unknown");
    served.until(&lost, "submitted");
    assert_eq!(upstream.requests_for("26657000001").len(), 2);
    let receipt = [("id", name(&lost)), ("status", "DELIVRD".to_owned())];
    let receipt = receipt
        .each_ref()
        .map(|(name, value)| (*name, value.as_str()));
    assert_eq!(get(&served.server, &receipt).status, 200);
    assert_eq!(served.report(&lost)["status"], "delivered");
    assert_eq!(served.balance(), "99.95");
    served.stop();
}
