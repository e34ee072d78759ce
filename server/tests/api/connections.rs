//! Clients that are slow, and a server that stops.

use std::time::{Duration, Instant};

use crate::client::{bare, form};
use crate::harness::TestServer;

#[test]
fn a_client_that_is_slow_with_its_header_is_cut_off() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    connection.write(b"GET /sms/balance/x HTTP/1.1\r\nHost: te");
    let started = Instant::now();
    assert!(connection.ends());
    assert!(started.elapsed() < Duration::from_secs(35));
}

#[test]
fn a_body_that_never_ends_is_answered_408() {
    let server = TestServer::demo();
    let target = format!("/sms/send/{}", server.key());
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", "100"),
    ];
    let mut connection = server.connect();
    connection.write(&bare("POST", &target, &headers));
    connection.write(b"number=57000001");
    let answer = connection.read().unwrap();
    answer.is(408, 500, "timeout");
    assert_eq!(answer.header("connection"), Some("close"));
    assert_eq!(server.count(server.key()), 0);
}

#[test]
fn a_refused_upload_sees_its_answer_before_its_end() {
    let server = TestServer::demo();
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", "50000000"),
    ];
    let mut connection = server.connect();
    connection.write(&bare("POST", "/sms/send/unknown", &headers));
    // Nothing of the body is there yet, and the answer comes.
    connection.read().unwrap().is(401, 504, "api_invalid");
    // What still comes is taken.
    for _ in 0..100 {
        connection.write(&[b'x'; 10_000]);
    }
}

#[test]
fn a_request_that_has_begun_is_finished_at_a_stop() {
    let server = TestServer::demo();
    let body = form(&[("number", "57000001"), ("message", "Hi")]);
    let length = body.len().to_string();
    let headers = [
        ("Content-Type", "application/x-www-form-urlencoded"),
        ("Content-Length", length.as_str()),
    ];
    let target = format!("/sms/send/{}", server.key());
    let mut connection = server.connect();
    connection.write(&bare("POST", &target, &headers));
    connection.write(&body.as_bytes()[..10]);
    // An answer on another connection shows that the server has got this far with the first.
    server.balance(server.key());
    let mut idle = server.connect();
    idle.write(&bare("GET", "/sms/balance/x", &[]));
    assert_eq!(idle.read().unwrap().status, 401);
    let address = server.address().to_owned();
    server.signal("TERM");
    // The idle connection is closed, which shows that the stop has begun.
    assert!(idle.ends());
    connection.write(&body.as_bytes()[10..]);
    assert_eq!(connection.read().unwrap().status, 200);
    let (code, place) = server.stop_begun();
    assert_eq!(code, Some(0));
    assert!(std::net::TcpStream::connect(address).is_err());
    place.check();
}
