//! Upload bodies that are slow, broken, packed, too large, or not wanted.

use std::time::{Duration, Instant};

use crate::client::{MULTIPART, bare, multipart, posted};
use crate::harness::{TestServer, until};

const FORM: &str = "application/x-www-form-urlencoded";

fn target(server: &TestServer) -> String {
    format!("/sms/bulk/{}", server.key())
}

fn good() -> Vec<u8> {
    multipart(&[("numbers", b"57000001\n57000002"), ("message", b"Hi")])
}

#[test]
fn wrong_bodies_are_refused() {
    let server = TestServer::demo();
    let whole = good();
    let broken = |from: &str, to: &str| {
        let text = String::from_utf8(whole.clone()).unwrap();
        assert!(text.contains(from));
        text.replacen(from, to, 1).into_bytes()
    };
    let wrong_boundary = "multipart/form-data; boundary=another";
    let endless_head = broken("Content-Type: text/csv", &"X-A: b\r\n".repeat(100_000));
    let many_parts = multipart(&vec![("other", &b"x"[..]); 1000]);
    for (what, kind, body) in [
        ("wrong boundary", wrong_boundary, whole.clone()),
        ("no boundary", "multipart/form-data", whole.clone()),
        (
            "empty boundary",
            "multipart/form-data; boundary=",
            whole.clone(),
        ),
        ("no end", MULTIPART, whole[..whole.len() - 8].to_vec()),
        ("end of a file", MULTIPART, whole[..120].to_vec()),
        ("end of a head", MULTIPART, whole[..50].to_vec()),
        ("no part", MULTIPART, b"57000001".to_vec()),
        (
            "bad head",
            MULTIPART,
            broken("Content-Type: text/csv", "Content-Type\0"),
        ),
        ("endless head", MULTIPART, endless_head),
        ("many parts", MULTIPART, many_parts),
    ] {
        let answer = server.exchange(&posted(&target(&server), kind, &body));
        assert_eq!(
            answer.reason(),
            "invalid_parameter",
            "{what}: {}",
            answer.text()
        );
        answer.is(400, 500, "invalid_parameter");
        server.is_untouched(what);
    }
    for kind in [
        "text/csv",
        "application/json",
        "multipart/mixed; boundary=--divider",
        "application/x-www-form-urlencoded; charset=iso-8859-1",
    ] {
        let answer = server.exchange(&posted(&target(&server), kind, &whole));
        answer.is(415, 500, "unsupported_media_type");
        server.is_untouched(kind);
    }
    for encoding in ["base64", "Quoted-Printable", "x"] {
        let with = format!("text/csv\r\nContent-Transfer-Encoding: {encoding}");
        let body = broken("text/csv", &with);
        let answer = server.exchange(&posted(&target(&server), MULTIPART, &body));
        answer.is(415, 500, "unsupported_media_type");
        server.is_untouched(encoding);
    }
    let plain = broken("text/csv", "text/csv\r\nContent-Transfer-Encoding: 8BIT");
    let answer = server.exchange(&posted(&target(&server), MULTIPART, &plain));
    assert_eq!(answer.status, 200, "{}", answer.text());
    server.place.check();
}

#[test]
fn a_packed_body_is_refused() {
    let server = TestServer::demo();
    let body = good();
    let length = body.len().to_string();
    let headers = [
        ("Content-Type", MULTIPART),
        ("Content-Encoding", "gzip"),
        ("Content-Length", length.as_str()),
    ];
    let mut request = bare("POST", &target(&server), &headers);
    request.extend_from_slice(&body);
    server
        .exchange(&request)
        .is(415, 500, "unsupported_media_type");
    server.is_untouched("gzip");
}

#[test]
fn a_body_may_come_byte_by_byte() {
    let server = TestServer::demo();
    let rows = "57000001,é\r\n57000002,\"a\r\nb\"";
    let body = multipart(&[("bulksms", rows.as_bytes()), ("requestid", b"r")]);
    let request = posted(&target(&server), MULTIPART, &body);
    let mut connection = server.connect();
    for byte in request.chunks(1) {
        connection.write(byte);
    }
    let answer = connection.read().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["rows"], 2);
    // A character that isn't UTF-8 and whose bytes come one by one, in a form and in chunks.
    let headers = [("Content-Type", FORM), ("Transfer-Encoding", "chunked")];
    let mut connection = server.connect();
    connection.write(&bare("POST", &target(&server), &headers));
    for byte in b"bulksms=57000001%2Cok%0A57000002%2C%F0%9F%98" {
        connection.write(&[b"1\r\n", &[*byte][..], b"\r\n"].concat());
    }
    connection.write(b"0\r\n\r\n");
    let answer = connection.read().unwrap();
    answer.is(400, 500, "invalid_file");
    assert_eq!(answer.json()["errors"][0]["line"], 2);
    assert_eq!(answer.json()["errors"][0]["reason"], "invalid_encoding");
}

