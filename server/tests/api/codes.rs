//! The conditions of codes 501 to 505, and which code wins if several apply.

use domain::{Category, SenderName};
use service::Actor;

use crate::client::{Answer, bare};
use crate::harness::{Keys, TestServer};

const GOOD: [(&str, &str); 2] = [("number", "57000001"), ("message", "Hi")];
const BAD: [(&str, &str); 2] = [("number", ""), ("message", "")];

/// Checks that GET, POST and a request with invalid parameters all get this refusal.
fn refuses(server: &TestServer, key: &str, status: u16, code: u64, reason: &str) {
    server.send(key, &GOOD).is(status, code, reason);
    server.send(key, &BAD).is(status, code, reason);
    server.post_form(key, &GOOD).is(status, code, reason);
    server.post_json(key, b"no JSON").is(status, code, reason);
}

fn key_of(keys: &Keys) -> &str {
    keys.live.expose()
}

#[test]
fn malformed_and_unknown_keys_get_one_answer_and_absent_ones_another() {
    let server = TestServer::demo();
    let real = server.key();
    let last = if real.ends_with('0') { "1" } else { "0" };
    let altered = format!("{}{last}", &real[..real.len() - 1]);
    // Well-formed, but its application doesn't exist.
    let stranger = domain::ApiKey::from_entropy(
        domain::Reference::parse("000000").unwrap(),
        domain::KeyKind::Live,
        [7; 32],
    );
    // Well-formed and with this application's reference, but another key.
    let other = domain::ApiKey::from_entropy(
        domain::Reference::parse(server.reference()).unwrap(),
        domain::KeyKind::Live,
        [7; 32],
    );
    let long = "k".repeat(10_000);
    let mut bodies = Vec::new();
    for key in [
        "k",
        long.as_str(),
        "%FF",
        "%00",
        "%20",
        "key%2Fwith%2Fslashes",
        altered.as_str(),
        stranger.expose(),
        other.expose(),
    ] {
        for answer in [
            server.get(&format!("/sms/send/{key}?number=57000001&message=Hi")),
            server.get(&format!("/sms/send/{key}")),
            server.get(&format!("/sms/balance/{key}")),
            server.get(&format!("/sms/reports/{key}")),
            server.post_form(key, &GOOD),
        ] {
            answer.is(401, 504, "api_invalid");
            bodies.push(answer.text());
        }
    }
    bodies.dedup();
    assert_eq!(bodies.len(), 1, "{bodies:?}");
    for target in ["/sms/send?number=57000001&message=Hi", "/sms/balance/"] {
        let answer = server.get(target);
        answer.is(401, 504, "api_invalid");
        assert!(answer.text().contains("has no API key"), "{}", answer.text());
    }
    assert_eq!(server.count(real), 0);
}

#[test]
fn the_key_may_stand_in_the_header() {
    let server = TestServer::demo();
    let with = |target: &str, header: &str| {
        server.exchange(&bare("GET", target, &[("Authorization", header)]))
    };
    let bearer = format!("Bearer {}", server.key());
    let sent = with("/sms/send?number=57000001&message=Hi", &bearer);
    assert_eq!(sent.status, 200, "{}", sent.text());
    let transid = sent.json()["transid"].as_str().unwrap().to_owned();
    assert_eq!(with("/sms/balance", &format!("bEARER {}", server.key())).status, 200);
    assert_eq!(with("/sms/balance/", &bearer).status, 200);
    assert_eq!(with("/sms/reports", &bearer).json()["reports"][0]["transid"], *transid);
    assert_eq!(
        with(&format!("/sms/reports/{transid}"), &bearer).json()["report"]["transid"],
        *transid
    );
    // Here an unknown last segment is the ID of a message or batch, not a key.
    for id in ["m_0000000000000", "m_typo", "M_0000000000000", "typo", "b_0"] {
        with(&format!("/sms/reports/{id}"), &bearer).is(404, 500, "not_found");
        with(&format!("/sms/batches/{id}"), &bearer).is(404, 500, "not_found");
        let in_path = format!("/sms/reports/{}/{id}", server.key());
        server.get(&in_path).is(404, 500, "not_found");
    }
    // The key in the path must equal the key in the header.
    let in_path = format!("/sms/balance/{}", server.key());
    assert_eq!(with(&in_path, &bearer).status, 200);
    assert_eq!(with(&in_path, "Basic dTpw").status, 200);
    for (target, header) in [("/sms/balance/wrong", bearer.as_str()), (&in_path, "Bearer wrong")] {
        let answer = with(target, header);
        answer.is(401, 504, "api_invalid");
        assert!(answer.text().contains("different API keys"), "{}", answer.text());
    }
    with("/sms/balance", "Basic dTpw").is(401, 504, "api_invalid");
    // A request with two headers is refused, whichever comes first.
    for second in ["Bearer wrong", bearer.as_str()] {
        for headers in [[&bearer, second], [second, &bearer]] {
            let headers = headers.map(|header| ("Authorization", header));
            let answer = server.exchange(&bare("GET", "/sms/balance", &headers));
            answer.is(401, 504, "api_invalid");
            let answer = server.exchange(&bare("GET", &in_path, &headers));
            answer.is(401, 504, "api_invalid");
        }
    }
    with(&format!("/sms/reports/{transid}"), "Bearer wrong").is(401, 504, "api_invalid");
}

