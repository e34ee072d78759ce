//! Messages from handsets, over SMPP and HTTP.

use serde_json::{Value, json};
use testing::client::{form, posted};
use testing::harness::until;
use testing::smsc::{c_string, tlv};

use crate::acme::{settings, start};
use crate::peer::Kind;
use crate::routes::carriers;
use crate::scripted::{self, Scripted};
use crate::sending::{Carrier, Sending};
use crate::started::Started;

const HANDSET: &str = "26657000001";
const OURS: &str = "26650000009";

/// Returns the body of a `deliver_sm` from the handset.
fn message(esm_class: u8, data_coding: u8, text: &[u8], tlvs: &[u8]) -> Vec<u8> {
    let mut body = vec![0, 1, 1];
    body.extend(c_string(HANDSET));
    body.extend([1, 1]);
    body.extend(c_string(OURS));
    body.extend([esm_class, 0, 0, 0, 0, 0, 0, data_coding, 0]);
    body.push(u8::try_from(text.len()).unwrap());
    body.extend([text, tlvs].concat());
    body
}

fn part(reference: u8, (sequence, total): (u8, u8), data_coding: u8, text: &[u8]) -> Vec<u8> {
    let header = [5, 0, 3, reference, total, sequence];
    message(0x40, data_coding, &[&header, text].concat(), &[])
}

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

/// Gives the number to the application.
fn add_number(started: &Started) {
    let reference = started.keys.reference.to_string();
    started.server.place.json(&["number", "add", "50000009", "--application", &reference]);
}

/// Returns the messages, oldest first.
fn inbound(started: &Started) -> Vec<Value> {
    let answer = started.server.get(&format!("/sms/inbound/{}", started.key())).json();
    let mut messages = answer["inbound"].as_array().unwrap().clone();
    messages.reverse();
    messages
}

fn texts(started: &Started) -> Vec<String> {
    let text = |message: Value| message["message"].as_str().unwrap().to_owned();
    inbound(started).into_iter().map(text).collect()
}

#[test]
fn messages_of_handsets_are_decoded_joined_and_acknowledged_once_they_are_stored() {
    let (smsc, started) = start(|_| Vec::new());
    add_number(&started);
    // The sender's language is Turkish, by a single shift table.
    let turkish = [&[3, 0x24, 1, 1][..], &[0x1b, 0x53]].concat();
    let payload = tlv(0x0424, "long ".repeat(60).as_bytes());
    let sar = |sequence, text: &[u8]| {
        let tlvs = [tlv(0x020C, &[1, 2]), tlv(0x020E, &[2]), tlv(0x020F, &[sequence])].concat();
        message(0, 3, text, &tlvs)
    };
    // The texts are stored when the carrier gets its acknowledgements.
    for (bodies, expected) in [
        (vec![message(0, 0, b"\0\x02 \x1b\x65", &[])], "@$ €"),
        (vec![message(0, 1, b"ascii", &[])], "ascii"),
        (vec![message(0, 3, b"caf\xe9", &[])], "café"),
        (vec![message(0, 4, b"\x01\xff", &[])], "01ff"),
        (vec![message(0, 8, &utf16("Ünï 🙂"), &[])], "Ünï 🙂"),
        (vec![message(0x40, 0, &turkish, &[])], "Ş"),
        (vec![message(0, 3, b"", &payload)], "long ".repeat(60).as_str()),
        (vec![message(0, 3, b"", &[])], ""),
        (
            vec![part(7, (2, 2), 8, &utf16("zwei")), part(7, (1, 2), 8, &utf16("Eins "))],
            "Eins zwei",
        ),
        (vec![sar(2, b"two"), sar(1, b"one ")], "one two"),
    ] {
        smsc.deliver_all(&bodies);
        assert_eq!(texts(&started).last().unwrap(), expected);
    }
    let first = &inbound(&started)[0];
    let expected = json!({
        "inboundid": first["inboundid"], "number": HANDSET, "recipient": OURS, "message": "@$ €",
        "segments": 1, "keyword": null, "optout": null, "test": false,
        "received_at": first["received_at"],
    });
    assert_eq!(*first, expected);
    started.stop();
}

#[test]
fn a_message_that_is_delivered_again_on_another_connection_is_stored_once() {
    let smsc = Scripted::start(|_| Vec::new());
    // These binds only receive. Messages leave through another carrier.
    let receiver = settings(&smsc, "bind = \"receiver\"\nconnections = 2\n");
    let sender = carriers(&[("out", "127.0.0.1:1")]) + "[[route]]\ncarrier = \"out\"\n";
    let started = Started::start(&(receiver + &sender));
    add_number(&started);
    smsc.until_binds(2);
    for _ in 0..3 {
        smsc.deliver_all(&[message(0, 3, b"once", &[]), message(0, 3, b"once", &[])]);
    }
    smsc.deliver(&part(1, (1, 2), 3, b"a"));
    smsc.deliver(&part(1, (1, 2), 3, b"a"));
    smsc.deliver(&part(1, (2, 2), 3, b"b"));
    smsc.deliver(&part(1, (2, 2), 3, b"b"));
    assert_eq!(texts(&started), ["once", "ab"]);
    started.stop();
}

