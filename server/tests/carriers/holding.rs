//! Refusals that concern the account, not a message; and the actions that settings give a status.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use testing::harness::until;

use crate::acme::{accept, settings, start};
use crate::http;
use crate::routes::{AROUND, both};
use crate::scripted::{Act, Scripted, deliver};
use crate::started::Started;
use crate::upstream::{self, Reply, Upstream};

/// SMPP's ESME_RINVSYSID.
const INVALID_SYSTEM_ID: u32 = 0x0F;
/// SMPP's ESME_RINVSRCADR.
const INVALID_SENDER: u32 = 0x0A;
/// SMPP's ESME_RSUBMITFAIL.
const SUBMIT_FAILED: u32 = 0x45;

#[test]
fn a_fault_of_the_account_holds_messages_instead_of_rejecting_them() {
    let (smsc, started) = start(|_| vec![Act::Refuse(INVALID_SYSTEM_ID)]);
    let sent = started.send_to(57_000_000..57_000_020);
    until("a held connection", || {
        let connection = started.connection("acme");
        let error = connection["last_error"].as_str().unwrap_or_default();
        let said = error.contains("ESME_RINVSYSID 0x0000000f") && error.contains("Ask the carrier");
        let seen = connection["last_error_at"].is_string();
        (connection["state"] == "probing" && said && seen).then_some(())
    });
    let log = started.server.log();
    let told = |line: &&str| line.contains("the carrier refuses all messages");
    let lines: Vec<&str> = log.lines().filter(told).collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("carrier=\"acme\"") && lines[0].contains("0x0000000f"), "{log}");

    let place = &started.server.place;
    let waits_for = place.json(&["message", "show", &sent[0]])["waits_for"].to_string();
    assert!(waits_for.contains("acme, which is degraded: "), "{waits_for}");
    assert!(waits_for.contains("ESME_RINVSYSID"), "{waits_for}");
    // There is no other route.
    until("the log of waiting messages", || {
        started.server.log().contains("messages wait, because no other carrier").then_some(())
    });
    assert!(!started.server.log().contains("other routes"), "{}", started.server.log());

    smsc.follow(accept);
    started.until_all(&sent, "submitted");
    assert!(place.json(&["message", "show", &sent[0]])["waits_for"].is_null());
    for transid in &sent {
        let report = started.report(transid);
        // Each counted attempt would appear in the timeline, with its cause.
        let timeline = report["timeline"].as_array().unwrap();
        let statuses: Vec<_> = timeline.iter().map(|event| &event["status"]).collect();
        assert_eq!(statuses, ["queued", "sending", "submitted"], "{report}");
    }
    assert_eq!(started.balance(), "99");
    assert!(started.server.log().contains("the carrier accepts messages again"));
    started.stop();
}

/// The carrier knows no sender of the account. Otherwise, this error would reject every message.
#[test]
fn an_error_that_all_messages_get_holds_them() {
    let (smsc, started) = start(|_| vec![Act::Refuse(INVALID_SENDER)]);
    let sent = started.send_to(57_000_000..57_000_030);
    let carrier = until("a carrier that isn't up", || {
        let carrier = started.carrier("acme");
        let reason = carrier["reason"].as_str().unwrap_or_default();
        (reason.contains("refuses every message with the same error")).then_some(carrier)
    });
    let reason = carrier["reason"].as_str().unwrap();
    assert!(reason.contains("ESME_RINVSRCADR 0x0000000a"), "{carrier}");
    assert!(reason.contains("Ask the carrier which senders the account may use"), "{carrier}");
    assert!(started.server.log().contains("fault=\"submit_refused_all\""));
    smsc.follow(accept);
    let (rejected, held) = sent.split_at(9);
    started.until_all(held, "submitted");
    started.until_all(rejected, "rejected");
    started.stop();
}

#[test]
fn held_messages_take_another_route() {
    let (one, two) =
        (Scripted::start(|_| vec![Act::Refuse(INVALID_SYSTEM_ID)]), Scripted::delivering());
    let started = Started::start(&both(&one, &two, AROUND));
    one.until_bound();
    two.until_bound();
    let sent = started.send_to(57_000_000..57_000_020);
    started.until_all(&sent, "delivered");
    assert_eq!(two.submits().len(), 20);
    started.stop();
}

