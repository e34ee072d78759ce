//! Slow clients, and a server that stops.

use std::time::{Duration, Instant};

use crate::client::{bare, form};
use crate::harness::{TestServer, until};

#[test]
fn a_slow_header_and_an_idle_connection_have_the_time_that_is_announced() {
    let server = TestServer::demo();
    let [mut idle, mut slow] = [(); 2].map(|()| server.connect());
    let mut idles = Vec::new();
    for target in ["/sms/balance/x", "/login"] {
        idle.write(&bare("GET", target, &[]));
        let answer = idle.read().unwrap();
        assert_eq!(answer.header("connection"), Some("keep-alive"), "{target}");
        idles.push(answer.header("keep-alive").unwrap().to_owned());
    }
    slow.write(b"GET /sms/balance/x HTTP/1.1\r\nHost: te");
    let started = Instant::now();
    assert!(idle.ends() && slow.ends());
    let seconds = started.elapsed().as_secs_f64().round();
    assert!((14.0..35.0).contains(&seconds), "{seconds}");
    assert_eq!(idles, ["timeout=15", "timeout=15"]);
}

#[test]
fn no_time_is_announced_where_the_connection_ends() {
    let server = TestServer::demo();
    let closing = bare("GET", "/sms/balance/x", &[("Connection", "TE, Close")]);
    let old = b"GET /sms/balance/x HTTP/1.0\r\nHost: test\r\n\r\n".to_vec();
    let bulk = bare("POST", "/sms/bulk/x", &[("Content-Length", "0")]);
    for request in [closing, old, bulk] {
        let mut connection = server.connect();
        connection.write(&request);
        let answer = connection.read().unwrap();
        answer.is(401, 504, "api_invalid");
        assert_eq!(answer.header("keep-alive"), None);
        assert!(connection.ends());
    }
}

#[test]
fn a_body_that_never_ends_is_answered_408() {
    let server = TestServer::demo();
    let target = format!("/sms/send/{}", server.key());
    let headers =
        [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "100")];
    let mut connection = server.connect();
    connection.write(&bare("POST", &target, &headers));
    connection.write(b"number=57000001");
    let answer = connection.read().unwrap();
    answer.is(408, 500, "timeout");
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(connection.ends());
    assert_eq!(server.count(server.key()), 0);
}

#[test]
fn a_stop_waits_for_a_stalled_body_only_until_its_time_is_over() {
    let server = TestServer::demo();
    let target = format!("/sms/send/{}", server.key());
    let headers =
        [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "100")];
    let mut connection = server.connect();
    connection.write(&bare("POST", &target, &headers));
    connection.write(b"number=57000001");
    // An answer on another connection shows that the server has read the first part of the request.
    server.balance(server.key());
    let started = Instant::now();
    server.signal("TERM");
    connection.read().unwrap().is(408, 500, "timeout");
    let (code, place) = server.stop_begun();
    assert_eq!(code, Some(0));
    // 10 s to wait for the body, and no more time to drain it.
    assert!(started.elapsed() < Duration::from_secs(15));
    place.check();
}

/// SIGHUP, SIGUSR1 and SIGUSR2 end a process that doesn't handle them.
#[test]
fn other_signals_end_nothing() {
    let server = TestServer::demo();
    for name in ["HUP", "USR1", "USR2"] {
        server.signal(name);
    }
    until("the lines about signals", || {
        let log = server.log();
        let ignored = log.matches("ignored a signal").count() == 2;
        (ignored && log.contains("reloaded the settings")).then_some(())
    });
    server.balance(server.key());
    assert_eq!(server.stop().0, Some(0));
}

#[test]
fn heads_have_a_largest_size() {
    let server = TestServer::demo();
    let target = format!("/sms/balance/{}", server.key());
    let with_header = |bytes: usize| {
        let filling = "x".repeat(bytes);
        bare("GET", &target, &[("X-Filling", &filling)])
    };
    let empty = with_header(0).len();
    let whole = server.exchange(&with_header(64 * 1024 - empty));
    assert_eq!(whole.status, 200);
    let long_target = bare("GET", &format!("{target}?{}", "x".repeat(70_000)), &[]);
    let many_headers = bare("GET", &target, &[("X", "y"); 101]);
    for request in
        [with_header(64 * 1024 - empty + 1), with_header(500_000), long_target, many_headers]
    {
        let answer = server.exchange(&request);
        answer.is(431, 500, "too_large");
        assert_eq!(answer.header("connection"), Some("close"));
    }
}

#[test]
fn a_request_names_its_host_once() {
    let server = TestServer::demo();
    let target = format!("/sms/balance/{}", server.key());
    let none = format!("GET {target} HTTP/1.1\r\n\r\n");
    let twice = format!("GET {target} HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n");
    for request in [none, twice] {
        let answer = server.exchange(request.as_bytes());
        answer.is(400, 500, "invalid_parameter");
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let portal = server.exchange(b"GET / HTTP/1.1\r\n\r\n");
    assert_eq!(portal.status, 400);
    // HTTP/1.0 doesn't require the header.
    let old = format!("GET {target} HTTP/1.0\r\n\r\n");
    assert_eq!(server.exchange(old.as_bytes()).status, 200);
}

#[test]
fn a_refused_upload_sees_its_answer_before_its_end() {
    let server = TestServer::demo();
    let headers =
        [("Content-Type", "application/x-www-form-urlencoded"), ("Content-Length", "50000000")];
    let mut connection = server.connect();
    connection.write(&bare("POST", "/sms/send/unknown", &headers));
    // The answer comes before any part of the body was sent.
    connection.read().unwrap().is(401, 504, "api_invalid");
    // The server reads and discards the rest.
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
    // An answer on another connection shows that the server has read the first part of the request.
    server.balance(server.key());
    let mut idle = server.connect();
    idle.write(&bare("GET", "/sms/balance/x", &[]));
    assert_eq!(idle.read().unwrap().status, 401);
    let address = server.address().to_owned();
    server.signal("TERM");
    // The stop has begun once the idle connection is closed.
    assert!(idle.ends());
    connection.write(&body.as_bytes()[10..]);
    assert_eq!(connection.read().unwrap().status, 200);
    let (code, place) = server.stop_begun();
    assert_eq!(code, Some(0));
    assert!(std::net::TcpStream::connect(address).is_err());
    place.check();
}
