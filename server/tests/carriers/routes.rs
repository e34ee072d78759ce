//! Routes decide which carrier gets which message.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::Category;
use testing::harness::{Place, until};
use testing::smsc::receipt;

use crate::acme::smsc_date;
use crate::scripted::{Act, Scripted, deliver, receipt_to};
use crate::started::Started;
use crate::upstream::Upstream;

/// Returns the settings of carriers with these names and addresses, without routes.
pub fn carriers(carriers: &[(&str, &str)]) -> String {
    let each = carriers.iter().map(|(name, address)| {
        format!(
            "[[carrier]]\nname = \"{name}\"\nkind = \"smpp\"\naddress = \"{address}\"\n\
             system_id = \"heliograph\"\npassword = \"secret\"\n"
        )
    });
    each.collect()
}

pub fn both(one: &Scripted, two: &Scripted, routes: &str) -> String {
    carriers(&[("one", &one.address), ("two", &two.address)]) + routes
}

/// Carrier `one` has priority 1, and `two` is the fallback.
pub const AROUND: &str = "\
    [[route]]\ncarrier = \"one\"\npriority = 1\n\
    [[route]]\ncarrier = \"two\"\npriority = 2\n";

#[test]
fn the_conditions_of_routes_choose_the_carrier() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let place = Place::new();
    let keys = place.funded("a@example.org", "100");
    let named = place.application("b@example.org", Category::Sms, Some("Acme"));
    let other = place.funded("c@example.org", "100");
    let reference = named.reference.to_string();
    place.json(&["application", "approve", &reference]);
    place.json(&["deposit", "add", &reference, "100", "--bank-id", "b"]);
    let waiting = place.json(&["sender", "list"]);
    place.json(&["sender", "accept", &waiting[0]["id"].to_string()]);

    let routes = format!(
        "[[route]]\ncarrier = \"two\"\npriority = 1\nkind = \"international\"\n\
         [[route]]\ncarrier = \"two\"\npriority = 2\nprefix = \"26658\"\n\
         [[route]]\ncarrier = \"two\"\npriority = 3\napplication = \"{}\"\n\
         [[route]]\ncarrier = \"two\"\npriority = 4\nsender = \"Acme\"\n\
         [[route]]\ncarrier = \"one\"\npriority = 5\n",
        other.reference
    );
    let settings = both(&one, &two, &routes);
    let started = Started::start_with(place, keys, &settings);
    let mut sent = Vec::new();
    for (key, number, to, by_two) in [
        (&started.keys, "57000001", "26657000001", false),
        (&started.keys, "58000001", "26658000001", true),
        (&started.keys, "+26657000002", "26657000002", true),
        (&started.keys, "+4915100000", "4915100000", true),
        (&other, "57000003", "26657000003", true),
        (&named, "57000004", "26657000004", true),
    ] {
        let transid = started.server.accepted(key.live.expose(), number);
        sent.push((key.live.expose(), transid, to, by_two));
    }
    for (key, transid, to, by_two) in &sent {
        let report = started.server.final_report(key, transid);
        assert_eq!(report["status"], "delivered", "{report}");
        let seen = (one.count(to), two.count(to));
        assert_eq!(seen, (usize::from(!by_two), usize::from(*by_two)), "{to}");
    }
    let from: Vec<_> = two.submits().into_iter().map(|submit| submit.sender).collect();
    assert!(from.contains(&"Acme".to_owned()), "{from:?}");
    started.stop();
}

/// Expects 300 of 400 messages, within seven standard deviations.
#[test]
fn weights_of_routes_share_messages_between_carriers() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let routes = "[[route]]\ncarrier = \"one\"\nweight = 3\n[[route]]\ncarrier = \"two\"\n";
    let started = Started::start(&both(&one, &two, routes));
    one.until_bound();
    two.until_bound();
    let numbers: Vec<String> = (57_000_000..57_000_400).map(|n: u32| n.to_string()).collect();
    let batchid = started.server.accepted_batch(started.key(), &numbers.join("\n"));
    let batch = started.server.done_batch(started.key(), &batchid);
    assert_eq!(batch["counts"]["delivered"], 400, "{batch}");
    let (by_one, by_two) = (one.submits().len(), two.submits().len());
    assert_eq!(by_one + by_two, 400);
    assert!((240..=360).contains(&by_one), "{by_one}");
    started.stop();
}

