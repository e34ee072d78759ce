//! The answers to valid sends.

use crate::client::{MULTIPART, encode, form, multipart, posted};
use crate::harness::TestServer;

#[test]
fn the_answer_has_every_field() {
    let server = TestServer::demo();
    let answer = server
        .send(server.key(), &[("number", "57000001"), ("message", "Hello"), ("requestid", "r 1")]);
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.is_guarded();
    let json = answer.json();
    let transid = json["transid"].as_str().unwrap();
    assert!(transid.starts_with("m_"));
    let expected = format!(
        "{{\"code\":200,\"message\":\"SUCCESS\",\"text\":\"SUCCESS\",\"requestid\":\"r \
         1\",\"balance\":9.95,\"transid\":\"{transid}\",\"pages\":1,\"cost\":0.05,\"currency\":\"USD\",\"warnings\":[]}}"
    );
    assert_eq!(answer.text(), expected);
    assert_eq!(server.balance(server.key()), "9.95");
}

#[test]
fn parameters_come_in_three_ways() {
    let server = TestServer::demo();
    let pairs = [("number", "57000001"), ("message", "a+b c&d=é")];
    assert_eq!(server.send(server.key(), &pairs).status, 200);
    assert_eq!(server.post_form(server.key(), &pairs).status, 200);
    let body = r#"{"number":"57000001","message":"a+b c&d=é","requestid":null,"other":null}"#;
    assert_eq!(server.post_json(server.key(), body.as_bytes()).status, 200);
    let parts = pairs.map(|(name, value)| (name, value.as_bytes()));
    assert_eq!(server.post_parts(server.key(), &parts).status, 200);
    let pair = "\u{1F600}";
    let escaped = br#"{"number":"57000001","message":"\ud83d\ude00"}"#;
    assert_eq!(server.post_json(server.key(), escaped).status, 200);
    let texts: Vec<_> = server.reports(server.key(), "");
    assert_eq!(texts[0]["message"], pair);
    for report in &texts[1..] {
        assert_eq!(report["message"], "a+b c&d=é");
    }
}

#[test]
fn parts_of_a_body_are_parameters() {
    let server = TestServer::demo();
    let key = server.key();
    let number = ("number", &b"57000001"[..]);
    let message = ("message", "h\u{e9}llo".as_bytes());
    let sent = server.post_parts(key, &[number, message, ("requestid", b"r")]);
    assert_eq!(sent.status, 200, "{}", sent.text());
    assert_eq!(sent.json()["requestid"], "r");
    assert_eq!(server.reports(key, "")[0]["message"], "h\u{e9}llo");
    for (parts, reason) in [
        (&[number][..], "missing_parameter"),
        (&[number, message, message], "duplicate_parameter"),
        (&[number, ("message", b"\xff")], "invalid_encoding"),
        (&[number, ("message", b"")], "invalid_message"),
        (&[number, message, ("dry_run", b"1")], "invalid_parameter"),
        (&[(number.0, b" 57000001"), message], "invalid_number"),
        (&[number; 100], "invalid_parameter"),
    ] {
        server.post_parts(key, parts).is(400, 500, reason);
    }
    let target = format!("/sms/send/{key}");
    let body = multipart(&[number, message]);
    for (kind, body) in [
        ("multipart/form-data", &body[..]),
        ("multipart/form-data; boundary=other", &body),
        (MULTIPART, &body[..body.len() - 8]),
    ] {
        let answer = server.exchange(&posted(&target, kind, body));
        answer.is(400, 500, "invalid_parameter");
    }
    assert_eq!(server.count(key), 1);
    server.place.check();
}

