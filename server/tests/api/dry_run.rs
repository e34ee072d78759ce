//! Dry runs do everything except storing, charging and sending.

use crate::client::{MULTIPART, bare, multipart, posted};
use crate::harness::{TestServer, until};

#[test]
fn a_dry_send_answers_as_a_real_one() {
    let server = TestServer::demo();
    let pairs = [("number", "26657000001"), ("message", "Hi"), ("requestid", "r"), ("dryrun", "1")];
    let expected = "{\"code\":200,\"message\":\"SUCCESS\",\"text\":\"SUCCESS\",\"requestid\":\"r\",\"balance\":10,\
         \"transid\":null,\"pages\":1,\"cost\":0.25,\"currency\":\"USD\",\"warnings\":[\"looks_local\"],\"dryrun\":true}";
    for answer in [server.send(server.key(), &pairs), server.post_form(server.key(), &pairs)] {
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.text(), expected);
    }
    for yes in ["\"1\"", "\"true\"", "true"] {
        let json = format!(
            "{{\"number\":\"26657000001\",\"message\":\"Hi\",\"requestid\":\"r\",\"dryrun\":{yes}}}"
        );
        let answer = server.post_json(server.key(), json.as_bytes());
        assert_eq!(answer.text(), expected);
    }
    server.is_untouched("dry");
    // The values that mean false.
    for no in ["0", "false"] {
        let pairs = [("number", "57000001"), ("message", "Hi"), ("dryrun", no)];
        let answer = server.send(server.key(), &pairs);
        assert!(answer.json()["transid"].is_string(), "{}", answer.text());
        assert!(answer.json().get("dryrun").is_none());
    }
    let json = br#"{"number":"57000001","message":"Hi","dryrun":false}"#;
    let answer = server.post_json(server.key(), json);
    assert!(answer.json()["transid"].is_string(), "{}", answer.text());
    for bad in ["", "2", "yes", "TRUE", "1 "] {
        let pairs = [("number", "57000001"), ("message", "Hi"), ("dryrun", bad)];
        server.send(server.key(), &pairs).is(400, 500, "invalid_parameter");
    }
    assert_eq!(server.count(server.key()), 3);
    server.place.check();
}

#[test]
fn a_dry_upload_answers_as_a_real_one() {
    let server = TestServer::demo();
    let rows = b"57000001,Hi\n26657000001,Ho";
    let body = multipart(&[("bulksms", rows), ("dryrun", b"1")]);
    let expected = "{\"code\":200,\"message\":\"SUCCESS\",\"text\":\"SUCCESS\",\"batchid\":null,\"rows\":2,\"pages\":2,\
         \"cost\":0.3,\"currency\":\"USD\",\"warnings\":[{\"warning\":\"looks_local\",\"count\":1}],\"dryrun\":true}";
    let path = format!("/sms/bulk/{}", server.key());
    let answer = server.exchange(&posted(&path, MULTIPART, &body));
    assert_eq!(answer.text(), expected);
    let body = multipart(&[("bulksms", rows)]);
    let answer = server.exchange(&posted(&format!("{path}?dryrun=true"), MULTIPART, &body));
    assert_eq!(answer.text(), expected);
    server.is_untouched("dry");
    let answer = server.upload(server.key(), &[("bulksms", b"x"), ("dryrun", b"1")]);
    answer.is(400, 500, "invalid_file");
    server.is_untouched("dry and bad");
    server.place.check();
}

#[test]
fn a_dry_run_is_judged_like_a_real_one() {
    let server = TestServer::empty();
    let keys = server.place.funded("poor@example.org", "0.04");
    let pending = server.place.application("new@example.org", domain::Category::Sms, None);
    let parts = [("numbers", &b"57000001"[..]), ("message", b"Hi"), ("dryrun", b"1")];
    let pairs = [("number", "57000001"), ("message", "Hi"), ("dryrun", "1")];
    for (key, status, code, reason) in [
        (keys.live.expose(), 402, 501, "insufficient_funds"),
        (pending.live.expose(), 403, 502, "api_pending"),
        ("unknown", 401, 504, "api_invalid"),
    ] {
        server.send(key, &pairs).is(status, code, reason);
        server.upload(key, &parts).is(status, code, reason);
    }
}

