//! Inbound messages: every payload becomes a text, and the parts of a long message become one.

use domain::inbound::{MISSING_PARTS, is_complete, join, segments, without_nul};
use domain::message::parts::parts;
use domain::message::{Encoding, encoding};
use domain::{Concatenation, DefaultAlphabet, Part, PartPosition, ReceivedPart, Segmentation};
use proptest::prelude::*;

use crate::messages::{BASIC_TABLE, ESC, EXTENSION_TABLE, any_text};
use crate::seeded;

/// `esm_class` with and without a user data header.
const HEADED: u8 = 0x40;
const PLAIN: u8 = 0;

/// Reads hexadecimal digits. Ignores spaces.
fn octets(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(|b| *b != b' ').collect();
    let octet = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(octet).collect()
}

/// Decodes a message of one part.
fn decoded_by(
    default_alphabet: DefaultAlphabet,
    esm_class: u8,
    data_coding: u8,
    payload: &[u8],
) -> String {
    let part = ReceivedPart::parse(esm_class, data_coding, payload, None);
    join(&[part], default_alphabet)
}

fn decoded(esm_class: u8, data_coding: u8, payload: &[u8]) -> String {
    decoded_by(DefaultAlphabet::Gsm7, esm_class, data_coding, payload)
}

/// Returns a part as it would arrive here if a carrier delivered it.
fn received(part: &Part) -> ReceivedPart {
    let (esm_class, sar) = match part.concatenation {
        Concatenation::Header => (HEADED, None),
        Concatenation::Sar { reference, total, sequence } => {
            (PLAIN, PartPosition::of_sar(reference, total, sequence))
        }
        Concatenation::Alone | Concatenation::Payload => (PLAIN, None),
    };
    ReceivedPart::parse(esm_class, part.data_coding, &part.bytes, sar)
}

/// A part with a header and an 8-bit reference.
fn headed(data_coding: u8, total: u8, sequence: u8, text: &[u8]) -> ReceivedPart {
    let payload = [&[5, 0, 3, 0xcc, total, sequence], text].concat();
    ReceivedPart::parse(HEADED, data_coding, &payload, None)
}

fn joined(parts: &[ReceivedPart]) -> String {
    join(parts, DefaultAlphabet::Gsm7)
}

#[test]
fn default_alphabets_have_the_words_of_the_settings() {
    let words = DefaultAlphabet::ALL.map(DefaultAlphabet::as_str);
    assert_eq!(words, ["gsm7", "gsm7-packed", "latin1"]);
    assert_eq!(DefaultAlphabet::parse("gsm7-packed"), Some(DefaultAlphabet::Gsm7Packed));
    assert_eq!(DefaultAlphabet::default(), DefaultAlphabet::Gsm7);
}

#[test]
fn every_septet_has_the_character_of_the_standard() {
    for (code, expected) in (0..).zip(BASIC_TABLE).filter(|(_, expected)| *expected != ESC) {
        let expected = char::from_u32(expected).unwrap().to_string();
        assert_eq!(decoded(PLAIN, 0, &[code]), expected, "{code:02x}");
        // An escape before a code that the extension table lacks has no effect.
        let extended = EXTENSION_TABLE.iter().find(|(place, _)| *place == code);
        let extended = extended.map(|(_, code)| char::from_u32(*code).unwrap().to_string());
        let expected = extended.unwrap_or(expected);
        assert_eq!(decoded(PLAIN, 0, &[0x1b, code]), expected, "1b {code:02x}");
    }
    for code in 0x80..=0xff {
        assert_eq!(decoded(PLAIN, 0, &[code]), "\u{fffd}");
        assert_eq!(decoded(PLAIN, 0, &[0x1b, code, b'a']), "\u{fffd}a");
    }
    // Escapes without effect.
    assert_eq!(decoded(PLAIN, 0, b"a\x1b"), "a ");
    assert_eq!(decoded(PLAIN, 0, b"a\x1b\x1bea"), "a ea");
}

