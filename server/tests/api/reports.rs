//! `/sms/reports`: filters, cursors, single messages, CSV.

use serde_json::Value;
use sqlx::{Connection as _, Executor as _};

use crate::client::form;
use crate::harness::TestServer;
use crate::portal::Browser;

#[test]
fn wrong_parameters_are_refused() {
    let server = TestServer::demo();
    let path = format!("/sms/reports/{}", server.key());
    for (query, reason) in [
        ("colour=blue", "invalid_parameter"),
        ("=", "invalid_parameter"),
        ("%FF=1", "invalid_parameter"),
        ("transid=", "invalid_parameter"),
        ("transid=m_1", "invalid_parameter"),
        ("transid=b_0000000000000", "invalid_parameter"),
        ("batchid=m_0000000000000", "invalid_parameter"),
        ("requestid=", "invalid_requestid"),
        ("requestid=%00", "invalid_requestid"),
        ("number=", "invalid_number"),
        ("number=abc", "invalid_number"),
        ("status=", "invalid_parameter"),
        ("status=Delivered", "invalid_parameter"),
        ("from=yesterday", "invalid_parameter"),
        ("from=2026-02-30", "invalid_parameter"),
        ("from=2026-1-001", "invalid_parameter"),
        ("to=20260101", "invalid_parameter"),
        ("to=2026-13-01T00:00:00Z", "invalid_parameter"),
        ("limit=0", "invalid_parameter"),
        ("limit=1001", "invalid_parameter"),
        ("limit=%2B5", "invalid_parameter"),
        ("limit=5.0", "invalid_parameter"),
        ("limit=99999999999999999999", "invalid_parameter"),
        ("cursor=", "invalid_parameter"),
        ("cursor=nonsense", "invalid_parameter"),
        ("cursor=%00", "invalid_parameter"),
        ("format=xml", "invalid_parameter"),
        ("format=csv&format=csv", "duplicate_parameter"),
        ("limit=1&limit=1", "duplicate_parameter"),
        ("requestid=%FF", "invalid_encoding"),
        ("status=%FF", "invalid_encoding"),
    ] {
        let answer = server.get(&format!("{path}?{query}"));
        assert_eq!(answer.reason(), reason, "{query}: {}", answer.text());
        answer.is(400, 500, reason);
    }
    let one = format!("{path}/m_0000000000000");
    server.get(&one).is(404, 500, "not_found");
    server.get(&format!("{path}/nonsense")).is(404, 500, "not_found");
    server.get(&format!("{path}/%FF")).is(404, 500, "not_found");
    server.get(&format!("{one}?limit=1")).is(400, 500, "invalid_parameter");
}

#[test]
fn a_refused_parameter_is_answered_with_what_is_allowed() {
    let server = TestServer::demo();
    let path = format!("/sms/reports/{}", server.key());
    let words = |target: &str| server.get(target).json()["message"].to_string();
    for name in ["from", "to"] {
        let words = words(&format!("{path}?{name}=yesterday"));
        assert!(words.contains(name) && words.contains("RFC 3339"), "{words}");
    }
    let batches = format!("/sms/batches/{}", server.key());
    for (target, expected) in [
        (
            format!("{path}?colour=blue"),
            "colour isn't a parameter here. Known parameters: transid, ",
        ),
        (
            format!("{path}?request_id=x"),
            "request_id isn't a parameter here; did you mean requestid? Known parameters: transid, ",
        ),
        (
            format!("{path}/m_0000000000000?limit=1"),
            "limit isn't a parameter here. Known parameters: format.",
        ),
        (
            format!("{batches}?number=1"),
            "number isn't a parameter here. Known parameters: requestid, limit, ",
        ),
        (format!("{batches}/b_0000000000000?x=1"), "x isn't a parameter here. There are none."),
        (format!("{path}?a%20key=1"), "One of the parameters isn't known here. Known parameters: "),
        (
            format!("/sms/balance/{}?number=1", server.key()),
            "number isn't a parameter here. There are none.",
        ),
        // The answer to an invalid value lists the valid ones.
        (format!("{path}?status=done"), "status must be one of scheduled, queued, "),
        (format!("{path}?limit=1001"), "limit must be a whole number from 1 to 1000."),
        (format!("{path}?format=xml"), "format must be json or csv."),
        (format!("{path}?transid=1"), "transid must be "),
        (format!("{path}?batchid=1"), "batchid must be "),
        (format!("{path}?cursor=1"), "cursor must be the value of next in an earlier answer."),
    ] {
        let words = words(&target);
        assert!(words.contains(expected), "{target}: {words}");
    }
}

