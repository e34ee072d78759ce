//! A carrier that doesn't answer submits.

use testing::harness::until;

use crate::acme::{accept, numbers, settings};
use crate::scripted::Scripted;
use crate::started::Started;

/// Takes 5 s, which is the time for an answer with `lease_seconds = 10`. By default it is 30 s.
#[test]
fn a_submit_that_is_never_answered_is_unknown_and_not_sent_again() {
    let smsc = Scripted::start(|_| Vec::new());
    let settings = format!("lease_seconds = 10\n{}", settings(&smsc, ""));
    let started = Started::start(&settings);
    smsc.until_bound();
    let sent = started.send_to(57_000_001..57_000_006);
    started.until_all(&sent, "unknown");
    assert_eq!(started.balance(), "99.75");
    smsc.follow(accept);
    // The server has closed the connection. After a new bind it sends the next messages.
    let next = started.send("57000009", "Hello");
    started.until(&next, "submitted");
    for number in numbers(57_000_001..57_000_006) {
        assert_eq!(smsc.count(&number), 1, "{number}");
    }
    started.stop();
}

/// Takes 5 s, which is the time for an answer with `lease_seconds = 10`. The messages have no other
/// route, so they wait.
#[test]
fn a_carrier_that_answers_nothing_is_handed_one_message_at_a_time() {
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
    until("a connection that is bound again", || {
        (started.connection("acme")["state"] == "bound").then_some(())
    });
    assert_eq!(started.balance(), "99.45");
    started.stop();
}

/// Takes 5 s, like the tests above.
#[test]
fn a_late_answer_settles_a_message() {
    let smsc = Scripted::start(|_| Vec::new());
    let settings = format!("lease_seconds = 10\n{}", settings(&smsc, ""));
    let started = Started::start(&settings);
    smsc.until_bound();
    let numbers = ["57000001", "57000002", "57000003"];
    let sent = numbers.map(|number| started.send(number, "Hello"));
    smsc.until_submits(3);
    let place_of = |number: &str| {
        let number = format!("266{number}");
        smsc.submits().iter().position(|submit| submit.number == number).unwrap()
    };
    // The connection stays, because the carrier answers another submit in time.
    smsc.accept_late(place_of(numbers[2]), "in time");
    for transid in &sent[..2] {
        started.until(transid, "unknown");
    }
    assert_eq!(smsc.binds(), 1);
    smsc.accept_late(place_of(numbers[0]), "late");
    smsc.answer_late(place_of(numbers[1]), 0x0B, &[]);
    started.until(&sent[0], "submitted");
    let refused = started.until(&sent[1], "rejected");
    assert_eq!(refused["charge"]["released"].to_string(), "0.05", "{refused}");
    smsc.deliver(&testing::smsc::receipt("late", "DELIVRD"));
    let report = started.report(&sent[0]);
    assert_eq!(report["status"], "delivered", "{report}");
    let details = report["timeline"].as_array().unwrap().iter().map(|step| &step["detail"]);
    let note = "the carrier answered late and accepted it";
    assert_eq!(details.filter(|detail| **detail == note).count(), 1, "{report}");
    started.stop();
}
