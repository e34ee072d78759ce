//! Every kind of invalid upload gets the right answer, with the faulty lines. Nothing is stored or
//! charged, and no file remains.

use domain::Reason;
use domain::bulk::ForeignFile;
use serde_json::{Value, json};

use crate::client::{MULTIPART, bare, form, multipart, posted};
use crate::harness::TestServer;

/// The lines of invalid rows, with reasons.
type Rows = &'static [(u64, &'static str)];

const FORM: &str = "application/x-www-form-urlencoded";
const NUMBER: &str = "invalid_number";
const MESSAGE: &str = "invalid_message";
const ENCODING: &str = "invalid_encoding";

/// Returns one-to-one files with their invalid rows.
fn files() -> Vec<(Vec<u8>, Rows)> {
    let utf16 =
        |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
    let long = "x".repeat(1601);
    vec![
        (b"".to_vec(), &[(1, "invalid_file")]),
        (b"\r\n\n".to_vec(), &[(1, "invalid_file")]),
        (b"\xef\xbb\xbf".to_vec(), &[(1, "invalid_file")]),
        // A header line; blank lines between rows.
        (b"number,message\n57000001,a\n".to_vec(), &[(1, NUMBER)]),
        (b"57000001,a\n\n\r\n57000001,a\n\n".to_vec(), &[(2, NUMBER), (3, NUMBER)]),
        // CR as the only line ending.
        (b"57000001,a\r57000002,b\r".to_vec(), &[(1, MESSAGE)]),
        // A number without a comma; a comma without anything.
        (b"57000001\n,\n57000001,\n".to_vec(), &[(1, MESSAGE), (2, NUMBER), (3, MESSAGE)]),
        (b" 57000001,a\n57000001,a\n".to_vec(), &[(1, NUMBER)]),
        // Binary data, or text in another encoding.
        (utf16("\u{feff}57000001,a"), &[(1, ENCODING)]),
        (utf16("57000001,a\nx,b\n"), &[(1, ENCODING)]),
        (b"PK\x03\x04\x14\0x\n\ny\n".to_vec(), &[(1, "invalid_file")]),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\nx".to_vec(), &[(1, "invalid_file")]),
        (b"\x1f\x8b\x08\0\0\nx".to_vec(), &[(1, "invalid_file")]),
        (b"57000001,\0\n57\0,a\n".to_vec(), &[(1, MESSAGE), (2, NUMBER)]),
        (b"57000001,ok\n57000001,caf\xe9\n".to_vec(), &[(2, ENCODING)]),
        // An opening quote without a closing one; text after a closing quote.
        (b"57000001,\"a\n57000001,b\nx,c\n".to_vec(), &[(1, MESSAGE), (3, NUMBER)]),
        (b"57000001,\"a\"b\n57000001,\"c\nd\"\n".to_vec(), &[(1, MESSAGE)]),
        (
            format!("57000001,{long}\n57000001,\"{long}\"").into_bytes(),
            &[(1, "message_too_long"), (2, "message_too_long")],
        ),
    ]
}

fn found(answer: &Value) -> Vec<(u64, String)> {
    let rows = answer["errors"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            assert!(row["detail"].as_str().unwrap().ends_with('.'));
            (row["line"].as_u64().unwrap(), row["reason"].as_str().unwrap().to_owned())
        })
        .collect()
}

#[test]
fn bad_rows_are_named() {
    let server = TestServer::demo();
    for (file, expected) in files() {
        let what = String::from_utf8_lossy(&file).into_owned();
        let answer = server.upload(server.key(), &[("bulksms", &file)]);
        answer.is(400, 500, "invalid_file");
        let found = found(&answer.json());
        let found: Vec<(u64, &str)> =
            found.iter().map(|(line, reason)| (*line, reason.as_str())).collect();
        assert_eq!(found, expected, "{what}");
        assert_eq!(answer.json()["error_count"], expected.len(), "{what}");
        server.is_untouched(&what);
    }
    let numbers = [
        ("57000001,a\n", json!([1])),
        ("number\n57000001\n", json!([1])),
        ("57000001\r57000002\r", json!([1])),
        ("57000001\n\n57000001", json!([2])),
    ];
    for (file, lines) in numbers {
        let parts = [("numbers", file.as_bytes()), ("message", b"Hi")];
        let answer = server.upload(server.key(), &parts);
        answer.is(400, 500, "invalid_file");
        let found: Vec<u64> = found(&answer.json()).iter().map(|(line, _)| *line).collect();
        assert_eq!(json!(found), lines, "{file:?}");
        server.is_untouched(file);
    }
    server.place.check();
}

