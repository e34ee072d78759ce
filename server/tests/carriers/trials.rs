//! Test messages and traces, which operators ask for.

use serde_json::Value;
use testing::client::posted;
use testing::harness::until;
use testing::smsc::receipt;

use crate::acme::start;
use crate::routes::carriers;
use crate::scripted::{Act, Submit, deliver, receipt_from};
use crate::started::Started;

const FORM: &str = "application/x-www-form-urlencoded";

/// Runs a test that must fail. Returns what it prints.
fn failed_test(started: &Started) -> String {
    let output = started.server.place.run(&["carrier", "test", "acme", "57000001", "Hello"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the test failed"), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_test_message_is_followed_to_its_receipt_and_costs_nothing() {
    let (smsc, started) = start(deliver);
    let place = &started.server.place;
    let text = "a".repeat(161);
    let tested = place.json(&["carrier", "test", "acme", "57000001", &text, "--sender", "Acme"]);
    assert_eq!((&tested["ok"], &tested["carrier"]), (&true.into(), &"acme".into()), "{tested}");
    let steps: Vec<&str> =
        tested["steps"].as_array().unwrap().iter().map(|s| s["text"].as_str().unwrap()).collect();
    assert_eq!(steps[0], "submitting to 26657000001 from Acme on connection 1");
    for step in [
        "segment 1 of 2: accepted with the message ID 1",
        "segment 2 of 2: accepted with the message ID 2",
        "receipt for 1: delivered",
        "receipt for 2: delivered",
    ] {
        assert!(steps.contains(&step), "{step}: {steps:?}");
    }
    assert_eq!(steps.last(), Some(&"delivered"));
    assert_eq!(smsc.submits().len(), 2);
    assert_eq!(smsc.submits()[0].sender, "Acme");
    assert_eq!((started.balance().as_str(), started.server.count(started.key())), ("100", 0));
    let unmatched = place.json(&["carrier", "receipts", "acme", "--unmatched"]);
    assert_eq!(unmatched["receipts"], Value::Array(Vec::new()), "{unmatched}");
    // Neither the answers nor the receipts count in the figures of the carrier.
    let metrics = started.server.get_ops("/metrics").text();
    let is_count = |line: &&str| {
        let names = ["heliograph_carrier_answers_total{", "heliograph_carrier_receipts_total{"];
        names.iter().any(|name| line.starts_with(name)) && !line.ends_with(" 0")
    };
    assert_eq!(metrics.lines().find(is_count), None);
    let audit = place.json(&["audit", "list", "--subject", "acme"]).to_string();
    assert!(audit.contains("carrier.test") && !audit.contains("57000001"), "{audit}");
    assert_eq!(place.rows("carrier_commands WHERE command LIKE '%aaa%'"), 0);
    started.stop();
}

#[test]
fn a_failed_test_says_why() {
    const INVALID_DESTINATION: u32 = 0x0B;
    let (smsc, started) = start(|_| vec![Act::Refuse(INVALID_DESTINATION)]);
    let refused = failed_test(&started);
    assert!(refused.contains("segment 1 of 1: refused: invalid_destination"), "{refused}");
    assert!(refused.contains("ESME_RINVDSTADR"), "{refused}");
    smsc.follow(|submit| {
        let failed = receipt_from(&submit.number, "7", "2611211200", "UNDELIV");
        vec![Act::Accept("7".to_owned()), Act::Deliver(failed)]
    });
    let undelivered = failed_test(&started);
    assert!(undelivered.contains("not delivered: failed (undeliverable)"), "{undelivered}");
    smsc.follow(|submit| {
        let other = receipt_from(&submit.number, "65281", "2611211200", "DELIVRD");
        vec![Act::Accept("ff01".to_owned()), Act::Deliver(other)]
    });
    let other = failed_test(&started);
    assert!(other.contains("a receipt for this number has the ID 65281"), "{other}");
    let place = &started.server.place;
    let refusal = place.refused(&["carrier", "test", "nobody", "57000001", "Hello"]);
    assert!(refusal.contains("carrier"), "{refusal}");
    started.stop();
}

/// Traces the carrier while messages are sent. Returns what the command prints.
fn traced(started: &Started, more: &[&str]) -> String {
    let arguments = [&["carrier", "trace", "acme", "--seconds", "1"], more].concat();
    let place = &started.server.place;
    let output = std::thread::scope(|scope| {
        let tracing = scope.spawn(|| place.run(&arguments));
        until("the end of the trace", || {
            started.send("57000001", "Hello");
            tracing.is_finished().then_some(())
        });
        tracing.join().unwrap()
    });
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_trace_shows_the_pdus_of_a_connection_and_hides_numbers() {
    let (_smsc, started) = start(deliver);
    let file = started.server.place.path().join("trace.pcap");
    let masked = traced(&started, &["--pcap", file.to_str().unwrap()]);
    for part in [
        "> submit_sm seq=",
        "destination_addr=\"********001\"",
        "short_message=\"*****\"",
        "< submit_sm_resp seq=",
        "status=0x00000000 OK message_id=\"",
        "< deliver_sm seq=",
        "stat:DELIVRD",
        "> deliver_sm_resp seq=",
        "PDUs; the time is over",
    ] {
        assert!(masked.contains(part), "{part}: {masked}");
    }
    assert!(!masked.contains("57000001") && !masked.contains("Hello"), "{masked}");
    let capture = std::fs::read(file).unwrap();
    assert!(capture.starts_with(&[0xA1, 0xB2, 0xC3, 0xD4]));
    let has = |text: &[u8]| capture.windows(text.len()).any(|part| part == text);
    assert!(has(b"********001") && has(b"Heliograph") && !has(b"57000001"));
    let shown = traced(&started, &["--numbers"]);
    assert!(shown.contains("26657000001") && shown.contains("Hello"), "{shown}");
    let audit = started.server.place.json(&["audit", "list", "--subject", "acme"]).to_string();
    assert!(audit.contains("1 seconds, with numbers and texts"), "{audit}");
    started.stop();
}

/// A rebind replaces the connection.
#[test]
fn a_trace_follows_a_rebind() {
    let (_smsc, started) = start(deliver);
    let place = &started.server.place;
    let output = std::thread::scope(|scope| {
        let tracing = scope.spawn(|| place.run(&["carrier", "trace", "acme", "--seconds", "10"]));
        until("the trace to begin", || (place.rows("carrier_command_answers") == 1).then_some(()));
        place.json(&["carrier", "rebind", "acme"]);
        until("the end of the trace", || {
            started.send("57000001", "Hello");
            tracing.is_finished().then_some(())
        });
        tracing.join().unwrap()
    });
    let shown = String::from_utf8(output.stdout).unwrap();
    let (_, after) = shown.split_once("> unbind ").unwrap_or_else(|| panic!("{shown}"));
    assert!(after.contains("> submit_sm "), "{shown}");
    assert!(after.contains("PDUs; the time is over"), "{shown}");
    started.stop();
}

#[test]
fn a_test_through_a_carrier_that_is_down_says_why_it_is_down() {
    let started = Started::start(&carriers(&[("acme", "127.0.0.1:1")]));
    until("the fault", || started.connection("acme")["last_error"].is_string().then_some(()));
    let said = started.server.place.refused(&["carrier", "test", "acme", "57000001", "Hello"]);
    assert!(said.contains("no connection that is up: Nobody listens"), "{said}");
    started.stop();
}

/// Accepts a message, and repeats its text in a receipt that isn't marked as one.
fn repeat(submit: &Submit) -> Vec<Act> {
    let id = (submit.before + 1).to_string();
    let mut body = receipt(&id, "DELIVRD");
    let text = body.windows(3).position(|part| part == b"id:").unwrap();
    let (esm_class, length) = (text - 10, text - 1);
    assert_eq!((body[esm_class], usize::from(body[length])), (4, body.len() - text));
    body[esm_class] = 0;
    body[length] += u8::try_from(submit.text.len()).unwrap();
    body.extend(&submit.text);
    vec![Act::Accept(id), Act::Deliver(body)]
}

#[test]
fn a_code_is_shown_to_its_recipient_alone() {
    let (smsc, started) = start(repeat);
    let (server, key) = (&started.server, started.key());
    server.get(&format!("/sms/events/{key}")).is(200, 200, "");
    let arguments = ["carrier", "trace", "acme", "--seconds", "1", "--numbers"];
    let (mut number, mut transid) = (57_000_000, String::new());
    let traced = std::thread::scope(|scope| {
        let tracing = scope.spawn(|| server.place.run(&arguments));
        until("the end of the trace", || {
            number += 1;
            let start = format!("/sms/verify/start/{key}?number={number}&length=10");
            let started = server.exchange(&posted(&start, FORM, b""));
            started.is(200, 200, "");
            transid = started.json()["transid"].as_str().unwrap().to_owned();
            tracing.is_finished().then_some(())
        });
        tracing.join().unwrap()
    });
    started.until(&transid, "delivered");
    let traced = String::from_utf8(traced.stdout).unwrap();
    assert!(traced.contains("> submit_sm ") && traced.contains("stat:DELIVRD"), "{traced}");
    let get = |path: String| server.get(&path).text();
    let shown = [
        get(format!("/sms/reports/{key}/{transid}")),
        get(format!("/sms/reports/{key}?format=csv")),
        get(format!("/sms/events/{key}")),
        server.place.json(&["carrier", "receipts", "acme"]).to_string(),
        server.log(),
        traced,
    ];
    for masked in &shown[..2] {
        assert!(masked.contains("•••••• is your Heliograph code"), "{masked}");
    }
    assert!(shown[2].contains("message.delivered"), "{}", shown[2]);
    let place = started.stop();
    let backup = place.path().join("backup.db");
    place.json(&["backup", backup.to_str().unwrap()]);
    let stored = std::fs::read(&backup).unwrap();
    let has = |word: &str| stored.windows(word.len()).any(|bytes| bytes == word.as_bytes());
    assert!(has("is your Heliograph code"), "the backup has the messages");
    for submit in smsc.submits() {
        let code = std::str::from_utf8(&submit.text[..10]).unwrap().to_owned();
        assert!(code.bytes().all(|byte| byte.is_ascii_digit()), "{code}");
        assert!(shown.iter().all(|text| !text.contains(&code)), "{code}: {shown:?}");
        assert!(!has(&code), "{code} is in the backup");
    }
}