#[test]
fn packed_septets_are_unpacked() {
    let unpacked =
        |esm_class, hex: &str| decoded_by(DefaultAlphabet::Gsm7Packed, esm_class, 0, &octets(hex));
    for (hex, expected) in [
        ("", ""),
        ("e8 32 9b fd 46 97 d9 ec 37", "hellohello"),
        ("31 d9 8c 56 b3 dd 70", "12345678"),
        // Seven bits of padding aren't an @.
        ("31 d9 8c 56 b3 dd 00", "1234567"),
        ("50 79 7a 5c d6 81 6a 9b 32 68 c3 c3 6f 7c", "Price: 5€ [x]"),
        // A septet that isn't complete is ignored.
        ("ff", "à"),
    ] {
        assert_eq!(unpacked(PLAIN, hex), expected, "{hex}");
    }
    // After a header of 6, 7 and 4 octets, there are 1, 0 and 3 fill bits.
    for (hex, expected) in [
        ("05 00 03 cc 02 01 90 65 36 fb 0d ba bf e5", "Hello wor[…]"),
        ("06 08 04 12 34 02 01 c8 34", "Hi[…]"),
        ("03 24 01 01 08 6f a6 9b 34", "aŞı"),
        ("05 00 03 cc 02 01", "[…]"),
    ] {
        assert_eq!(unpacked(HEADED, hex), expected, "{hex}");
    }
}

#[test]
fn the_data_coding_determines_the_alphabet() {
    // In GSM-7, 0x00 is @ and 0x41 is A. In UCS-2, they are A.
    let payload = [0x00, 0x41];
    let gsm7 = "@A";
    let one = "A";
    let binary = "0041";
    for (data_codings, expected) in [
        (0x00..=0x00, gsm7),
        (0x01..=0x01, one),
        (0x02..=0x02, binary),
        (0x03..=0x03, one),
        (0x04..=0x07, binary),
        (0x08..=0x08, one),
        (0x09..=0x0a, binary),
        (0x0b..=0x0c, gsm7),
        (0x0d..=0x0e, binary),
        (0x0f..=0x13, gsm7),
        (0x14..=0x17, binary),
        (0x18..=0x1b, one),
        (0x1c..=0x1f, gsm7),
        (0x20..=0x3f, binary),
        (0x40..=0x43, gsm7),
        (0x44..=0x47, binary),
        (0x48..=0x4b, one),
        (0x4c..=0x53, gsm7),
        (0x54..=0x57, binary),
        (0x58..=0x5b, one),
        (0x5c..=0x5f, gsm7),
        (0x60..=0x7f, binary),
        (0x80..=0xdf, gsm7),
        (0xe0..=0xef, one),
        (0xf0..=0xf3, gsm7),
        (0xf4..=0xf7, binary),
        (0xf8..=0xfb, gsm7),
        (0xfc..=0xff, binary),
    ] {
        for data_coding in data_codings {
            assert_eq!(decoded(PLAIN, data_coding, &payload), expected, "{data_coding:02x}");
        }
    }
    // Latin-1 and UCS-2 give the same text above only without NUL.
    assert_eq!(decoded(PLAIN, 3, &octets("63 61 66 e9")), "café");
    assert_eq!(decoded(PLAIN, 1, &octets("63 61 66 e9")), "café");
    assert_eq!(decoded(PLAIN, 0x18, &octets("04 16 00 41")), "ЖA");
    let latin1 =
        |data_coding, hex| decoded_by(DefaultAlphabet::Latin1, PLAIN, data_coding, &octets(hex));
    assert_eq!(latin1(0, "40 e9 a3"), "@é£");
    assert_eq!(latin1(0xf1, "40 e9 a3"), "@é£");
    assert_eq!(latin1(8, "04 16"), "Ж");
    assert_eq!(decoded(PLAIN, 4, &octets("00 ff 0a 1b")), "00ff0a1b");
}

