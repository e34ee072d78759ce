//! Every invalid value of every parameter gets the right code, status and reason. Nothing is stored
//! or charged.

use crate::client::{Answer, bare, encode, form, posted};
use crate::harness::TestServer;

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

/// Returns invalid queries, each with the reason of its refusal.
fn queries() -> Vec<(String, &'static str)> {
    let message_over = "x".repeat(1601);
    let requestid_over = "é".repeat(256);
    vec![
        (String::new(), "missing_parameter"),
        ("message=Hi".into(), "missing_parameter"),
        ("number=57000001".into(), "missing_parameter"),
        ("Number=57000001&message=Hi".into(), "missing_parameter"),
        // Duplicates, even if both values are equal or the first is valid.
        ("number=57000001&number=57000001&message=Hi".into(), "duplicate_parameter"),
        ("number=57000001&%6Eumber=1&message=Hi".into(), "duplicate_parameter"),
        ("number=57000001&message=Hi&message=Hi".into(), "duplicate_parameter"),
        ("number=57000001&message=Hi&requestid=a&requestid=b".into(), "duplicate_parameter"),
        // Invalid UTF-8.
        ("number=5700000%FF&message=Hi".into(), "invalid_encoding"),
        ("number=57000001&message=%FF".into(), "invalid_encoding"),
        ("number=57000001&message=%C0%80".into(), "invalid_encoding"),
        ("number=57000001&message=%ED%A0%80".into(), "invalid_encoding"),
        ("number=57000001&message=Hi&requestid=%80".into(), "invalid_encoding"),
        // Empty, with a NUL, too long.
        ("number=57000001&message=".into(), "invalid_message"),
        ("number=57000001&message".into(), "invalid_message"),
        ("number=57000001&message=a%00b".into(), "invalid_message"),
        (format!("number=57000001&message={message_over}"), "message_too_long"),
        ("number=57000001&message=Hi&requestid=".into(), "invalid_requestid"),
        ("number=57000001&message=Hi&requestid=a%00".into(), "invalid_requestid"),
        (
            format!("number=57000001&message=Hi&requestid={}", encode(&requestid_over)),
            "invalid_requestid",
        ),
        ("number=57000001&message=Hi&dryrun=yes".into(), "invalid_parameter"),
        ("number=57000001&message=Hi&dryrun=1&dryrun=1".into(), "duplicate_parameter"),
        // Several errors. The order is number, message, requestid.
        ("requestid=&message=&number=".into(), "invalid_number"),
        ("requestid=&message=&number=57000001".into(), "invalid_message"),
        ("requestid=%FF&message=%FF&number=57000001&number=1".into(), "duplicate_parameter"),
        ("number=57000001&message=Hi&dryrun=x&requestid=".into(), "invalid_requestid"),
        // Errors in known parameters come before unknown parameters.
        ("number=57000001&message=Hi&send_at=tomorrow&requestid=".into(), "invalid_requestid"),
        ("number=57000001&message=Hi&dry_run=1".into(), "invalid_parameter"),
        ("number=57000001&message=Hi&%FF=1".into(), "invalid_parameter"),
        ("number=57000001&message=Tom+&+Jerry".into(), "invalid_parameter"),
    ]
}

/// Returns invalid numbers.
fn numbers() -> Vec<(String, &'static str)> {
    let mut cases = Vec::new();
    for number in [
        "",
        "123",
        "1234567890123456",
        "+123",
        "+1234567890123456",
        "5700 0001",
        "57-000-001",
        "٥٧٠٠٠٠٠١",
        "５７０００００１",
        "5700000a",
        "0x123456",
        "++57000001",
        "+ 57000001",
        "57000001+",
        "57000001 ",
        " 57000001 ",
        "  57000001",
        "57000001\n",
        "\t57000001",
        "57000001\0",
        "5.7e7",
        "-57000001",
    ] {
        cases.push((form(&[("number", number), ("message", "Hi")]), "invalid_number"));
    }
    cases
}

