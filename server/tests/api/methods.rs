//! Methods, paths and unusual requests.

use crate::client::bare;
use crate::harness::{TestServer, until};

#[test]
fn other_methods_never_send() {
    let server = TestServer::demo();
    let key = server.key();
    let send = format!("/sms/send/{key}?number=57000001&message=Hi");
    let reports = format!("/sms/reports/{key}");
    let balance = format!("/sms/balance/{key}");
    let bulk = format!("/sms/bulk/{key}?numbers=57000001&message=Hi");
    let batches = format!("/sms/batches/{key}");
    for method in ["HEAD", "OPTIONS", "PUT", "PATCH", "DELETE", "TRACE", "PROPFIND", "get"] {
        for (target, allow) in [
            (&send, "GET, POST"),
            (&reports, "GET"),
            (&balance, "GET"),
            (&bulk, "POST"),
            (&batches, "GET"),
        ] {
            let mut connection = server.connect();
            connection.write(&bare(method, target, &[("Connection", "close")]));
            if method == "HEAD" {
                let text = connection.read_to_end_text();
                assert!(text.starts_with("HTTP/1.1 405"), "{text}");
                assert!(
                    text.to_lowercase().contains(&format!("allow: {allow}").to_lowercase()),
                    "{text}"
                );
                continue;
            }
            let answer = connection.read().unwrap();
            answer.is(405, 500, "method_not_allowed");
            assert_eq!(answer.header("allow"), Some(allow), "{method} {target}");
        }
    }
    // The key in a header makes the batch's path as long as the list's with its key.
    let bearer = format!("Bearer {key}");
    for (target, headers) in [
        (format!("{batches}/b_0000000000000"), &[][..]),
        ("/sms/batches/b_0000000000000".to_owned(), &[("Authorization", bearer.as_str())]),
    ] {
        let answer = server.exchange(&bare("OPTIONS", &target, headers));
        answer.is(405, 500, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("GET, POST"), "{target}");
    }
    for (method, target) in [("POST", &reports), ("POST", &batches), ("GET", &bulk)] {
        server.exchange(&bare(method, target, &[])).is(405, 500, "method_not_allowed");
    }
    assert_eq!(server.count(key), 0);
    assert_eq!(server.balance(key), "10");
}

#[test]
fn unknown_paths_are_json() {
    let server = TestServer::demo();
    let key = server.key();
    for path in [
        "/sms".to_owned(),
        "/sms/".to_owned(),
        "/sms/sent".to_owned(),
        "/sms/SEND/x".to_owned(),
        format!("/sms/bulk/{key}/"),
        format!("/sms/bulk/{key}/b_0000000000000"),
        format!("/sms/batches/{key}/"),
        format!("/sms/batches/{key}/b_0000000000000/more"),
        format!("/sms/send/{key}/"),
        format!("/sms/send/{key}/more"),
        format!("/sms/send//{key}"),
        format!("/sms//send/{key}"),
        "/sms/reports//m_0000000000000".to_owned(),
        "/sms/batches//b_0000000000000".to_owned(),
        format!("//sms/send/{key}"),
        format!("//sms/balance/{key}"),
        format!("/sms/reports/{key}/"),
        format!("/sms/reports/{key}/m_0000000000000/more"),
        "/sms/../sms/x".to_owned(),
    ] {
        server.get(&path).is(404, 500, "not_found");
        server.exchange(&bare("POST", &path, &[])).is(404, 500, "not_found");
        server.exchange(&bare("DELETE", &path, &[])).is(404, 500, "not_found");
    }
}

#[test]
fn a_whole_url_as_target_works() {
    let server = TestServer::demo();
    let target = format!("http://example.org/sms/balance/{}", server.key());
    assert_eq!(server.exchange(&bare("GET", &target, &[])).status, 200);
}

#[test]
fn raw_utf8_in_the_query_is_taken_and_other_bytes_are_not() {
    let server = TestServer::demo();
    let target = format!("/sms/send/{}?number=57000001&message=héllo", server.key());
    let answer = server.get(&target);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(server.reports(server.key(), "")[0]["message"], "héllo");

    let mut bytes = format!("GET /sms/send/{}?number=57000001&message=", server.key()).into_bytes();
    bytes.extend_from_slice(b"\xff HTTP/1.1\r\nHost: test\r\n\r\n");
    let mut connection = server.connect();
    connection.write(&bytes);
    let answer = connection.read().unwrap();
    assert_eq!((answer.status, answer.code()), (400, 500));
    answer.is_guarded();
    assert_eq!(server.count(server.key()), 1);
}

#[test]
fn what_is_not_http_is_told_so_in_json() {
    let server = TestServer::demo();
    let key = server.key();
    for request in [
        format!("GET /sms/send/{key}?number=57000001&message=Hi there HTTP/1.1\r\nHost: a\r\n\r\n"),
        format!("GET /sms/balance/{key} HTTP/1.1\r\nHost a\r\n\r\n"),
        format!("GET /sms/balance/{key} HTTP/3.1\r\nHost: a\r\n\r\n"),
        "\0\r\n\r\n".to_owned(),
    ] {
        let mut connection = server.connect();
        // Sends the request as the second one on a connection.
        connection.write(&bare("GET", "/sms/balance/x", &[]));
        assert_eq!(connection.read().unwrap().status, 401);
        connection.write(request.as_bytes());
        let answer = connection.read().unwrap();
        answer.is(400, 500, "invalid_parameter");
        assert_eq!(answer.header("connection"), Some("close"));
        let id = answer.header("x-request-id").unwrap();
        until("the access line", || server.log().contains(id).then_some(()));
        connection.finish_writing();
        assert!(connection.ends());
    }
    assert_eq!(server.count(key), 0);
}

#[test]
fn what_names_no_path_is_refused() {
    let server = TestServer::demo();
    for (method, target) in
        [("CONNECT", "example.org:443"), ("CONNECT", "example.org"), ("OPTIONS", "*")]
    {
        let mut connection = server.connect();
        connection.write(&bare(method, target, &[]));
        let answer = connection.read().unwrap();
        answer.is(405, 500, "method_not_allowed");
        assert_eq!(answer.header("allow"), Some("GET, HEAD, POST"), "{method} {target}");
        assert_eq!(answer.header("connection"), Some("close"));
        assert!(connection.ends());
    }
}

#[test]
fn requests_share_a_connection() {
    let server = TestServer::demo();
    let mut connection = server.connect();
    let target = format!("/sms/balance/{}", server.key());
    for _ in 0..3 {
        connection.write(&bare("GET", &target, &[]));
        assert_eq!(connection.read().unwrap().status, 200);
        connection.write(&bare("GET", "/sms/balance/wrong", &[]));
        assert_eq!(connection.read().unwrap().status, 401);
    }
}

#[test]
fn every_answer_names_its_request() {
    let server = TestServer::demo();
    let first = server.get("/sms/nothing");
    let second = server.get("/sms/nothing");
    let id = first.header("x-request-id").unwrap();
    assert_ne!(Some(id), second.header("x-request-id"));
    until("the access line", || server.log().contains(id).then_some(()));
}
