//! The answers to valid uploads, and what happens to their rows.

use std::collections::BTreeSet;

use crate::client::{MULTIPART, encode, form, multipart, posted};
use crate::harness::{TestServer, money, until};

const FORM: &str = "application/x-www-form-urlencoded";

#[test]
fn the_answer_has_every_field_and_closes_the_connection() {
    let server = TestServer::demo();
    let rows = "57000001,Hello\n+27820000000,Ho\n26657000001,Hi\n26657000002,Hi\n";
    let parts = [("bulksms", rows.as_bytes()), ("requestid", b"r 1")];
    let target = format!("/sms/bulk/{}", server.key());
    let mut connection = server.connect();
    connection.write(&posted(&target, MULTIPART, &multipart(&parts)));
    let answer = connection.read().unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.is_guarded();
    let batchid = answer.json()["batchid"].as_str().unwrap().to_owned();
    assert!(batchid.starts_with("b_"));
    let expected = format!(
        "{{\"code\":200,\"message\":\"SUCCESS\",\"text\":\"SUCCESS\",\"requestid\":\"r 1\",\
         \"batchid\":\"{batchid}\",\"rows\":4,\"pages\":4,\"cost\":0.8,\"currency\":\"USD\",\
         \"warnings\":[{{\"warning\":\"looks_local\",\"count\":2}}]}}"
    );
    assert_eq!(answer.text(), expected);
    assert_eq!(answer.header("connection"), Some("close"));
    assert!(connection.ends());
    // The whole price is reserved at once.
    assert_eq!(server.balance(server.key()), "9.2");
    server.place.check();
}

#[test]
fn one_to_one_rows_become_messages() {
    let server = TestServer::demo();
    let long = "é".repeat(161);
    let rows = format!(
        "\u{feff}57000001,a, \"b\"\r\n57000002,\"say \"\"c\"\",\r\nd\"\n57000003,=cmd()\n\
         57000004,{long}"
    );
    let answer = server.upload(server.key(), &[("bulksms", rows.as_bytes())]);
    assert_eq!(answer.json()["pages"], 5, "{}", answer.text());
    let batchid = answer.json()["batchid"].as_str().unwrap().to_owned();
    let batch = server.done_batch(server.key(), &batchid);
    assert_eq!(batch["counts"]["delivered"], 4);
    let reports = server.reports(server.key(), &format!("batchid={batchid}"));
    let mut found: Vec<(&str, &str)> = reports
        .iter()
        .map(|report| {
            assert_eq!(report["batchid"], *batchid);
            let text = |name: &str| report[name].as_str().unwrap();
            (text("number"), text("message"))
        })
        .collect();
    found.sort_unstable();
    let expected = [
        ("57000001", "a, \"b\""),
        ("57000002", "say \"c\",\r\nd"),
        ("57000003", "=cmd()"),
        ("57000004", long.as_str()),
    ];
    assert_eq!(found, expected);
    // The CSV keeps formulas as text for spreadsheets.
    let csv = server.get(&format!("/sms/reports/{}?format=csv", server.key()));
    assert!(csv.text().contains(",'=cmd(),"), "{}", csv.text());
    assert_eq!(server.place.spooled(), Vec::<String>::new());
    server.place.check();
}

#[test]
fn one_to_many_sends_one_message_to_all() {
    let server = TestServer::demo();
    let message = "m".repeat(200);
    let numbers = "57000001\r\n00000002\n27820000000\n\n\n";
    let parts = [("message", message.as_bytes()), ("numbers", numbers.as_bytes())];
    let answer = server.upload(server.key(), &parts);
    assert_eq!(answer.status, 200, "{}", answer.text());
    let json = answer.json();
    assert_eq!((json["rows"].as_u64(), json["pages"].as_u64()), (Some(3), Some(6)));
    assert!(answer.text().contains("\"cost\":0.7,"), "{}", answer.text());
    let batchid = json["batchid"].as_str().unwrap();
    let batch = server.done_batch(server.key(), batchid);
    assert_eq!(batch["counts"]["delivered"], 2);
    assert_eq!(batch["counts"]["failed"], 1);
    for report in server.reports(server.key(), "") {
        assert_eq!(report["message"], message);
        assert_eq!(report["pages"], 2);
    }
    assert_eq!(server.balance(server.key()), "9.3");
    server.place.check();
}