/// The refusal that shows it may be the last one, because the next messages take another route.
#[test]
fn a_carrier_that_refuses_every_message_is_tried_until_it_accepts_one() {
    let (one, two) =
        (Scripted::start(|_| vec![Act::Refuse(INVALID_SENDER)]), Scripted::delivering());
    let started = Started::start(&both(&one, &two, AROUND));
    one.until_bound();
    two.until_bound();
    let deliver_one = |number: u32| {
        let transid = started.send(&number.to_string(), "Hello");
        started.until(&transid, "delivered");
    };
    // One at a time, so that none is in flight at the last refusal.
    (57_000_000..57_000_010).for_each(deliver_one);
    assert_eq!((one.submits().len(), two.submits().len()), (10, 10));
    let carrier = until("a degraded carrier", || {
        let carrier = started.carrier("one");
        (carrier["state"] == "degraded").then_some(carrier)
    });
    let reason = carrier["reason"].as_str().unwrap();
    assert!(reason.contains("refuses every message with the same error"), "{reason}");
    one.follow(deliver);
    // After a message that tries it, the carrier gets all of them again.
    let mut numbers = 57_000_010..;
    until("the carrier to be used again", || {
        deliver_one(numbers.next().unwrap());
        (one.submits().len() > 13).then_some(())
    });
    started.stop();
}

/// A refused key is a fault of the account, too, and so is what a rule says.
#[test]
fn an_upstream_that_refuses_the_account_holds_messages() {
    let refused = Arc::new(AtomicU16::new(401));
    let status = Arc::clone(&refused);
    let upstream = Upstream::start(move |request, _| match status.load(Ordering::Relaxed) {
        0 => upstream::accept(request),
        status => Reply::Answer(status, String::new()),
    });
    let rule = "[[carrier.answer]]\nhttp = 402\noutcome = \"hold\"\n[carrier.receipt]";
    let settings = http::settings(&upstream.address).replace("[carrier.receipt]", rule);
    let started = Started::start(&settings);
    let sent = started.send_to(57_000_000..57_000_010);
    for (status, words, step) in [
        (401, "refuses the key", "Check \"password\""),
        (403, "refuses the key", "Check \"password\""),
        (402, "refuses submits of this account", "has credit"),
    ] {
        refused.store(status, Ordering::Relaxed);
        let carrier = until("a carrier that is degraded", || {
            let carrier = started.carrier("upstream");
            let reason = carrier["reason"].as_str().unwrap_or_default();
            reason.contains(&format!("HTTP status {status}")).then_some(carrier)
        });
        assert_eq!(carrier["state"], "degraded", "{carrier}");
        let reason = carrier["reason"].as_str().unwrap();
        assert!(reason.contains(words) && reason.contains(step), "{reason}");
        assert!(carrier["since"].is_string(), "{carrier}");
    }
    let log = started.server.log();
    let lines = log.lines().filter(|line| line.contains("the carrier refuses all messages"));
    let lines: Vec<&str> = lines.collect();
    assert_eq!(lines.len(), 1, "{log}");
    assert!(lines[0].contains("http_access_refused"), "{log}");
    let metrics = started.server.get_ops("/metrics").text();
    assert!(metrics.contains("heliograph_carrier_degraded{carrier=\"upstream\"} 1"), "{metrics}");

    refused.store(0, Ordering::Relaxed);
    started.until_all(&sent, "submitted");
    for transid in &sent {
        // Each counted attempt would appear in the timeline, with its cause.
        let report = started.report(transid);
        let timeline = report["timeline"].as_array().unwrap();
        let statuses: Vec<_> = timeline.iter().map(|event| &event["status"]).collect();
        assert_eq!(statuses, ["queued", "sending", "submitted"], "{report}");
    }
    assert_eq!(started.balance(), "99.5");
    assert!(started.server.log().contains("the carrier accepts messages again"));
    started.stop();
}

#[test]
fn settings_decide_what_a_status_means() {
    let statuses = "[carrier.submit_status]\n\"0x45\" = \"reject\"\n\"0x0000000b\" = \"retry\"\n";
    let one = Scripted::start(|_| vec![Act::Refuse(SUBMIT_FAILED)]);
    let two = Scripted::start(deliver);
    let [first, second] = [&one, &two].map(|smsc| settings(smsc, ""));
    let started = Started::start(&format!(
        "{}{statuses}{}{AROUND}",
        first.replace("acme", "one"),
        second.replace("acme", "two")
    ));
    one.until_bound();
    two.until_bound();
    // By default, it would be submitted again. A refusal would take the other route.
    let transid = started.send("57000001", "Hello");
    let report = started.until(&transid, "rejected");
    assert_eq!(report["error"], "refused_0x00000045", "{report}");
    assert_eq!((one.submits().len(), two.submits().len()), (1, 0));
    assert_eq!(started.balance(), "100");

    // By default, it would be refused.
    one.follow(|submit| if submit.before == 1 { vec![Act::Refuse(0x0B)] } else { deliver(submit) });
    let transid = started.send("57000002", "Hello");
    started.until(&transid, "delivered");
    assert_eq!((one.submits().len(), two.submits().len()), (2, 1));
    started.stop();
}
