//! What operators read about carriers and decisions: figures, metrics and the audit log.

use std::time::{SystemTime, UNIX_EPOCH};

use domain::Timestamp;
use serde_json::{Value, json};
use testing::harness::until;
use testing::smsc::{BIND_TRANSCEIVER, receipt};

use crate::acme::{accept, start};
use crate::bound_settings::Recorder;
use crate::routes::carriers;
use crate::scripted::{Act, Scripted, deliver};
use crate::started::Started;

/// SMPP's ESME_RINVDSTADR.
const INVALID_DESTINATION: u32 = 0x0B;
/// SMPP's ESME_RBINDFAIL.
const BIND_FAILED: u32 = 0x0D;

/// Starts a server whose carrier has refused one of five messages, delivered three and failed to
/// deliver one.
fn with_outcomes() -> (Scripted, Started) {
    let (smsc, started) = start(|submit| {
        if submit.number.ends_with('5') {
            vec![Act::Refuse(INVALID_DESTINATION)]
        } else {
            accept(submit)
        }
    });
    let sent = started.send_to(57_000_001..57_000_006);
    started.until_all(&sent[..4], "submitted");
    started.until(&sent[4], "rejected");
    for (number, state) in [(1, "DELIVRD"), (2, "DELIVRD"), (3, "DELIVRD"), (4, "UNDELIV")] {
        smsc.deliver(&receipt(&format!("2665700000{number}"), state));
    }
    started.until_all(&sent[..3], "delivered");
    started.until(&sent[3], "failed");
    (smsc, started)
}

/// The stop stores them.
#[test]
fn the_figures_of_a_carrier_count_its_answers_and_receipts() {
    const PERIODS: [&str; 3] = ["last_5_minutes", "last_hour", "last_day"];
    const COUNTS: [(&str, u64); 9] = [
        ("accepted", 4),
        ("refused", 1),
        ("deferred", 0),
        ("throttled", 0),
        ("unanswered", 0),
        ("delivered", 3),
        ("failed", 1),
        ("expired", 0),
        ("unmatched", 0),
    ];
    let (_smsc, started) = with_outcomes();
    let lines = [
        "heliograph_carrier_answers_total{carrier=\"acme\",answer=\"accepted\"} 4\n",
        "heliograph_carrier_answers_total{carrier=\"acme\",answer=\"refused\"} 1\n",
        "heliograph_carrier_receipts_total{carrier=\"acme\",status=\"delivered\"} 3\n",
        "heliograph_carrier_receipts_total{carrier=\"acme\",status=\"failed\"} 1\n",
        "heliograph_carrier_receipt_seconds_count{carrier=\"acme\"} 4\n",
        "heliograph_carrier_receipt_seconds_bucket{le=\"+Inf\",carrier=\"acme\"} 4\n",
    ];
    until("the metrics", || {
        let metrics = started.server.get_ops("/metrics").text();
        lines.iter().all(|line| metrics.contains(line)).then_some(())
    });
    let shown = started.stop().json(&["carrier", "show", "acme"]);
    for period in PERIODS {
        let figures = &shown[period];
        for (name, count) in COUNTS {
            assert_eq!(figures[name], count, "{name}: {figures}");
        }
        assert_eq!(figures["delivered_percent"], 75, "{figures}");
        assert!(figures["receipt_p50_s"].is_u64(), "{figures}");
        assert!(figures["receipt_p95_s"].is_u64(), "{figures}");
    }
}

/// Returns since when the only connection of the carrier has its state.
fn since(started: &Started) -> Timestamp {
    let shown = started.server.place.json(&["carrier", "show", "acme"]);
    Timestamp::parse(shown["connections"][0]["since"].as_str().unwrap()).unwrap()
}

fn now() -> Timestamp {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis();
    Timestamp::from_unix_ms(i64::try_from(now).unwrap())
}

#[test]
fn a_carrier_is_up_while_its_connection_is_bound() {
    let smsc = Recorder::start();
    let started = Started::start(&carriers(&[("acme", &smsc.address)]));
    let until_metric = |value: u8| {
        let line = format!("heliograph_carrier_up{{carrier=\"acme\"}} {value}\n");
        until(&line, || {
            let metrics = started.server.get_ops("/metrics").text();
            metrics.contains(&line).then_some(())
        });
    };
    until_metric(1);
    let (first, cut) = (since(&started), now());
    smsc.refuse_binds(BIND_FAILED);
    until_metric(0);
    let down = since(&started);
    // The second bind is refused.
    smsc.until_received(BIND_TRANSCEIVER, 2);
    smsc.accept_binds();
    until_metric(1);
    let again = since(&started);
    assert!(first < down && down < again, "{first} {down} {again}");
    assert!(first < cut && cut < again, "{first} {cut} {again}");
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    started.stop();
}

#[test]
fn decisions_about_unknown_messages_are_in_the_audit_log() {
    let smsc = Scripted::start(|_| vec![Act::Cut]);
    let started = Started::start(&carriers(&[("one", &smsc.address)]));
    smsc.until_bound();
    let [settled, requeued] = ["57000001", "57000002"].map(|number| {
        let transid = started.send(number, "Hello");
        started.until(&transid, "unknown");
        transid
    });
    smsc.follow(deliver);
    let place = &started.server.place;
    place.json(&["message", "settle", &settled, "--as", "failed"]);
    place.json(&["message", "requeue", &requeued]);
    started.until(&requeued, "delivered");
    // A refused decision leaves no entry.
    place.refused(&["message", "settle", &settled, "--as", "delivered"]);
    place.refused(&["message", "requeue", &requeued]);
    for (transid, action, detail) in
        [(&settled, "message.settle", json!("failed")), (&requeued, "message.requeue", Value::Null)]
    {
        let entries = place.json(&["audit", "list", "--subject", transid]);
        let [entry] = &entries.as_array().unwrap()[..] else { panic!("{entries}") };
        assert_eq!(entry["action"], action, "{entry}");
        assert_eq!(entry["subject"], *transid, "{entry}");
        assert_eq!(entry["detail"], detail, "{entry}");
        assert!(entry["who"].as_str().unwrap().starts_with("command line ("), "{entry}");
    }
    started.stop();
}