#[test]
fn a_handset_that_sends_stop_gets_a_confirmation_and_no_more_messages() {
    let (smsc, started) = start(scripted::deliver);
    add_number(&started);
    let balance = started.balance();
    smsc.deliver(&message(0, 3, b"Stop!", &[]));
    smsc.until_submits(1);
    let reply = &smsc.submits()[0];
    assert_eq!(reply.number, HANDSET);
    assert!(reply.text.starts_with(b"You will get no more messages"));
    let send = || started.server.send(started.key(), &[("number", "57000001"), ("message", "x")]);
    let refused = send();
    assert_eq!((refused.status, refused.json()["reason"].as_str()), (403, Some("opted_out")));
    let list = |path: &str, field: &str| {
        let answer = started.server.get(&format!("{path}/{}", started.key())).json();
        answer[field].as_array().unwrap().clone()
    };
    let delivered = until("the reply to be delivered", || {
        let reports = list("/sms/reports", "reports");
        reports.into_iter().find(|report| report["status"] == "delivered")
    });
    assert_eq!((delivered["kind"].as_str(), &delivered["cost"]), (Some("system"), &json!(0)));
    assert_eq!(started.balance(), balance);
    let opt_outs = list("/sms/optouts", "optouts");
    assert_eq!((opt_outs.len(), opt_outs[0]["source"].as_str()), (1, Some("reply")));
    let types: Vec<Value> =
        list("/sms/events", "events").into_iter().map(|event| event["type"].clone()).collect();
    assert!(types.contains(&json!("optout.added")), "{types:?}");
    smsc.deliver(&message(0, 3, b"START", &[]));
    assert_eq!(send().status, 200);
    started.stop();
}

/// Three carriers write GSM-7 in different ways.
#[test]
fn the_default_alphabet_is_a_setting() {
    for (alphabet, text, expected) in [
        ("gsm7", &b"hell\x05"[..], "hellé"),
        ("gsm7-packed", &[0xe8, 0x32, 0x9b, 0xfd, 0x06][..], "hello"),
        ("latin1", &b"hell\xe9"[..], "hellé"),
    ] {
        let smsc = Scripted::start(|_| Vec::new());
        let line = format!("default_alphabet = \"{alphabet}\"\n");
        let started = Started::start(&settings(&smsc, &line));
        add_number(&started);
        smsc.until_bound();
        smsc.deliver(&message(0, 0, text, &[]));
        assert_eq!(texts(&started), [expected], "{alphabet}");
        started.stop();
    }
}

/// A library of others encodes the messages.
#[test]
fn a_node_smsc_delivers_long_unicode_and_repeated_messages() {
    let sending = Sending::start(Kind::Node, Carrier { more: "", ..Carrier::default() });
    let reference = sending.keys.reference.to_string();
    sending.server.place.json(&["number", "add", OURS, "--application", &reference]);
    let long = "Füße 🙂 ".repeat(40);
    for text in ["Hello", "Ünï 🙂", &long, "Hello"] {
        sending.peer.deliver(&json!({ "source": HANDSET, "destination": OURS, "text": text }));
    }
    let path = format!("/sms/inbound/{}", sending.key());
    let found = until("inbound messages", || {
        let answer = sending.server.get(&path).json();
        let messages = answer["inbound"].as_array().unwrap().clone();
        let acknowledged = sending.peer.events_of("delivered").len();
        (messages.len() >= 3 && acknowledged >= 4).then_some(messages)
    });
    let texts: Vec<&str> = found.iter().rev().map(|it| it["message"].as_str().unwrap()).collect();
    assert_eq!(texts, ["Hello", "Ünï 🙂", &long]);
    assert!(sending.peer.events_of("delivered").iter().all(|it| it["answer"] == 0));
    sending.stop();
}

#[test]
fn an_upstream_posts_messages_of_handsets() {
    const SECRET: &str = "a-secret-of-the-tests";
    let started = Started::start(&format!(
        "[[carrier]]\nname = \"upstream\"\nkind = \"http\"\nurl = \"http://127.0.0.1:9/\"\n\
         form = \"to={{number}}&text={{message}}\"\n[[carrier.answer]]\nhttp = 200\n\
         outcome = \"accepted\"\n[carrier.inbound]\nsecret = \"{SECRET}\"\nnumber = \"from\"\n\
         recipient = \"to\"\nmessage = \"text\"\nmessage_id = \"id\"\n"
    ));
    add_number(&started);
    let server = &started.server;
    let target = format!("/carriers/upstream/inbound/{SECRET}");
    let pairs = |id| [("from", "+26657000001"), ("to", OURS), ("text", "Ünï = 1"), ("id", id)];
    let query = form(&pairs("1"));
    assert_eq!(server.get(&format!("{target}?{query}")).status, 200);
    // The upstream repeats a post that it got no answer to.
    assert_eq!(server.get(&format!("{target}?{query}")).status, 200);
    let kind = "application/x-www-form-urlencoded";
    let body = form(&pairs("2"));
    assert_eq!(server.exchange(&posted(&target, kind, body.as_bytes())).status, 200);
    let body = json!({ "from": 26_657_000_001_u64, "to": OURS, "text": "", "id": 3 }).to_string();
    let answer = server.exchange(&posted(&target, "application/json", body.as_bytes()));
    assert_eq!(answer.status, 200, "{}", answer.text());
    // This one writes Latin-1.
    let latin1 = format!("{target}?from={HANDSET}&to={OURS}&text=caf%E9&id=4");
    assert_eq!(server.get(&latin1).status, 200);
    assert_eq!(texts(&started), ["Ünï = 1", "Ünï = 1", "", "café"]);
    assert!(inbound(&started).iter().all(|message| message["number"] == HANDSET));
    for (path, status) in [
        (format!("/carriers/upstream/inbound/{SECRET}x?{query}"), 404),
        (format!("/carriers/upstream/{SECRET}?{query}"), 404),
        (format!("{target}?from={HANDSET}&to={OURS}"), 400),
        (format!("{target}?{query}&from=1234"), 400),
    ] {
        assert_eq!(server.get(&path).status, status, "{path}");
    }
    started.stop();
}
