//! Carriers and routes that are reloaded while the server runs.

use serde_json::Value;
use testing::harness::until;

use crate::acme::smsc_date;
use crate::routes::{AROUND, carriers};
use crate::scripted::{Act, Scripted, deliver, receipt_from};
use crate::started::Started;
use crate::upstream::Upstream;

fn reload(started: &Started) -> String {
    let answers = started.server.place.json(&["carrier", "reload"]);
    let [answer] = &answers.as_array().unwrap()[..] else { panic!("{answers}") };
    assert_eq!(answer["refused"], false, "{answer}");
    answer["text"].as_str().unwrap().to_owned()
}

#[test]
fn a_reload_adds_changes_and_removes_carriers() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let only_one = carriers(&[("one", &one.address)]);
    let started = Started::start(&only_one);
    one.until_bound();
    let first = started.send("57000001", "Hello");
    started.until(&first, "delivered");

    started.write(&(carriers(&[("one", &one.address), ("two", &two.address)]) + AROUND));
    assert_eq!(reload(&started), "carrier two added, routes changed");
    two.until_bound();
    assert_eq!(one.binds(), 1, "an unchanged carrier keeps its connection");

    let two_first = AROUND.replace("priority = 1\n", "priority = 3\n");
    let changed = carriers(&[("one", &one.address)]) + "window = 7\n";
    started.write(&(changed + &carriers(&[("two", &two.address)]) + &two_first));
    assert_eq!(reload(&started), "carrier one changed, so it binds again, routes changed");
    one.until_binds(2);
    until("the new window", || (started.connection("one")["window"] == 7).then_some(()));
    let second = started.send("57000002", "Hello");
    started.until(&second, "delivered");
    assert_eq!((one.submits().len(), two.submits().len()), (1, 1));

    started.write(&carriers(&[("two", &two.address)]));
    assert_eq!(reload(&started), "carrier one removed, routes changed");
    assert_eq!(started.carrier("one"), Value::Null);
    one.until_unbound();
    assert_eq!(reload(&started), "no carrier or route changed");
    // The sandbox for test messages goes on.
    let test_key = started.keys.test.expose();
    let tested = started.server.accepted(test_key, "57000001");
    assert_eq!(started.server.final_report(test_key, &tested)["status"], "delivered");
    started.stop();
}

#[test]
fn waiting_messages_follow_a_reload() {
    let nobody = Upstream::nobody();
    let two = Scripted::delivering();
    let started = Started::start(&carriers(&[("one", &nobody)]));
    let sent = started.send_to(57_000_001..57_000_011);
    // The carrier stays, but no route leads these messages to it any more.
    let routes = "[[route]]\ncarrier = \"one\"\nkind = \"international\"\n\
                  [[route]]\ncarrier = \"two\"\n";
    started.write(&(carriers(&[("one", &nobody), ("two", &two.address)]) + routes));
    reload(&started);
    started.until_all(&sent, "delivered");
    let abroad = started.send("+4915100000", "Hello");
    // A removed carrier's messages take another route.
    started.write(&carriers(&[("two", &two.address)]));
    reload(&started);
    started.until(&abroad, "delivered");
    started.stop();
}

#[test]
fn a_signal_reloads_the_settings_unless_they_have_an_error() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let started = Started::start(&carriers(&[("one", &one.address)]));
    started.until_up("one");
    let broken = carriers(&[("two", &two.address)]).replace("kind = \"smpp\"", "kind = \"smtp\"");
    started.write(&broken);
    started.server.signal("HUP");
    let log = until("the error", || {
        let log = started.server.log();
        log.contains("weren't reloaded").then_some(log)
    });
    assert!(log.contains("kind must be smpp"), "{log}");
    // The command names the error and shows what the server goes on with.
    let place = &started.server.place;
    for command in [&["carrier", "list"][..], &["carrier", "show", "one"]] {
        let listed = place.run(command);
        assert!(listed.status.success(), "{listed:?}");
        let [shown, error] =
            [listed.stdout, listed.stderr].map(|text| String::from_utf8(text).unwrap());
        assert!(shown.contains("one 0.1") && shown.contains("bound"), "{shown}");
        for part in ["heliograph.toml", "line 3", "kind must be smpp", "earlier settings"] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
    let refused = place.refused(&["carrier", "reload"]);
    assert!(refused.contains("kind must be smpp"), "{refused}");
    let sent = started.send("57000001", "Hello");
    started.until(&sent, "delivered");

    started.write(&carriers(&[("two", &two.address)]));
    started.server.signal("HUP");
    two.until_bound();
    one.until_unbound();
    let sent = started.send("57000002", "Hello");
    started.until(&sent, "delivered");
    assert_eq!((one.submits().len(), two.submits().len()), (1, 1));
    started.stop();
}