#[test]
fn an_expected_continue_is_given_to_whom_it_is_due() {
    let server = TestServer::demo();
    let body = good();
    let length = body.len().to_string();
    let head = |key: &str, kind: &str, length: &str| {
        let headers = [
            ("Content-Type", kind),
            ("Content-Length", length),
            ("Expect", "100-continue"),
        ];
        bare("POST", &format!("/sms/bulk/{key}"), &headers)
    };
    let mut connection = server.connect();
    connection.write(&head(server.key(), MULTIPART, &length));
    assert_eq!(connection.read_line(), "HTTP/1.1 100 Continue");
    connection.write(&body);
    assert_eq!(connection.read_line(), "");
    assert_eq!(connection.read().unwrap().status, 200);
    let larger = 600_u64 * 1024 * 1024;
    let larger = larger.to_string();
    for (key, kind, length, status) in [
        ("unknown", MULTIPART, length.as_str(), "401"),
        (server.key(), "text/csv", &length, "415"),
        (server.key(), MULTIPART, &larger, "413"),
    ] {
        let mut connection = server.connect();
        connection.write(&head(key, kind, length));
        let text = connection.read_to_end_text();
        // The whole of what came: the body was never asked for.
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing() {
    let server = TestServer::demo();
    let body = good();
    let request = posted(&target(&server), MULTIPART, &body);
    let head = request.len() - body.len();
    for cut in [head, head + 10, head + 120, request.len() - 1] {
        let mut connection = server.connect();
        connection.write(&request[..cut]);
        if cut == head + 120 {
            // So far that there is a file.
            until("a file", || {
                (!server.place.spooled().is_empty()).then_some(())
            });
        }
        drop(connection);
        until("no file", || {
            server.place.spooled().is_empty().then_some(())
        });
    }
    // One that says it will write no more has broken the framing, and gets no answer.
    let mut connection = server.connect();
    connection.write(&request[..request.len() - 1]);
    connection.finish_writing();
    assert!(connection.read().is_none());
    server.is_untouched("leaving");
    server.place.check();
}

#[test]
fn a_body_that_stalls_is_answered_408() {
    let server = TestServer::demo();
    let body = good();
    let request = posted(&target(&server), MULTIPART, &body);
    let mut connection = server.connect();
    let started = Instant::now();
    connection.write(&request[..request.len() - 20]);
    let answer = connection.read().unwrap();
    answer.is(408, 500, "timeout");
    assert!(started.elapsed() >= Duration::from_secs(30));
    assert!(connection.ends());
    server.is_untouched("stalled");
}

#[test]
fn who_may_not_send_is_told_so_before_the_body() {
    let server = TestServer::empty();
    let keys = server
        .place
        .application("new@example.org", domain::Category::Sms, None);
    let power = server
        .place
        .application("power@example.org", domain::Category::Electricity, None);
    let body = good();
    for (key, status, code, reason) in [
        ("unknown", 401, 504, "api_invalid"),
        (power.live.expose(), 403, 505, "api_not_applicable"),
        (keys.live.expose(), 403, 502, "api_pending"),
    ] {
        let length = "50000000";
        let headers = [("Content-Type", MULTIPART), ("Content-Length", length)];
        let mut connection = server.connect();
        connection.write(&bare("POST", &format!("/sms/bulk/{key}"), &headers));
        connection.read().unwrap().is(status, code, reason);
        // What still comes is taken.
        for _ in 0..100 {
            connection.write(&[b'x'; 10_000]);
        }
    }
    // A test key works while Pending.
    let test = keys.test.expose();
    let answer = server.exchange(&posted(&format!("/sms/bulk/{test}"), MULTIPART, &body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(server.balance(test), "999.9");
}
