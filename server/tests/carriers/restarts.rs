//! Connections that are lost, and servers that are killed or stopped, while messages are sent.

use testing::harness::until;
use testing::smsc::receipt;

use crate::acme::{accept, numbers, settings, smsc_date, start};
use crate::scripted::{Act, Scripted, receipt_from};
use crate::started::Started;

/// If the connection is lost before a submit, the message is sent again. If the carrier may have
/// the message, it isn't.
#[test]
fn after_a_lost_connection_only_submits_that_were_not_sent_are_repeated() {
    let (smsc, started) =
        start(|submit| if submit.before == 3 { vec![Act::Cut] } else { accept(submit) });
    let numbers_sent: Vec<String> = (57_000_000..57_000_050).map(|n: u32| n.to_string()).collect();
    let batchid = started.server.accepted_batch(started.key(), &numbers_sent.join("\n"));
    let counts = until("all to be submitted", || {
        let counts = started.server.batch(started.key(), &batchid)["counts"].clone();
        (counts["queued"] == 0 && counts["sending"] == 0).then_some(counts)
    });
    let unknown = counts["unknown"].as_u64().unwrap();
    assert!(unknown >= 1, "{counts}");
    assert_eq!(counts["submitted"].as_u64().unwrap() + unknown, 50, "{counts}");
    for number in numbers(57_000_000..57_000_050) {
        assert!(smsc.count(&number) <= 1, "{number}");
    }
    assert_eq!(started.balance(), "97.5");
    started.stop();
}

#[test]
fn submits_in_flight_when_the_server_is_killed_are_unknown_and_sent_once() {
    const MESSAGES: u32 = 12;
    const LONG: &str = "26657000100";
    // One part of the long message is answered.
    let (smsc, started) = start(|submit| {
        if submit.number == LONG && submit.part() == 1 { accept(submit) } else { Vec::new() }
    });
    let short = started.send_to(57_000_000..57_000_000 + MESSAGES);
    let long = started.send("57000100", &"a".repeat(200));
    smsc.until_submits(MESSAGES as usize + 2);
    let balance = started.balance();
    let settings = settings(&smsc, "");
    let started = started.killed(&settings);
    started.until_all(&short, "unknown");
    started.until(&long, "unknown");
    smsc.follow(accept);
    let next = started.send("57000200", "Hello");
    started.until(&next, "submitted");
    for number in numbers(57_000_000..57_000_000 + MESSAGES) {
        assert_eq!(smsc.count(&number), 1, "{number}");
    }
    assert_eq!(smsc.count(LONG), 2, "once per part");
    assert_eq!(balance, "99.3");
    assert_eq!(started.balance(), "99.25");
    // A receipt settles one of the messages.
    smsc.deliver(&receipt_from(
        "26657000003",
        "x",
        &smsc_date(started.report(&short[3])["created_at"].as_str().unwrap()),
        "DELIVRD",
    ));
    assert_eq!(started.report(&short[3])["status"], "delivered");
    started.stop();
}

/// Whenever the server is killed, it sends nothing twice, and receipts still settle the submitted
/// messages.
#[test]
fn kills_under_load_send_no_message_twice() {
    const ROWS: u64 = 300;
    let smsc = Scripted::start(accept);
    let settings = settings(&smsc, "window = 20\nrate = 300");
    let mut started = Started::start(&settings);
    let rows: Vec<String> = (0..ROWS).map(|n| (57_000_000 + n).to_string()).collect();
    let batchid = started.server.accepted_batch(started.key(), &rows.join("\n"));
    for submits in [40, 110, 180] {
        smsc.until_submits(submits);
        started = started.killed(&settings);
    }
    let counts = until("all to be submitted", || {
        let counts = started.server.batch(started.key(), &batchid)["counts"].clone();
        (counts["queued"] == 0 && counts["sending"] == 0).then_some(counts)
    });
    let count = |status: &str| counts[status].as_u64().unwrap();
    assert_eq!(count("submitted") + count("unknown"), ROWS, "{counts}");
    // Per kill, at most one window and the messages claimed ahead for the rate.
    assert!(count("unknown") <= 3 * 40, "{counts}");
    let submits = smsc.submits();
    for row in &rows {
        assert!(smsc.count(&format!("266{row}")) <= 1, "{row}");
    }

    smsc.until_binds(4);
    let now = smsc_date(
        started.server.reports(started.key(), "limit=1")[0]["created_at"].as_str().unwrap(),
    );
    let receipts: Vec<_> = submits
        .iter()
        .map(|submit| {
            let mut receipt = receipt_from(&submit.number, &submit.number, &now, "DELIVRD");
            receipt.extend(submit.user_reference());
            receipt
        })
        .collect();
    smsc.deliver_all(&receipts);
    let counts = started.server.batch(started.key(), &batchid)["counts"].clone();
    assert_eq!(counts["delivered"], submits.len(), "{counts}");
    assert_eq!(started.balance(), "85");
    started.stop();
}

#[test]
fn messages_that_were_not_sent_at_a_stop_are_sent_after_the_start() {
    let smsc = Scripted::start(accept);
    let slow = settings(&smsc, "rate = 2");
    let started = Started::start(&slow);
    let sent = started.send_to(57_000_000..57_000_030);
    smsc.until_submits(3);
    let started = started.restarted(&settings(&smsc, ""));
    started.until_all(&sent, "submitted");
    for number in numbers(57_000_000..57_000_030) {
        assert_eq!(smsc.count(&number), 1, "{number}");
    }
    assert_eq!(started.balance(), "98.5");
    started.stop();
}

/// The process is killed after the answer to the first part and before the answer to the second one.
/// The receipt of the first part has nothing but its carrier message ID.
#[test]
fn a_kill_between_the_answers_to_two_parts_loses_no_carrier_message_id() {
    let (smsc, started) = start(|submit| match submit.part() {
        1 => vec![Act::Accept("part-1".to_owned())],
        _ => Vec::new(),
    });
    let transid = started.send("57000001", &"Hello ".repeat(40));
    smsc.until_submits(2);
    until("the ID of the first part", || {
        let shown = started.server.place.json(&["message", "show", &transid]);
        (shown["segment_list"][0]["carrier_id"] == "part-1").then_some(())
    });
    let started = started.killed(&settings(&smsc, ""));
    started.until(&transid, "unknown");
    smsc.until_binds(2);
    smsc.deliver(&receipt("part-1", "DELIVRD"));
    assert_eq!(started.report(&transid)["status"], "unknown");
    let now = smsc_date(started.report(&transid)["created_at"].as_str().unwrap());
    let second = smsc.submits().into_iter().find(|submit| submit.part() == 2).unwrap();
    let mut body = receipt_from("26657000001", "part-2", &now, "DELIVRD");
    body.extend(second.user_reference());
    smsc.deliver(&body);
    let report = started.report(&transid);
    assert_eq!(report["status"], "delivered", "{report}");
    started.stop();
}
