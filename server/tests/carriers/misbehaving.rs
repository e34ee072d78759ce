//! A carrier that misbehaves: what it took is charged once and sent once, and nothing is lost.

use serde_json::Value;
use testing::harness::until;
use testing::smsc::receipt;

use crate::scripted::{Act, Scripted, Submit, receipt_from};
use crate::started::Started;

/// SMPP's ESME_RTHROTTLED.
const THROTTLED: u32 = 0x58;
/// SMPP's ESME_RINVDSTADR.
const INVALID_DESTINATION: u32 = 0x0B;

fn settings(smsc: &Scripted, more: &str) -> String {
    format!(
        "[[carrier]]\nname = \"acme\"\nkind = \"smpp\"\naddress = \"{}\"\nsystem_id = \"heliograph\"\n\
         password = \"secret\"\n{more}\n",
        smsc.address
    )
}

fn start(script: impl FnMut(&Submit) -> Vec<Act> + Send + 'static) -> (Scripted, Started) {
    let smsc = Scripted::start(script);
    let started = Started::start(&settings(&smsc, ""));
    smsc.until_bound();
    (smsc, started)
}

/// Takes everything under the number that it is for.
fn accept(submit: &Submit) -> Vec<Act> {
    vec![Act::Accept(submit.number.clone())]
}

fn numbers(range: std::ops::Range<u32>) -> impl Iterator<Item = String> {
    range.map(|number| format!("266{number}"))
}

/// How often the timeline has a status.
fn times(report: &Value, status: &str) -> usize {
    let timeline = report["timeline"].as_array().unwrap();
    let with = timeline.iter().filter(|event| event["status"] == status);
    with.count()
}

/// Takes the 5 s that an answer has under so short a claim; by default it is 30 s.
#[test]
fn what_is_never_answered_is_unknown_and_not_sent_again() {
    let smsc = Scripted::start(|_| Vec::new());
    let settings = format!("lease_seconds = 10\n{}", settings(&smsc, ""));
    let started = Started::start(&settings);
    smsc.until_bound();
    let sent = started.send_to(57_000_001..57_000_006);
    started.until_all(&sent, "unknown");
    assert_eq!(started.balance(), "99.75");
    smsc.follow(accept);
    // The connection is none any more; after a bind the next messages go.
    let next = started.send("57000009", "Hello");
    started.until(&next, "submitted");
    for number in numbers(57_000_001..57_000_006) {
        assert_eq!(smsc.count(&number), 1, "{number}");
    }
    started.stop();
}

/// Takes the 5 s that an answer has under so short a claim. Without another way the messages wait.
#[test]
fn what_waits_for_a_carrier_that_answers_nothing_is_handed_over_one_by_one() {
    let smsc = Scripted::start(|_| Vec::new());
    let settings = format!("lease_seconds = 10\n{}", settings(&smsc, "window = 5"));
    let started = Started::start(&settings);
    smsc.until_bound();
    let lost = started.send_to(57_000_000..57_000_005);
    smsc.until_submits(5);
    let waiting = started.send_to(57_000_005..57_000_011);
    started.until_all(&lost, "unknown");
    until("a probe", || {
        let connection = started.connection("acme");
        (connection["state"] == "probing" && connection["in_flight"] == 1).then_some(())
    });
    assert_eq!(smsc.submits().len(), 6);
    smsc.follow(accept);
    smsc.accept_late(5, "first");
    started.until_all(&waiting, "submitted");
    for number in numbers(57_000_000..57_000_011) {
        assert_eq!(smsc.count(&number), 1, "{number}");
    }
    until("a connection that is as good as before", || {
        (started.connection("acme")["state"] == "bound").then_some(())
    });
    assert_eq!(started.balance(), "99.45");
    started.stop();
}

/// Thirty of thirty: operators see it.
#[test]
fn a_carrier_that_refuses_everything_is_told_of() {
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
        let refused = connection["last_error"] == "a submit was refused: invalid_destination";
        (refused && connection["state"] == "bound").then_some(())
    });
    let log = started.server.log();
    let told = |line: &&str| line.contains("a carrier refused messages");
    let lines: Vec<&str> = log.lines().filter(told).collect();
    assert_eq!(lines.len(), 1, "once a minute: {log}");
    assert!(lines[0].contains("acme") && lines[0].contains("invalid_destination"));
    assert!(!log.contains("5700") && !log.contains(TEXT), "{log}");
    assert_eq!(started.balance(), "100");
    started.stop();
}

#[test]
fn a_throttle_storm_loses_nothing_and_counts_no_attempt() {
    let (smsc, started) = start(|submit| {
        if submit.before < 60 {
            vec![Act::Refuse(THROTTLED)]
        } else {
            accept(submit)
        }
    });
    let sent = started.send_to(57_000_000..57_000_040);
    started.until_all(&sent, "submitted");
    for transid in &sent {
        let report = started.report(transid);
        // A try that counts stands there with its cause.
        let timeline = report["timeline"].as_array().unwrap();
        let statuses: Vec<_> = timeline.iter().map(|event| &event["status"]).collect();
        assert_eq!(statuses, ["queued", "sending", "submitted"], "{report}");
    }
    assert_eq!(smsc.submits().len(), 40 + 60, "each was taken once");
    assert_eq!(started.balance(), "98");
    started.stop();
}

