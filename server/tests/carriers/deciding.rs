//! Decisions of operators: about messages whose outcome is unknown, and about routes.

use serde_json::json;
use testing::harness::until;

use crate::routes::carriers;
use crate::scripted::{Act, Scripted, deliver};
use crate::started::Started;

/// Starts a server whose carrier cuts the connection at the first submits, so that these messages
/// are `unknown`.
fn unknown(count: u32) -> (Scripted, Started, Vec<String>) {
    let smsc = Scripted::start(|_| vec![Act::Cut]);
    let started = Started::start(&carriers(&[("one", &smsc.address)]));
    smsc.until_bound();
    let sent: Vec<String> = (57_000_001..57_000_001 + count)
        .map(|number: u32| {
            let transid = started.send(&number.to_string(), "Hello");
            started.until(&transid, "unknown");
            transid
        })
        .collect();
    smsc.follow(deliver);
    (smsc, started, sent)
}

#[test]
fn staff_settle_messages_whose_outcome_is_unknown() {
    let (smsc, started, sent) = unknown(3);
    assert_eq!(started.balance(), "99.85");
    let place = &started.server.place;
    let listed = |carrier: &str| {
        let list = place.json(&["message", "unknown", "--carrier", carrier]);
        let transids = list.as_array().unwrap().iter().map(|line| line["transid"].clone());
        transids.rev().collect::<Vec<_>>()
    };
    assert_eq!(listed("one"), sent);
    assert!(listed("other").is_empty());
    for (transid, settlement) in sent.iter().zip(["delivered", "failed", "never-sent"]) {
        let done = place.json(&["message", "settle", transid, "--as", settlement]);
        assert_eq!(done, json!([{ "transid": transid }]));
    }
    let statuses: Vec<_> =
        sent.iter().map(|transid| started.report(transid)["status"].clone()).collect();
    assert_eq!(statuses, ["delivered", "failed", "rejected"]);
    // Only the charge of the message that was never sent is released.
    assert_eq!(started.balance(), "99.9");
    let refusal = place.refused(&["message", "settle", &sent[0], "--as", "failed"]);
    assert!(refusal.contains("The outcome of this message is known"), "{refusal}");
    let audit = place.json(&["audit", "list", "--subject", &sent[2]]).to_string();
    assert!(audit.contains("message.settle") && audit.contains("rejected"), "{audit}");
    assert_eq!(smsc.submits().len(), 3);
    assert!(listed("one").is_empty());
    smsc.follow(|submit| vec![Act::Accept(submit.number.clone())]);
    let open = started.send("57000009", "Hello");
    started.until(&open, "submitted");
    let refusal = place.refused(&["message", "settle", &open, "--as", "failed"]);
    assert!(refusal.contains("its receipt is awaited"), "{refusal}");
    started.stop();
}

#[test]
fn an_unknown_message_is_submitted_once_more_on_command() {
    let (smsc, started, sent) = unknown(1);
    let place = &started.server.place;
    place.json(&["message", "requeue", &sent[0]]);
    started.until(&sent[0], "delivered");
    assert_eq!(smsc.submits().len(), 2);
    assert_eq!(started.balance(), "99.95");
    let refusal = place.refused(&["message", "requeue", &sent[0]]);
    assert!(refusal.contains("The outcome of this message is known"), "{refusal}");

    // A message isn't submitted a third time.
    smsc.follow(|_| vec![Act::Cut]);
    let transid = started.send("57000009", "Hello");
    started.until(&transid, "unknown");
    place.json(&["message", "requeue", &transid]);
    smsc.until_submits(4);
    until("a refusal", || {
        let output = place.run(&["message", "requeue", &transid]);
        let words = String::from_utf8(output.stderr).unwrap();
        words.contains("submitted twice").then_some(())
    });
    smsc.follow(deliver);
    smsc.until_binds(4);
    assert_eq!(smsc.count("26657000009"), 2);
    started.stop();
}

#[test]
fn a_route_can_be_tried_out() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let settings = carriers(&[("one", &one.address), ("two", &two.address)])
        + "[[route]]\ncarrier = \"one\"\npriority = 1\nkind = \"local\"\ncost = 0.012\n\
           [[route]]\ncarrier = \"two\"\npriority = 2\nsender = \"Acme\"\n";
    let started = Started::start(&settings);
    let place = &started.server.place;
    let tried = |arguments: &[&str]| place.json(&[&["route", "try"], arguments].concat());
    started.until_up("one");
    started.until_up("two");
    let local = tried(&["57000001", "--sender", "Acme"]);
    assert_eq!(local["carrier"], "one", "{local}");
    assert_eq!(local["number"], "26657000001");
    assert_eq!(local["price"], "0.05");
    assert_eq!(local["routes"][0]["cost"], "0.012");
    assert_eq!(local["routes"][1]["unfit"], serde_json::Value::Null);
    let abroad = tried(&["+4915100000"]);
    assert_eq!(abroad["carrier"], serde_json::Value::Null, "{abroad}");
    assert_eq!(abroad["routes"][0]["unfit"], "its kind doesn't match");
    assert_eq!(abroad["routes"][1]["unfit"], "its sender doesn't match");
    assert!(abroad["outcome"].as_str().unwrap().contains("rejected"), "{abroad}");
    place.json(&["carrier", "drain", "one"]);
    let drained = tried(&["57000001", "--sender", "Acme"]);
    assert_eq!(drained["carrier"], "two", "{drained}");
    assert_eq!(drained["routes"][0]["unfit"], "its carrier is drained");
    assert_eq!((one.submits().len(), two.submits().len()), (0, 0));
    started.stop();
}