#[test]
fn what_is_no_utf_16_is_replaced() {
    for (hex, expected) in [
        ("d8 3d de 00", "😀"),
        ("d8 3d", "\u{fffd}"),
        ("de 00 00 41", "\u{fffd}A"),
        ("d8 3d 00 41", "\u{fffd}A"),
        ("d8 3d d8 3d de 00", "\u{fffd}😀"),
        ("00 41 00", "A\u{fffd}"),
        ("41", "\u{fffd}"),
        ("", ""),
    ] {
        assert_eq!(decoded(PLAIN, 8, &octets(hex)), expected, "{hex}");
    }
}

#[test]
fn nul_is_removed() {
    assert_eq!(decoded(PLAIN, 1, b"STOP\0"), "STOP");
    assert_eq!(decoded(PLAIN, 3, b"a\0b\0"), "ab");
    assert_eq!(decoded(PLAIN, 8, &octets("0041 0000 0042")), "AB");
    // A zero is an @ in GSM-7.
    assert_eq!(decoded(PLAIN, 0, b"a\0b"), "a@b");
    assert_eq!(without_nul("\0a\0".to_owned()), "a");
}

#[test]
fn national_languages_have_tables_of_their_own() {
    // The header, the escape sequences or codes, and their characters (TS 23.038 Annex A).
    for (element, language, codes, expected) in [
        // Single shift tables.
        (0x24, 1, "1b47 1b49 1b53 1b63 1b67 1b69 1b73", "ĞİŞçğış"),
        (0x24, 2, "1b09 1b41 1b49 1b4f 1b55 1b61 1b69 1b6f 1b75", "çÁÍÓÚáíóú"),
        (0x24, 3, "1b05 1b09 1b0b 1b0c 1b0e 1b0f 1b12 1b13 1b15", "êçÔôÁáΦΓΩ"),
        (0x24, 3, "1b16 1b17 1b18 1b19 1b1f 1b41 1b49 1b4f 1b55", "ΠΨΣΘÊÀÍÓÚ"),
        (0x24, 3, "1b5b 1b5c 1b61 1b69 1b6f 1b75 1b7b 1b7c 1b7f", "ÃÕÂíóúãõâ"),
        // They contain the default extension table.
        (0x24, 1, "1b0a 1b14 1b28 1b29 1b2f 1b3c 1b3d 1b3e 1b40 1b65", "\u{c}^{}\\[~]|€"),
        (0x24, 2, "1b0a 1b14 1b28 1b29 1b2f 1b3c 1b3d 1b3e 1b40 1b65", "\u{c}^{}\\[~]|€"),
        (0x24, 3, "1b0a 1b14 1b28 1b29 1b2f 1b3c 1b3d 1b3e 1b40 1b65", "\u{c}^{}\\[~]|€"),
        (0x24, 1, "47 1b41 1b1b", "GA "),
        // Locking shift tables.
        (0x25, 1, "04 07 0b 0c 1c 1d 40 60 05 61", "€ıĞğŞşİçéa"),
        (0x25, 3, "04 06 07 08 09 0b 0c 0e 0f 12 13 14 15 16 17", "êúíóçÔôÁáªÇÀ∞^\\"),
        (0x25, 3, "18 19 1a 1c 1d 1e 24 40 5b 5c 5d 60 7b 7c 7d", "€Ó|ÂâÊºÍÃÕÚ~ãõ`"),
        (0x25, 3, "10 5e 61", "ΔÜa"),
        // The default extension table stays. A code that it lacks is read in the locking table.
        (0x25, 1, "1b65 1b40 1b60", "€|ç"),
        // Spanish has no locking shift table, and 4 to 13 aren't supported.
        (0x25, 2, "00 41 1b65", "@A€"),
        (0x25, 6, "61 62 20 31 1b65", "ab 1€"),
        (0x24, 13, "61 1b65 1b41", "a€A"),
        (0x24, 255, "61 1b65", "a€"),
    ] {
        let header = [3, element, 1, language];
        let payload = [&header[..], &octets(codes)].concat();
        assert_eq!(decoded(HEADED, 0, &payload), expected, "{element:02x} {language} {codes}");
    }
    // Both tables together, and concatenation.
    let both = "0b 00 03 07 02 01 24 01 01 25 01 03";
    let payload = octets(&format!("{both} 0f 1b53"));
    assert_eq!(decoded(HEADED, 0, &payload), "áŞ[…]");
    // They have no effect on UCS-2.
    assert_eq!(decoded(HEADED, 8, &octets("03 25 01 01 00 04 00 41")), "\u{4}A");
}