#[test]
fn a_receipt_may_come_before_the_answer() {
    let (smsc, started) = start(|submit| {
        let delivered = receipt(&submit.number, "DELIVRD");
        vec![Act::Deliver(delivered), Act::Accept(submit.number.clone())]
    });
    let sent = started.send_to(57_000_001..57_000_021);
    started.until_all(&sent, "delivered");
    for number in numbers(57_000_001..57_000_021) {
        assert_eq!(smsc.count(&number), 1, "{number}");
    }
    started.stop();
}

/// Much earlier: it is stored before the answer leaves.
#[test]
fn a_receipt_for_an_unknown_id_finds_its_message_later() {
    let (smsc, started) = start(|_| Vec::new());
    let transid = started.send("57000001", "Hello");
    smsc.until_submits(1);
    smsc.deliver(&receipt("later", "UNDELIV"));
    assert_ne!(started.report(&transid)["status"], "failed");
    smsc.accept_late(0, "later");
    let report = started.until(&transid, "failed");
    assert_eq!(report["charge"]["released"].to_string(), "0", "{report}");
    started.stop();
}

#[test]
fn a_second_receipt_changes_nothing() {
    let (smsc, started) = start(accept);
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    let delivered = receipt("26657000001", "DELIVRD");
    smsc.deliver(&delivered);
    let first = started.report(&transid);
    assert_eq!(first["status"], "delivered", "{first}");
    smsc.deliver(&delivered);
    assert_eq!(started.report(&transid), first);
    // One that says otherwise is told, and no more.
    smsc.deliver(&receipt("26657000001", "UNDELIV"));
    let contradicted = started.report(&transid);
    assert_eq!(contradicted["status"], "delivered", "{contradicted}");
    assert_eq!(contradicted["final_at"], first["final_at"]);
    assert_eq!(times(&contradicted, "failed"), 1, "{contradicted}");
    started.stop();
}

/// The first of them counts, also when they come in one breath.
#[test]
fn of_two_receipts_at_once_the_first_counts() {
    let (smsc, started) = start(|submit| {
        let (first, second) = if submit.before % 2 == 0 {
            ("DELIVRD", "UNDELIV")
        } else {
            ("EXPIRED", "DELIVRD")
        };
        vec![
            Act::Accept(submit.number.clone()),
            Act::Deliver(receipt(&submit.number, first)),
            Act::Deliver(receipt(&submit.number, second)),
        ]
    });
    for number in 57_000_001..57_000_011 {
        let transid = started.send(&number.to_string(), "Hello");
        let status = if number % 2 == 1 {
            "delivered"
        } else {
            "expired"
        };
        started.until(&transid, status);
    }
    smsc.until_acknowledged(20);
    started.stop();
}

#[test]
fn ids_are_found_in_each_form() {
    for (form, answered, reported) in [
        ("text", "00aB", "00aB"),
        ("hex", "00aB", "AB"),
        ("decimal", "0012", "12"),
        ("hex-to-decimal", "1F", "31"),
        ("decimal-to-hex", "31", "0000001f"),
    ] {
        let smsc = Scripted::start(|_| vec![Act::Accept(answered.to_owned())]);
        let form = format!("message_id = \"{form}\"");
        let started = Started::start(&settings(&smsc, &form));
        let transid = started.send("57000001", "Hello");
        started.until(&transid, "submitted");
        smsc.deliver(&receipt(&format!("{reported}7"), "UNDELIV"));
        smsc.deliver(&receipt(reported, "DELIVRD"));
        assert_eq!(started.report(&transid)["status"], "delivered", "{form}");
        started.stop();
    }
}

/// A receipt that names nothing we know is for a message to its number whose answer was lost, when
/// its date fits.
#[test]
fn a_receipt_of_months_ago_is_for_nothing_of_today() {
    let (smsc, started) = start(|_| vec![Act::Cut]);
    let transid = started.send("57000001", "Hello");
    let open = started.until(&transid, "unknown");
    smsc.until_binds(2);
    let months_ago = "2601010000";
    smsc.deliver(&receipt_from("26657000001", "old", months_ago, "UNDELIV"));
    assert_eq!(started.report(&transid), open);
    let now = smsc_date(open["created_at"].as_str().unwrap());
    smsc.deliver(&receipt_from("26657000002", "other", &now, "UNDELIV"));
    assert_eq!(started.report(&transid), open);
    smsc.deliver(&receipt_from("26657000001", "this", &now, "DELIVRD"));
    assert_eq!(started.report(&transid)["status"], "delivered");
    assert_eq!(smsc.count("26657000001"), 1);
    started.stop();
}

/// RFC 3339 as receipts have it: YYMMDDhhmm.
fn smsc_date(at: &str) -> String {
    let digits = at.bytes().filter(u8::is_ascii_digit).map(char::from);
    digits.skip(2).take(10).collect()
}