#[test]
fn filters_find_what_they_name() {
    let server = TestServer::demo();
    let key = server.key();
    let first = server.accepted(key, "57000001");
    server.send(key, &[("number", "57000002"), ("message", "Hi"), ("requestid", "r")]);
    let failed = server.accepted(key, "00000002");
    for transid in [&first, &failed] {
        server.final_report(key, transid);
    }
    let ids = |query: &str| -> Vec<String> {
        let found = server.reports(key, query);
        found.iter().map(|report| report["transid"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(&format!("transid={first}")), std::slice::from_ref(&first));
    assert_eq!(ids("requestid=r").len(), 1);
    assert_eq!(ids("requestid=other").len(), 0);
    for number in ["57000001", "26657000001", "%2B26657000001", "+26657000001"] {
        assert_eq!(ids(&format!("number={number}")), std::slice::from_ref(&first), "{number}");
    }
    assert_eq!(ids("status=failed"), std::slice::from_ref(&failed));
    assert_eq!(ids("batchid=b_0000000000000").len(), 0);
    // The newest message comes first.
    assert_eq!(ids("").first(), Some(&failed));
    assert_eq!(ids("").last(), Some(&first));
    // `from` is inclusive, `to` exclusive.
    let at = server.report(key, &failed)["created_at"].as_str().unwrap().to_owned();
    assert!(ids(&form(&[("from", &at)])).contains(&failed));
    assert!(!ids(&form(&[("to", &at)])).contains(&failed));
    assert_eq!(ids("from=2020-01-01T00:00:00+02:00&to=2020-01-02T00:00:00Z").len(), 0);
    // A date means midnight UTC.
    let day = at.split_once('T').unwrap().0;
    assert!(ids(&format!("from={day}")).contains(&failed));
    assert!(!ids(&format!("to={day}")).contains(&failed));
    assert_eq!(ids("from=2020-01-01&to=2020-01-02").len(), 0);
}

#[test]
fn cursors_walk_over_everything_once() {
    let server = TestServer::demo();
    let key = server.key();
    let mut sent: Vec<String> = (0..7).map(|_| server.accepted(key, "57000001")).collect();
    sent.reverse();
    let mut seen = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = server.get(&format!("/sms/reports/{key}?limit=3{cursor}"));
        let json = answer.json();
        let page = json["reports"].as_array().unwrap();
        seen.extend(page.iter().map(|report| report["transid"].as_str().unwrap().to_owned()));
        match json["next"].as_str() {
            Some(next) => cursor = format!("&{}", form(&[("cursor", next)])),
            None => break,
        }
    }
    assert_eq!(seen, sent);
}

#[test]
fn one_message_tells_its_whole_story() {
    let server = TestServer::demo();
    let key = server.key();
    let answer =
        server.send(key, &[("number", "57000001"), ("message", "Hello"), ("requestid", "r")]);
    let transid = answer.json()["transid"].as_str().unwrap().to_owned();
    let report = server.final_report(key, &transid);
    let names: Vec<&str> = report.as_object().unwrap().keys().map(String::as_str).collect();
    for name in [
        "transid",
        "requestid",
        "batchid",
        "number",
        "kind",
        "sender",
        "message",
        "status",
        "pages",
        "segments",
        "cost",
        "released",
        "currency",
        "test",
        "error",
        "created_at",
        "submitted_at",
        "final_at",
        "timeline",
        "charge",
    ] {
        assert!(names.contains(&name), "{name} is missing of {names:?}");
    }
    assert_eq!(names.len(), 21);
    assert_eq!(
        (&report["test"], report["released"].to_string().as_str()),
        (&Value::Bool(false), "0")
    );
    assert_eq!(report["status"], "delivered");
    assert_eq!(report["kind"], "local");
    assert_eq!(report["sender"], serde_json::Value::Null);
    assert_eq!(report["batchid"], serde_json::Value::Null);
    assert_eq!(report["error"], serde_json::Value::Null);
    let statuses: Vec<&str> = report["timeline"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["status"].as_str().unwrap())
        .collect();
    assert_eq!(statuses.first(), Some(&"queued"));
    assert_eq!(statuses.last(), Some(&"delivered"));
    let charge = &report["charge"];
    assert_eq!(charge["pages"], 1);
    assert_eq!(charge["charged"].to_string(), "0.05");
    assert_eq!(charge["released"].to_string(), "0");
    assert_eq!(charge["unit_price"].to_string(), "0.05");
    assert!(charge["why"].as_str().unwrap().len() > 10);
    for name in ["created_at", "submitted_at", "final_at"] {
        let at = report[name].as_str().unwrap();
        assert!(domain::Timestamp::parse(at).is_some() && at.ends_with('Z'), "{at}");
    }
}

const COLUMNS: &str = "transid,requestid,batchid,number,kind,sender,message,status,pages,segments,cost,\
    released,currency,test,error,created_at,submitted_at,final_at\r\n";

#[test]
fn the_api_and_the_portal_write_the_same_table() {
    let server = TestServer::demo();
    let key = server.key();
    for number in ["57000001", "00000004"] {
        server.final_report(key, &server.accepted(key, number));
    }
    let of_api = server.get(&format!("/sms/reports/{key}?format=csv")).text();
    let mut browser = Browser::of_customer(&server);
    let of_portal = browser.get("/reports/messages.csv").text();
    assert_eq!(of_api, of_portal);
    let lines: Vec<&str> = of_api.split_inclusive("\r\n").collect();
    assert_eq!(lines[0], COLUMNS);
    assert!(lines[1].contains(",rejected,1,1,0.05,0.05,USD,false,"), "{}", lines[1]);
    assert!(lines[2].contains(",delivered,1,1,0.05,0,USD,false,"), "{}", lines[2]);
    let rejected = &server.reports(key, "status=rejected")[0];
    assert_eq!(rejected["released"].to_string(), "0.05");
    // The test key gets the same columns.
    let test = server.test_key();
    server.final_report(test, &server.accepted(test, "57000001"));
    assert_eq!(server.reports(test, "")[0]["test"], true);
    let of_test = server.get(&format!("/sms/reports/{test}?format=csv")).text();
    assert!(of_test.contains(",0.05,0,USD,true,"), "{of_test}");
}

#[test]
fn csv_is_safe_in_spreadsheets() {
    let server = TestServer::demo();
    let key = server.key();
    server.send(key, &[("number", "57000001"), ("message", "=1+1"), ("requestid", "@a\"b,c")]);
    server.send(key, &[("number", "57000001"), ("message", "two\nlines")]);
    let answer = server.get(&format!("/sms/reports/{key}?format=csv"));
    assert_eq!(answer.status, 200);
    answer.is_guarded();
    assert_eq!(answer.header("content-type"), Some("text/csv; charset=utf-8"));
    let text = answer.text();
    assert!(text.starts_with(COLUMNS), "{text}");
    assert!(text.contains(",\"'@a\"\"b,c\",,57000001,local,,'=1+1,"), "{text}");
    assert!(text.contains(",\"two\nlines\","), "{text}");
    let cut = server.get(&format!("/sms/reports/{key}?format=csv&limit=1"));
    let next = cut.header("x-next-cursor").unwrap().to_owned();
    let rest = server.get(&format!("/sms/reports/{key}?format=csv&{}", form(&[("cursor", &next)])));
    assert!(rest.text().contains("'=1+1"));
    assert!(rest.header("x-next-cursor").is_none());
}

/// Stores and counts 60,000 delivered messages that are newer than the newest one.
fn store_delivered(server: &TestServer) {
    let path = server.place.path().join("data/heliograph.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        sqlx::any::install_default_drivers();
        let url = format!("sqlite:{}", path.display());
        let mut conn = sqlx::AnyConnection::connect(&url).await.unwrap();
        for statement in STORE_DELIVERED {
            conn.execute(statement).await.unwrap();
        }
        conn.close().await.unwrap();
    });
}