#[test]
fn uploads_come_in_several_ways() {
    let server = TestServer::demo();
    let path = format!("/sms/bulk/{}", server.key());
    let rows = "57000001,a+b&c=d%\n57000002,é\n";
    let pairs = form(&[("bulksms", rows), ("requestid", "r")]);
    let plain = rows.replace('%', "%25").replace('&', "%26").replace('+', "%2B");
    let no_name = multipart(&[("bulksms", rows.as_bytes()), ("requestid", b"r")]);
    let no_name = String::from_utf8(no_name).unwrap();
    let as_text = no_name.replace("; filename=\"rows.csv\"\r\nContent-Type: text/csv", "");
    let strange =
        no_name.replace("rows.csv", "../../../etc/passwd").replace("text/csv", "image/png");
    let ways = [
        (path.clone(), FORM, pairs.into_bytes()),
        (format!("{path}?requestid=r"), FORM, format!("bulksms={plain}").into_bytes()),
        (path.clone(), MULTIPART, no_name.clone().into_bytes()),
        (path.clone(), MULTIPART, as_text.into_bytes()),
        (path.clone(), MULTIPART, strange.into_bytes()),
        (path.clone(), MULTIPART, multipart(&[("requestid", b"r"), ("bulksms", rows.as_bytes())])),
        (format!("{path}?requestid=r&bulksms={}", encode(rows)), FORM, Vec::new()),
    ];
    for (target, kind, body) in &ways {
        let answer = server.exchange(&posted(target, kind, body));
        assert_eq!(answer.status, 200, "{target} {kind}: {}", answer.text());
        assert_eq!(answer.json()["rows"], 2);
    }
    let batches = server.batches(server.key(), "requestid=r");
    assert_eq!(batches.len(), ways.len());
    for batch in batches {
        let batchid = batch["batchid"].as_str().unwrap();
        server.done_batch(server.key(), batchid);
        let reports = server.reports(server.key(), &format!("batchid={batchid}&number=57000001"));
        assert_eq!(reports[0]["message"], "a+b&c=d%");
    }
    server.place.check();
}

