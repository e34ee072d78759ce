//! The carrier's answer and receipt decide a message's status and charge.

use crate::peer::{Ids, Kind};
use crate::sending::{Carrier, Sending};
use crate::with_both_peers;

with_both_peers!(
    the_answer_and_receipt_of_the_carrier_decide_status_and_charge,
    receipts_are_matched_when_their_ids_differ_in_form_from_the_answers,
    an_upload_is_submitted_once,
);

/// Number, status, and how much of the price of 0.05 per page is released. The SMSC decides by the
/// last digit of the number.
const OUTCOMES: [(&str, &str, &str); 4] = [
    ("57000001", "delivered", "0"),
    ("57000002", "failed", "0"),
    ("57000003", "expired", "0"),
    ("57000004", "rejected", "0.05"),
];

fn the_answer_and_receipt_of_the_carrier_decide_status_and_charge(kind: Kind) {
    let sending = Sending::start(kind, Carrier::default());
    let sent = OUTCOMES.map(|(number, ..)| sending.send(number, "Hello"));
    for (transid, (number, status, released)) in sent.iter().zip(OUTCOMES) {
        let report = sending.final_report(transid);
        assert_eq!(report["status"], status, "{report}");
        assert_eq!(report["error"].is_null(), status == "delivered", "{report}");
        let taken = status != "rejected";
        assert_eq!(report["submitted_at"].is_string(), taken, "{report}");
        let charge = &report["charge"];
        assert_eq!(charge["charged"].to_string(), "0.05", "{report}");
        assert_eq!(charge["released"].to_string(), released, "{report}");
        let submits = sending.peer.submits_to(&format!("266{number}"));
        assert_eq!(submits.len(), 1, "{number} was submitted once: {submits:?}");
        assert_eq!(submits[0]["refused"], !taken, "{number}");
    }
    // Four messages, of which one was released.
    assert_eq!(sending.server.balance(sending.key()), "99.85");
    sending.answered_receipts(3);
    sending.stop();
}

/// This includes long messages, of which each part has an ID and a receipt of its own.
fn receipts_are_matched_when_their_ids_differ_in_form_from_the_answers(kind: Kind) {
    let carrier = Carrier { ids: Ids::HexToDecimal, more: "message_id = \"hex-to-decimal\"" };
    let sending = Sending::start(kind, carrier);
    let long = "a".repeat(400);
    let sent = OUTCOMES.map(|(number, ..)| sending.send(number, &long));
    for (transid, (_, status, released)) in sent.iter().zip(OUTCOMES) {
        let report = sending.final_report(transid);
        assert_eq!(report["status"], status, "{report}");
        assert_eq!(report["segments"], 3, "{report}");
        // The price of three pages.
        let released = if released == "0" { "0" } else { "0.15" };
        assert_eq!(report["charge"]["released"].to_string(), released, "{report}");
    }
    sending.stop();
}

fn an_upload_is_submitted_once(kind: Kind) {
    const ROWS: usize = 500;
    let sending = Sending::start(kind, Carrier::default());
    let numbers: Vec<String> = (0..ROWS).map(|n| (58_000_001 + n * 10).to_string()).collect();
    let batchid = sending.server.accepted_batch(sending.key(), &numbers.join("\n"));
    let batch = sending.server.done_batch(sending.key(), &batchid);
    assert_eq!(batch["counts"]["delivered"], ROWS, "{batch}");
    for number in &numbers {
        let received = sending.peer.received(&format!("266{number}"));
        let texts: Vec<&str> = received.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(texts, ["Hello"], "{number}");
    }
    sending.stop();
}