const STORE_DELIVERED: [&str; 2] = [
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) \
     INSERT INTO message_days (application_id, test, day, status, node, writer, n) \
     SELECT application_id, test, (created_at + i) / 86400000, 4, 400, 1, COUNT(*) \
     FROM n CROSS JOIN messages WHERE id = (SELECT MAX(id) FROM messages) GROUP BY 1, 2, 3",
    "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000) \
     INSERT INTO messages (id, application_id, test, number, kind, body, status, pages, segments, \
                           unit_price, cost, released, created_at, final_at) \
     SELECT id + i * 2097152, application_id, test, number, kind, body, 4, pages, segments, \
            unit_price, cost, 0, created_at + i, created_at + i \
     FROM n CROSS JOIN messages WHERE id = (SELECT MAX(id) FROM messages)",
];

#[test]
fn a_failed_message_behind_60000_others_is_found_by_its_status() {
    let server = TestServer::demo();
    let key = server.key();
    let failed = server.accepted(key, "00000002");
    server.final_report(key, &failed);
    store_delivered(&server);
    let found = server.get(&format!("/sms/reports/{key}?status=failed")).json();
    assert_eq!(found["reports"][0]["transid"], *failed, "{found}");
    assert_eq!((found["reports"].as_array().unwrap().len(), &found["next"]), (1, &Value::Null));
    let csv = server.get(&format!("/sms/reports/{key}?status=failed&format=csv"));
    assert!(csv.text().contains(&failed) && csv.header("x-next-cursor").is_none());
    let mut browser = Browser::of_customer(&server);
    for path in ["/reports", "/reports/messages.csv"] {
        let text = browser.get(&format!("{path}?status=failed")).text();
        assert!(text.contains(&failed), "{path}: {text}");
    }
}