#[test]
fn a_carrier_is_bound_again_on_command() {
    let one = Scripted::delivering();
    let started = Started::start(&carriers(&[("one", &one.address)]));
    one.until_bound();
    started.server.place.json(&["carrier", "rebind", "one"]);
    one.until_binds(2);
    let sent = started.send("57000001", "Hello");
    started.until(&sent, "delivered");
    let refusal = started.server.place.refused(&["carrier", "rebind", "two"]);
    assert!(refusal.contains("carrier"), "{refusal}");
    let place = started.stop();
    let refusal = place.refused(&["carrier", "reload"]);
    assert!(refusal.contains("is the server running?"), "{refusal}");
}

/// Submits in flight are answered before the connection is closed.
#[test]
fn a_reload_loses_no_message_in_flight() {
    let one =
        Scripted::start(|submit| if submit.before < 5 { Vec::new() } else { deliver(submit) });
    let settings = carriers(&[("one", &one.address)]);
    let started = Started::start(&settings);
    let sent = started.send_to(57_000_001..57_000_006);
    one.until_submits(5);
    started.write(&(settings + "window = 50\n"));
    reload(&started);
    until("the connection to be closing", || {
        let connections = started.carrier("one")["connections"].clone();
        connections.as_array()?.is_empty().then_some(())
    });
    for before in 0..5 {
        one.accept_late(before, &format!("late-{before}"));
    }
    started.until_all(&sent, "submitted");
    one.until_binds(2);
    assert_eq!(one.submits().len(), 5);
    started.stop();
}

/// Replaces the error `000` in a receipt.
fn with_error(mut receipt: Vec<u8>, error: [u8; 3]) -> Vec<u8> {
    let at = receipt.windows(7).position(|part| part == b"err:000").unwrap() + 4;
    receipt[at..at + 3].copy_from_slice(&error);
    receipt
}

/// One receipt has its ID in another format, and the other one also a state that isn't known.
#[test]
fn receipts_apply_once_the_format_of_their_ids_and_their_states_are_reloaded() {
    let one = Scripted::start(|submit| vec![Act::Accept(format!("ff0{}", submit.before + 1))]);
    let settings = carriers(&[("one", &one.address)]);
    let started = Started::start(&settings);
    let (delivered, vanished) = (started.send("57000001", "Hello"), started.send("57000002", "Hi"));
    started.until(&delivered, "submitted");
    let report = started.until(&vanished, "submitted");
    let submitted = smsc_date(report["created_at"].as_str().unwrap());
    let ids = one.submits().into_iter().map(|submit| (submit.number, 65281 + submit.before));
    for (number, id) in ids {
        let state = if number.ends_with('1') { "DELIVRD" } else { "VANISHED" };
        let receipt = receipt_from(&number, &id.to_string(), &submitted, state);
        one.deliver(&with_error(receipt, *b"034"));
    }
    let place = &started.server.place;
    let found = until("both receipts", || {
        let found = place.json(&["carrier", "receipts", "one"]);
        (found["receipts"].as_array().unwrap().len() == 2).then_some(found)
    });
    assert_eq!(found["suggestions"][0]["message_id"], "hex-to-decimal", "{found}");
    let outcome = |found: &Value, state: &str| {
        let receipts = found["receipts"].as_array().unwrap();
        receipts.iter().find(|receipt| receipt["state"] == state).unwrap()["outcome"].clone()
    };
    assert_eq!(outcome(&found, "DELIVRD"), "unmatched");
    assert_eq!(outcome(&found, "VANISHED"), "unknown_state");
    let corrected = "message_id = \"hex-to-decimal\"\n\
                     states = { \"VANISHED\" = \"failed\" }\n\
                     errors = { \"034\" = \"handset_unavailable\" }\n";
    started.write(&(settings + corrected));
    reload(&started);
    started.until(&delivered, "delivered");
    let report = started.until(&vanished, "failed");
    assert_eq!(report["error"], "handset_unavailable_034", "{report}");
    let found = place.json(&["carrier", "receipts", "one"]);
    assert_eq!(outcome(&found, "VANISHED"), "matched");
    started.stop();
}
