//! The parameters of binds and submits that a carrier's settings choose.

use std::time::{Duration, Instant};

use domain::Category;
use testing::harness::{Place, until};
use testing::smsc::tlv;

use crate::acme::{accept, settings};
use crate::scripted::Scripted;
use crate::started::Started;

#[test]
fn texts_are_written_in_latin1_for_a_carrier_that_converts_them() {
    let smsc = Scripted::start(accept);
    let started = Started::start(&settings(&smsc, "alphabet = \"latin1\"\n"));
    smsc.until_bound();
    for (number, text) in [("57000001", "Thé à 5 h"), ("57000002", "5 €")] {
        let transid = started.send(number, text);
        started.until(&transid, "submitted");
    }
    let submits = smsc.submits();
    for (submit, coded) in [
        (&submits[0], &b"\x01\x00\x03\x00\x09Th\xe9 \xe0 5 h"[..]),
        (&submits[1], &b"\x01\x00\x08\x00\x06\x00\x35\x00\x20\x20\xac"[..]),
    ] {
        let body = &submit.body;
        assert!(body.windows(coded.len()).any(|bytes| bytes == coded), "{body:X?}");
    }
    started.stop();
}

#[test]
fn a_submit_has_the_parameters_of_the_settings() {
    let smsc = Scripted::start(accept);
    let started = Started::start(&settings(
        &smsc,
        "service_type = \"OTP\"\ndata_coding = 1\ncarrier_rate = 50\ntlvs = [\n\
         { tag = 0x1400, type = \"string\", value = \"1001{application}\" },\n\
         { tag = 0x1401, type = \"c-string\", value = \"{sender}/{number}/{transid}\" },\n\
         { tag = 0x1402, type = \"integer\", value = 258 },\n\
         { tag = 0x1403, type = \"hex\", value = \"00ff\" },\n\
         { tag = 0x1404, type = \"string\", value = { Other = \"1108\" } },\n\
         { tag = 0x1405, type = \"c-string\", value = { HELIOGRAPH = \"1107\" } },\n]\n",
    ));
    smsc.until_bound();
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    // Another alphabet keeps its own data_coding.
    let unicode = started.send("57000002", "ж");
    started.until(&unicode, "submitted");
    let submits = smsc.submits();
    for (submit, transid, coded) in [
        (&submits[0], &transid, &b"\x01\x00\x01\x00\x05Hello"[..]),
        (&submits[1], &unicode, &b"\x01\x00\x08\x00\x02\x04\x36"[..]),
    ] {
        let body = &submit.body;
        assert!(body.starts_with(b"OTP\0"), "{body:X?}");
        assert!(body.windows(coded.len()).any(|bytes| bytes == coded), "{body:X?}");
        let named = format!("Heliograph/{}/{transid}\0", submit.number);
        let vendors = [
            tlv(0x1400, format!("1001{}", started.keys.reference).as_bytes()),
            tlv(0x1401, named.as_bytes()),
            tlv(0x1402, &[0, 0, 1, 2]),
            tlv(0x1403, &[0, 0xFF]),
            tlv(0x1405, b"1107\0"),
        ];
        assert!(body.ends_with(&vendors.concat()), "{body:X?}");
    }
    // The carrier gets what is left of a message's validity.
    let fields = [("number", "57000003"), ("message", "Hello"), ("validity", "30")];
    let sent = started.server.send(started.key(), &fields).json();
    started.until(sent["transid"].as_str().unwrap(), "submitted");
    let left = smsc.submits().pop().unwrap().validity_period;
    assert!(left == "000000003000000R" || left.starts_with("0000000029"), "{left}");
    started.stop();
}

/// Nobody listens at the first address.
#[test]
fn a_backup_address_is_used_while_the_first_fails() {
    let smsc = Scripted::start(accept);
    let backup = format!("backup_address = \"{}\"\nvalidity_period = false", smsc.address);
    let settings = settings(&smsc, &backup).replacen(&smsc.address, "127.0.0.1:1", 1);
    let started = Started::start(&settings);
    smsc.until_bound();
    let transid = started.send("57000001", "Hello");
    started.until(&transid, "submitted");
    assert_eq!(smsc.submits()[0].validity_period, "");
    until("the error of the first address", || {
        let connection = started.connection("acme");
        let error = connection["last_error"].as_str().unwrap_or_default();
        error.starts_with("Nobody listens at the carrier's address").then_some(())
    });
    started.stop();
}

/// A sender's messages above its rate don't hold up those of another sender, although they would
/// fill the window.
#[test]
fn each_sender_has_its_own_rate() {
    const MESSAGES: u32 = 60;
    let smsc = Scripted::delivering();
    let place = Place::new();
    let keys = place.funded("a@example.org", "100");
    let named = place.application("b@example.org", Category::Sms, Some("Acme"));
    let reference = named.reference.to_string();
    place.json(&["application", "approve", &reference]);
    place.json(&["deposit", "add", &reference, "100", "--bank-id", "b"]);
    let waiting = place.json(&["sender", "list"]);
    place.json(&["sender", "accept", &waiting[0]["id"].to_string()]);
    let settings = settings(&smsc, "sender_rate = 10\nwindow = 5\n");
    let started = Started::start_with(place, keys, &settings);
    smsc.until_bound();
    let begun = Instant::now();
    let sent = started.send_to(57_000_000..57_000_000 + MESSAGES);
    let other = started.server.accepted(named.live.expose(), "57000099");
    started.server.final_report(named.live.expose(), &other);
    started.until_all(&sent, "delivered");
    // Eleven leave at once, because unused time of a second is saved up.
    assert!(begun.elapsed() > Duration::from_millis(4800), "{:?}", begun.elapsed());
    let submits = smsc.submits();
    assert_eq!(submits.len(), 61);
    let place_of_other = submits.iter().position(|submit| submit.sender == "Acme").unwrap();
    assert!(place_of_other < 55, "{place_of_other}");
    started.stop();
}