#[test]
fn status_and_category_decide() {
    let server = TestServer::empty();
    let pending = server.place.application("pending@example.org", Category::Sms, None);
    refuses(&server, key_of(&pending), 403, 502, "api_pending");

    let electricity = server.place.application("e@example.org", Category::Electricity, None);
    refuses(&server, key_of(&electricity), 403, 505, "api_not_applicable");
    refuses(&server, electricity.test.expose(), 403, 505, "api_not_applicable");
    server.get(&format!("/sms/balance/{}", key_of(&electricity))).is(
        403,
        505,
        "api_not_applicable",
    );

    let active = server.place.funded("active@example.org", "10");
    let reference = active.reference.to_string();
    assert_eq!(server.send(key_of(&active), &GOOD).status, 200);
    server.place.json(&["application", "suspend", &reference, "--reason", "unpaid"]);
    refuses(&server, key_of(&active), 403, 503, "api_suspended");
    // A suspended application can still read.
    assert_eq!(server.balance(key_of(&active)), "9.95");
    server.place.json(&["application", "reinstate", &reference]);
    assert_eq!(server.send(key_of(&active), &GOOD).status, 200);

    // 505 comes before 502 and 503.
    let reference = electricity.reference.to_string();
    server.place.json(&["application", "suspend", &reference, "--reason", "test"]);
    refuses(&server, key_of(&electricity), 403, 505, "api_not_applicable");
    server.place.check();
}

#[test]
fn sender_names_decide() {
    let server = TestServer::empty();
    let keys = server.place.application("named@example.org", Category::Sms, Some("Acme"));
    let reference = keys.reference.to_string();
    // The application is still Pending, and 502 comes before the sender name.
    refuses(&server, key_of(&keys), 403, 502, "api_pending");
    server.place.json(&["application", "approve", &reference]);
    server.place.json(&["deposit", "add", &reference, "10", "--bank-id", "b"]);
    refuses(&server, key_of(&keys), 403, 500, "sender_pending");
    let id = server.place.json(&["sender", "list"])[0]["id"].to_string();
    server.place.json(&["sender", "reject", &id, "--reason", "a trade mark"]);
    refuses(&server, key_of(&keys), 403, 500, "sender_rejected");
    // The test key accepts any sender name.
    assert_eq!(server.send(keys.test.expose(), &GOOD).status, 200);

    let name = SenderName::parse("Beta").unwrap();
    server.place.with_service(async |service| {
        service
            .applications()
            .request_sender_name(keys.account_id, keys.reference, &name)
            .await
            .unwrap();
    });
    let id = server.place.json(&["sender", "list"])[0]["id"].to_string();
    server.place.json(&["sender", "accept", &id]);
    let sent = server.send(key_of(&keys), &GOOD);
    assert_eq!(sent.status, 200, "{}", sent.text());
    assert_eq!(server.reports(key_of(&keys), "")[0]["sender"], "Beta");
}

#[test]
fn too_little_money_is_501_and_changes_nothing() {
    let server = TestServer::empty();
    let keys = server.place.funded("poor@example.org", "0.2");
    let international: [(&str, &str); 2] = [("number", "+26657000001"), ("message", "Hi")];
    let refused = server.send(key_of(&keys), &international);
    refused.is(402, 501, "insufficient_funds");
    assert_eq!(server.balance(key_of(&keys)), "0.2");
    for left in ["0.15", "0.1", "0.05", "0"] {
        let sent = server.send(key_of(&keys), &GOOD);
        assert_eq!(sent.status, 200);
        assert!(sent.text().contains(&format!("\"balance\":{left},")), "{}", sent.text());
    }
    server.send(key_of(&keys), &GOOD).is(402, 501, "insufficient_funds");
    assert_eq!(server.count(key_of(&keys)), 4);
    server.place.check();
}

#[test]
fn a_replaced_key_is_dead_and_the_new_one_works() {
    let server = TestServer::empty();
    let keys = server.place.funded("careful@example.org", "10");
    let old = key_of(&keys).to_owned();
    assert_eq!(server.send(&old, &GOOD).status, 200);
    let new = server.place.with_service(async |service| {
        let password = "correct horse battery";
        service
            .applications()
            .replace_key(keys.account_id, keys.reference, domain::KeyKind::Live, password, "", None)
            .await
            .unwrap()
    });
    refuses(&server, &old, 401, 504, "api_invalid");
    let unknown: Answer = server.send("unknown", &GOOD);
    assert_eq!(server.send(&old, &GOOD).text(), unknown.text());
    assert_eq!(server.send(new.expose(), &GOOD).status, 200);
    assert_eq!(new.reference(), keys.reference);
}

#[test]
fn suspending_by_the_service_holds_for_the_next_request() {
    let server = TestServer::empty();
    let keys = server.place.funded("quick@example.org", "10");
    server.place.with_service(async |service| {
        service.applications().suspend(&Actor::CommandLine, keys.reference, "test").await.unwrap();
    });
    refuses(&server, key_of(&keys), 403, 503, "api_suspended");
}
