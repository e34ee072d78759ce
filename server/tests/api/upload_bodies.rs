//! Upload bodies that are slow, broken, compressed, too large or not read.

use std::time::{Duration, Instant};

use crate::client::{MULTIPART, bare, multipart, posted};
use crate::harness::{TestServer, until};

const FORM: &str = "application/x-www-form-urlencoded";

/// [`good`] as compressed by `gzip -n`.
const PACKED_BODY: &str = "1f8b0800000000000203958d4b0a02311044f781be43c8befd810833b81a171ec00b44d3230d\
    263da4db516faf8388b8b456453d7885889878e444155c27c5a818ee5807513696d2f85e6ac6142db6bec44cdb50aef94855\
    43eb7bbed07bab72d3d949c7f0951c1e0335dee86ef31700076ebd594c597eca0a1cfe7f9f49359e294cc63dff2810c13d01\
    34580af9d1000000";
/// Two valid rows, compressed in the same way.
const PACKED_FILE: &str =
    "1f8b08000000000002033335370001431d8f4c2e5308db48c7239f0b008263324218000000";

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
        ("empty boundary", "multipart/form-data; boundary=", whole.clone()),
        ("no end", MULTIPART, whole[..whole.len() - 8].to_vec()),
        ("end of a file", MULTIPART, whole[..120].to_vec()),
        ("end of a head", MULTIPART, whole[..50].to_vec()),
        ("no part", MULTIPART, b"57000001".to_vec()),
        ("bad head", MULTIPART, broken("Content-Type: text/csv", "Content-Type\0")),
        ("endless head", MULTIPART, endless_head),
        ("many parts", MULTIPART, many_parts),
    ] {
        let answer = server.exchange(&posted(&target(&server), kind, &body));
        assert_eq!(answer.reason(), "invalid_parameter", "{what}: {}", answer.text());
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
        for accepted in ["multipart/form-data", FORM] {
            assert!(answer.text().contains(accepted), "{}", answer.text());
        }
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
fn an_encoded_part_is_refused() {
    let server = TestServer::demo();
    let single = multipart(&[("number", b"57000001"), ("message", b"Hi")]);
    let send = format!("/sms/send/{}", server.key());
    for (target, rest) in [(&send, &single), (&target(&server), &good())] {
        for disposition in
            ["form-data; name=\"other\"", "form-data", "form-data; name=\"requestid\""]
        {
            let part = format!(
                "----divider\r\nContent-Disposition: {disposition}\r\n\
                 Content-Transfer-Encoding: base64\r\n\r\ncg==\r\n"
            );
            let body = [part.as_bytes(), rest].concat();
            let answer = server.exchange(&posted(target, MULTIPART, &body));
            answer.is(415, 500, "unsupported_media_type");
        }
    }
    server.place.check();
}

#[test]
fn a_part_has_the_name_that_its_head_gives_it() {
    let server = TestServer::demo();
    let disposed = |disposition: &str| {
        let body = format!(
            "----divider\r\nContent-Disposition: {disposition}\r\n\r\n57000001,Hi\r\n\
             ----divider--\r\n"
        );
        server.exchange(&posted(&target(&server), MULTIPART, body.as_bytes()))
    };
    for disposition in [
        "form-data; Name=\"bulksms\"",
        "form-data; name=bulksms; filename=rows.csv",
        "form-data; filename=\"a; name=numbers; b\"; name=\"bulksms\"",
        "form-data; filename=\"say \\\"; name=numbers\"; NAME = \"bulksms\"",
    ] {
        let answer = disposed(disposition);
        assert_eq!(answer.status, 200, "{disposition}: {}", answer.text());
    }
    for (disposition, reason) in [
        ("form-data; filename=\"x; name=bulksms\"", "missing_parameter"),
        ("form-data; filename=\"name=\\\"bulksms\\\"\"", "missing_parameter"),
        ("form-data", "missing_parameter"),
        ("form-data; name=bulksms; name=numbers", "invalid_parameter"),
    ] {
        disposed(disposition).is(400, 500, reason);
    }
    assert_eq!(server.batches(server.key(), "").len(), 4);
}

#[test]
fn a_packed_body_is_refused() {
    let server = TestServer::demo();
    let body = hex::decode(PACKED_BODY).unwrap();
    let length = body.len().to_string();
    let headers = [
        ("Content-Type", MULTIPART),
        ("Content-Encoding", "gzip"),
        ("Content-Length", length.as_str()),
    ];
    let mut request = bare("POST", &target(&server), &headers);
    request.extend_from_slice(&body);
    server.exchange(&request).is(415, 500, "unsupported_media_type");
    server.is_untouched("gzip");
    // A compressed body without Content-Encoding isn't multipart. A compressed file is judged by
    // its bytes.
    let answer = server.exchange(&posted(&target(&server), MULTIPART, &body));
    answer.is(400, 500, "invalid_parameter");
    server.is_untouched("gzip unsaid");
    let file = hex::decode(PACKED_FILE).unwrap();
    let answer = server.upload(server.key(), &[("bulksms", &file)]);
    answer.is(400, 500, "invalid_file");
    assert_eq!(answer.json()["errors"][0]["reason"], "invalid_file");
    server.is_untouched("a gzipped file");
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
    let batchid = answer.json()["batchid"].as_str().unwrap().to_owned();
    server.done_batch(server.key(), &batchid);
    for (number, message) in [("57000001", "é"), ("57000002", "a\r\nb")] {
        let reports = server.reports(server.key(), &format!("number={number}"));
        assert_eq!(reports.len(), 1);
        assert_eq!(reports[0]["message"], message);
        assert_eq!(reports[0]["requestid"], "r");
    }
    server.place.check();
}

#[test]
fn what_is_not_utf8_is_found_however_it_is_cut() {
    let server = TestServer::demo();
    // Raw bytes in multipart.
    let rows = b"57000001,ok\n57000002,\xf0\x9f\x98\n57000003,\xe2\x82\xac\n";
    let body = multipart(&[("bulksms", rows)]);
    let headers = [("Content-Type", MULTIPART), ("Transfer-Encoding", "chunked")];
    let mut connection = server.connect();
    connection.write(&bare("POST", &target(&server), &headers));
    for byte in body {
        connection.write(&[b"1\r\n", &[byte][..], b"\r\n"].concat());
    }
    connection.write(b"0\r\n\r\n");
    let answer = connection.read().unwrap();
    answer.is(400, 500, "invalid_file");
    assert_eq!(answer.json()["error_count"], 1);
    assert_eq!(answer.json()["errors"][0]["line"], 2);
    assert_eq!(answer.json()["errors"][0]["reason"], "invalid_encoding");
    server.is_untouched("parts");
    // Percent-encoded in a form.
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
    server.is_untouched("a form");
}

#[test]
fn an_expected_continue_is_given_to_whom_it_is_due() {
    let server = TestServer::demo();
    let body = good();
    let length = body.len().to_string();
    let head = |key: &str, kind: &str, length: &str| {
        let headers =
            [("Content-Type", kind), ("Content-Length", length), ("Expect", "100-continue")];
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
        // This is the whole response: the server didn't ask for the body.
        assert!(text.starts_with(&format!("HTTP/1.1 {status} ")), "{text}");
    }
}

#[test]
fn a_client_that_leaves_in_the_middle_leaves_nothing() {
    let server = TestServer::demo();
    let body = good();
    let length = body.len().to_string();
    let headers = [
        ("Content-Type", MULTIPART),
        ("Content-Length", length.as_str()),
        ("Expect", "100-continue"),
    ];
    for cut in [0, 10, 120, body.len() - 1] {
        let mut connection = server.connect();
        connection.write(&bare("POST", &target(&server), &headers));
        // The server has read the head and waits for the body.
        assert_eq!(connection.read_line(), "HTTP/1.1 100 Continue");
        connection.write(&body[..cut]);
        if cut >= 120 {
            // By now the server has created a file.
            until("a file", || (!server.place.spooled().is_empty()).then_some(()));
        }
        drop(connection);
        until("no file", || server.place.spooled().is_empty().then_some(()));
    }
    // A client that closes its sending side too early has broken the framing and gets no answer.
    let request = posted(&target(&server), MULTIPART, &body);
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
    let keys = server.place.application("new@example.org", domain::Category::Sms, None);
    let power = server.place.application("power@example.org", domain::Category::Electricity, None);
    let named = |email: &str| {
        let category = domain::Category::Sms;
        let keys = server.place.application(email, category, Some("Acme"));
        let reference = keys.reference.to_string();
        server.place.json(&["application", "approve", &reference]);
        keys
    };
    let rejected = named("rejected@example.org");
    let id = server.place.json(&["sender", "list"])[0]["id"].to_string();
    server.place.json(&["sender", "reject", &id, "--reason", "a trade mark"]);
    let waiting = named("waiting@example.org");
    let body = good();
    for (key, status, code, reason) in [
        ("unknown", 401, 504, "api_invalid"),
        (power.live.expose(), 403, 505, "api_not_applicable"),
        (keys.live.expose(), 403, 502, "api_pending"),
        (waiting.live.expose(), 403, 500, "sender_pending"),
        (rejected.live.expose(), 403, 500, "sender_rejected"),
    ] {
        let length = "50000000";
        let headers = [("Content-Type", MULTIPART), ("Content-Length", length)];
        let mut connection = server.connect();
        connection.write(&bare("POST", &format!("/sms/bulk/{key}"), &headers));
        connection.read().unwrap().is(status, code, reason);
        // The server reads and discards the rest.
        for _ in 0..100 {
            connection.write(&[b'x'; 10_000]);
        }
    }
    // A test key works even though the application is Pending.
    let test = keys.test.expose();
    let answer = server.exchange(&posted(&format!("/sms/bulk/{test}"), MULTIPART, &body));
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(server.balance(test), "999.9");
}
