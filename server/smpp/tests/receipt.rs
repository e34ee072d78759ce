//! Receipts as SMSCs really write them.

#![expect(
    clippy::unwrap_used,
    reason = "clippy.toml allows it in test functions, and helpers of tests fail no other way"
)]

use proptest::prelude::*;
use smpp::Delivery;
use smpp::receipt::{Failure, Receipt, State, parse, without_message};

/// 2026-11-21 12:00 and 12:01 UTC.
const NOON: i64 = 1_795_262_400_000;
const AFTER: i64 = NOON + 60_000;

fn marked(text: &[u8]) -> Delivery {
    Delivery { esm_class: 0x04, text: text.to_vec(), ..Delivery::default() }
}

fn read(text: &str) -> Receipt {
    parse(&marked(text.as_bytes())).unwrap()
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_be_bytes).collect()
}

#[test]
fn receipts_in_many_dialects_are_read() {
    let plain = "id:0123456789 sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 \
        stat:DELIVRD err:000 text:Hello id:9 stat:EXPIRED";
    let (id, delivered) = (Some("0123456789"), State::Delivered);
    let (noon, after) = (Some(NOON), Some(AFTER));
    let table = [
        (plain, id, delivered, Some("000"), noon, after),
        (
            "ID:0123456789 SUB:001 DLVRD:001 SUBMIT DATE:261121120000 DONE DATE:261121120100 \
             STAT:delivrd ERR:000 TEXT:",
            id,
            delivered,
            Some("000"),
            noon,
            after,
        ),
        (
            "id:0123456789 submit date:20261121120000 done date:20261121120100 stat:DELIVERED",
            id,
            delivered,
            None,
            noon,
            after,
        ),
        (
            "id:0123456789 done date:202611211201 submit date:202611211200 stat:DELIV err:0",
            id,
            delivered,
            Some("0"),
            noon,
            after,
        ),
        ("stat:DELIVRD err:1A id:0123456789", id, delivered, Some("1A"), None, None),
        ("stat:DELIVRD,id:0123456789,err:000", id, delivered, Some("000"), None, None),
        ("id: 0123456789  stat: DELIVRD  err: 000", id, delivered, Some("000"), None, None),
        ("id: urn:7 stat:DELIVRD", Some("urn:7"), delivered, None, None, None),
        ("id :0123456789 stat :DELIVRD", id, delivered, None, None, None),
        (
            "id:a1-b2_c3.d4 submit_date:2611211200 done_date:2611211201 stat:ENROUTE",
            Some("a1-b2_c3.d4"),
            State::Enroute,
            None,
            noon,
            after,
        ),
        ("id:0123456789 submit date:now done date: stat:DELIVRD", id, delivered, None, None, None),
        ("id:0123456789 done date:2613451201 stat:DELIVRD", id, delivered, None, None, None),
        (
            "id:0123456789 stat:DELIVRD err:034 imsi:651010000000001 msc:26657 note: x",
            id,
            delivered,
            Some("034"),
            None,
            None,
        ),
        ("stat:DELIVRD", None, delivered, None, None, None),
        ("id:0123456789", id, State::Unrecognised, None, None, None),
        ("id:0123456789 stat: err:", id, State::Unrecognised, None, None, None),
        ("id:0123456789\0", id, State::Unrecognised, None, None, None),
        ("text:id:5 stat:DELIVRD", None, State::Unrecognised, None, None, None),
        ("void:5 avoid:6 state:7", None, State::Unrecognised, None, None, None),
        ("", None, State::Unrecognised, None, None, None),
    ];
    for (text, id, state, error, submitted_at, done_at) in table {
        let expected = Receipt {
            message_id: id.map(str::to_owned),
            receipted_message_id: None,
            intermediate: false,
            by_text_alone: false,
            state,
            state_text: read(text).state_text,
            error: error.map(str::to_owned),
            submitted_at,
            done_at,
        };
        assert_eq!(read(text), expected, "{text}");
    }
}

#[test]
fn the_word_of_a_state_is_read_whole_cut_or_written_out() {
    let table = [
        ("DELIVRD", State::Delivered),
        ("Delivered", State::Delivered),
        ("DELI", State::Delivered),
        ("EXPIRED", State::Expired),
        ("expi", State::Expired),
        ("DELETED", State::Failed(Failure::Deleted)),
        ("UNDELIV", State::Failed(Failure::Undeliverable)),
        ("undeliverable", State::Failed(Failure::Undeliverable)),
        ("REJECTD", State::Failed(Failure::Rejected)),
        ("Rejected", State::Failed(Failure::Rejected)),
        ("ACCEPTD", State::Accepted),
        ("accepted", State::Accepted),
        ("ENROUTE", State::Enroute),
        ("UNKNOWN", State::Unknown),
        ("DEL", State::Unrecognised),
        ("FAILED", State::Failed(Failure::Undeliverable)),
        ("BUFFRED", State::Enroute),
        ("BUFFERED", State::Enroute),
        ("SCHEDULED", State::Enroute),
        ("SKIPPED", State::Failed(Failure::Rejected)),
        ("whatever", State::Unrecognised),
    ];
    for (word, state) in table {
        assert_eq!(read(&format!("id:1 stat:{word} err:000")).state, state, "{word}");
    }
}

#[test]
fn a_receipt_is_read_in_other_data_codings() {
    let text = "id:77 stat:EXPIRED err:011 text:Grüße";
    let latin: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let ascii = text.replace("Grüße", "Gruss").into_bytes();
    let marked_wide = [&[0xfe, 0xff][..], &wide(text)].concat();
    for (data_coding, text) in [
        (8, wide(text)),
        (0, wide(text)),
        (8, marked_wide),
        (3, latin),
        // The SMSC copied data_coding from the message.
        (8, ascii),
    ] {
        let delivery = Delivery { data_coding, ..marked(&text) };
        let receipt = parse(&delivery).unwrap();
        assert_eq!(receipt.message_id.as_deref(), Some("77"), "{data_coding}");
        assert_eq!(receipt.state, State::Expired);
        assert_eq!(receipt.error.as_deref(), Some("011"));
    }
}

