//! Reading batches.

use crate::client::bare;
use crate::harness::TestServer;

#[test]
fn a_batch_says_what_became_of_it() {
    let server = TestServer::demo();
    let parts = [
        ("numbers", &b"57000001\n00000002\n27820000000"[..]),
        ("message", b"Hi"),
        ("requestid", "é".as_bytes()),
    ];
    let answer = server.upload(server.key(), &parts);
    let batchid = answer.json()["batchid"].as_str().unwrap().to_owned();
    let done = server.done_batch(server.key(), &batchid);
    let counts = &done["counts"];
    assert_eq!(counts["delivered"], 2);
    assert_eq!(counts["failed"], 1);
    let names = [
        "scheduled",
        "queued",
        "sending",
        "submitted",
        "delivered",
        "failed",
        "expired",
        "rejected",
        "unknown",
        "cancelled",
    ];
    assert_eq!(counts.as_object().unwrap().len(), names.len());
    let sum: u64 = names.iter().map(|name| counts[name].as_u64().unwrap()).sum();
    assert_eq!(sum, 3);
    let text = server.get(&format!("/sms/batches/{}/{batchid}", server.key())).text();
    let head = format!(
        "{{\"code\":200,\"message\":\"SUCCESS\",\"text\":\"SUCCESS\",\"batch\":{{\"batchid\":\"{batchid}\",\
         \"requestid\":\"é\",\"rows\":3,\"pages\":3,\"cost\":0.35,\"currency\":\"USD\",\"status\":\"done\",\"counts\":{{"
    );
    assert!(text.starts_with(&head), "{text}");
    assert!(done["created_at"].as_str().unwrap() <= done["done_at"].as_str().unwrap());
    assert_eq!(server.batches(server.key(), ""), [done]);
    server.place.check();
}

#[test]
fn the_key_may_stand_in_the_header() {
    let server = TestServer::demo();
    let batchid = server.accepted_batch(server.key(), "57000001");
    let bearer = format!("Bearer {}", server.key());
    for target in ["/sms/batches".to_owned(), format!("/sms/batches/{batchid}")] {
        let answer = server.exchange(&bare("GET", &target, &[("Authorization", &bearer)]));
        assert_eq!(answer.status, 200, "{target}: {}", answer.text());
        answer.is_guarded();
        server.exchange(&bare("GET", &target, &[])).is(401, 504, "api_invalid");
    }
}

#[test]
fn lists_are_paged_newest_first_and_filtered() {
    let server = TestServer::demo();
    let mut made: Vec<String> =
        (0..5).map(|_| server.accepted_batch(server.key(), "57000001")).collect();
    made.reverse();
    let mut found = Vec::new();
    let mut query = "limit=2".to_owned();
    loop {
        let answer = server.get(&format!("/sms/batches/{}?{query}", server.key()));
        let json = answer.json();
        let page = json["batches"].as_array().unwrap();
        assert!((1..=2).contains(&page.len()));
        found.extend(page.iter().map(|batch| batch["batchid"].as_str().unwrap().to_owned()));
        match json["next"].as_str() {
            Some(next) => query = format!("limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(found, made);
    let parts = [("bulksms", &b"57000001,a"[..]), ("requestid", b"r")];
    let named = server.upload(server.key(), &parts).json()["batchid"].clone();
    let filtered = server.batches(server.key(), "requestid=r");
    assert_eq!(filtered.len(), 1);
    assert_eq!(filtered[0]["batchid"], named);
    assert_eq!(server.batches(server.key(), "requestid=x").len(), 0);
}

#[test]
fn wrong_look_ups_are_refused() {
    let server = TestServer::demo();
    let key = server.key();
    for query in [
        "limit=0",
        "limit=1001",
        "limit=x",
        "cursor=",
        "cursor=x",
        "cursor=m_0000000000000",
        "unknown=1",
        "transid=m_0000000000000",
    ] {
        server.get(&format!("/sms/batches/{key}?{query}")).is(400, 500, "invalid_parameter");
    }
    server.get(&format!("/sms/batches/{key}?requestid=")).is(400, 500, "invalid_requestid");
    server.get(&format!("/sms/batches/{key}?limit=1&limit=1")).is(400, 500, "duplicate_parameter");
    let batchid = server.accepted_batch(key, "57000001");
    server.get(&format!("/sms/batches/{key}/{batchid}?limit=1")).is(400, 500, "invalid_parameter");
    for other in ["b_0000000000000", "b_x", "x", "%FF"] {
        server.get(&format!("/sms/batches/{key}/{other}")).is(404, 500, "not_found");
    }
    for method in ["POST", "PUT", "DELETE"] {
        let answer = server.exchange(&bare(method, &format!("/sms/batches/{key}"), &[]));
        assert_eq!(answer.status, 405);
        assert_eq!(answer.header("allow"), Some("GET"));
    }
    let answer = server.exchange(&bare("GET", &format!("/sms/bulk/{key}"), &[]));
    answer.is(405, 500, "method_not_allowed");
    assert_eq!(answer.header("allow"), Some("POST"));
}

#[test]
fn each_key_sees_its_own() {
    let server = TestServer::demo();
    let other = server.place.funded("other@example.org", "1");
    let (live, test) = (server.key(), server.test_key());
    let batchid = server.accepted_batch(live, "57000001");
    let played = server.accepted_batch(test, "57000001");
    for (key, batchid) in [(test, &batchid), (live, &played), (other.live.expose(), &batchid)] {
        server.get(&format!("/sms/batches/{key}/{batchid}")).is(404, 500, "not_found");
    }
    assert_eq!(server.batches(live, "").len(), 1);
    assert_eq!(server.batches(test, "").len(), 1);
    assert_eq!(server.batches(other.live.expose(), "").len(), 0);
    assert_eq!(server.balance(live), "9.95");
    assert_eq!(server.balance(test), "999.95");
    server.done_batch(test, &played);
    server.place.check();
}