#[test]
fn headers_tell_the_position_of_a_part() {
    let eight = |reference| u32::from(reference);
    let sixteen = |reference: u16| 0x1_0000 + u32::from(reference);
    let position = |reference, total, sequence| Some(PartPosition { reference, total, sequence });
    for (hex, expected, text) in [
        ("05 00 03 cc 02 01 41", position(eight(0xcc_u8), 2, 1), "A"),
        ("05 00 03 cc ff ff 41", position(eight(0xcc), 255, 255), "A"),
        ("06 08 04 12 34 03 02 41", position(sixteen(0x1234), 3, 2), "A"),
        ("06 08 04 00 cc 03 02 41", position(sixteen(0xcc), 3, 2), "A"),
        // Ports before and after it are ignored.
        ("0b 05 04 15 8a 00 00 00 03 cc 02 01 41", position(eight(0xcc), 2, 1), "A"),
        ("09 00 03 cc 02 01 04 02 1f 40 41", position(eight(0xcc), 2, 1), "A"),
        // Of two, the last one counts.
        ("0a 00 03 cc 02 01 00 03 cd 03 03 41", position(eight(0xcd), 3, 3), "A"),
        // One of one, zero parts, part zero, and a part after the last one.
        ("05 00 03 cc 01 01 41", None, "A"),
        ("05 00 03 cc 00 00 41", None, "A"),
        ("05 00 03 cc 00 01 41", None, "A"),
        ("05 00 03 cc 02 00 41", None, "A"),
        ("05 00 03 cc 02 03 41", None, "A"),
        // Elements of a wrong length.
        ("04 00 02 02 01 41", None, "A"),
        ("06 00 04 cc cc 02 01 41", None, "A"),
        ("02 24 00 41", None, "A"),
        // Headers without elements and with an empty text.
        ("00 41", None, "A"),
        ("00", None, ""),
        ("05 00 03 cc 02 01", position(eight(0xcc), 2, 1), ""),
        // Headers that exceed the payload, and elements that exceed the header: all of it is text.
        ("", None, ""),
        ("05", None, "é"),
        ("41 42 43", None, "ABC"),
        ("05 00 03 cc", None, "é@¥\u{fffd}"),
        ("03 00 03 41 42", None, "¥@¥AB"),
        ("01 24 41", None, "£¤A"),
        ("ff 00 03", None, "\u{fffd}@¥"),
    ] {
        let part = ReceivedPart::parse(HEADED, 0, &octets(hex), None);
        assert_eq!(part.position(), expected, "{hex}");
        let before = expected.is_some_and(|position| position.sequence > 1);
        let after = expected.is_some_and(|position| position.sequence < position.total);
        let missing = |is_missing| if is_missing { MISSING_PARTS } else { "" };
        let expected = format!("{}{text}{}", missing(before), missing(after));
        assert_eq!(joined(&[part]), expected, "{hex}");
    }
    // Without the bit of esm_class, there is no header.
    let part = ReceivedPart::parse(0x04, 0, &octets("00 41"), None);
    assert_eq!(joined(&[part]), "@A");
}