#[test]
fn messages_go_to_another_carrier_until_one_that_is_gone_is_back() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let started = Started::start(&both(&one, &two, AROUND));
    one.until_bound();
    two.until_bound();
    let first = started.send("57000001", "Hello");
    started.until(&first, "delivered");
    assert_eq!((one.submits().len(), two.submits().len()), (1, 0));

    let address = one.address.clone();
    drop(one);
    // Some of the messages wait for the lost carrier at first.
    let sent = started.send_to(57_000_010..57_000_020);
    started.until_all(&sent, "delivered");
    assert_eq!(two.submits().len(), 10);

    let one = Scripted::delivering_at(&address);
    one.until_bound();
    let mut number = 57_000_100;
    until("the first carrier to be used again", || {
        let transid = started.send(&number.to_string(), "Hello");
        started.until(&transid, "delivered");
        number += 1;
        (one.submits().len() > 1).then_some(())
    });
    let sent = usize::try_from(number - 57_000_100).unwrap();
    assert_eq!(one.submits().len() + two.submits().len(), 10 + sent);
    started.stop();
}

/// Takes about 25 s. With `lease_seconds = 10` an answer has 5 s, and a probe is sent every 10 s.
#[test]
fn messages_but_for_probes_go_to_another_carrier_while_one_answers_nothing() {
    const WINDOW: u32 = 10;
    const BINDS: usize = 4;
    let unanswered = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&unanswered);
    let one = Scripted::start(move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        Vec::new()
    });
    let two = Scripted::delivering();
    let settings = carriers(&[("one", &one.address)])
        + &format!("window = {WINDOW}\n")
        + &carriers(&[("two", &two.address)])
        + AROUND;
    let settings = format!("lease_seconds = 10\n{settings}");
    let place = Place::new();
    let keys = place.funded("a@example.org", "1000");
    let started = Started::start_with(place, keys, &settings);
    one.until_bound();
    two.until_bound();
    let lost = started.send_to(57_000_000..57_000_000 + WINDOW);
    one.until_submits(lost.len());

    // Waits after each send until one of the carriers has the message.
    let mut number = 57_000_100;
    let mut submission = || {
        number += 1;
        let transid = started.send(&number.to_string(), "Hello");
        let seen = format!("266{number}");
        until("a carrier to have it", || (one.count(&seen) + two.count(&seen) == 1).then_some(()));
        transid
    };
    let mut sent = Vec::new();
    while one.binds() < BINDS {
        sent.push(submission());
    }
    one.follow(deliver);
    let probes = unanswered.load(Ordering::Relaxed) - lost.len();
    assert!(probes < BINDS, "more than one per bind: {probes}");
    assert!(probes > 0, "no probe was sent");
    assert!(sent.len() > 20, "others waited for it: {}", sent.len());

    let before = one.submits().len();
    while one.submits().len() < before + 20 {
        sent.push(submission());
    }
    started.until_all(&lost, "unknown");
    let ends = || sent.iter().map(|transid| started.report(transid)["status"].clone());
    until("the end of all others", || {
        let delivered = ends().filter(|status| status == "delivered").count();
        (delivered + probes == sent.len()).then_some(())
    });
    assert_eq!(ends().filter(|status| status == "unknown").count(), probes);
    assert_eq!(one.submits().len() + two.submits().len(), lost.len() + sent.len());
    started.stop();
}

/// SMPP's ESME_RINVSRCADR.
const INVALID_SOURCE: u32 = 0x0A;

#[test]
fn a_message_that_one_carrier_refuses_is_offered_to_another() {
    let refusing = || Scripted::start(|_| vec![Act::Refuse(INVALID_SOURCE)]);
    let (one, two) = (refusing(), Scripted::delivering());
    let started = Started::start(&both(&one, &two, AROUND));
    one.until_bound();
    two.until_bound();
    let transid = started.send("57000001", "Hello");
    let report = started.until(&transid, "delivered");
    assert_eq!(report["charge"]["released"].to_string(), "0", "{report}");
    assert_eq!((one.submits().len(), two.submits().len()), (1, 1));

    // If all carriers refuse a message, each gets it once, and the price is released.
    two.follow(|_| vec![Act::Refuse(INVALID_SOURCE)]);
    let transid = started.send("57000002", "Hello");
    let report = started.until(&transid, "rejected");
    assert_eq!(report["error"], "invalid_sender", "{report}");
    assert_eq!((one.submits().len(), two.submits().len()), (2, 2));
    assert_eq!(started.balance(), "99.95");
    started.stop();
}