#[test]
fn the_first_20_bad_rows_are_listed_and_all_are_counted() {
    let server = TestServer::demo();
    let file = "57000001,ok\n".to_owned() + &"x\n".repeat(100_000);
    let answer = server.upload(server.key(), &[("bulksms", file.as_bytes())]);
    answer.is(400, 500, "invalid_file");
    let json = answer.json();
    assert_eq!(json["error_count"], 100_000);
    let lines: Vec<u64> = found(&json).iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, (2..=21).collect::<Vec<u64>>());
    assert_eq!(json["errors"][0]["reason"], NUMBER, "what the file holds isn't quoted: {json}");
    let words = json["message"].as_str().unwrap();
    assert!(words.contains("100000 bad rows") && words.contains("dryrun=1"), "{words}");
    server.is_untouched("100,000 bad rows");
}

#[test]
fn a_file_of_another_program_is_explained_as_on_the_page_that_checks_files() {
    let server = TestServer::demo();
    for (file, is) in [
        (&b"\xff\xfe5\x007\0,\0a\0\n\0"[..], ForeignFile::Utf16),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ForeignFile::OldWorkbook),
        (b"57000001;a\n57000002;b\n", ForeignFile::Semicolons),
        (b"57000001\ta\n", ForeignFile::Tabs),
        (b"57000001,caf\xe9\n", ForeignFile::Windows1252),
        (b"57000001,a\r57000002,b\r", ForeignFile::OldMac),
        (b"number,message\n57000001,a\n", ForeignFile::Header),
        (b"5.7E+07,a\n", ForeignFile::Exponents),
        (b"PK\x03\x04\x14\0\x06\0", ForeignFile::Zip),
    ] {
        let answer = server.upload(server.key(), &[("bulksms", file)]);
        answer.is(400, 500, "invalid_file");
        let json = answer.json();
        let words = format!("{} Nothing was sent.", is.sentence());
        assert_eq!((&json["message"], &json["text"]), (&json!(words), &json!(words)));
        assert_eq!(json["errors"][0]["detail"], is.sentence());
        server.is_untouched(is.sentence());
    }
    let json = server.upload(server.key(), &[("bulksms", b"57000001;caf\xe9\n")]).json();
    let both = [ForeignFile::Windows1252, ForeignFile::Semicolons].map(ForeignFile::sentence);
    assert_eq!(json["message"], format!("{} Nothing was sent.", both.join(" ")));
    // Only some of the rows are like that: the list of errors says which.
    let file = b"57000001,a\n57000002;b\nx,c\n";
    let json = server.upload(server.key(), &[("bulksms", file)]).json();
    assert_eq!(json["message"], Reason::InvalidFile.sentence());
    assert_eq!(json["errors"][0]["detail"], ForeignFile::Semicolons.sentence());
}