#[test]
fn tlvs_of_a_receipt_count_more_than_its_text() {
    let delivery = Delivery {
        receipted_message_id: Some("tlv".to_owned()),
        message_state: Some(5),
        network_error_code: Some([3, 1, 2]),
        ..marked(b"id:text stat:DELIVRD done date:2611211201")
    };
    let receipt = parse(&delivery).unwrap();
    assert_eq!(receipt.receipted_message_id.as_deref(), Some("tlv"));
    assert_eq!(receipt.message_id.as_deref(), Some("text"));
    assert_eq!(receipt.state, State::Failed(Failure::Undeliverable));
    assert_eq!(receipt.error.as_deref(), Some("258"));
    assert_eq!(receipt.done_at, Some(AFTER));
}

#[test]
fn the_number_of_a_state_in_a_tlv_is_read() {
    let table = [
        (1, State::Enroute),
        (2, State::Delivered),
        (3, State::Expired),
        (4, State::Failed(Failure::Deleted)),
        (5, State::Failed(Failure::Undeliverable)),
        (6, State::Accepted),
        (7, State::Unknown),
        (8, State::Failed(Failure::Rejected)),
    ];
    for (number, state) in table {
        // The TLVs are enough, even without a text and without the bit of esm_class.
        let delivery = Delivery {
            receipted_message_id: Some("1".to_owned()),
            message_state: Some(number),
            ..Delivery::default()
        };
        assert_eq!(parse(&delivery).unwrap().state, state, "{number}");
    }
    let delivery = Delivery { message_state: Some(99), ..marked(b"stat:DELIVRD") };
    assert_eq!(parse(&delivery).unwrap().state, State::Delivered);
}

#[test]
fn a_message_from_a_phone_is_no_receipt() {
    for esm_class in [0x00, 0x40, 0x08, 0x10, 0x03] {
        let delivery = Delivery { esm_class, ..marked(b"id:1 stat:DELIVRD err:000") };
        assert_eq!(parse(&delivery), None, "{esm_class:#04X}");
    }
    // An unmarked text that has every field of a receipt counts as a receipt.
    let whole =
        b"id:1 sub:001 dlvrd:001 submit date:2611211200 done date:2611211201 stat:DELIVRD err:000";
    let unmarked = Delivery { esm_class: 0, ..marked(whole) };
    assert!(parse(&unmarked).is_some_and(|receipt| receipt.by_text_alone));
    for esm_class in [0x04, 0x05, 0x20, 0x44] {
        let delivery = Delivery { esm_class, ..marked(b"id:1 stat:DELIVRD err:000") };
        assert!(parse(&delivery).is_some(), "{esm_class:#04X}");
    }
}

proptest! {
    #[test]
    fn no_delivery_makes_the_parser_panic(
        text: Vec<u8>,
        data_coding: u8,
        esm_class: u8,
        state: Option<u8>,
    ) {
        parse(&Delivery { text, data_coding, esm_class, message_state: state, ..Delivery::default() });
    }

    #[test]
    fn no_text_that_resembles_a_receipt_makes_the_parser_panic(
        text in "((id|ID|stat|err|submit date|done_date|text) ?:?[ ä0-9A-Z:]{0,15} ?){0,8}",
        utf16: bool,
    ) {
        let bytes = if utf16 { wide(&text) } else { text.into_bytes() };
        parse(&marked(&bytes));
    }

    #[test]
    fn the_id_in_a_receipt_is_read_as_it_was_written(
        id in "[0-9A-Za-z._-]{1,64}",
        error in "[0-9A-F]{1,4}",
    ) {
        let receipt = read(&format!("id:{id} sub:001 dlvrd:000 stat:UNDELIV err:{error} text:"));
        prop_assert_eq!(receipt.message_id, Some(id));
        prop_assert_eq!(receipt.error, Some(error));
        prop_assert_eq!(receipt.state, State::Failed(Failure::Undeliverable));
    }
}

#[test]
fn the_text_of_a_message_is_told_from_the_fields_before_it() {
    for (fields, message) in [
        ("id:1 stat:DELIVRD err:000 Text:", "Hello"),
        ("id:1 stat:DELIVRD err:000", " Your code is 123456"),
        ("id:1 stat: DELIVRD err:", " Code:123456"),
        ("id:1 submit date:2026-11-21 12:00:00 stat:DELIVRD", " 12:00 at mine"),
        ("id:1 sub:001, done date:2611211201; stat:DELIVRD", ", see you"),
        ("id:1 stat:DELIVRD err:000 imsi:651 text:", "id:2"),
        ("id:1 stat:DELIVRD err:000", " imsi:651 is my secret text: yes"),
        ("id:1 stat:DELIVRD", ""),
        ("", "Your code is 123456, id:1 stat:DELIVRD"),
        ("", ""),
    ] {
        let whole = format!("{fields}{message}");
        assert_eq!(without_message(whole.as_bytes()), fields.as_bytes(), "{whole}");
        assert_eq!(without_message(&wide(&whole)), wide(fields), "{whole}");
        let mut marked = vec![0xfe, 0xff];
        marked.extend(wide(&whole));
        if !whole.is_empty() {
            assert_eq!(without_message(&marked)[2..], wide(fields), "{whole}");
        }
    }
    assert_eq!(without_message(b"id:1 stat:DELIVRD K\xfcsse"), b"id:1 stat:DELIVRD");
}