#[test]
fn sar_parameters_tell_the_position_of_a_part() {
    let of_sar = |reference, total, sequence| PartPosition::of_sar(reference, total, sequence);
    for (total, sequence) in [(0, 0), (0, 1), (1, 1), (2, 0), (2, 3), (1, 0), (254, 255)] {
        assert_eq!(of_sar(7, total, sequence), None, "{sequence} of {total}");
    }
    let sar = of_sar(0x00cc, 3, 2);
    assert_eq!(sar.map(|sar| (sar.total, sar.sequence)), Some((3, 2)));
    assert_eq!(ReceivedPart::parse(PLAIN, 0, b"A", sar).position(), sar);
    // A header has precedence, unless it has no position.
    let header = ReceivedPart::parse(HEADED, 0, &[5, 0, 3, 0xcc, 2, 1], sar).position();
    assert_eq!(header.map(|position| position.total), Some(2));
    assert_eq!(ReceivedPart::parse(HEADED, 0, &[5, 0, 3, 0xcc, 1, 1], sar).position(), sar);
    // References of different kinds are different.
    let wide = ReceivedPart::parse(HEADED, 0, &[6, 8, 4, 0, 0xcc, 2, 1], None).position();
    let references = [header, wide, sar].map(|position| position.unwrap().reference);
    assert_eq!(references, [0xcc, 0x1_00cc, 0x2_00cc]);
}

#[test]
fn missing_parts_leave_a_mark() {
    let part = |sequence| headed(0, 5, sequence, &[b'0' + sequence]);
    for (sequences, expected) in [
        (&[1, 2, 3, 4, 5][..], "12345"),
        (&[5, 3, 1, 4, 2], "12345"),
        (&[1, 2, 2, 1, 3, 4, 5, 5], "12345"),
        (&[1, 2, 3, 4], "1234[…]"),
        (&[2, 3, 4, 5], "[…]2345"),
        (&[1, 2, 4, 5], "12[…]45"),
        (&[1, 5], "1[…]5"),
        (&[4, 2], "[…]2[…]4[…]"),
        (&[1], "1[…]"),
        (&[3], "[…]3[…]"),
        (&[5], "[…]5"),
    ] {
        let parts: Vec<_> = sequences.iter().map(|sequence| part(*sequence)).collect();
        assert_eq!(joined(&parts), expected, "{sequences:?}");
        assert_eq!(is_complete(&parts), !expected.contains('['), "{sequences:?}");
        assert_eq!(segments(&parts, DefaultAlphabet::Gsm7), 5);
    }
    // Of two parts with the same number, the first one counts.
    let parts = [headed(0, 2, 1, b"a"), headed(0, 2, 2, b"b"), headed(0, 2, 1, b"c")];
    assert_eq!(joined(&parts), "ab");
    assert_eq!(joined(&[]), "");
    assert!(!is_complete(&[]));
    assert_eq!(segments(&[], DefaultAlphabet::Gsm7), 0);
    // The last of 255 parts.
    assert_eq!(joined(&[headed(0, 255, 255, b"a")]), "[…]a");
    assert_eq!(joined(&[headed(0, 255, 254, b"a")]), "[…]a[…]");
}

#[test]
fn characters_that_carriers_split_are_whole() {
    // A surrogate pair.
    let parts = [headed(8, 2, 2, &[0xde, 0x00]), headed(8, 2, 1, &[0, 0x41, 0xd8, 0x3d])];
    assert_eq!(joined(&parts), "A😀");
    // An escape sequence.
    assert_eq!(joined(&[headed(0, 2, 1, b"5\x1b"), headed(0, 2, 2, b"e")]), "5€");
    // The same, packed: 35 1b, then 65.
    let parts = [headed(0, 2, 1, &octets("6a 1b")), headed(0, 2, 2, &octets("ca"))];
    assert_eq!(join(&parts, DefaultAlphabet::Gsm7Packed), "5€");
    // Half a character at a missing part.
    assert_eq!(joined(&[headed(8, 3, 1, &[0xd8, 0x3d])]), "\u{fffd}[…]");
    assert_eq!(joined(&[headed(0, 3, 1, b"\x1b"), headed(0, 3, 3, b"e")]), " […]e");
    // An odd number of octets spoils only its own part.
    assert_eq!(
        joined(&[headed(8, 2, 1, &[0, 0x41, 0]), headed(8, 2, 2, &[0, 0x42])]),
        "A\u{fffd}B"
    );
    // Parts with different codings.
    let parts = [headed(0, 4, 1, b"a\0"), headed(8, 4, 2, &[4, 0x16]), headed(4, 4, 3, &[0xab])];
    assert_eq!(joined(&parts), "a@Жab[…]");
}