#[test]
fn a_file_that_is_no_text_is_called_by_its_name() {
    let server = TestServer::demo();
    for (file, name) in [
        (&b"\xff\xfe5\x007\0,\0a\0\n\0"[..], "UTF-16"),
        (b"\x005\x007\0,\0a", "UTF-16"),
        (b"PK\x03\x04\x14\0\x06\0", ".xlsx"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", ".xls"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "gzip"),
        (b"%PDF-1.7\n", "PDF"),
    ] {
        for parts in [&[("bulksms", file)][..], &[("numbers", file), ("message", b"Hi")]] {
            let answer = server.upload(server.key(), parts);
            answer.is(400, 500, "invalid_file");
            let error = &answer.json()["errors"][0];
            assert_eq!(error["line"], 1);
            assert!(error["detail"].as_str().unwrap().contains(name), "{error}");
        }
    }
}

#[test]
fn an_unknown_parameter_refuses_an_upload() {
    let server = TestServer::demo();
    let key = server.key();
    let file = ("bulksms", &b"57000001,Hi\n"[..]);
    let path = format!("/sms/bulk/{key}");
    let with_name = |name: &str| server.upload(key, &[file, (name, b"1")]);
    for (answer, words) in [
        (with_name("dry_run"), "did you mean dryrun?"),
        (with_name("send_at"), "did you mean sendat?"),
        (
            server.exchange(&posted(&format!("{path}?priority=5"), MULTIPART, &multipart(&[file]))),
            "priority isn't a parameter here.",
        ),
        (
            server.exchange(&posted(&path, FORM, b"bulksms=57000001,Tom & Jerry")),
            "belongs to a value as %26.",
        ),
    ] {
        answer.is(400, 500, "invalid_parameter");
        assert!(answer.text().contains(words), "{}", answer.text());
    }
    // Errors in known parameters come before unknown parameters.
    let answer = server.exchange(&posted(&path, FORM, b"bulk_sms=57000001,Hi"));
    answer.is(400, 500, "missing_parameter");
    assert!(answer.text().contains("Did you mean bulksms?"));
    let answer = server.upload(key, &[file, ("dry_run", b"1"), ("requestid", b"")]);
    answer.is(400, 500, "invalid_requestid");
    server.is_untouched("unknown parameters");
}

#[test]
fn an_endless_line_is_one_bad_row() {
    let server = TestServer::demo();
    let line = "x".repeat(10_000_000);
    let file = format!("57000001,{line}\n57000001,ok\n{line}\n");
    let answer = server.upload(server.key(), &[("bulksms", file.as_bytes())]);
    answer.is(400, 500, "invalid_file");
    let expected = [(1, "message_too_long".to_owned()), (3, NUMBER.to_owned())];
    assert_eq!(found(&answer.json()), expected);
    server.is_untouched("10 MB");
}

/// The parts of invalid requests, and the reason of each refusal.
type Parts = &'static [(&'static str, &'static [u8])];

const REQUESTS: &[(Parts, &str)] = &[
    (&[], "missing_parameter"),
    (&[("message", b"Hi")], "missing_parameter"),
    (&[("numbers", b"57000001")], "missing_parameter"),
    (&[("Numbers", b"57000001"), ("message", b"Hi")], "missing_parameter"),
    (&[("bulksms", b"57000001,a"), ("numbers", b"57000001")], "ambiguous_bulk"),
    (&[("numbers", b"57000001"), ("bulksms", b"57000001,a")], "ambiguous_bulk"),
    (&[("bulksms", b"57000001,a"), ("message", b"Hi")], "ambiguous_bulk"),
    (&[("message", b"Hi"), ("bulksms", b"57000001,a")], "ambiguous_bulk"),
    (&[("bulksms", b"57000001,a"), ("bulksms", b"57000001,a")], "duplicate_parameter"),
    (&[("numbers", b"57000001"), ("message", b"a"), ("message", b"a")], "duplicate_parameter"),
    (
        &[("requestid", b"a"), ("bulksms", b"57000001,a"), ("requestid", b"a")],
        "duplicate_parameter",
    ),
    // The message is checked after the file.
    (&[("numbers", b"57000001"), ("message", b"")], "invalid_message"),
    (&[("numbers", b"57000001"), ("message", b"a\0")], "invalid_message"),
    (&[("numbers", b"57000001"), ("message", b"a\xff")], "invalid_encoding"),
    (&[("message", b""), ("numbers", b"x")], "invalid_file"),
    // Then requestid, then dryrun.
    (&[("bulksms", b"57000001,a"), ("requestid", b"")], "invalid_requestid"),
    // A duplicate is reported where the parameter itself would be checked.
    (&[("message", b"a"), ("message", b"a")], "missing_parameter"),
    (&[("requestid", b"a"), ("requestid", b"a"), ("bulksms", b"x")], "invalid_file"),
    (&[("dryrun", b"1"), ("dryrun", b"1"), ("bulksms", b"x")], "invalid_file"),
    (&[("message", b"a"), ("message", b"a"), ("numbers", b"x")], "invalid_file"),
    (
        &[("requestid", b"a"), ("requestid", b"a"), ("numbers", b"57000001"), ("message", b"")],
        "invalid_message",
    ),
    (
        &[("dryrun", b"1"), ("dryrun", b"1"), ("requestid", b""), ("bulksms", b"57000001,a")],
        "invalid_requestid",
    ),
    (&[("dryrun", b"1"), ("bulksms", b"57000001,a"), ("dryrun", b"1")], "duplicate_parameter"),
    (&[("bulksms", b"57000001,a"), ("requestid", b"\xff")], "invalid_encoding"),
    (&[("bulksms", b"57000001,a"), ("dryrun", b"yes")], "invalid_parameter"),
    (&[("bulksms", b"57000001,a"), ("dryrun", b"")], "invalid_parameter"),
    (&[("dryrun", b"x"), ("requestid", b""), ("bulksms", b"x")], "invalid_file"),
    (&[("dryrun", b"x"), ("requestid", b""), ("bulksms", b"57000001,a")], "invalid_requestid"),
];

#[test]
fn requests_that_are_no_upload_are_refused() {
    let server = TestServer::demo();
    for (parts, reason) in REQUESTS {
        let what = format!("{:?}", parts.iter().map(|(name, _)| name).collect::<Vec<_>>());
        let answer = server.upload(server.key(), parts);
        assert_eq!(answer.reason(), *reason, "{what}: {}", answer.text());
        answer.is(400, 500, reason);
        server.is_untouched(&what);
    }
    server.place.check();
}

#[test]
fn small_parameters_have_their_limits() {
    let server = TestServer::demo();
    let wide = "\u{1f600}".repeat(1600);
    let longest = "é".repeat(255);
    for (message, requestid, reason) in [
        (wide.clone() + "x", longest.clone(), "message_too_long"),
        (wide.repeat(1000), longest.clone(), "message_too_long"),
        (wide.clone(), longest.clone() + "é", "invalid_requestid"),
        (wide.clone(), longest.repeat(1000), "invalid_requestid"),
    ] {
        let parts = [
            ("numbers", &b"57000001"[..]),
            ("message", message.as_bytes()),
            ("requestid", requestid.as_bytes()),
        ];
        server.upload(server.key(), &parts).is(400, 500, reason);
        server.is_untouched(reason);
    }
    let parts = [
        ("numbers", &b"57000001"[..]),
        ("message", wide.as_bytes()),
        ("requestid", longest.as_bytes()),
    ];
    let answer = server.upload(server.key(), &parts);
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.json()["requestid"], longest);
}

