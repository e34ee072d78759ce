//! What operators are shown of a carrier's faults: the newest one, since when, and the next step.

use std::net::TcpListener;

use domain::Timestamp;
use serde_json::Value;
use testing::harness::until;
use testing::smsc::{BIND_TRANSCEIVER, receipt};

use crate::acme::{accept, settings, start};
use crate::bound_settings::Recorder;
use crate::routes::carriers;
use crate::scripted::{Act, Scripted};
use crate::started::Started;

/// SMPP's ESME_RINVPASWD, ESME_RTHROTTLED, ESME_RX_P_APPN and ESME_RX_R_APPN.
const INVALID_PASSWORD: u32 = 0x0E;
const THROTTLED: u32 = 0x58;
const PERMANENT_ERROR: u32 = 0x65;
const REFUSED: u32 = 0x66;
/// By how much two readings of the same time may differ, in milliseconds.
const SAME_MS: i64 = 100;

fn time(value: &Value) -> Timestamp {
    Timestamp::parse(value.as_str().unwrap()).unwrap()
}

/// Waits until a carrier has a reason that contains this text, and returns the carrier.
fn until_reason(started: &Started, carrier: &str, text: &str) -> Value {
    until(&format!("the reason {text}"), || {
        let carrier = started.carrier(carrier);
        carrier["reason"].as_str().is_some_and(|reason| reason.contains(text)).then_some(carrier)
    })
}

#[test]
fn the_newest_fault_of_a_degraded_carrier_is_shown() {
    let smsc = Scripted::start(|_| vec![Act::Refuse(PERMANENT_ERROR)]);
    let started = Started::start(&settings(&smsc, "degraded_unanswered_seconds = 1"));
    smsc.until_bound();
    let rejected = started.send_to(57_000_000..57_000_030);
    started.until_all(&rejected, "rejected");
    let first = until_reason(&started, "acme", "ESME_RX_P_APPN");
    assert_eq!(first["state"], "degraded", "{first}");
    smsc.follow(|_| vec![Act::Refuse(REFUSED)]);
    started.send("57000100", "Hello");
    let second = until_reason(&started, "acme", "ESME_RX_R_APPN");
    smsc.follow(|_| Vec::new());
    started.send("57000101", "Hello");
    let third = until_reason(&started, "acme", "has answered nothing");
    // It is still the same trouble, but each error has its own time.
    let seen = [&first, &second, &third].map(|carrier| {
        assert_eq!(carrier["state"], "degraded", "{carrier}");
        assert!(time(&carrier["since"]).ms_since(time(&first["since"])).abs() < SAME_MS);
        time(&carrier["connections"][0]["last_error_at"])
    });
    assert!(seen.is_sorted() && seen[0] < seen[2], "{seen:?}");
    drop(started.server.kill());
}

#[test]
fn a_new_bind_of_a_carrier_that_stays_down_keeps_the_time_of_the_outage() {
    let smsc = Recorder::start();
    smsc.refuse_binds(INVALID_PASSWORD);
    let settings = carriers(&[("acme", &smsc.address)]);
    let started = Started::start(&settings);
    let down = until_reason(&started, "acme", "wrong password");
    let place = &started.server.place;
    let again = |change: &dyn Fn()| {
        let before = smsc.received(BIND_TRANSCEIVER).len();
        change();
        smsc.until_received(BIND_TRANSCEIVER, before + 2);
        let carrier = until_reason(&started, "acme", "wrong password");
        let later = [&carrier["since"], &carrier["connections"][0]["since"]];
        for later in later {
            let moved = time(later).ms_since(time(&down["since"])).abs();
            assert!(moved < SAME_MS, "{down} {carrier}");
        }
    };
    again(&|| drop(place.json(&["carrier", "rebind", "acme"])));
    again(&|| {
        started.write(&(settings.clone() + "window = 50\n"));
        place.json(&["carrier", "reload"]);
    });
    started.stop();
}

#[test]
fn a_carrier_that_gives_no_message_ids_is_named_until_it_gives_one() {
    let (smsc, started) = start(|_| vec![Act::Accept(String::new())]);
    let sent = started.send("57000001", "Hello");
    started.until(&sent, "submitted");
    until("the missing ID", || {
        let error = started.connection("acme")["last_error"].as_str()?.to_owned();
        let is_named = error.contains("without a message ID") && error.contains("submit_sm_resp");
        is_named.then_some(())
    });
    let log = started.server.log();
    assert!(log.contains("fault=\"submit_without_id\""), "{log}");
    smsc.follow(accept);
    let sent = started.send("57000002", "Hello");
    started.until(&sent, "submitted");
    until("no fault", || started.connection("acme")["last_error"].is_null().then_some(()));
    started.stop();
}

