//! Carriers that turn bad although they are bound.

use serde_json::Value;
use testing::harness::until;
use testing::smsc::receipt;

use crate::routes::{AROUND, carriers};
use crate::scripted::{Act, Scripted, Submit, deliver};
use crate::started::Started;

/// SMPP's ESME_RSUBMITFAIL, a temporary refusal.
const SUBMIT_FAILED: u32 = 0x45;
/// SMPP's ESME_RTHROTTLED.
const THROTTLED: u32 = 0x58;
/// The share of the traffic that a bad carrier may get before it loses it.
const LOST_MAX: usize = 60;

fn start(one: &Scripted, two: &Scripted, more: &str) -> Started {
    let settings =
        carriers(&[("one", &one.address)]) + more + &carriers(&[("two", &two.address)]) + AROUND;
    let started = Started::start(&settings);
    one.until_bound();
    two.until_bound();
    started
}

/// Sends until the carrier is degraded, and returns it as staff see it.
fn until_degraded(started: &Started, sent: &mut Vec<String>) -> Value {
    let mut number = 57_000_100;
    until("a degraded carrier", || {
        for _ in 0..5 {
            sent.push(started.send(&number.to_string(), "Hello"));
            number += 1;
        }
        let carrier = started.carrier("one");
        (carrier["state"] == "degraded").then_some(carrier)
    })
}

/// Sends until the carrier gets its messages again.
fn until_back(started: &Started, one: &Scripted) {
    let mut number = 57_001_000;
    until("the carrier to be used again", || {
        let before = one.submits().len();
        let sent: Vec<_> = started.send_to(number..number + 3);
        number += 3;
        started.until_all(&sent, "delivered");
        (one.submits().len() == before + 3).then_some(())
    });
    until("the carrier to be up", || (started.carrier("one")["state"] == "up").then_some(()));
}

/// Takes about 12 s: the first probe follows 10 s after a failed one.
#[test]
fn a_carrier_that_refuses_everything_loses_its_messages_until_it_is_back() {
    let one = Scripted::start(|_| vec![Act::Refuse(SUBMIT_FAILED)]);
    let two = Scripted::delivering();
    let started = start(&one, &two, "");
    let mut sent = Vec::new();
    let carrier = until_degraded(&started, &mut sent);
    let reason = carrier["reason"].as_str().unwrap();
    assert!(reason.contains("refused") && reason.contains("ESME_RSUBMITFAIL"), "{carrier}");
    assert!(carrier["since"].is_string(), "{carrier}");
    let seen = one.submits().len();
    sent.extend(started.send_to(57_000_500..57_000_550));
    started.until_all(&sent, "delivered");
    let log = started.server.log();
    assert!(log.contains("a carrier is degraded"), "{log}");
    assert!(one.submits().len() <= seen + 5, "more than probes");
    assert!(seen <= LOST_MAX, "{seen}");
    one.follow(deliver);
    until_back(&started, &one);
    assert!(started.server.log().contains("a carrier is back"));
    started.stop();
}

fn undeliverable(submit: &Submit) -> Vec<Act> {
    let id = (submit.before + 1).to_string();
    let failed = receipt(&id, "UNDELIV");
    vec![Act::Accept(id), Act::Deliver(failed)]
}

#[test]
fn a_carrier_that_delivers_nothing_loses_its_messages() {
    let (one, two) = (Scripted::start(undeliverable), Scripted::delivering());
    let started = start(&one, &two, "");
    let carrier = until_degraded(&started, &mut Vec::new());
    assert!(carrier["reason"].as_str().unwrap().contains("report no delivery"), "{carrier}");
    assert!(one.submits().len() <= LOST_MAX, "{}", one.submits().len());
    one.follow(deliver);
    until_back(&started, &one);
    started.stop();
}

