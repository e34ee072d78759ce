//! Randomly corrupted requests. Each is sent wholly or not at all, and the server keeps working.

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use crate::client::{MULTIPART, bare, form, multipart, posted};
use crate::harness::{TestServer, money, until};

const SEED: u64 = 42;
const REQUESTS: usize = 600;

/// Returns valid requests to corrupt.
fn seeds(key: &str) -> Vec<Vec<u8>> {
    let pairs = form(&[("number", "57000001"), ("message", "Héllo"), ("requestid", "r")]);
    let path = format!("/sms/send/{key}");
    let json = br#"{"number":"57000001","message":"H\u00e9llo","requestid":"r"}"#;
    vec![
        bare("GET", &format!("{path}?{pairs}"), &[]),
        posted(&path, "application/x-www-form-urlencoded", pairs.as_bytes()),
        posted(&path, "application/json; charset=utf-8", json),
        bare("GET", &format!("/sms/reports/{key}?number=57000001&limit=3"), &[]),
    ]
}

/// Returns valid uploads to corrupt.
fn uploads(key: &str) -> Vec<Vec<u8>> {
    let path = format!("/sms/bulk/{key}");
    let rows = "57000001,Héllo\r\n27820000000,\"a\nb\"\"\"\n";
    let parts = [("bulksms", rows.as_bytes()), ("requestid", b"r")];
    let to_many = [("message", &b"Hi"[..]), ("numbers", b"57000001\n57000002\n")];
    let pairs = form(&[("bulksms", rows), ("requestid", "r")]);
    vec![
        posted(&path, MULTIPART, &multipart(&parts)),
        posted(&path, MULTIPART, &multipart(&to_many)),
        posted(&path, "application/x-www-form-urlencoded", pairs.as_bytes()),
    ]
}

fn damaged(seed: &[u8], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..random.random_range(1..4) {
        let at = random.random_range(0..bytes.len());
        match random.random_range(0..4) {
            0 => bytes[at] = random.random(),
            1 => bytes.insert(at, random.random()),
            2 => drop(bytes.remove(at)),
            _ => {
                let end = random.random_range(at..bytes.len().min(at + 20));
                let copy = bytes[at..end].to_vec();
                bytes.splice(at..at, copy);
            }
        }
    }
    bytes
}

#[test]
fn damaged_requests_are_refused_or_sent_whole() {
    let server = TestServer::empty();
    let keys = server.place.funded("noise@example.org", "1000");
    let key = keys.live.expose();
    let mut random = StdRng::seed_from_u64(SEED);
    let seeds = seeds(key);
    let mut accepted = 0;
    for _ in 0..REQUESTS {
        let seed = &seeds[random.random_range(0..seeds.len())];
        let mut connection = server.connect();
        connection.write(&damaged(seed, &mut random));
        // Without this, the server would wait for the rest of a truncated request.
        connection.finish_writing();
        let Some(answer) = connection.read() else {
            continue;
        };
        // hyper answers invalid HTTP, and the portal answers paths outside the API.
        if answer.header("content-type") != Some("application/json") {
            assert_ne!(answer.status, 200);
            continue;
        }
        let json = answer.json();
        assert_eq!(json["code"] == 200, answer.status == 200, "{json}");
        assert_eq!(json["code"] == 200, json.get("reason").is_none(), "{json}");
        accepted += usize::from(!json["transid"].is_null());
    }
    let stored = server.count(key);
    assert!(accepted > 10);
    assert_eq!(stored, accepted, "each was answered");
    assert_eq!(server.balance(key), left(&server.reports(key, "limit=1000")));
    server.place.check();
}

#[test]
fn damaged_uploads_are_refused_or_accepted_whole() {
    let server = TestServer::empty();
    let keys = server.place.funded("noise@example.org", "1000");
    let key = keys.live.expose();
    let mut random = StdRng::seed_from_u64(SEED);
    let seeds = uploads(key);
    let mut accepted = Vec::new();
    for _ in 0..REQUESTS {
        let seed = &seeds[random.random_range(0..seeds.len())];
        let mut connection = server.connect();
        connection.write(&damaged(seed, &mut random));
        connection.finish_writing();
        let Some(answer) = connection.read() else {
            continue;
        };
        if answer.header("content-type") != Some("application/json") {
            assert_ne!(answer.status, 200);
            continue;
        }
        let json = answer.json();
        assert_eq!(json["code"] == 200, answer.status == 200, "{json}");
        assert_eq!(json["reason"] == "invalid_file", json["errors"].is_array(), "{json}");
        if let Some(batchid) = json["batchid"].as_str() {
            accepted.push(batchid.to_owned());
        }
    }
    assert!(accepted.len() > 10);
    for batchid in &accepted {
        server.done_batch(key, batchid);
    }
    let stored = server.batches(key, "limit=1000");
    assert_eq!(stored.len(), accepted.len(), "each was answered");
    assert_eq!(server.balance(key), left(&stored));
    until("no file", || server.place.spooled().is_empty().then_some(()));
    server.place.check();
}

/// Returns the rest of a balance of 1000 after these charges.
fn left(paid: &[Value]) -> String {
    let left = paid.iter().fold(money("1000"), |left, paid| {
        left.checked_sub(money(&paid["cost"].to_string())).unwrap()
    });
    left.to_string()
}
