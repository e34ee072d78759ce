//! Receipts that come early, twice, late, in other formats or for other messages.

use serde_json::Value;
use testing::harness::until;
use testing::smsc::receipt;

use crate::acme::{accept, numbers, settings, smsc_date, start};
use crate::scripted::{Act, Scripted, receipt_from};
use crate::started::Started;

/// Returns how often the timeline contains a status.
fn times(report: &Value, status: &str) -> usize {
    let timeline = report["timeline"].as_array().unwrap();
    let with = timeline.iter().filter(|event| event["status"] == status);
    with.count()
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

/// The receipt comes much earlier than the answer and is stored before the answer.
#[test]
fn a_receipt_for_an_unknown_id_is_matched_when_the_answer_brings_the_id() {
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
    // A contradicting receipt appears in the timeline but changes nothing else.
    smsc.deliver(&receipt("26657000001", "UNDELIV"));
    let contradicted = started.report(&transid);
    assert_eq!(contradicted["status"], "delivered", "{contradicted}");
    assert_eq!(contradicted["final_at"], first["final_at"]);
    assert_eq!(times(&contradicted, "failed"), 1, "{contradicted}");
    started.stop();
}

/// The first receipt counts, even if both arrive in the same read.
#[test]
fn the_first_of_two_receipts_that_come_at_once_counts() {
    let (smsc, started) = start(|submit| {
        let (first, second) =
            if submit.before % 2 == 0 { ("DELIVRD", "UNDELIV") } else { ("EXPIRED", "DELIVRD") };
        vec![
            Act::Accept(submit.number.clone()),
            Act::Deliver(receipt(&submit.number, first)),
            Act::Deliver(receipt(&submit.number, second)),
        ]
    });
    for number in 57_000_001..57_000_011 {
        let transid = started.send(&number.to_string(), "Hello");
        let status = if number % 2 == 1 { "delivered" } else { "expired" };
        started.until(&transid, status);
    }
    smsc.until_acknowledged(20);
    started.stop();
}

#[test]
fn a_carrier_id_is_matched_in_each_form_that_the_settings_name() {
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

/// A receipt with an unknown ID belongs to the message to its number whose answer was lost, but
/// only if the submit date fits.
#[test]
fn a_receipt_with_a_submit_date_of_months_ago_matches_no_message() {
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

/// These words aren't in SMPP 3.4. Customers don't see what the carrier writes beside the error.
#[test]
fn a_receipt_may_say_buffered_and_failed() {
    let (smsc, started) = start(accept);
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    let receipt = |stat: &str| {
        let text = format!("id:26657000001 stat:{stat} err:034 imsi:651010000000001 text:");
        testing::smsc::deliver(4, 0, text.as_bytes(), &[])
    };
    smsc.deliver(&receipt("BUFFRED"));
    assert_eq!(started.report(&transid)["status"], "submitted");
    smsc.deliver(&receipt("FAILED"));
    let report = started.report(&transid);
    assert_eq!(
        (&report["status"], &report["error"]),
        (&"failed".into(), &"undeliverable_034".into())
    );
    started.stop();
}

/// The answers have no message IDs. The first receipt echoes the reference of its message, and the
/// second one has only its number and date.
#[test]
fn a_receipt_finds_a_message_that_was_accepted_without_an_id() {
    let (smsc, started) = start(|_| vec![Act::Accept(String::new())]);
    let sent = started.send_to(57_000_001..57_000_003);
    started.until_all(&sent, "submitted");
    let now = smsc_date(started.report(&sent[0])["submitted_at"].as_str().unwrap());
    for (place, transid) in sent.iter().enumerate() {
        let submits = smsc.submits();
        let number = format!("2665700000{}", place + 1);
        let submit = submits.iter().find(|submit| submit.number == number).unwrap();
        let mut body = receipt_from(&number, "unknown", &now, "DELIVRD");
        if place == 0 {
            body.extend(submit.user_reference());
        }
        smsc.deliver(&body);
        assert_eq!(started.report(transid)["status"], "delivered", "{place}");
    }
    // Staff see their messages, although none of these has the ID in the receipt.
    let (answers, matched) = until("stored receipts", || {
        let mut found = receipts(&started, &[])["receipts"].as_array().unwrap().clone();
        found.reverse();
        let (answers, matched): (Vec<_>, Vec<_>) =
            found.into_iter().partition(|receipt| receipt["outcome"] == "accepted_without_id");
        (matched.len() == 2 && !answers.is_empty()).then_some((answers, matched))
    });
    for (receipt, transid) in matched.iter().zip(&sent) {
        assert_eq!(receipt["transid"], transid.as_str(), "{matched:?}");
    }
    assert_eq!(answers[0]["raw"], "command_status=ESME_ROK 0x00000000 message_id=");
    let log = started.server.log();
    assert_eq!(log.matches("the carrier accepted a message without an ID").count(), 1, "{log}");
    started.stop();
}

/// An older message to the same number got no answer, and the receipt of the newer message comes
/// before its answer.
#[test]
fn a_receipt_without_an_id_is_not_matched_to_another_message() {
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
        // The older message's own receipt comes too.
        smsc.deliver(&delivered("first", 0));
        assert_eq!(started.report(&lost)["status"], "delivered");
        started.stop();
    }
}

/// Returns the output of `carrier receipts acme`.
fn receipts(started: &Started, arguments: &[&str]) -> Value {
    started.server.place.json(&[&["carrier", "receipts", "acme"], arguments].concat())
}

/// The answers are hexadecimal and the receipts decimal, but the settings don't say so.
#[test]
fn unmatched_receipts_suggest_a_format_and_match_once_it_is_set() {
    let (smsc, started) = start(|submit| {
        let id = submit.before + 0xAB00;
        vec![Act::Accept(format!("{id:08X}"))]
    });
    let sent = started.send_to(57_000_001..57_000_004);
    started.until_all(&sent, "submitted");
    let now = smsc_date(started.report(&sent[0])["submitted_at"].as_str().unwrap());
    for (place, submit) in smsc.submits().iter().enumerate() {
        let id = (place + 0xAB00).to_string();
        smsc.deliver(&receipt_from(&submit.number, &id, &now, "DELIVRD"));
    }
    // A receipt with such an ID, but for another number, mustn't match.
    smsc.deliver(&receipt_from("26657000009", "43776", &now, "UNDELIV"));
    let found = receipts(&started, &["--unmatched"]);
    let suggested = serde_json::json!([{"message_id": "hex-to-decimal", "receipts": 3}]);
    assert_eq!((&found["unmatched"], &found["suggestions"]), (&4.into(), &suggested), "{found}");
    let listed = found["receipts"].as_array().unwrap();
    assert_eq!(listed.len(), 4);
    assert!(listed[0]["reason"].as_str().unwrap().starts_with("a message to another number"));
    let first = &listed[3];
    assert_eq!(
        first["reason"],
        "the receipt's ID is decimal, and the answer's is hexadecimal: set message_id = \
         \"hex-to-decimal\""
    );
    assert_eq!((&first["written_id"], &first["state"]), (&"43776".into(), &"DELIVRD".into()));
    let candidate = &first["candidates"][0];
    assert_eq!(candidate["carrier_id"], "0000AB00", "{first}");
    assert_eq!(candidate["is_to_number"], true);
    let shown = started.server.place.run(&["carrier", "receipts", "acme", "--unmatched"]).stdout;
    let shown = String::from_utf8(shown).unwrap();
    let advice = "3 of 4 unmatched receipts would match with message_id = \"hex-to-decimal\".";
    assert!(shown.contains(advice), "{shown}");
    let corrected = settings(&smsc, "message_id = \"hex-to-decimal\"");
    let started = started.restarted(&corrected);
    started.until_all(&sent, "delivered");
    let found = receipts(&started, &["--unmatched"]);
    assert_eq!(found["receipts"].as_array().unwrap().len(), 1, "{found}");
    assert_eq!(found["suggestions"].as_array().unwrap().len(), 0);
    started.stop();
}

/// Only a format that also matches new answers is suggested, and the log names the command.
#[test]
fn a_suggested_format_also_matches_new_messages() {
    for (form, answer, receipt_id) in
        [("decimal-to-hex", "4580604", "45e4fc"), ("hex-to-decimal", "abc45e583", "46108370307")]
    {
        let (smsc, started) = start(|_| vec![Act::Accept(answer.to_owned())]);
        let transid = started.send("57000001", "Hello");
        started.until(&transid, "submitted");
        let now = smsc_date(started.report(&transid)["submitted_at"].as_str().unwrap());
        let number = smsc.submits()[0].number.clone();
        let delivered = || receipt_from(&number, receipt_id, &now, "DELIVRD");
        smsc.deliver(&delivered());
        let found = receipts(&started, &["--unmatched"]);
        let suggested = serde_json::json!([{"message_id": form, "receipts": 1}]);
        assert_eq!(found["suggestions"], suggested, "{found}");
        let advice = format!("set message_id = \"{form}\"");
        assert_eq!(started.carrier("acme")["reason"], Value::Null);
        assert!(found["receipts"][0]["reason"].as_str().unwrap().ends_with(&advice), "{found}");
        for stranger in 0..9 {
            assert!(!started.server.log().contains("--unmatched"), "{}", started.server.log());
            smsc.deliver(&receipt(&format!("stranger-{stranger}"), "DELIVRD"));
        }
        until("a warning", || {
            let log = started.server.log();
            log.contains("heliograph carrier receipts acme --unmatched").then_some(())
        });
        let shown = started.server.place.run(&["carrier", "show", "acme"]).stdout;
        let shown = String::from_utf8(shown).unwrap();
        let count = shown.lines().find(|line| line.starts_with("Unmatched receipts"));
        assert!(count.is_some_and(|line| line.ends_with(" 10")), "{shown}");
        let reason = "10 of the last 10 receipts match no message: /support/carriers/acme/receipts";
        until("the reason", || {
            let found = started.carrier("acme")["reason"].clone();
            found.as_str().is_some_and(|found| found.starts_with(reason)).then_some(())
        });

        let started = started.restarted(&settings(&smsc, &format!("message_id = \"{form}\"")));
        started.until_all(&[transid], "delivered");
        let transid = started.send("57000001", "Again");
        started.until(&transid, "submitted");
        smsc.deliver(&delivered());
        started.until_all(&[transid], "delivered");
        started.stop();
    }
}

#[test]
fn receipts_are_kept_as_the_carrier_sent_them() {
    let (smsc, started) = start(accept);
    let sent = started.send_to(57_000_001..57_000_002);
    started.until_all(&sent, "submitted");
    let text = "id:26657000001 stat:ENROUTE err:000 secret";
    smsc.deliver(&testing::smsc::deliver(4, 0, text.as_bytes(), &[]));
    smsc.deliver(&receipt("26657000001", "VANISHED"));
    smsc.deliver(&receipt("26657000001", "DELIVRD"));
    smsc.deliver(&receipt("stranger", "DELIVRD"));
    let found = until("stored receipts", || {
        let found = receipts(&started, &[]);
        (found["receipts"].as_array().unwrap().len() == 4).then_some(found)
    });
    let listed = found["receipts"].as_array().unwrap();
    let outcomes: Vec<_> = listed.iter().map(|receipt| receipt["outcome"].clone()).collect();
    assert_eq!(outcomes, ["unmatched", "matched", "unknown_state", "intermediate"]);
    assert_eq!(listed[1]["transid"], sent[0].as_str());
    assert_eq!(listed[3]["raw"], "id:26657000001 stat:ENROUTE err:000");
    let by_id = receipts(&started, &["--id", "stranger"]);
    assert_eq!(by_id["receipts"].as_array().unwrap().len(), 1, "{by_id}");
    let number = listed[0]["number"].as_str().unwrap();
    let by_number = receipts(&started, &["--number", number]);
    assert_eq!(by_number["receipts"].as_array().unwrap().len(), 4, "{by_number}");
    let carriers = started.server.place.json(&["carrier", "list"]);
    assert_eq!(carriers[0]["receipts_unknown_state"], 1, "{carriers}");
    started.stop();
}

#[test]
fn a_carrier_whose_receipts_have_unknown_states_says_so() {
    let (smsc, started) = start(accept);
    let sent = started.send_to(57_000_001..57_000_011);
    started.until_all(&sent, "submitted");
    for number in numbers(57_000_001..57_000_010) {
        smsc.deliver(&receipt(&number, "VANISHED"));
    }
    until("the receipts", || {
        let found = receipts(&started, &[]);
        (found["receipts"].as_array().unwrap().len() == 9).then_some(())
    });
    assert_eq!(started.carrier("acme")["reason"], Value::Null, "nine are too few");
    smsc.deliver(&receipt("26657000010", "VANISHED"));
    let reason = "10 of the last 10 receipts have an unknown state: ask the carrier what it means";
    until("the reason", || {
        let found = started.carrier("acme")["reason"].clone();
        found.as_str().is_some_and(|found| found.starts_with(reason)).then_some(())
    });
    started.stop();
}

#[test]
fn the_settings_of_a_carrier_name_its_states_and_errors() {
    let smsc = Scripted::start(accept);
    let table = "states = { \"DONE\" = \"delivered\", \"DELIVRD\" = \"enroute\" }\n\
                 errors = { \"034\" = \"handset_unavailable\" }";
    let started = Started::start(&settings(&smsc, table));
    smsc.until_bound();
    let sent = started.send_to(57_000_001..57_000_003);
    started.until_all(&sent, "submitted");
    smsc.deliver(&receipt("26657000001", "DELIVRD"));
    assert_eq!(started.report(&sent[0])["status"], "submitted");
    smsc.deliver(&receipt("26657000001", "DONE"));
    assert_eq!(started.report(&sent[0])["status"], "delivered");
    let failed = "id:26657000002 stat:UNDELIV err:034 text:";
    smsc.deliver(&testing::smsc::deliver(4, 0, failed.as_bytes(), &[]));
    let report = started.report(&sent[1]);
    assert_eq!(report["error"], "handset_unavailable_034", "{report}");
    started.stop();
}

/// The process is killed before the answer comes. The receipt comes before the lease of the claim
/// has ended, so no segment is known yet.
#[test]
fn a_receipt_that_comes_before_a_lease_ends_is_matched_after_it() {
    let (smsc, started) = start(|_| Vec::new());
    let transid = started.send("57000001", "Hello");
    smsc.until_submits(1);
    let now = smsc_date(started.report(&transid)["created_at"].as_str().unwrap());
    let mut body = receipt_from("26657000001", "unknown", &now, "DELIVRD");
    body.extend(smsc.submits()[0].user_reference());
    smsc.deliver(&body);
    assert_eq!(started.report(&transid)["status"], "sending");
    let started = started.killed(&settings(&smsc, ""));
    started.until(&transid, "delivered");
    started.stop();
}