/// Takes up to 10 s, because counts are stored so often.
#[test]
fn refusals_are_shown_by_their_codes() {
    let (_smsc, started) = start(|submit| {
        vec![match (submit.before, submit.number.ends_with('5')) {
            (0, _) => Act::Refuse(THROTTLED),
            (_, true) => Act::Refuse(PERMANENT_ERROR),
            _ => Act::Refuse(REFUSED),
        }]
    });
    let sent = started.send_to(57_000_000..57_000_006);
    started.until_all(&sent, "rejected");
    let wanted = [
        ("refused_0x00000066 (the application refused the message, ESME_RX_R_APPN)", 5),
        ("refused_0x00000058 (we exceeded the allowed rate, ESME_RTHROTTLED)", 1),
        ("refused_0x00000065 (permanent error of the application, ESME_RX_P_APPN)", 1),
    ];
    until("the refusals", || {
        let shown = started.server.place.json(&["carrier", "show", "acme"])["refusals"].clone();
        let mut shown: Vec<_> = (shown.as_array()?.iter())
            .map(|refusal| (refusal["reason"].as_str().unwrap(), refusal["count"].clone()))
            .collect();
        shown.sort_by_key(|(reason, count)| (-count.as_i64().unwrap(), *reason));
        let is_right = |(shown, wanted): (&(&str, Value), &(&str, i64))| {
            shown.0 == wanted.0 && shown.1 == wanted.1
        };
        (shown.len() == 3 && shown.iter().zip(&wanted).all(is_right)).then_some(())
    });
    let log = started.server.log();
    assert!(log.contains("fault=\"submit_throttled\"") && log.contains("ESME_RTHROTTLED"), "{log}");
    let told = log.lines().find(|line| line.contains("a carrier refused submits")).unwrap();
    assert!(told.contains("reasons=\"") && told.contains("(the application refused"), "{told}");
    started.stop();
}

/// Takes up to 10 s, because counts are stored so often.
#[test]
fn the_doctor_names_carriers_whose_receipts_say_nothing() {
    let (smsc, started) = start(accept);
    let sent = started.send("57000001", "Hello");
    started.until(&sent, "submitted");
    smsc.deliver(&receipt("26657000001", "VANISHED"));
    smsc.deliver(&receipt("stranger", "DELIVRD"));
    until("both warnings", || {
        let output = started.server.place.run(&["doctor", "--json"]);
        let found: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
        let is_named = |words: &str| {
            found.iter().any(|finding| {
                let text = finding["text"].as_str().unwrap_or_default();
                finding["check"] == "carrier acme"
                    && finding["result"] == "warning"
                    && text.contains(words)
                    && text.contains("heliograph carrier receipts acme")
            })
        };
        (is_named("match no message: 1") && is_named("unknown state: 1")).then_some(())
    });
    started.stop();
}

/// The carrier doesn't repeat a receipt that got an answer.
#[test]
fn a_receipt_with_an_unknown_state_is_stored_before_it_is_answered() {
    let (smsc, started) = start(accept);
    let settings = settings(&smsc, "");
    let sent = started.send("57000001", "Hello");
    started.until(&sent, "submitted");
    smsc.deliver(&receipt("26657000001", "VANISHED"));
    let started = started.killed(&settings);
    let found = started.server.place.json(&["carrier", "receipts", "acme"]);
    assert_eq!(found["receipts"][0]["state"], "VANISHED", "{found}");
    assert_eq!(started.carrier("acme")["receipts_unknown_state"], 1);
    started.stop();
}

#[test]
fn the_log_of_an_unusable_carrier_says_that_the_bind_gets_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let started = Started::start(&carriers(&[("acme", &address)]));
    let line = until("the log", || {
        let log = started.server.log();
        let line = log.lines().find(|line| line.contains("a carrier accepts no messages now"));
        line.map(str::to_owned)
    });
    assert!(line.contains("no answer to the bind"), "{line}");
    until_reason(&started, "acme", "no answer to the bind");
    started.stop();
}
