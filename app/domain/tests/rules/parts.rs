//! The parts of a text: they fit on air, are marked as one message, and add up to the text.

use domain::message::parts::{
    Concatenation, Part, Segmentation, SubmitAlphabet, TooManyParts, parts, parts_in,
};
use domain::message::segments;
use proptest::prelude::*;

use crate::messages::{BASIC_TABLE, ESC, EXTENSION_TABLE, any_text, cut, to_septets};
use crate::seeded;

/// The number of octets in a short message on the radio side (3GPP TS 23.040 §9.2.3.24).
const RADIO_OCTETS: usize = 140;

/// Reads octets as a handset would with this data coding. Returns `None` if they end inside a
/// character.
fn read(data_coding: u8, bytes: &[u8]) -> Option<String> {
    if data_coding == 8 {
        let (units, rest) = bytes.as_chunks::<2>();
        let units: Vec<u16> = units.iter().map(|unit| u16::from_be_bytes(*unit)).collect();
        return String::from_utf16(&units).ok().filter(|_| rest.is_empty());
    }
    let mut text = String::new();
    let mut septets = bytes.iter();
    while let Some(&septet) = septets.next() {
        let mut code = BASIC_TABLE[usize::from(septet)];
        if code == ESC {
            let next = septets.next()?;
            code = EXTENSION_TABLE.iter().find(|(place, _)| place == next)?.1;
        }
        text.push(char::from_u32(code)?);
    }
    Some(text)
}

/// The concatenation element of a user data header, and the text after the header.
struct Unwrapped<'a> {
    /// Whether the reference has 16 bits, and its value (with 8 bits, the low octet).
    reference: (bool, u16),
    total: u8,
    sequence: u8,
    header_octets: usize,
    text: &'a [u8],
}

fn unwrap(bytes: &[u8]) -> Unwrapped<'_> {
    let header_octets = usize::from(bytes[0]) + 1;
    let (header, text) = bytes.split_at(header_octets);
    // The only element is concatenation, with an 8-bit or 16-bit reference.
    let (reference, rest) = match *header {
        [5, 0, 3, low, ref rest @ ..] => ((false, u16::from(low)), rest),
        [6, 8, 4, high, low, ref rest @ ..] => ((true, u16::from_be_bytes([high, low])), rest),
        _ => panic!("no such header: {header:?}"),
    };
    Unwrapped { reference, total: rest[0], sequence: rest[1], header_octets, text }
}

/// Returns the number of octets on air. Septets are packed and start at a septet boundary after the
/// header.
fn on_air(data_coding: u8, header_octets: usize, text: &[u8]) -> usize {
    if data_coding == 8 {
        header_octets + text.len()
    } else {
        let header_septets = (header_octets * 8).div_ceil(7);
        ((header_septets + text.len()) * 7).div_ceil(8)
    }
}

/// Returns the texts of the parts according to the model, without headers.
fn model(text: &str, shorter_by: usize) -> (u8, Vec<Vec<u8>>) {
    if let Some(septets) = to_septets(text) {
        let cuts = cut(&septets, 160, 153 - shorter_by, |septet| septet == 0x1b);
        (0, cuts.into_iter().map(<[u8]>::to_vec).collect())
    } else {
        let units: Vec<u16> = text.encode_utf16().collect();
        let cuts = cut(&units, 70, 67 - shorter_by, |unit| (0xd800..0xdc00).contains(&unit));
        let octets = |cut: &[u16]| cut.iter().flat_map(|unit| unit.to_be_bytes()).collect();
        (8, cuts.into_iter().map(octets).collect())
    }
}

fn alone(data_coding: u8, bytes: &[u8]) -> Vec<Part> {
    vec![Part { data_coding, bytes: bytes.to_vec(), concatenation: Concatenation::Alone }]
}

#[test]
fn a_text_in_latin1_is_cut_like_one_in_gsm7_and_is_ucs2_if_it_doesnt_fit() {
    let latin1 = |text: &str| parts_in(SubmitAlphabet::Latin1, text, Segmentation::Udh, 7).unwrap();
    assert_eq!(latin1("Hé @{"), [Part { bytes: b"H\xe9 @{".to_vec(), ..latin1("x").remove(0) }]);
    let long = "é".repeat(161);
    let lengths = |parts: Vec<Part>| parts.iter().map(|part| part.bytes.len()).collect::<Vec<_>>();
    let gsm7 = parts(&long, Segmentation::Udh, 7).unwrap();
    assert_eq!(lengths(latin1(&long)), lengths(gsm7));
    for text in ["5 €", "Δ", "жа"] {
        let [part] = &latin1(text)[..] else { panic!("{text}") };
        assert_eq!((part.data_coding, part.bytes.len()), (8, text.chars().count() * 2));
    }
}

#[test]
fn segmentations_have_the_words_of_the_settings() {
    for (word, way) in [
        ("udh", Some(Segmentation::Udh)),
        ("sar", Some(Segmentation::Sar)),
        ("payload", Some(Segmentation::Payload)),
        ("UDH", None),
        ("", None),
    ] {
        assert_eq!(Segmentation::parse(word), way);
        assert!(way.is_none_or(|way| way.as_str() == word));
    }
}

#[test]
fn a_short_text_is_one_part_with_every_segmentation() {
    for way in Segmentation::ALL {
        assert_eq!(parts("Hi @{€", way, 7), { Ok(alone(0, b"Hi \x00\x1b\x28\x1b\x65")) });
        assert_eq!(
            parts("жa😀", way, 7),
            Ok(alone(8, &[0x04, 0x36, 0, 0x61, 0xd8, 0x3d, 0xde, 0x00]))
        );
        let full = "a".repeat(160);
        assert_eq!(parts(&full, way, 7), Ok(alone(0, full.as_bytes())));
    }
}

