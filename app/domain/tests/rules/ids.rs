//! References, message and batch IDs, and request IDs.

use std::collections::HashSet;

use domain::ids::{REQUESTID_CHARS_MAX, compose_id, id_unix_ms};
use domain::{BatchId, InboundId, Reference, RequestId, Transid};
use proptest::prelude::*;

use crate::seeded;

/// 2024-01-01T00:00:00Z, the epoch of IDs.
const EPOCH_MS: i64 = 1_704_067_200_000;
/// The last time that fits into 42 bits of milliseconds, in the year 2163.
const LAST_MS: i64 = EPOCH_MS + (1 << 42) - 1;

#[test]
fn a_reference_is_six_ascii_digits() {
    for text in ["000000", "000001", "123456", "999999"] {
        assert_eq!(Reference::parse(text).unwrap().as_str(), text);
    }
    let cases = [
        "",
        "12345",
        "1234567",
        " 12345",
        "12345 ",
        "+12345",
        "-12345",
        "12345a",
        "12.456",
        "\u{661}\u{662}\u{663}",
        "\u{661}\u{662}\u{663}456",
        "12345\n",
        "12345\0",
    ];
    for text in cases {
        assert!(Reference::parse(text).is_err(), "{text:?} was taken for a reference");
    }
}

#[test]
fn a_reference_from_a_number_keeps_its_zeros() {
    for (number, text) in [
        (0, "000000"),
        (7, "000007"),
        (42_042, "042042"),
        (999_999, "999999"),
        (1_000_001, "000001"),
    ] {
        assert_eq!(Reference::from_number(number).as_str(), text);
    }
}

#[test]
fn every_reference_is_different() {
    let all: HashSet<Reference> = (0..1_000_000).map(Reference::from_number).collect();
    assert_eq!(all.len(), 1_000_000);
}

#[test]
fn a_reference_is_a_string_in_json() {
    let reference = Reference::from_number(42);
    assert_eq!(serde_json::to_string(&reference).unwrap(), "\"000042\"");
    assert_eq!(serde_json::from_str::<Reference>("\"000042\"").unwrap(), reference);
    for json in ["42", "\"42\"", "\"0000042\"", "null", "\"00004a\""] {
        assert!(serde_json::from_str::<Reference>(json).is_err(), "{json}");
    }
}

#[test]
fn known_ids() {
    let cases = [
        (0, "0000000000000"),
        (1, "0000000000001"),
        (31, "000000000000z"),
        (32, "0000000000010"),
        (i64::MAX, "7zzzzzzzzzzzz"),
    ];
    for (id, text) in cases {
        assert_eq!(Transid(id).to_string(), format!("m_{text}"));
        assert_eq!(BatchId(id).to_string(), format!("b_{text}"));
        assert_eq!(Transid::parse(&format!("m_{text}")), Some(Transid(id)));
        assert_eq!(BatchId::parse(&format!("b_{text}")), Some(BatchId(id)));
    }
}

#[test]
fn texts_that_are_no_ids_are_refused() {
    let cases = [
        "",
        "m_",
        "0000000000000",
        "m0000000000000",
        "m_000000000000",
        "m_00000000000000",
        // Beyond 63 bits: the first two fit into 64 bits, the last two don't.
        "m_8000000000000",
        "m_fzzzzzzzzzzzz",
        "m_g000000000000",
        "m_zzzzzzzzzzzzz",
        "M_0000000000000",
        "m_000000000000A",
        // Letters that base 32 leaves out because they look like others.
        "m_000000000000i",
        "m_000000000000l",
        "m_000000000000o",
        "m_000000000000u",
        "m_000000000000\u{e9}",
        " m_0000000000000",
        "m_0000000000000 ",
        "m_+000000000000",
        "m_-000000000000",
    ];
    for text in cases {
        assert_eq!(Transid::parse(text), None, "{text:?}");
        assert_eq!(BatchId::parse(&text.replacen('m', "b", 1)), None, "{text:?}");
    }
    assert_eq!(Transid::parse("b_0000000000000"), None);
    assert_eq!(BatchId::parse("m_0000000000000"), None);
    assert_eq!(InboundId::parse("i_0000000000001"), Some(InboundId(1)));
    assert_eq!(InboundId::parse("m_0000000000001"), None);
}