#[test]
fn a_drained_carrier_gets_nothing_until_it_is_resumed() {
    let one = Scripted::start(|submit| {
        if submit.before == 0 {
            return Vec::new();
        }
        deliver(submit)
    });
    let two = Scripted::delivering();
    let started = Started::start(&both(&one, &two, AROUND));
    one.until_bound();
    two.until_bound();
    let begun = started.send("57000001", "Hello");
    one.until_submits(1);
    let send_until_seen_by = |carrier: &Scripted| {
        let before = carrier.submits().len();
        until("a message by the other carrier", || {
            let transid = started.send("57000002", "Hello");
            started.until(&transid, "delivered");
            (carrier.submits().len() > before).then_some(())
        });
    };
    let place = &started.server.place;
    place.json(&["carrier", "drain", "one", "--yes"]);
    send_until_seen_by(&two);
    let by_one = one.submits().len();
    let sent = started.send_to(57_000_010..57_000_015);
    started.until_all(&sent, "delivered");
    assert_eq!(one.submits().len(), by_one);
    // Messages that it already has are finished.
    one.accept_late(0, "first");
    started.until(&begun, "submitted");
    one.deliver(&receipt("first", "DELIVRD"));
    assert_eq!(started.report(&begun)["status"], "delivered");
    place.json(&["carrier", "resume", "one"]);
    send_until_seen_by(&one);
    started.stop();
}

#[test]
fn messages_that_wait_for_a_removed_carrier_go_to_another() {
    let nobody = Upstream::nobody();
    let started = Started::start(&carriers(&[("one", &nobody)]));
    let sent = started.send_to(57_000_001..57_000_011);
    let two = Scripted::delivering();
    let started = started.restarted(&carriers(&[("two", &two.address)]));
    started.until_all(&sent, "delivered");
    assert_eq!(two.submits().len(), 10);
    started.stop();
}

#[test]
fn a_message_without_a_route_is_rejected_and_its_price_given_back() {
    let one = Scripted::delivering();
    let routes = "[[route]]\ncarrier = \"one\"\nkind = \"local\"\n";
    let settings = carriers(&[("one", &one.address)]) + routes;
    let started = Started::start(&settings);
    let abroad = started.send("+4915100000", "Hello");
    let report = started.until(&abroad, "rejected");
    assert_eq!(report["error"], "no_route", "{report}");
    assert_eq!(report["charge"]["released"].to_string(), "0.25", "{report}");
    assert_eq!(started.balance(), "100");
    // The same in an upload.
    let batchid = started.server.accepted_batch(started.key(), "+4915100001\n57000001");
    let batch = started.server.done_batch(started.key(), &batchid);
    assert_eq!(batch["counts"]["rejected"], 1, "{batch}");
    assert_eq!(batch["counts"]["delivered"], 1, "{batch}");
    assert_eq!(started.balance(), "99.95");
    assert_eq!(one.submits().len(), 1);
    started.stop();
}

#[test]
fn test_messages_reach_no_carrier() {
    let one = Scripted::delivering();
    let started = Started::start(&carriers(&[("one", &one.address)]));
    one.until_bound();
    let test_key = started.keys.test.expose();
    let tested = started.server.accepted(test_key, "57000001");
    let report = started.server.final_report(test_key, &tested);
    assert_eq!(report["status"], "delivered", "{report}");
    let sent = started.send("57000002", "Hello");
    started.until(&sent, "delivered");
    assert_eq!(one.submits().len(), 1);
    assert_eq!(one.count("26657000001"), 0);
    started.stop();
}

#[test]
fn a_carrier_gets_numbers_and_senders_as_its_rules_write_them() {
    let smsc = Scripted::start(|_| vec![Act::Accept(String::new())]);
    let settings = carriers(&[("one", &smsc.address)])
        + "strip = \"266\"\nadd = \"0\"\nsend_as = { Heliograph = \"HELIO LS\" }\n\
           [[route]]\ncarrier = \"one\"\npattern = \"^2665\"\n\
           [[route]]\ncarrier = \"one\"\nadd = \"00\"\nsend_as = \"12345\"\n";
    let started = Started::start(&settings);
    smsc.until_bound();
    let mut sent = Vec::new();
    for (number, written, sender) in
        [("57000001", "057000001", "HELIO LS"), ("+4915100000", "004915100000", "12345")]
    {
        let transid = started.send(number, "Hello");
        let report = started.until(&transid, "submitted");
        sent.push((transid, written, smsc_date(report["created_at"].as_str().unwrap())));
        let submit = smsc.submits().pop().unwrap();
        assert_eq!((&*submit.number, &*submit.sender), (written, sender));
        // Reports have the number that was sent to.
        assert_eq!(report["number"], number.trim_start_matches('+'), "{report}");
    }
    // The answers had no IDs, so the receipts match by number, sender and date.
    for ((transid, written, date), sender) in sent.iter().zip(["HELIO LS", "12345"]) {
        smsc.deliver(&receipt_to(sender, written, "another", date, "DELIVRD"));
        started.until(transid, "delivered");
    }
    started.until_up("one");
    let tried = started.server.place.json(&["route", "try", "57000001"]);
    assert_eq!(tried["number"], "26657000001", "{tried}");
    assert_eq!(tried["carrier_number"], "057000001", "{tried}");
    assert_eq!(tried["carrier_sender"], "HELIO LS", "{tried}");
    started.stop();
}