#[test]
fn a_carrier_that_sends_no_receipts_is_noticed() {
    let one = Scripted::start(|submit| {
        if submit.before == 0 {
            deliver(submit)
        } else {
            vec![Act::Accept(format!("silent-{}", submit.before))]
        }
    });
    let two = Scripted::delivering();
    let started = start(&one, &two, "degraded_silent_seconds = 1\n");
    let carrier = until_degraded(&started, &mut Vec::new());
    assert!(carrier["reason"].as_str().unwrap().contains("no final receipt"), "{carrier}");
    // Receipts come, but nothing can be read from them. Staff see both.
    let unknown: Vec<_> = (0..12).map(|n| receipt(&format!("silent-{n}"), "ON_ITS_WAY")).collect();
    one.deliver_all(&unknown);
    until("both reasons", || {
        let reason = started.carrier("one")["reason"].as_str()?.to_owned();
        (reason.contains("no final receipt") && reason.contains("have an unknown state"))
            .then_some(())
    });
    started.stop();
}

/// The connection stays, because the carrier answers `enquire_link`.
#[test]
fn a_carrier_that_answers_nothing_loses_its_messages_until_it_answers() {
    let (one, two) = (Scripted::start(|_| Vec::new()), Scripted::delivering());
    let started = start(&one, &two, "degraded_unanswered_seconds = 1\n");
    let mut sent = Vec::new();
    let carrier = until_degraded(&started, &mut sent);
    let reason = carrier["reason"].as_str().unwrap();
    assert!(reason.contains("has answered nothing for 1 s"), "{carrier}");
    assert!(carrier["since"].is_string(), "{carrier}");
    let seen = one.submits().len();
    let later = started.send_to(57_000_500..57_000_520);
    started.until_all(&later, "delivered");
    until("the log of a degraded carrier", || {
        started
            .server
            .log()
            .contains("a carrier is degraded: the carrier has answered nothing")
            .then_some(())
    });
    let metrics = started.server.get_ops("/metrics").text();
    let degraded = "heliograph_carrier_degraded{carrier=\"one\"} 1";
    assert!(metrics.contains(degraded), "{metrics}");
    // Nothing more was submitted to it, and its messages are neither lost nor submitted elsewhere.
    assert_eq!(one.submits().len(), seen);
    for submit in one.submits() {
        assert_eq!((one.count(&submit.number), two.count(&submit.number)), (1, 0));
    }
    for before in 0..seen {
        one.accept_late(before, &format!("late-{before}"));
    }
    for transid in &sent {
        until("a message that a carrier has", || {
            let status = started.report(transid)["status"].clone();
            (status == "submitted" || status == "delivered").then_some(())
        });
    }
    one.follow(deliver);
    until_back(&started, &one);
    assert_eq!(one.binds(), 1);
    started.stop();
}

#[test]
fn a_carrier_that_throttles_everything_loses_its_messages() {
    let one = Scripted::start(|submit| {
        if submit.before < 3 { deliver(submit) } else { vec![Act::Refuse(THROTTLED)] }
    });
    let two = Scripted::delivering();
    let started = start(&one, &two, "");
    let mut sent = started.send_to(57_000_000..57_000_003);
    started.until_all(&sent, "delivered");
    let carrier = until_degraded(&started, &mut sent);
    assert!(carrier["reason"].as_str().unwrap().contains("throttled"), "{carrier}");
    started.until_all(&sent, "delivered");
    let log = started.server.log();
    assert!(!log.contains("a carrier is back"), "{log}");
    started.stop();
}

/// With a single route, a degraded carrier still gets its messages.
#[test]
fn a_degraded_carrier_without_an_alternative_gets_its_messages() {
    let one = Scripted::start(undeliverable);
    let started = Started::start(&carriers(&[("one", &one.address)]));
    one.until_bound();
    let mut sent = Vec::new();
    until_degraded(&started, &mut sent);
    let seen = sent.len();
    sent.extend(started.send_to(57_000_500..57_000_530));
    started.until_all(&sent, "failed");
    assert_eq!(one.submits().len(), seen + 30);
    started.stop();
}

#[test]
fn healthy_carriers_are_left_alone() {
    // A third of the answers refuse a number, which is the customer's fault.
    let mixed = |submit: &Submit| {
        if submit.before.is_multiple_of(3) { vec![Act::Refuse(0x0B)] } else { deliver(submit) }
    };
    let (one, two) = (Scripted::start(mixed), Scripted::delivering());
    let started = start(&one, &two, "");
    let sent = started.send_to(57_000_000..57_000_060);
    started.until_all(&sent, "delivered");
    until("the refused ones at the other carrier", || (two.submits().len() == 20).then_some(()));
    assert_eq!(started.carrier("one")["state"], "up");
    started.stop();
}