/// Returns invalid JSON bodies.
fn bodies() -> Vec<(Vec<u8>, &'static str)> {
    let with = |members: &str| format!("{{\"number\":\"57000001\",\"message\":\"Hi\"{members}}}");
    let bomb = "[".repeat(30_000);
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let texts = [
        ("{}".to_owned(), "missing_parameter"),
        ("[]".to_owned(), "invalid_parameter"),
        ("null".to_owned(), "invalid_parameter"),
        ("\"number\"".to_owned(), "invalid_parameter"),
        ("{\"number\":\"57000001\"".to_owned(), "invalid_parameter"),
        (with("") + "{}", "invalid_parameter"),
        (bomb, "invalid_parameter"),
        ("{\"number\":57000001,\"message\":\"Hi\"}".to_owned(), "invalid_number"),
        ("{\"number\":null,\"message\":\"Hi\"}".to_owned(), "missing_parameter"),
        ("{\"number\":\" 57000001\",\"message\":\"Hi\"}".to_owned(), "invalid_number"),
        ("{\"number\":\"57000001 \",\"message\":\"Hi\"}".to_owned(), "invalid_number"),
        (with(",\"validity\":5"), "invalid_parameter"),
        (with(","), "invalid_parameter"),
        ("{\"number\":[\"57000001\"],\"message\":\"Hi\"}".to_owned(), "invalid_number"),
        ("{\"number\":\"57000001\",\"message\":7}".to_owned(), "invalid_message"),
        (format!("{{\"number\":\"57000001\",\"message\":{deep}}}"), "invalid_message"),
        ("{\"number\":\"57000001\",\"message\":\"\"}".to_owned(), "invalid_message"),
        ("{\"number\":\"57000001\",\"message\":\"a\\u0000\"}".to_owned(), "invalid_message"),
        ("{\"number\":\"57000001\",\"message\":\"\\ud83d\"}".to_owned(), "invalid_encoding"),
        ("{\"number\":\"57000001\",\"message\":\"\\ude00\\ud83d\"}".to_owned(), "invalid_encoding"),
        ("{\"number\":\"\\ud800\",\"message\":\"Hi\"}".to_owned(), "invalid_encoding"),
        (with(",\"requestid\":1"), "invalid_requestid"),
        (with(",\"requestid\":\"\\udfff\""), "invalid_encoding"),
        (with(",\"requestid\":\"\""), "invalid_requestid"),
        (with(",\"number\":\"57000001\""), "duplicate_parameter"),
        (with(",\"dryrun\":1"), "invalid_parameter"),
        (with(",\"requestid\":true"), "invalid_requestid"),
    ];
    let mut cases: Vec<(Vec<u8>, &'static str)> =
        texts.into_iter().map(|(text, reason)| (text.into_bytes(), reason)).collect();
    cases.push((b"{\"number\":\"57000001\",\"message\":\"\xff\"}".to_vec(), "invalid_encoding"));
    cases
}

/// Checks the answer, and that nothing was stored or charged.
fn refused(server: &TestServer, what: &str, answer: &Answer, status: u16, code: u64, reason: &str) {
    assert_eq!(answer.reason(), reason, "{what}: {}", answer.text());
    answer.is(status, code, reason);
    assert_eq!(server.balance(server.key()), "10", "{what}");
    assert_eq!(server.count(server.key()), 0, "{what}");
}

#[test]
fn wrong_queries_and_forms_are_refused() {
    let server = TestServer::demo();
    let path = format!("/sms/send/{}", server.key());
    for (query, reason) in queries().into_iter().chain(numbers()) {
        let get = server.get(&format!("{path}?{query}"));
        refused(&server, &query, &get, 400, 500, reason);
        let post = server.exchange(&posted(&path, FORM, query.as_bytes()));
        refused(&server, &query, &post, 400, 500, reason);
        // The same parameters in the query of a POST without a body.
        let bare_post = server.exchange(&bare("POST", &format!("{path}?{query}"), &[]));
        refused(&server, &query, &bare_post, 400, 500, reason);
    }
    server.place.check();
}

#[test]
fn wrong_json_is_refused() {
    let server = TestServer::demo();
    for (body, reason) in bodies() {
        let what = String::from_utf8_lossy(&body[..body.len().min(80)]).into_owned();
        let answer = server.post_json(server.key(), &body);
        refused(&server, &what, &answer, 400, 500, reason);
    }
    server.place.check();
}

#[test]
fn the_answer_leads_to_the_fault() {
    let server = TestServer::demo();
    let path = format!("/sms/send/{}", server.key());
    for (query, words) in [
        (
            "number=57000001&message=Hi&dry_run=1",
            "dry_run isn't a parameter here; did you mean dryrun?",
        ),
        (
            "number=57000001&message=Hi&from=Acme",
            "from isn't a parameter here. Known parameters: number, message, requestid, sendat, validity, dryrun.",
        ),
        ("number=57000001&message=Tom+&+Jerry", "Write an & that belongs to a value as %26."),
        ("Number=57000001&message=Hi", "Did you mean number?"),
        ("number=57000001&message=Hi&dryrun=yes", "dryrun must be 1, true, 0 or false"),
        ("number=57000001+&message=Hi", "a space before or after it"),
        ("number=57000001&message=a<b>", "%3C"),
    ] {
        let target = format!("{path}?{query}");
        let request = format!("GET {target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        let answer = server.exchange(request.as_bytes());
        assert_eq!(answer.status, 400, "{query}");
        assert!(answer.json()["message"].as_str().unwrap().contains(words), "{}", answer.text());
    }
    for (body, words) in [
        ("{\"number\":\"57000001\",\n\"message\":\"a\nb\"}", "at line 2 column 12. In a string"),
        ("{\"number\": 0653926665, \"message\":\"Hi\"}", "valid JSON: invalid number at line 1"),
        ("{\"number\":\"57000001\",}", "trailing comma at line 1 column 22"),
        ("{'number':'57000001'}", "line 1 column 2"),
        ("[]", "must be one JSON object"),
        (
            "{\"number\":\"57000001\",\"message\":\"Hi\",\"dryrun\":1}",
            "dryrun must be 1, true, 0 or false",
        ),
    ] {
        let answer = server.post_json(server.key(), body.as_bytes());
        answer.is(400, 500, "invalid_parameter");
        assert!(answer.json()["message"].as_str().unwrap().contains(words), "{}", answer.text());
    }
    assert_eq!(server.count(server.key()), 0);
}

#[test]
fn a_name_in_query_and_body_is_twice() {
    let server = TestServer::demo();
    let path = format!("/sms/send/{}?number=57000001", server.key());
    let json = posted(&path, JSON, br#"{"number":"57000001","message":"Hi"}"#);
    refused(&server, "json", &server.exchange(&json), 400, 500, "duplicate_parameter");
    let form = posted(&path, FORM, b"number=57000001&message=Hi");
    refused(&server, "form", &server.exchange(&form), 400, 500, "duplicate_parameter");
}

#[test]
fn raw_bytes_in_a_form_must_be_utf8() {
    let server = TestServer::demo();
    let path = format!("/sms/send/{}", server.key());
    let bad = posted(&path, FORM, b"number=57000001&message=caf\xe9");
    refused(&server, "Latin-1", &server.exchange(&bad), 400, 500, "invalid_encoding");
    let good = server.exchange(&posted(&path, FORM, "number=57000001&message=café".as_bytes()));
    assert_eq!(good.status, 200, "{}", good.text());
    assert_eq!(server.reports(server.key(), "")[0]["message"], "café");
}

#[test]
fn other_content_types_are_refused() {
    let server = TestServer::demo();
    let path = format!("/sms/send/{}", server.key());
    let body = form(&[("number", "57000001"), ("message", "Hi")]);
    for kind in [
        "text/plain",
        "multipart/mixed; boundary=x",
        "application/x-www-form-urlencoded; charset=iso-8859-1",
        "application/json; charset=utf-16",
        "application/xml",
        "nonsense",
    ] {
        let answer = server.exchange(&posted(&path, kind, body.as_bytes()));
        refused(&server, kind, &answer, 415, 500, "unsupported_media_type");
        for accepted in [FORM, "multipart/form-data", JSON] {
            assert!(answer.text().contains(accepted), "{}", answer.text());
        }
    }
    let length = body.len().to_string();
    let mut none = bare("POST", &path, &[("Content-Length", &length)]);
    none.extend_from_slice(body.as_bytes());
    refused(&server, "none", &server.exchange(&none), 415, 500, "unsupported_media_type");
    let packed =
        [("Content-Type", FORM), ("Content-Encoding", "gzip"), ("Content-Length", &length)];
    let mut packed = bare("POST", &path, &packed);
    packed.extend_from_slice(body.as_bytes());
    refused(&server, "gzip", &server.exchange(&packed), 415, 500, "unsupported_media_type");
}

#[test]
fn large_bodies_are_refused_and_the_answer_is_seen() {
    let server = TestServer::demo();
    let path = format!("/sms/send/{}", server.key());
    let large = vec![b'x'; 8 * 1024 * 1024];
    let declared = server.exchange(&posted(&path, FORM, &large));
    refused(&server, "declared", &declared, 413, 500, "too_large");
    let mut chunked =
        bare("POST", &path, &[("Content-Type", FORM), ("Transfer-Encoding", "chunked")]);
    for _ in 0..20 {
        chunked.extend_from_slice(format!("{:x}\r\n", 8192).as_bytes());
        chunked.extend_from_slice(&large[..8192]);
        chunked.extend_from_slice(b"\r\n");
    }
    chunked.extend_from_slice(b"0\r\n\r\n");
    refused(&server, "chunked", &server.exchange(&chunked), 413, 500, "too_large");
    // A client without a valid key gets that refusal instead of "too large", even while it is still
    // sending the body.
    let stranger = server.exchange(&posted("/sms/send/unknown", FORM, &large));
    refused(&server, "stranger", &stranger, 401, 504, "api_invalid");
}

#[test]
fn a_good_requestid_is_echoed_in_refusals() {
    let server = TestServer::demo();
    let answer =
        server.send(server.key(), &[("number", "1"), ("message", "Hi"), ("requestid", "né 1")]);
    answer.is(400, 500, "invalid_number");
    assert_eq!(answer.json()["requestid"], "né 1");
    let body = br#"{"number":"1","message":"Hi","requestid":"r2"}"#;
    assert_eq!(server.post_json(server.key(), body).json()["requestid"], "r2");
    let bad = server.send(server.key(), &[("number", "1"), ("message", "Hi"), ("requestid", "")]);
    assert!(bad.json().get("requestid").is_none());
}