#[test]
fn an_unescaped_plus_in_a_form_is_a_plus_before_a_number() {
    let server = TestServer::demo();
    let path = format!("/sms/bulk/{}", server.key());
    let rows = "bulksms=+4915112345678,a+b%0A57000001,%22c%0A+57000001,d%22%0A+57000001,%20e";
    let numbers = "numbers=%204915112345678%0A+57000001%0A%2B57000001&message=a";
    for (target, body, cost) in [
        (path.clone(), rows, "0.55"),
        (format!("{path}?{rows}"), "", "0.55"),
        (path.clone(), numbers, "0.75"),
    ] {
        let answer = server.exchange(&posted(&target, FORM, body.as_bytes()));
        assert_eq!(answer.status, 200, "{body}: {}", answer.text());
        let cost = format!("\"cost\":{cost},");
        assert!(answer.text().contains(&cost), "{body}: {}", answer.text());
    }
    let answer = server.exchange(&posted(&path, FORM, rows.as_bytes()));
    let batchid = answer.json()["batchid"].as_str().unwrap().to_owned();
    server.done_batch(server.key(), &batchid);
    let reports = server.reports(server.key(), &format!("batchid={batchid}"));
    let mut found: Vec<_> = reports
        .iter()
        .map(|report| ["number", "kind", "message"].map(|name| report[name].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    let expected = [
        ["4915112345678", "international", "a b"],
        ["57000001", "international", " e"],
        ["57000001", "local", "c\n 57000001,d"],
    ];
    assert_eq!(found, expected);
    // Two plus signs are invalid.
    let answer = server.exchange(&posted(&path, FORM, b"numbers=++57000001&message=a"));
    answer.is(400, 500, "invalid_file");
    server.place.check();
}

#[test]
fn a_file_name_leads_nowhere() {
    let server = TestServer::demo();
    let path = format!("/sms/bulk/{}", server.key());
    let folder = server.place.path();
    let names = || {
        let names = |folder: &std::path::Path| -> BTreeSet<String> {
            let entries = std::fs::read_dir(folder).unwrap();
            let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
            entries.map(|entry| name(entry.unwrap())).collect()
        };
        (names(folder), names(&folder.join("data")))
    };
    // The first upload creates the folder for files.
    let first = server.accepted_batch(server.key(), "57000001");
    server.done_batch(server.key(), &first);
    until("no file", || server.place.spooled().is_empty().then_some(()));
    let before = names();
    let absolute = folder.join("data/passwd").display().to_string();
    for name in ["../passwd", "../../passwd", "..\\passwd", "data/passwd", &absolute] {
        for rows in ["57000001,Hi", "x"] {
            let body = multipart(&[("bulksms", rows.as_bytes())]);
            let body = String::from_utf8(body).unwrap().replace("rows.csv", name);
            let mut connection = server.connect();
            let request = posted(&path, MULTIPART, body.as_bytes());
            connection.write(&request[..request.len() - 10]);
            let file = until("a file", || server.place.spooled().pop());
            assert!(!file.contains("passwd"), "{file}");
            assert_eq!(names(), before, "{name}");
            connection.write(&request[request.len() - 10..]);
            let status = if rows == "x" { 400 } else { 200 };
            assert_eq!(connection.read().unwrap().status, status);
            until("no file", || server.place.spooled().is_empty().then_some(()));
            assert_eq!(names(), before, "{name}");
        }
    }
    server.place.check();
}

#[test]
fn the_key_may_stand_in_the_header() {
    let server = TestServer::demo();
    let body = multipart(&[("numbers", b"57000001"), ("message", b"Hi")]);
    let length = body.len().to_string();
    let bearer = format!("Bearer {}", server.key());
    let headers = [
        ("Content-Type", MULTIPART),
        ("Content-Length", length.as_str()),
        ("Authorization", bearer.as_str()),
    ];
    let mut request = crate::client::bare("POST", "/sms/bulk", &headers);
    request.extend_from_slice(&body);
    let answer = server.exchange(&request);
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn too_little_money_refuses_all_of_it() {
    let server = TestServer::demo();
    let numbers = "57000001\n".repeat(201);
    let parts = [("numbers", numbers.as_bytes()), ("message", b"Hi")];
    server.upload(server.key(), &parts).is(402, 501, "insufficient_funds");
    server.is_untouched("201 rows");
    // A balance that covers the price exactly is enough.
    let numbers = "57000001\n".repeat(200);
    server.accepted_batch(server.key(), &numbers);
    assert_eq!(server.balance(server.key()), "0");
    server.place.check();
}

#[test]
fn a_price_that_can_not_be_written_is_too_much() {
    let place = crate::harness::Place::new();
    let environment = [
        ("HELIOGRAPH_PRICE_LOCAL", "4000000000000"),
        ("HELIOGRAPH_PRICE_INTERNATIONAL", "9000000000000"),
    ];
    let server = TestServer::start(place, &["--demo"], &environment);
    for numbers in ["27820000001\n27820000002\n", "57000001\n57000002\n57000003\n57000004\n"] {
        let parts = [("numbers", numbers.as_bytes()), ("message", b"Hi")];
        server.upload(server.key(), &parts).is(402, 501, "insufficient_funds");
    }
    server.is_untouched("overflow");
    server.place.check();
}

#[test]
fn a_million_equal_rows_are_accepted() {
    let server = TestServer::empty();
    let keys = server.place.funded("many@example.org", "50000.01");
    let key = keys.live.expose();
    let numbers = "57000001\n".repeat(1_000_000);
    let batchid = server.accepted_batch(key, &numbers);
    assert_eq!(server.balance(key), "0.01");
    let batch = server.batch(key, &batchid);
    assert_eq!(batch["rows"], 1_000_000);
    assert_ne!(batch["status"], "done");
    let counts = batch["counts"].as_object().unwrap().values();
    assert_eq!(counts.map(|count| count.as_u64().unwrap()).sum::<u64>(), 1_000_000);
    // One more row is too many, whatever the balance. The refused upload leaves no file; the file
    // of the first upload may still exist.
    let files = server.place.spooled();
    let numbers = numbers + "57000001";
    let parts = [("numbers", numbers.as_bytes()), ("message", b"Hi")];
    server.upload(key, &parts).is(413, 500, "too_large");
    let left = server.place.spooled();
    assert!(left.iter().all(|file| files.contains(file)), "{left:?}");
    assert_eq!(server.balance(key), money("0.01").to_string());
    assert_eq!(server.batches(key, "").len(), 1);
    let (code, place) = server.stop();
    assert_eq!(code, Some(0));
    place.check();
}
