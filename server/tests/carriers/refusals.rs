//! A carrier that refuses or throttles submits, or single segments of a message.

use testing::harness::until;
use testing::smsc::receipt;

use crate::acme::{accept, start};
use crate::scripted::{Act, Submit};

/// SMPP's ESME_RTHROTTLED.
const THROTTLED: u32 = 0x58;
/// SMPP's ESME_RINVDSTADR.
const INVALID_DESTINATION: u32 = 0x0B;

/// Operators see that all thirty submits were refused.
#[test]
fn a_carrier_that_refuses_everything_is_reported() {
    const TEXT: &str = "Words of a customer";
    let (smsc, started) = start(|_| vec![Act::Refuse(INVALID_DESTINATION)]);
    let sent: Vec<String> = (57_000_000..57_000_030)
        .map(|number: u32| started.send(&number.to_string(), TEXT))
        .collect();
    started.until_all(&sent, "rejected");
    assert_eq!(smsc.submits().len(), 30);
    let counted =
        "heliograph_carrier_refused_total{carrier=\"acme\",reason=\"invalid_destination\"} 30\n";
    until("thirty counted refusals", || {
        let metrics = started.server.get_ops("/metrics").text();
        metrics.contains(counted).then_some(())
    });
    until("an error of the connection", || {
        let connection = started.connection("acme");
        let error = connection["last_error"].as_str().unwrap_or_default();
        let refused = error.contains("ESME_RINVDSTADR 0x0000000b");
        // A carrier that refuses so many is degraded.
        (refused && connection["state"] == "degraded").then_some(())
    });
    let log = started.server.log();
    let told = |line: &&str| line.contains("a carrier refused submits");
    let lines: Vec<&str> = log.lines().filter(told).collect();
    assert_eq!(lines.len(), 1, "once a minute: {log}");
    assert!(lines[0].contains("acme") && lines[0].contains("invalid_destination"));
    assert!(!log.contains("5700000") && !log.contains(TEXT), "{log}");
    assert_eq!(started.balance(), "100");
    let answers = until("the kept answer", || {
        let arguments = ["carrier", "receipts", "acme", "--number", "26657000007"];
        let found = started.server.place.json(&arguments)["receipts"].as_array().unwrap().clone();
        (!found.is_empty()).then_some(found)
    });
    let (answer, shown) = (&answers[0], |name: &str| answers[0][name].as_str());
    assert_eq!((answers.len(), shown("outcome")), (1, Some("refused")), "{answer}");
    assert_eq!(shown("transid"), Some(&*sent[7]), "{answer}");
    assert_eq!(shown("error"), Some("invalid_destination"), "{answer}");
    let raw = "command_status=ESME_RINVDSTADR 0x0000000b message_id=";
    assert_eq!(shown("raw"), Some(raw), "{answer}");
    started.stop();
}

#[test]
fn throttling_loses_no_message_and_counts_no_attempt() {
    let (smsc, started) =
        start(
            |submit| {
                if submit.before < 60 { vec![Act::Refuse(THROTTLED)] } else { accept(submit) }
            },
        );
    let sent = started.send_to(57_000_000..57_000_040);
    started.until_all(&sent, "submitted");
    let mut noted = 0;
    for transid in &sent {
        let report = started.report(transid);
        // Each counted attempt would appear in the timeline, with its cause. The timeline says once
        // that the carrier throttled the message, however often it did.
        let timeline = report["timeline"].as_array().unwrap().iter();
        let (throttled, others): (Vec<_>, Vec<_>) =
            timeline.partition(|event| event["detail"] == "the carrier asked to slow down");
        let statuses: Vec<_> = others.iter().map(|event| &event["status"]).collect();
        assert_eq!(statuses, ["queued", "sending", "submitted"], "{report}");
        assert!(throttled.len() <= 1, "{report}");
        noted += throttled.len();
    }
    assert!(noted > 0);
    assert_eq!(smsc.submits().len(), 40 + 60, "each was accepted once");
    assert_eq!(started.balance(), "98");
    started.stop();
}

#[test]
fn a_refused_segment_fails_the_message_and_the_charge_stays() {
    let (smsc, started) = start(|submit| {
        if submit.part() == 2 {
            vec![Act::Refuse(INVALID_DESTINATION)]
        } else {
            vec![Act::Accept(format!("part-{}", submit.part()))]
        }
    });
    let transid = started.send("57000001", &"a".repeat(400));
    let report = started.until(&transid, "failed");
    assert_eq!(report["error"], "invalid_destination", "{report}");
    assert_eq!(report["charge"]["released"].to_string(), "0", "{report}");
    assert_eq!(started.balance(), "99.85");
    assert_eq!(smsc.submits().len(), 3);
    // A final status doesn't change.
    smsc.deliver(&receipt("part-1", "DELIVRD"));
    smsc.deliver(&receipt("part-3", "DELIVRD"));
    assert_eq!(started.report(&transid)["status"], "failed");
    started.stop();
}

#[test]
fn only_the_throttled_segment_of_a_message_is_sent_again() {
    let mut throttled = false;
    let (smsc, started) = start(move |submit| {
        if submit.part() == 2 && !throttled {
            throttled = true;
            return vec![Act::Refuse(THROTTLED)];
        }
        vec![Act::Accept(format!("part-{}", submit.part()))]
    });
    let transid = started.send("57000001", &"a".repeat(400));
    let report = started.until(&transid, "submitted");
    assert_eq!(report["segments"], 3, "{report}");
    let mut parts: Vec<u8> = smsc.submits().iter().map(Submit::part).collect();
    parts.sort_unstable();
    assert_eq!(parts, [1, 2, 2, 3]);
    for part in 1..=3 {
        smsc.deliver(&receipt(&format!("part-{part}"), "DELIVRD"));
    }
    assert_eq!(started.report(&transid)["status"], "delivered");
    assert_eq!(started.balance(), "99.85");
    started.stop();
}

/// ESME_RINVEXPIRY. All messages of the window have a validity period when it is refused.
#[test]
fn a_carrier_that_refuses_validity_periods_gets_messages_without_them() {
    let (smsc, started) = start(|submit| {
        let accepted = submit.validity_period.is_empty();
        vec![if accepted { Act::Accept(submit.number.clone()) } else { Act::Refuse(0x62) }]
    });
    let sent = started.send_to(57_000_001..57_000_011);
    started.until_all(&sent, "submitted");
    let last = started.send("57000011", "Hello");
    started.until(&last, "submitted");
    assert_eq!(smsc.count("26657000011"), 1);
    assert_eq!(started.balance(), "99.45");
    started.stop();
}