#[test]
fn the_parts_of_a_long_text_are_marked_as_one_message() {
    let text = format!("{}{}", "a".repeat(153), "b".repeat(8));
    let wide = parts(&text, Segmentation::Udh, 0x1234).unwrap();
    let part = |head: &[u8], text: &str, concatenation| Part {
        data_coding: 0,
        bytes: [head, text.as_bytes()].concat(),
        concatenation,
    };
    assert_eq!(
        wide,
        [
            part(&[6, 8, 4, 0x12, 0x34, 2, 1], &text[..152], Concatenation::Header),
            part(&[6, 8, 4, 0x12, 0x34, 2, 2], &text[152..], Concatenation::Header),
        ]
    );
    // Here the longer header would need another part.
    let full = "c".repeat(2 * 153);
    assert_eq!(
        parts(&full, Segmentation::Udh, 0x1234).unwrap(),
        [
            part(&[5, 0, 3, 0x34, 2, 1], &full[..153], Concatenation::Header),
            part(&[5, 0, 3, 0x34, 2, 2], &full[153..], Concatenation::Header),
        ]
    );
    let sar = |sequence| Concatenation::Sar { reference: 0x1234, total: 2, sequence };
    assert_eq!(
        parts(&text, Segmentation::Sar, 0x1234).unwrap(),
        [part(&[], &text[..153], sar(1)), part(&[], &text[153..], sar(2))]
    );
    assert_eq!(
        parts(&text, Segmentation::Payload, 0x1234).unwrap(),
        [part(&[], &text, Concatenation::Payload)]
    );
}

#[test]
fn more_parts_than_can_be_numbered_are_refused() {
    let most = "ж".repeat(255 * 67);
    let more = format!("{most}ж");
    for way in [Segmentation::Udh, Segmentation::Sar] {
        assert_eq!(parts(&most, way, 0).unwrap().len(), 255);
        assert_eq!(parts(&more, way, 0), Err(TooManyParts));
    }
    let whole = parts(&more, Segmentation::Payload, 0).unwrap();
    assert_eq!((whole.len(), whole[0].bytes.len()), (1, (255 * 67 + 1) * 2));
}

#[test]
fn a_part_never_stands_in_debug_output() {
    let shown = format!("{:?}", parts("QQQ", Segmentation::Udh, 0));
    assert!(!shown.contains('Q') && !shown.contains("81"), "{shown}");
}

proptest! {
    #![proptest_config(seeded(1_000))]

    #[test]
    fn parts_are_those_of_the_model_and_together_the_text(
        text in any_text(),
        reference in any::<u16>(),
    ) {
        let (data_coding, texts) = model(&text, 0);
        let (_, shorter) = model(&text, 1);
        let wide = shorter.len() == texts.len();
        let texts_with_header = if wide { &shorter } else { &texts };
        let total = u8::try_from(texts.len()).unwrap();
        let headed = parts(&text, Segmentation::Udh, reference).unwrap();
        let sar = parts(&text, Segmentation::Sar, reference).unwrap();
        prop_assert_eq!((headed.len(), sar.len()), (texts.len(), texts.len()));
        prop_assert_eq!(segments(&text), texts.len());

        let mut read_back = String::new();
        let wanted = texts.iter().zip(texts_with_header);
        for ((sequence, wanted), (headed, sar)) in (1..).zip(wanted).zip(headed.iter().zip(&sar)) {
            prop_assert_eq!((headed.data_coding, sar.data_coding), (data_coding, data_coding));
            prop_assert_eq!(&sar.bytes, wanted.0);
            let (header_octets, text) = if total == 1 {
                prop_assert_eq!(headed.concatenation, Concatenation::Alone);
                prop_assert_eq!(sar.concatenation, Concatenation::Alone);
                (0, headed.bytes.as_slice())
            } else {
                prop_assert_eq!(headed.concatenation, Concatenation::Header);
                let expected = Concatenation::Sar { reference, total, sequence };
                prop_assert_eq!(sar.concatenation, expected);
                let found = unwrap(&headed.bytes);
                prop_assert_eq!((found.total, found.sequence), (total, sequence));
                let shown = if wide { reference } else { reference % 256 };
                prop_assert_eq!(found.reference, (wide, shown));
                (found.header_octets, found.text)
            };
            prop_assert_eq!(text, wanted.1.as_slice());
            prop_assert!(on_air(data_coding, header_octets, text) <= RADIO_OCTETS);
            let part = read(data_coding, text);
            prop_assert!(part.is_some(), "part {} is torn", sequence);
            read_back.extend(part);
        }
        prop_assert_eq!(&read_back, &text);
    }

    #[test]
    fn a_payload_is_the_whole_text(text in any_text(), reference in any::<u16>()) {
        let (data_coding, texts) = model(&text, 0);
        let alone = texts.len() == 1;
        let concatenation = if alone { Concatenation::Alone } else { Concatenation::Payload };
        let whole = parts(&text, Segmentation::Payload, reference).unwrap();
        prop_assert_eq!(whole.len(), 1);
        prop_assert_eq!(whole[0].data_coding, data_coding);
        prop_assert_eq!(whole[0].concatenation, concatenation);
        prop_assert_eq!(read(data_coding, &whole[0].bytes), Some(text));
    }
}