#[test]
fn segments_are_counted() {
    let single = |data_coding, length| {
        let part = ReceivedPart::parse(PLAIN, data_coding, &vec![0x20; length], None);
        segments(&[part], DefaultAlphabet::Gsm7)
    };
    for (data_coding, length, expected) in [
        (0, 0, 1),
        (0, 160, 1),
        // A carrier joined these.
        (0, 161, 2),
        (0, 306, 2),
        (0, 307, 3),
        (3, 160, 1),
        (3, 161, 2),
        (8, 140, 1),
        (8, 142, 2),
        (8, 268, 2),
        (8, 270, 3),
        (4, 140, 1),
        (4, 141, 2),
    ] {
        assert_eq!(single(data_coding, length), expected, "{data_coding} {length}");
    }
    let packed = ReceivedPart::parse(PLAIN, 0, &[0x20; 140], None);
    assert_eq!(segments(&[packed], DefaultAlphabet::Gsm7Packed), 1);
}

#[test]
fn a_part_never_stands_in_debug_output() {
    let shown = format!("{:?}", headed(0, 2, 1, b"QQQ"));
    assert!(!shown.contains('Q') && !shown.contains("81"), "{shown}");
}

/// Any payload, often with a header that makes sense.
fn any_payload() -> impl Strategy<Value = Vec<u8>> {
    let noise = || prop::collection::vec(any::<u8>(), 0..300);
    let element = prop_oneof![
        (any::<u8>(), prop::collection::vec(any::<u8>(), 0..6)).boxed(),
        (Just(0), prop::collection::vec(0..4_u8, 3)).boxed(),
        (Just(8), prop::collection::vec(0..4_u8, 4)).boxed(),
        (0x24..=0x25_u8, prop::collection::vec(0..15_u8, 1)).boxed(),
    ];
    let elements = prop::collection::vec(element, 0..5);
    let headed = (elements, noise()).prop_map(|(elements, text)| {
        let mut header = vec![0];
        for (id, data) in elements {
            header.extend([id, u8::try_from(data.len()).unwrap()]);
            header.extend(data);
        }
        header[0] = u8::try_from(header.len() - 1).unwrap();
        [header, text].concat()
    });
    prop_oneof![noise().boxed(), headed.boxed()]
}

fn any_received() -> impl Strategy<Value = ReceivedPart> {
    let sar = (any::<u16>(), 0..5_u8, 0..5_u8);
    let sar = sar.prop_map(|(reference, total, part)| PartPosition::of_sar(reference, total, part));
    (any::<u8>(), any::<u8>(), any_payload(), sar).prop_map(
        |(esm_class, data_coding, payload, sar)| {
            ReceivedPart::parse(esm_class, data_coding, &payload, sar)
        },
    )
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn every_payload_becomes_a_text_without_nul(
        parts in prop::collection::vec(any_received(), 0..6),
        alphabet in prop::sample::select(DefaultAlphabet::ALL.to_vec()),
    ) {
        prop_assert!(!join(&parts, alphabet).contains('\0'));
        for part in &parts {
            let single = std::slice::from_ref(part);
            prop_assert!(!join(single, alphabet).contains('\0'));
            prop_assert!(segments(single, alphabet) >= 1);
            prop_assert_eq!(is_complete(single), part.position().is_none());
        }
    }

    #[test]
    fn binary_payloads_are_kept(payload in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert_eq!(octets(&decoded(PLAIN, 4, &payload)), payload);
    }

    #[test]
    fn latin_1_is_kept(text in "[\u{1}-\u{ff}]{0,160}") {
        let payload: Vec<u8> = text.chars().map(|c| u8::try_from(c).unwrap()).collect();
        prop_assert_eq!(decoded(PLAIN, 3, &payload), text);
    }
}