#[test]
fn a_name_in_query_and_body_is_twice() {
    let server = TestServer::demo();
    let path = format!("/sms/bulk/{}", server.key());
    let body = multipart(&[("numbers", b"57000001"), ("message", b"Hi")]);
    for query in ["message=Hi", "numbers=57000001", "bulksms=57000001,a"] {
        let answer = server.exchange(&posted(&format!("{path}?{query}"), MULTIPART, &body));
        let reason =
            if query.starts_with("bulksms") { "ambiguous_bulk" } else { "duplicate_parameter" };
        answer.is(400, 500, reason);
        server.is_untouched(query);
    }
}

#[test]
fn a_good_requestid_is_echoed_in_refusals() {
    let server = TestServer::demo();
    let parts = [("bulksms", &b"x"[..]), ("requestid", "né 1".as_bytes())];
    let answer = server.upload(server.key(), &parts);
    answer.is(400, 500, "invalid_file");
    assert_eq!(answer.json()["requestid"], "né 1");
    let body = multipart(&parts[..1]);
    for key in [server.key(), "unknown"] {
        let target = format!("/sms/bulk/{key}?{}", form(&[("requestid", "r 2")]));
        let answer = server.exchange(&posted(&target, MULTIPART, &body));
        assert_eq!(answer.json()["requestid"], "r 2");
    }
    // This holds even if the body isn't read. The duplicate in the query is checked later.
    let target = format!("/sms/bulk/{}?requestid=r3&numbers=x&numbers=x", server.key());
    let answer = server.exchange(&posted(&target, "text/csv", &body));
    answer.is(415, 500, "unsupported_media_type");
    assert_eq!(answer.json()["requestid"], "r3");
    let length = 600_u64 * 1024 * 1024;
    let headers = [("Content-Type", MULTIPART), ("Content-Length", &length.to_string())];
    let answer = server.exchange(&bare("POST", &target, &headers));
    answer.is(413, 500, "too_large");
    assert_eq!(answer.json()["requestid"], "r3");
    server.is_untouched("refused unread");
}