#[test]
fn a_dry_run_neither_reads_nor_keeps_an_idempotency_key() {
    let server = TestServer::demo();
    let path = format!("/sms/send/{}?message=Hi&number=", server.key());
    let header = [("Idempotency-Key", "k")];
    let ask = |rest: &str| server.exchange(&bare("GET", &format!("{path}{rest}"), &header));
    assert_eq!(ask("57000001&dryrun=1").json()["dryrun"], true);
    // The dry run didn't store the key, so another request can use it.
    let first = ask("57000002");
    assert_eq!(first.status, 200, "{}", first.text());
    assert_eq!(first.header("idempotency-replayed"), None);
    // A dry run ignores a stored key: it gets no stored answer and no mismatch, and errors are
    // still reported.
    let dry = ask("57000003&dryrun=1");
    assert_eq!(dry.json()["dryrun"], true, "{}", dry.text());
    ask("1&dryrun=1").is(400, 500, "invalid_number");
    assert_eq!(server.count(server.key()), 1);
    let reference = server.reference();
    server.place.json(&["application", "suspend", reference, "--reason", "unpaid"]);
    ask("57000003&dryrun=1").is(403, 503, "api_suspended");
    ask("1&dryrun=1").is(403, 503, "api_suspended");
    server.place.check();
}

/// Returns an upload with this idempotency key.
fn keyed(target: &str, key: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len().to_string();
    let headers =
        [("Idempotency-Key", key), ("Content-Type", kind), ("Content-Length", length.as_str())];
    let mut request = bare("POST", target, &headers);
    request.extend_from_slice(body);
    request
}

#[test]
fn a_dry_upload_has_no_use_for_an_idempotency_key() {
    let server = TestServer::demo();
    let real = format!("/sms/bulk/{}", server.key());
    let dry = format!("{real}?dryrun=1");
    let body = multipart(&[("bulksms", b"57000001,Hi")]);
    let other = multipart(&[("bulksms", b"57000002,Ho")]);
    let ask = |target: &str, key: &str, body: &[u8]| {
        server.exchange(&keyed(target, key, MULTIPART, body))
    };
    let is_dry = |body: &[u8]| {
        let answer = ask(&dry, "k", body);
        assert_eq!(answer.json()["dryrun"], true, "{}", answer.text());
        assert_eq!(answer.header("idempotency-replayed"), None);
    };
    // While an upload with the key is in progress, a dry run neither waits for it nor releases its
    // key.
    let request = keyed(&real, "k", MULTIPART, &body);
    let mut connection = server.connect();
    connection.write(&request[..request.len() - 20]);
    until("a file", || (!server.place.spooled().is_empty()).then_some(()));
    is_dry(&body);
    is_dry(&other);
    ask(&real, "k", &body).is(409, 500, "idempotency_in_progress");
    connection.write(&request[request.len() - 20..]);
    assert_eq!(connection.read().unwrap().status, 200);
    // A dry run with a used key gets no stored answer and no mismatch, and errors are still
    // reported.
    is_dry(&body);
    is_dry(&other);
    let bad = multipart(&[("bulksms", b"x")]);
    ask(&dry, "k", &bad).is(400, 500, "invalid_file");
    let answer = server.exchange(&keyed(&dry, "k", "text/csv", &body));
    answer.is(415, 500, "unsupported_media_type");
    ask(&real, "k", &other).is(422, 500, "idempotency_mismatch");
    assert_eq!(server.batches(server.key(), "").len(), 1);
    let reference = server.reference();
    server.place.json(&["application", "suspend", reference, "--reason", "unpaid"]);
    ask(&dry, "k", &body).is(403, 503, "api_suspended");
    ask(&dry, "k", &bad).is(403, 503, "api_suspended");
    server.place.check();
}

#[test]
fn a_dry_run_minds_no_malformed_idempotency_key() {
    let server = TestServer::demo();
    let send = format!("/sms/send/{}?number=57000001&message=Hi", server.key());
    let bulk = format!("/sms/bulk/{}", server.key());
    let rows = ("bulksms", &b"57000001,Hi"[..]);
    let (body, dry_body) = (multipart(&[rows]), multipart(&[rows, ("dryrun", b"1")]));
    let long = "k".repeat(256);
    for key in ["", "a\tb", "é", &long] {
        for request in [
            bare("GET", &format!("{send}&dryrun=1"), &[("Idempotency-Key", key)]),
            keyed(&format!("{bulk}?dryrun=true"), key, MULTIPART, &body),
            keyed(&bulk, key, MULTIPART, &dry_body),
        ] {
            let answer = server.exchange(&request);
            assert_eq!(answer.json()["dryrun"], true, "{}", answer.text());
        }
    }
    server.is_untouched("dry");
}