#[test]
fn numbers_are_priced_by_their_form() {
    let server = TestServer::demo();
    for (number, cost, warnings, digits) in [
        ("57000001", "0.05", "[]", "57000001"),
        ("%2B57000001", "0.25", "[]", "57000001"),
        ("+57000001", "0.25", "[]", "57000001"),
        ("%2057000001", "0.25", "[]", "57000001"),
        ("0057000001", "0.25", "[\"leading_zero\"]", "0057000001"),
        ("26657000001", "0.25", "[\"looks_local\"]", "26657000001"),
        ("%2B26657000001", "0.25", "[\"looks_local\"]", "26657000001"),
        ("1234", "0.25", "[]", "1234"),
        ("123456789012345", "0.25", "[]", "123456789012345"),
        ("5700001", "0.25", "[\"near_local\"]", "5700001"),
        ("057000001", "0.25", "[\"leading_zero\",\"near_local\"]", "057000001"),
    ] {
        let answer = server.get(&format!("/sms/send/{}?number={number}&message=Hi", server.key()));
        assert_eq!(answer.status, 200, "{number}: {}", answer.text());
        let text = answer.text();
        assert!(text.contains(&format!("\"cost\":{cost},")), "{number}: {text}");
        assert!(text.contains(&format!("\"warnings\":{warnings}")), "{number}: {text}");
        assert_eq!(server.reports(server.key(), "limit=1")[0]["number"], digits);
    }
    server.place.check();
}

#[test]
fn pages_are_counted_in_characters() {
    let server = TestServer::demo();
    for (message, pages, cost) in [
        ("x".repeat(160), 1, "0.05"),
        ("x".repeat(161), 2, "0.1"),
        ("é".repeat(160), 1, "0.05"),
        ("\u{1F600}".repeat(161), 2, "0.1"),
        ("x".repeat(1600), 10, "0.5"),
    ] {
        let query = form(&[("number", "57000001"), ("message", &message)]);
        let answer = server.get(&format!("/sms/send/{}?{query}", server.key()));
        assert_eq!(answer.status, 200, "{}", answer.text());
        assert_eq!(answer.json()["pages"], pages);
        assert!(answer.text().contains(&format!("\"cost\":{cost},")), "{}", answer.text());
        assert_eq!(server.reports(server.key(), "limit=1")[0]["message"], message);
    }
}

#[test]
fn one_requestid_names_two_messages() {
    let server = TestServer::demo();
    let requestid = "é".repeat(255);
    let pairs = [("number", "57000001"), ("message", "Hi"), ("requestid", requestid.as_str())];
    assert_eq!(server.send(server.key(), &pairs).status, 200);
    assert_eq!(server.send(server.key(), &pairs).status, 200);
    let found = server.reports(server.key(), &format!("requestid={}", encode(&requestid)));
    assert_eq!(found.len(), 2);
    assert_eq!(server.balance(server.key()), "9.9");
}

#[test]
fn the_test_key_plays() {
    let server = TestServer::demo();
    let (live, test) = (server.key(), server.test_key());
    assert_eq!(server.balance(test), "1000");
    let transid = server.accepted(test, "57000001");
    assert_eq!(server.balance(test), "999.95");
    assert_eq!(server.balance(live), "10");
    // Each key sees only its own messages.
    assert_eq!(server.count(live), 0);
    assert_eq!(server.count(test), 1);
    server.get(&format!("/sms/reports/{live}/{transid}")).is(404, 500, "not_found");
    assert_eq!(server.final_report(test, &transid)["status"], "delivered");
    for (number, status, code, reason) in [
        ("00000501", 402, 501, "insufficient_funds"),
        ("00000502", 403, 502, "api_pending"),
        ("00000503", 403, 503, "api_suspended"),
        ("00000504", 401, 504, "api_invalid"),
        ("00000505", 403, 505, "api_not_applicable"),
    ] {
        server.send(test, &[("number", number), ("message", "Hi")]).is(status, code, reason);
        assert_eq!(server.send(live, &[("number", number), ("message", "Hi")]).status, 200);
    }
    assert_eq!(server.count(test), 1);
    server.place.check();
}