proptest! {
    #![proptest_config(seeded(1_000))]

    #[test]
    fn texts_that_we_send_come_back(
        text in any_text(),
        way in prop::sample::select(Segmentation::ALL.to_vec()),
        reference in any::<u16>(),
        order in any::<prop::sample::Index>(),
    ) {
        let sent = parts(&text, way, reference).unwrap();
        let mut arrived: Vec<_> = sent.iter().map(received).collect();
        // Some other order, and one part twice.
        let middle = order.index(arrived.len());
        arrived.rotate_left(middle);
        arrived[middle..].reverse();
        arrived.push(arrived[middle].clone());
        prop_assert_eq!(joined(&arrived), text.as_str());
        prop_assert!(is_complete(&arrived));
        let expected = domain::message::segments(&text);
        let counted = segments(&arrived, DefaultAlphabet::Gsm7);
        if way == Segmentation::Payload {
            // Our splitter keeps pairs whole, so that it may need more segments.
            prop_assert!(counted <= expected);
        } else {
            prop_assert_eq!(counted, expected);
        }
    }

    #[test]
    fn packed_texts_come_back(
        text in any_text().prop_filter("GSM-7", |text| encoding(text) == Encoding::Gsm7),
        reference in any::<u16>(),
    ) {
        let sent = parts(&text, Segmentation::Udh, reference).unwrap();
        let arrived: Vec<_> = sent.iter().map(|part| {
            let is_headed = part.concatenation == Concatenation::Header;
            let header = if is_headed { usize::from(part.bytes[0]) + 1 } else { 0 };
            let (header, septets) = part.bytes.split_at(header);
            // A zero at the end may be read as padding, so none is there.
            let septets: Vec<u8> = septets.iter().map(|it| if *it == 0 { 1 } else { *it }).collect();
            let esm_class = if is_headed { HEADED } else { PLAIN };
            ReceivedPart::parse(esm_class, 0, &[header, &pack(&septets, header.len())].concat(), None)
        }).collect();
        let expected = text.replace('@', "£");
        prop_assert_eq!(join(&arrived, DefaultAlphabet::Gsm7Packed), expected);
    }

    #[test]
    fn each_run_of_missing_parts_leaves_one_mark(
        text in any_text().prop_filter("several parts", |text| domain::message::segments(text) > 2),
        present in prop::collection::vec(any::<bool>(), 255),
    ) {
        let sent = parts(&text, Segmentation::Udh, 7).unwrap();
        let mut expected = String::new();
        let mut arrived = Vec::new();
        let mut is_missing = false;
        for (part, is_present) in sent.iter().zip(present) {
            if is_present {
                // Our splitter keeps characters whole, so that each part is a text of its own.
                let header = usize::from(part.bytes[0]) + 1;
                expected.push_str(&decoded(PLAIN, part.data_coding, &part.bytes[header..]));
                arrived.push(received(part));
            } else if !is_missing {
                expected.push_str(MISSING_PARTS);
            }
            is_missing = !is_present;
        }
        prop_assert_eq!(is_complete(&arrived), arrived.len() == sent.len());
        if !arrived.is_empty() {
            prop_assert_eq!(joined(&arrived), expected);
        }
    }
}

/// Packs septets bit by bit, after a header of so many octets.
fn pack(septets: &[u8], header_octets: usize) -> Vec<u8> {
    let fill = (7 - header_octets * 8 % 7) % 7;
    let bits = std::iter::repeat_n(false, fill);
    let bits = bits.chain(septets.iter().flat_map(|it| (0..7).map(move |bit| it >> bit & 1 == 1)));
    let bits: Vec<bool> = bits.collect();
    let octet = |bits: &[bool]| bits.iter().rev().fold(0, |octet, bit| octet << 1 | u8::from(*bit));
    bits.chunks(8).map(octet).collect()
}