#[test]
fn a_refused_part_fails_the_message_and_the_charge_stays() {
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
    // Final stays.
    smsc.deliver(&receipt("part-1", "DELIVRD"));
    smsc.deliver(&receipt("part-3", "DELIVRD"));
    assert_eq!(started.report(&transid)["status"], "failed");
    started.stop();
}

#[test]
fn a_throttled_part_alone_is_sent_again() {
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

/// An older message to the same number has no answer, and the receipt comes before the younger
/// one's.
#[test]
fn a_receipt_is_not_taken_for_another_messages() {
    for echoes in [true, false] {
        let (smsc, started) = start(|submit| {
            if submit.before == 0 {
                return vec![Act::Cut];
            }
            Vec::new()
        });
        let lost = started.send("57000001", "Hello");
        let open = started.until(&lost, "unknown");
        smsc.until_binds(2);
        let next = started.send("57000001", "Hello again");
        smsc.until_submits(2);
        let now = smsc_date(open["created_at"].as_str().unwrap());
        let delivered = |id, place: usize| {
            let mut body = receipt_from("26657000001", id, &now, "DELIVRD");
            if echoes {
                body.extend(smsc.submits()[place].user_reference());
            }
            body
        };
        smsc.deliver(&delivered("second", 1));
        smsc.accept_late(1, "second");
        started.until(&next, "delivered");
        assert_eq!(started.report(&lost), open);
        // Its own comes too.
        smsc.deliver(&delivered("first", 0));
        assert_eq!(started.report(&lost)["status"], "delivered");
        started.stop();
    }
}

/// A message is sent on where its connection was lost before that, and not where the carrier has
/// it.
#[test]
fn a_lost_connection_repeats_only_what_had_not_left() {
    let (smsc, started) = start(|submit| {
        if submit.before == 3 {
            vec![Act::Cut]
        } else {
            accept(submit)
        }
    });
    let numbers_sent: Vec<String> = (57_000_000..57_000_050)
        .map(|n: u32| n.to_string())
        .collect();
    let batchid = started
        .server
        .accepted_batch(started.key(), &numbers_sent.join("\n"));
    let counts = until("all to be handed over", || {
        let counts = started.server.batch(started.key(), &batchid)["counts"].clone();
        (counts["queued"] == 0 && counts["sending"] == 0).then_some(counts)
    });
    let unknown = counts["unknown"].as_u64().unwrap();
    assert!(unknown >= 1, "{counts}");
    assert_eq!(
        counts["submitted"].as_u64().unwrap() + unknown,
        50,
        "{counts}"
    );
    for number in numbers(57_000_000..57_000_050) {
        assert!(smsc.count(&number) <= 1, "{number}");
    }
    assert_eq!(started.balance(), "97.5");
    started.stop();
}

#[test]
fn what_was_in_flight_at_a_kill_is_unknown_and_sent_once() {
    const MESSAGES: u32 = 12;
    const LONG: &str = "26657000100";
    // One part of each long message is answered.
    let (smsc, started) = start(|submit| {
        if submit.number == LONG && submit.part() == 1 {
            accept(submit)
        } else {
            Vec::new()
        }
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
    assert_eq!(smsc.count(LONG), 2, "a part each");
    assert_eq!(balance, "99.3");
    assert_eq!(started.balance(), "99.25");
    // A receipt settles one.
    smsc.deliver(&receipt_from(
        "26657000003",
        "x",
        &smsc_date(started.report(&short[3])["created_at"].as_str().unwrap()),
        "DELIVRD",
    ));
    assert_eq!(started.report(&short[3])["status"], "delivered");
    started.stop();
}

/// Whatever moment a kill hits, nothing is sent twice, and what the carrier has can still be
/// settled.
#[test]
fn kills_under_load_send_nothing_twice() {
    const ROWS: u64 = 300;
    let smsc = Scripted::start(accept);
    let settings = settings(&smsc, "window = 20\nrate = 300");
    let mut started = Started::start(&settings);
    let rows: Vec<String> = (0..ROWS).map(|n| (57_000_000 + n).to_string()).collect();
    let batchid = started
        .server
        .accepted_batch(started.key(), &rows.join("\n"));
    for submits in [40, 110, 180] {
        smsc.until_submits(submits);
        started = started.killed(&settings);
    }
    let counts = until("all to be handed over", || {
        let counts = started.server.batch(started.key(), &batchid)["counts"].clone();
        (counts["queued"] == 0 && counts["sending"] == 0).then_some(counts)
    });
    let count = |status: &str| counts[status].as_u64().unwrap();
    assert_eq!(count("submitted") + count("unknown"), ROWS, "{counts}");
    // At most a window, and what is claimed ahead of the rate, for each kill.
    assert!(count("unknown") <= 3 * 40, "{counts}");
    let submits = smsc.submits();
    for row in &rows {
        assert!(smsc.count(&format!("266{row}")) <= 1, "{row}");
    }

    smsc.until_binds(4);
    let now = smsc_date(
        started.server.reports(started.key(), "limit=1")[0]["created_at"]
            .as_str()
            .unwrap(),
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
fn what_had_not_left_at_a_stop_is_sent_after_the_start() {
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
