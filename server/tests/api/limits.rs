//! Limits that the operator sets: rows, bytes, simultaneous uploads, requests per second.

use std::time::{Duration, Instant};

use domain::Category;

use crate::client::{Answer, Connection, MULTIPART, bare, encode, multipart, posted};
use crate::harness::{Place, TestServer, until};

const FORM: &str = "application/x-www-form-urlencoded";

fn demo_with(environment: &[(&str, &str)]) -> TestServer {
    TestServer::start(Place::new(), &["--demo"], environment)
}

#[test]
fn rows_have_a_limit() {
    let server = demo_with(&[("HELIOGRAPH_BULK_ROWS_MAX", "3")]);
    for file in [
        "57000001\n57000001\n57000001\n57000001",
        "57000001\nx\nx\nx\nx\n",
        "57000001\n\n\n57000001\n",
    ] {
        let parts = [("numbers", file.as_bytes()), ("message", b"Hi")];
        server.upload(server.key(), &parts).is(413, 500, "too_large");
        server.is_untouched(file);
    }
    server.accepted_batch(server.key(), "57000001\n57000001\n57000001\n\n\n");
}

#[test]
fn bytes_have_a_limit_however_they_are_written() {
    let server = demo_with(&[("HELIOGRAPH_BULK_BYTES_MAX", "1000")]);
    let longest = "57000001,".to_owned() + &"é".repeat(495) + "\n";
    assert_eq!(longest.len(), 1000);
    let over = longest.clone() + "\n";
    let path = format!("/sms/bulk/{}", server.key());
    let escaped = |text: &str| format!("bulksms={}", encode(text)).into_bytes();
    let part = |text: &str| multipart(&[("bulksms", text.as_bytes())]);
    for (kind, body) in [(FORM, escaped(&over)), (MULTIPART, part(&over))] {
        let answer = server.exchange(&posted(&path, kind, &body));
        answer.is(413, 500, "too_large");
        server.is_untouched(kind);
    }
    // A body isn't read if its declared length is too large. A chunked body is read up to the
    // limit.
    let large = "x".repeat(8_000_000);
    for (kind, body) in [
        (FORM, format!("bulksms={large}").into_bytes()),
        (MULTIPART, part(&large)),
        (MULTIPART, multipart(&[("other", large.as_bytes())])),
    ] {
        let answer = server.exchange(&posted(&path, kind, &body));
        answer.is(413, 500, "too_large");
        server.is_untouched(kind);
    }
    let mut chunked =
        bare("POST", &path, &[("Content-Type", FORM), ("Transfer-Encoding", "chunked")]);
    for _ in 0..1000 {
        chunked.extend_from_slice(b"1f40\r\n");
        chunked.extend_from_slice(&large.as_bytes()[..8000]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    server.exchange(&chunked).is(413, 500, "too_large");
    server.is_untouched("chunked");
    for (kind, body) in [(FORM, escaped(&longest)), (MULTIPART, part(&longest))] {
        let answer = server.exchange(&posted(&path, kind, &body));
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    server.place.check();
}

/// Starts uploads, and waits until the server has a file for each.
fn half_uploads(server: &TestServer, half: &[u8], count: usize) -> Vec<Connection> {
    let mut open: Vec<_> = (0..count).map(|_| server.connect()).collect();
    for connection in &mut open {
        connection.write(half);
    }
    until("a file each", || (server.place.spooled().len() == count).then_some(()));
    open
}

#[test]
fn an_application_has_so_many_uploads_at_a_time() {
    let server = TestServer::demo();
    let other = server.place.funded("other@example.org", "1");
    let path = format!("/sms/bulk/{}", server.key());
    let body = multipart(&[("numbers", b"57000001"), ("message", b"Hi")]);
    let request = posted(&path, MULTIPART, &body);
    let half = request.len() - 10;
    let mut open = half_uploads(&server, &request[..half], 8);
    let answer = server.exchange(&request);
    answer.is(429, 500, "rate_limited");
    assert!(answer.header("retry-after").is_some());
    let words = answer.text();
    assert!(words.contains("limit of 8 concurrent uploads;"), "{words}");
    // The limit is per application.
    server.accepted_batch(other.live.expose(), "57000001");
    let mut first = open.remove(0);
    first.write(&request[half..]);
    assert_eq!(first.read().unwrap().status, 200);
    // The finished upload has freed its slot.
    assert_eq!(server.exchange(&request).status, 200);
    // Clients that disconnect free their slots too. All slots are taken each time, so that a lost
    // slot would be noticed.
    for _ in 0..2 {
        until("the file of the one that is open", || {
            (server.place.spooled().len() == 7).then_some(())
        });
        let mut second = server.connect();
        second.write(&request[..half]);
        until("a file each", || (server.place.spooled().len() == 8).then_some(()));
        server.exchange(&request).is(429, 500, "rate_limited");
        drop(second);
        until("a free slot", || (server.exchange(&request).status == 200).then_some(()));
    }
    server.place.check();
}

#[test]
fn a_test_key_has_two_uploads_at_a_time_dry_runs_among_them() {
    let server = TestServer::demo();
    let path = format!("/sms/bulk/{}?dryrun=true", server.test_key());
    let body = multipart(&[("numbers", b"57000001"), ("message", b"Hi")]);
    let request = posted(&path, MULTIPART, &body);
    let half = request.len() - 10;
    let open = half_uploads(&server, &request[..half], 2);
    let refused = server.exchange(&request);
    refused.is(429, 500, "rate_limited");
    assert!(refused.text().contains("a test key has a limit of 2."));
    server.accepted_batch(server.key(), "57000001");
    for mut connection in open {
        connection.write(&request[half..]);
        assert_eq!(connection.read().unwrap().status, 200);
    }
    assert_eq!(server.exchange(&request).status, 200);
    server.place.check();
}

#[test]
fn repetitions_that_drip_keep_nobody_from_uploading() {
    let server = TestServer::demo();
    let place = &server.place;
    let stranger = place.application("stranger@example.org", Category::Sms, None);
    let path = format!("/sms/bulk/{}", stranger.test.expose());
    let body = multipart(&[("numbers", b"57000001"), ("message", b"Hi")]);
    let length = body.len().to_string();
    let head = |n: usize| {
        let key = format!("known-{n}");
        let headers = [
            ("Content-Type", MULTIPART),
            ("Content-Length", length.as_str()),
            ("Idempotency-Key", key.as_str()),
            ("Expect", "100-continue"),
        ];
        bare("POST", &path, &headers)
    };
    for n in 0..40 {
        let answer = server.exchange(&[head(n), body.clone()].concat());
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
    until("no files", || place.spooled().is_empty().then_some(()));
    let mut open: Vec<_> = (0..40).map(|_| server.connect()).collect();
    for (n, connection) in open.iter_mut().enumerate() {
        connection.write(&head(n));
        // The server waits for the body.
        assert_eq!(connection.read_line(), "HTTP/1.1 100 Continue");
        assert_eq!(connection.read_line(), "");
        connection.write(&body[..body.len() - 10]);
    }
    // The other customer and the stranger can still upload, and the repetitions store no rows.
    assert_eq!(place.spooled(), Vec::<String>::new());
    server.accepted_batch(server.key(), "57000001");
    server.accepted_batch(stranger.test.expose(), "57000001");
    for mut connection in open {
        connection.write(&body[body.len() - 10..]);
        let answer = connection.read().unwrap();
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.header("idempotency-replayed"), Some("true"));
    }
    assert_eq!(server.batches(stranger.test.expose(), "").len(), 41);
    place.check();
}

#[test]
fn requests_are_not_limited_unless_asked_for() {
    let server = TestServer::demo();
    let answer = server.get(&format!("/sms/balance/{}", server.key()));
    assert_eq!(answer.header("ratelimit"), None);
    assert_eq!(answer.header("ratelimit-policy"), None);
}

#[test]
fn what_is_left_of_several_requests_is_said() {
    let server = demo_with(&[("HELIOGRAPH_REQUESTS_PER_SECOND", "2")]);
    let good = format!("/sms/balance/{}", server.key());
    // An invalid request counts too, and only once.
    let bad = format!("/sms/send/{}?number=1", server.test_key());
    for (path, status) in [(good, 200), (bad, 400)] {
        let started = Instant::now();
        let answer = server.get(&path);
        assert_eq!(answer.status, status);
        let policy = answer.header("ratelimit-policy");
        assert_eq!(policy, Some("\"requests\";q=2;w=1"));
        let state = answer.header("ratelimit").unwrap();
        // After half a second, one more request is allowed.
        let late = started.elapsed() >= Duration::from_millis(500);
        assert!(
            state == "\"requests\";r=1;t=1" || late && state == "\"requests\";r=2;t=0",
            "{path}: {state}"
        );
    }
}

#[test]
fn requests_at_fault_count_and_are_told_what_is_wrong() {
    let server = demo_with(&[("HELIOGRAPH_REQUESTS_PER_SECOND", "1")]);
    let rows = multipart(&[("bulksms", b"x")]);
    let read = |target: &str| bare("GET", target, &[]);
    let asked = [
        (read("/sms/send/KEY?number=1"), 400),
        (posted("/sms/send/KEY", "application/json", b"{}"), 400),
        (posted("/sms/send/KEY", "text/plain", b"{}"), 415),
        (posted("/sms/bulk/KEY", MULTIPART, &rows), 400),
        (posted("/sms/bulk/KEY", "text/csv", &rows), 415),
        (read("/sms/reports/KEY?limit=0"), 400),
        (read("/sms/batches/KEY?limit=0"), 400),
        (read("/sms/reports/KEY/m_x"), 404),
    ];
    for (number, (request, status)) in asked.into_iter().enumerate() {
        // Each request has its own key, whose limit is unused.
        let keys = server.place.funded(&format!("a{number}@example.org"), "1");
        let request = String::from_utf8(request).unwrap();
        let request = request.replace("KEY", keys.live.expose()).into_bytes();
        until("an invalid request that counts", || {
            let answer = server.exchange(&request);
            // The status is the same whether or not the limit was reached.
            assert_eq!(answer.status, status, "{number}: {}", answer.text());
            let state = answer.header("ratelimit").unwrap();
            state.starts_with("\"requests\";r=0;").then_some(())
        });
        assert_eq!(server.exchange(&request).status, status);
    }
}

#[test]
fn requests_per_second_are_limited_and_said() {
    // The limit is low enough not to recover during the test, unless the test takes a whole second.
    let server = demo_with(&[("HELIOGRAPH_REQUESTS_PER_SECOND", "1")]);
    let path = format!("/sms/balance/{}", server.key());
    let refused = until("a refused request", || {
        let answer = server.get(&path);
        assert_eq!(answer.header("ratelimit-policy"), Some("\"requests\";q=1;w=1"));
        let state = answer.header("ratelimit").unwrap();
        assert!(state.starts_with("\"requests\";r=0;t=") || answer.status == 200, "{state}");
        (answer.status != 200).then_some(answer)
    });
    refused.is(429, 500, "rate_limited");
    assert_eq!(refused.header("retry-after"), Some("1"));
    assert_eq!(refused.header("ratelimit"), Some("\"requests\";r=0;t=1"));
    // An unknown key gets no limit headers, and other keys have limits of their own.
    let unknown = server.get("/sms/balance/unknown");
    unknown.is(401, 504, "api_invalid");
    assert_eq!(unknown.header("ratelimit"), None);
    assert_eq!(unknown.header("ratelimit-policy"), None);
    server.accepted(server.test_key(), "57000001");
    // Refused sends aren't charged.
    let refused = until("a refused send", || {
        let pairs = [("number", "57000001"), ("message", "Hi")];
        let answer = server.send(server.key(), &pairs);
        (answer.status != 200).then_some(answer)
    });
    refused.is(429, 500, "rate_limited");
    // After a second, another request is allowed.
    until("another request", || (server.get(&path).status == 200).then_some(()));
    server.place.check();
}

#[test]
fn a_test_key_without_a_deposit_has_a_daily_number_of_messages() {
    let environment = [
        ("HELIOGRAPH_ALLOW_SANDBOX", "true"),
        ("HELIOGRAPH_UNPAID_TEST_MESSAGES", "3"),
        ("HELIOGRAPH_UNPAID_BYTES_MAX", "100"),
    ];
    let server = TestServer::start(Place::new(), &[], &environment);
    let keys = server.place.application("one@example.org", Category::Sms, None);
    let key = keys.test.expose();
    let numbers = |count| "57000001\n".repeat(count);
    let refused = |answer: Answer, left: &str| {
        answer.is(429, 500, "rate_limited");
        let seconds: i64 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!((1..=86_401).contains(&seconds), "{seconds}");
        let words = format!("3 test messages a day (UTC), and {left} are left today.");
        assert!(answer.text().contains(&words), "{}", answer.text());
    };
    server.accepted(key, "57000001");
    let parts = |file: &str| [("numbers", file.as_bytes().to_owned()), ("message", b"Hi".to_vec())];
    let upload = |file: &str| {
        let parts = parts(file);
        let parts = parts.each_ref().map(|(name, bytes)| (*name, &**bytes));
        server.upload(key, &parts)
    };
    refused(upload(&numbers(3)), "2");
    assert_eq!(upload(&numbers(2)).status, 200);
    let send = [("number", "57000001"), ("message", "Hi")];
    refused(server.send(key, &send), "0");
    refused(server.post_form(key, &send), "0");
    let arrival = format!("/sms/test/inbound/{key}?number=57000001&recipient=57000002&message=x");
    refused(server.exchange(&bare("POST", &arrival, &[])), "0");
    server.place.check();

    // The storage used by unpaid test keys is measured at the next start, and exceeds the limit.
    let (_, place) = server.stop();
    let server = TestServer::start(place, &[], &environment);
    until("a measure", || {
        let metrics = server.get_ops("/metrics").text();
        let line = metrics.lines().find_map(|line| line.strip_prefix("heliograph_unpaid_bytes "));
        line.is_some_and(|bytes| bytes.parse::<f64>().unwrap() > 100.0).then_some(())
    });
    until("a warning", || server.log().contains("unpaid_bytes_max").then_some(()));
}