#[test]
fn a_message_with_too_many_segments_takes_the_next_route_or_is_rejected() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let settings = |of_two: &str| {
        carriers(&[("one", &one.address)])
            + "segments_max = 1\n"
            + &carriers(&[("two", &two.address)])
            + of_two
            + AROUND
    };
    let started = Started::start(&settings("segments_max = 2\n"));
    one.until_bound();
    two.until_bound();
    let [short, long, longest] =
        [160, 161, 400].map(|length| started.send("57000001", &"a".repeat(length)));
    started.until(&short, "delivered");
    started.until(&long, "delivered");
    let report = started.until(&longest, "rejected");
    assert_eq!(report["error"], "invalid_length", "{report}");
    assert_eq!(started.balance(), "99.85");
    assert_eq!((one.submits().len(), two.submits().len()), (1, 2));
    let parts = [("numbers", &b"57000002"[..]), ("message", &[b'b'; 161][..])];
    let answer = started.server.upload(started.key(), &parts);
    let batchid = answer.json()["batchid"].as_str().unwrap().to_owned();
    started.server.done_batch(started.key(), &batchid);
    assert_eq!((one.submits().len(), two.submits().len()), (1, 4));
    let text = "a".repeat(161);
    let tried = started.server.place.json(&["route", "try", "57000001", "--text", &text]);
    assert_eq!(tried["routes"][0]["unfit"], "its carrier accepts at most 1 segments", "{tried}");
    assert_eq!(tried["carrier"], "two", "{tried}");
    assert_eq!(tried["price_of_text"], "0.1", "{tried}");
    started.stop();
}

#[test]
fn the_cheapest_open_route_gets_a_message() {
    let (one, two) = (Scripted::delivering(), Scripted::delivering());
    let route = |carrier: &str, cost: &str, more: &str| {
        format!("[[route]]\ncarrier = \"{carrier}\"\norder = \"cost\"\ncost = {cost}\n{more}")
    };
    // Whatever the time is, the last route is closed.
    let never = "pattern = \"^266\"\ndays = \"{day}\"\nzone = \"UTC\"\n";
    let day_before = day_before();
    let routes = route("one", "{ 2665 = 0.01, \"\" = 0.2 }", "")
        + &route("two", "0.1", "")
        + &route("two", "0.001", &never.replace("{day}", day_before));
    let started = Started::start(&both(&one, &two, &routes));
    one.until_bound();
    two.until_bound();
    for number in ["57000001", "+4915100000"] {
        let transid = started.send(number, "Hello");
        started.until(&transid, "delivered");
    }
    assert_eq!((one.count("26657000001"), two.count("4915100000")), (1, 1));
    started.until_up("one");
    started.until_up("two");
    let tried = started.server.place.json(&["route", "try", "+4915100000"]);
    assert_eq!(tried["outcome"], "it goes to two, by cost among equals", "{tried}");
    assert_eq!(
        (&tried["routes"][0]["cost"], &tried["routes"][1]["cost"]),
        (&"0.2".into(), &"0.1".into())
    );
    let tried = started.server.place.json(&["route", "try", "57000001"]);
    assert_eq!(tried["routes"][2]["unfit"], "it is closed at this hour", "{tried}");
    started.stop();
}

/// Returns the day before yesterday in UTC, so that it isn't today even if midnight passes.
fn day_before() -> &'static str {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let days = ["thu", "fri", "sat", "sun", "mon", "tue", "wed"];
    days[usize::try_from((now.as_secs() / 86_400 + 5) % 7).unwrap()]
}