#[test]
fn request_ids_have_1_to_255_characters() {
    for text in ["1", " ", "order-17", "ключ", "\n", &"x".repeat(255), &"😀".repeat(255)] {
        assert_eq!(RequestId::parse(text).unwrap().as_str(), text);
    }
    for text in ["", "\0", "a\0b", &"x".repeat(256), &"😀".repeat(256)] {
        assert!(RequestId::parse(text).is_err(), "{text:?} was taken for a request id");
    }
    assert_eq!(REQUESTID_CHARS_MAX, 255);
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn references_round_trip(number in 0..1_000_000_u32) {
        let reference = Reference::from_number(number);
        let text = reference.to_string();
        prop_assert_eq!(text.parse::<u32>().unwrap(), number);
        prop_assert_eq!(Reference::parse(&text), Ok(reference));
        let shown = format!("{reference:?}");
        prop_assert!(shown.contains(&text));
        let json = serde_json::to_string(&reference).unwrap();
        prop_assert_eq!(serde_json::from_str::<Reference>(&json).unwrap(), reference);
    }

    #[test]
    fn references_sort_like_their_numbers(a in 0..1_000_000_u32, b in 0..1_000_000_u32) {
        prop_assert_eq!(Reference::from_number(a).cmp(&Reference::from_number(b)), a.cmp(&b));
    }

    #[test]
    fn ids_round_trip(id in 0..=i64::MAX) {
        let transid = Transid(id);
        let batchid = BatchId(id);
        prop_assert_eq!(Transid::parse(&transid.to_string()), Some(transid));
        prop_assert_eq!(BatchId::parse(&batchid.to_string()), Some(batchid));
        prop_assert_eq!(transid.to_string().len(), 15);
        prop_assert_eq!(serde_json::to_string(&transid).unwrap(), format!("\"{transid}\""));
        let json = format!("\"{transid}\"");
        prop_assert_eq!(serde_json::from_str::<Transid>(&json).unwrap(), transid);
    }

    #[test]
    fn texts_sort_like_their_ids(a in 0..=i64::MAX, b in 0..=i64::MAX) {
        prop_assert_eq!(Transid(a).to_string().cmp(&Transid(b).to_string()), a.cmp(&b));
    }

    #[test]
    fn an_id_has_one_spelling(text in "m_[0-9a-z]{13}") {
        if let Some(id) = Transid::parse(&text) {
            prop_assert_eq!(id.to_string(), text);
        }
    }

    #[test]
    fn an_id_carries_its_millisecond(ms in EPOCH_MS..=LAST_MS, low in 0..1_i64 << 21) {
        let id = compose_id(ms, low);
        prop_assert!(id >= 0);
        prop_assert_eq!(id_unix_ms(id), ms);
        prop_assert_eq!(id & ((1 << 21) - 1), low);
    }

    #[test]
    fn ids_sort_by_time_then_by_count(
        (ms_a, ms_b) in (EPOCH_MS..=LAST_MS, EPOCH_MS..=LAST_MS),
        low_a in 0..1_i64 << 21,
        low_b in 0..1_i64 << 21,
    ) {
        prop_assert_eq!(
            compose_id(ms_a, low_a).cmp(&compose_id(ms_b, low_b)),
            (ms_a, low_a).cmp(&(ms_b, low_b))
        );
    }

    #[test]
    fn a_request_id_is_kept_as_it_is(text in r"[^\x00]{1,255}") {
        let id = RequestId::parse(&text).unwrap();
        prop_assert_eq!(id.as_str(), text.as_str());
    }
}

#[test]
fn similar_references_have_one_mistake() {
    let similar = Reference::parse("001234").unwrap().similar();
    // 6 positions with 9 other digits each. The two zeros can't be swapped.
    assert_eq!(similar.len(), 6 * 9 + 4);
    for (text, is_similar) in [
        ("901234", true),
        ("001239", true),
        ("010234", true),
        ("001243", true),
        ("001234", false),
        ("001342", false),
        ("991234", false),
    ] {
        let reference = Reference::parse(text).unwrap();
        assert_eq!(similar.contains(&reference), is_similar, "{text}");
    }
}

#[test]
fn references_are_found_in_texts() {
    for (text, expected) in [
        ("123456", &["123456"][..]),
        ("REF 123456", &["123456"]),
        ("123 456", &["123456"]),
        ("inv. 12-34-56!", &["123456"]),
        ("123456 or 654321", &["123456", "654321"]),
        ("123456, 123456", &["123456"]),
        ("1234567", &[]),
        ("12345", &[]),
        ("", &[]),
        ("\u{661}23456", &[]),
    ] {
        let found = Reference::all_in(text);
        let found: Vec<_> = found.iter().map(Reference::as_str).collect();
        assert_eq!(found, expected, "{text}");
    }
}
