//! Messages: their pages, which are billed, and their segments, which go on air.

use domain::message::parts::parts;
use domain::message::runs::{foreign_characters, runs, segments_in_gsm7};
use domain::message::{
    InvalidMessage, MessageText, PAGE_CHARS, encoding, gsm7_septets, pages, segments, units_left,
};
use domain::{Concatenation, Encoding, Segmentation};
use proptest::prelude::*;

use crate::seeded;

/// 3GPP TS 23.038 §6.2.1 by position, as code points. `ESC` marks the escape to the extension
/// table.
pub const ESC: u32 = 0x1b;
pub const BASIC_TABLE: [u32; 128] = [
    0x40, 0xa3, 0x24, 0xa5, 0xe8, 0xe9, 0xf9, 0xec, 0xf2, 0xc7, 0x0a, 0xd8, 0xf8, 0x0d, 0xc5, 0xe5,
    0x394, 0x5f, 0x3a6, 0x393, 0x39b, 0x3a9, 0x3a0, 0x3a8, 0x3a3, 0x398, 0x39e, ESC, 0xc6, 0xe6,
    0xdf, 0xc9, 0x20, 0x21, 0x22, 0x23, 0xa4, 0x25, 0x26, 0x27, 0x28, 0x29, 0x2a, 0x2b, 0x2c, 0x2d,
    0x2e, 0x2f, 0x30, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38, 0x39, 0x3a, 0x3b, 0x3c, 0x3d,
    0x3e, 0x3f, 0xa1, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x49, 0x4a, 0x4b, 0x4c, 0x4d,
    0x4e, 0x4f, 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x57, 0x58, 0x59, 0x5a, 0xc4, 0xd6, 0xd1,
    0xdc, 0xa7, 0xbf, 0x61, 0x62, 0x63, 0x64, 0x65, 0x66, 0x67, 0x68, 0x69, 0x6a, 0x6b, 0x6c, 0x6d,
    0x6e, 0x6f, 0x70, 0x71, 0x72, 0x73, 0x74, 0x75, 0x76, 0x77, 0x78, 0x79, 0x7a, 0xe4, 0xf6, 0xf1,
    0xfc, 0xe0,
];
/// §6.2.1.1: the code that follows an escape, and its character.
pub const EXTENSION_TABLE: [(u8, u32); 10] = [
    (0x0a, 0x0c),
    (0x14, 0x5e),
    (0x28, 0x7b),
    (0x29, 0x7d),
    (0x2f, 0x5c),
    (0x3c, 0x5b),
    (0x3d, 0x7e),
    (0x3e, 0x5d),
    (0x40, 0x7c),
    (0x65, 0x20ac),
];

/// Encodes a text in the default alphabet, septet by septet. Returns `None` if the alphabet lacks a
/// character.
pub fn to_septets(text: &str) -> Option<Vec<u8>> {
    let mut septets = Vec::new();
    for c in text.chars() {
        let code = u32::from(c);
        let basic = BASIC_TABLE.iter().position(|&entry| entry == code && code != ESC);
        if let Some(position) = basic {
            septets.push(u8::try_from(position).ok()?);
        } else {
            let (position, _) = EXTENSION_TABLE.iter().find(|(_, entry)| *entry == code)?;
            septets.extend([0x1b, *position]);
        }
    }
    Some(septets)
}

/// Cuts a stream of units into segments as a carrier would. Each segment takes as many units as
/// fit, or one less if the last of them opens a pair.
pub fn cut<T: Copy>(
    units: &[T],
    alone: usize,
    joined: usize,
    opens: impl Fn(T) -> bool,
) -> Vec<&[T]> {
    if units.len() <= alone {
        return vec![units];
    }
    let mut parts = Vec::new();
    let mut rest = units;
    while rest.len() > joined {
        let end = if opens(rest[joined - 1]) { joined - 1 } else { joined };
        parts.push(&rest[..end]);
        rest = &rest[end..];
    }
    parts.push(rest);
    parts
}

fn model_segments(text: &str) -> (Encoding, usize) {
    if let Some(septets) = to_septets(text) {
        let parts = cut(&septets, 160, 153, |septet| septet == 0x1b);
        (Encoding::Gsm7, parts.len())
    } else {
        let units: Vec<u16> = text.encode_utf16().collect();
        let parts = cut(&units, 70, 67, |unit| (0xd800..0xdc00).contains(&unit));
        (Encoding::Ucs2, parts.len())
    }
}

#[test]
fn the_limits_are_those_of_the_contract() {
    assert_eq!(PAGE_CHARS, 160);
}

#[test]
fn every_character_has_the_septets_of_the_standard() {
    for c in (0..=0x0010_ffff).filter_map(char::from_u32) {
        let expected = to_septets(c.encode_utf8(&mut [0; 4])).map(|septets| septets.len());
        assert_eq!(gsm7_septets(c), expected, "U+{:04X}", u32::from(c));
    }
}

#[test]
fn pages_are_units_of_160_scalar_values() {
    let cases = [
        (String::new(), 0),
        ("a".to_owned(), 1),
        ("a".repeat(160), 1),
        ("a".repeat(161), 2),
        ("a".repeat(320), 2),
        ("a".repeat(321), 3),
        ("a".repeat(1_600), 10),
        // A page counts characters, no matter how many units they take on air.
        ("€".repeat(160), 1),
        ("ж".repeat(160), 1),
        ("😀".repeat(160), 1),
        ("😀".repeat(161), 2),
        // "e" and a combining accent are two characters.
        ("e\u{301}".repeat(80), 1),
        ("e\u{301}".repeat(81), 2),
    ];
    for (text, expected) in cases {
        assert_eq!(pages(&text), expected, "{} characters", text.chars().count());
    }
}

#[test]
fn segments_at_the_boundaries() {
    let cases = [
        // text, encoding, segments
        ("a".repeat(160), Encoding::Gsm7, 1),
        ("a".repeat(161), Encoding::Gsm7, 2),
        ("a".repeat(306), Encoding::Gsm7, 2),
        ("a".repeat(307), Encoding::Gsm7, 3),
        ("a".repeat(459), Encoding::Gsm7, 3),
        ("a".repeat(460), Encoding::Gsm7, 4),
        ("a".repeat(1_600), Encoding::Gsm7, 11),
        // A character of the extension table takes two septets.
        ("€".repeat(80), Encoding::Gsm7, 1),
        ("€".repeat(81), Encoding::Gsm7, 2),
        // 76 pairs fill 152 septets. The 77th would be split.
        ("€".repeat(152), Encoding::Gsm7, 2),
        ("€".repeat(153), Encoding::Gsm7, 3),
        (format!("{}€{}", "a".repeat(152), "a".repeat(152)), Encoding::Gsm7, 3),
        (format!("{}€{}", "a".repeat(152), "a".repeat(151)), Encoding::Gsm7, 2),
        (format!("{}€{}", "a".repeat(151), "a".repeat(153)), Encoding::Gsm7, 2),
        (format!("{}€{}", "a".repeat(151), "a".repeat(154)), Encoding::Gsm7, 3),
        (format!("{}€", "a".repeat(158)), Encoding::Gsm7, 1),
        (format!("{}€", "a".repeat(159)), Encoding::Gsm7, 2),
        // A single character outside the alphabet switches the whole text to UCS-2.
        (format!("{}ж", "a".repeat(69)), Encoding::Ucs2, 1),
        (format!("{}ж", "a".repeat(70)), Encoding::Ucs2, 2),
        ("ж".repeat(70), Encoding::Ucs2, 1),
        ("ж".repeat(71), Encoding::Ucs2, 2),
        ("ж".repeat(134), Encoding::Ucs2, 2),
        ("ж".repeat(135), Encoding::Ucs2, 3),
        ("ж".repeat(1_600), Encoding::Ucs2, 24),
        // Upper-case Ç is in the alphabet. Lower-case ç and the backtick aren't.
        ("Ç".to_owned(), Encoding::Gsm7, 1),
        ("ç".to_owned(), Encoding::Ucs2, 1),
        ("`".to_owned(), Encoding::Ucs2, 1),
        // A character outside the 16-bit plane takes two units.
        ("😀".repeat(35), Encoding::Ucs2, 1),
        ("😀".repeat(36), Encoding::Ucs2, 2),
        // 33 pairs fill 66 units. The 34th would be split.
        ("😀".repeat(66), Encoding::Ucs2, 2),
        ("😀".repeat(67), Encoding::Ucs2, 3),
        (format!("{}😀{}", "ж".repeat(66), "ж".repeat(66)), Encoding::Ucs2, 3),
        (format!("{}😀{}", "ж".repeat(66), "ж".repeat(65)), Encoding::Ucs2, 2),
        (format!("{}😀{}", "ж".repeat(65), "ж".repeat(67)), Encoding::Ucs2, 2),
    ];
    for (text, expected_encoding, expected) in cases {
        assert_eq!(encoding(&text), expected_encoding, "{text}");
        assert_eq!(segments(&text), expected, "{text}");
    }
}

#[test]
fn texts_that_cannot_be_sent_are_refused() {
    let parse = |text: &str| MessageText::parse(text.to_owned(), 10);
    assert_eq!(parse("").unwrap_err(), InvalidMessage::Empty);
    assert_eq!(parse("\0").unwrap_err(), InvalidMessage::Nul);
    assert_eq!(parse("before\0after").unwrap_err(), InvalidMessage::Nul);
    let too_long = InvalidMessage::TooLong { max_pages: 10 };
    assert_eq!(parse(&"a".repeat(1_601)).unwrap_err(), too_long);
    assert_eq!(parse(&"😀".repeat(1_601)).unwrap_err(), too_long);
    assert_eq!(parse(&"😀".repeat(1_600)).unwrap().pages(), 10);
    // White space alone is a valid message.
    assert_eq!(parse(" ").unwrap().as_str(), " ");
    assert_eq!(parse("\r\n\t").unwrap().as_str(), "\r\n\t");
    assert!(MessageText::parse("a".repeat(161), 1).is_err());
    assert!(MessageText::parse("a".repeat(160), 1).is_ok());
}

/// Texts that mix characters of one septet, of two septets, of one unit and of a surrogate pair, in
/// lengths around the boundaries.
pub fn any_text() -> impl Strategy<Value = String> {
    let gsm = prop::sample::select("aZ0 @Δß\n€^{}\\[~]|\u{c}".chars().collect::<Vec<char>>());
    let wide = "a€жçሴ\u{ffff}😀𝄞\u{10ffff}`".chars();
    let wide = prop::sample::select(wide.collect::<Vec<char>>());
    let length =
        prop_oneof![1..=20_usize, 60..=75_usize, 120..=170_usize, 290..=330_usize, 1..=1_600_usize];
    prop_oneof![
        length.clone().prop_flat_map(move |n| prop::collection::vec(gsm.clone(), n)),
        length.prop_flat_map(move |n| prop::collection::vec(wide.clone(), n)),
        prop::collection::vec(any::<char>().prop_filter("no NUL", |c| *c != '\0'), 1..=400),
    ]
    .prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(seeded(1_000))]

    #[test]
    fn segments_are_those_of_the_model(text in any_text()) {
        prop_assert_eq!((encoding(&text), segments(&text)), model_segments(&text));
    }

    #[test]
    fn the_model_divides_no_character(text in any_text()) {
        // Checks the model: its parts add up to the text, and none ends in the middle of a
        // character.
        if let Some(septets) = to_septets(&text) {
            let parts = cut(&septets, 160, 153, |septet| septet == 0x1b);
            prop_assert!(parts.iter().all(|part| part.last() != Some(&0x1b)));
            prop_assert_eq!(parts.concat(), septets);
        } else {
            let units: Vec<u16> = text.encode_utf16().collect();
            let parts = cut(&units, 70, 67, |unit| (0xd800..0xdc00).contains(&unit));
            for part in &parts {
                prop_assert!(String::from_utf16(part).is_ok());
            }
            prop_assert_eq!(parts.concat(), units);
        }
    }

    #[test]
    fn pages_are_the_smallest_number_that_holds_the_text(text in any_text()) {
        let count = text.chars().count();
        let pages = pages(&text);
        prop_assert!(pages * PAGE_CHARS >= count);
        prop_assert!((pages - 1) * PAGE_CHARS < count);
    }

    #[test]
    fn a_text_is_kept_as_it_is(text in any_text()) {
        let message = MessageText::parse(text.clone(), 10).unwrap();
        prop_assert_eq!(message.as_str(), text.as_str());
        prop_assert_eq!(message.pages(), pages(&text));
        prop_assert_eq!(message.segments(), segments(&text));
        prop_assert_eq!(message.as_str(), text);
    }

    #[test]
    fn the_units_that_are_left_fit_and_one_more_does_not(text in any_text()) {
        let left = units_left(&text);
        // The encoding stays the same: "a" is in both encodings and one unit long in both.
        let filled = text + &"a".repeat(left);
        prop_assert_eq!(units_left(&filled), 0);
        prop_assert_eq!(segments(&filled) + 1, segments(&(filled.clone() + "a")));
    }

    #[test]
    fn a_longer_text_never_needs_fewer_segments(text in any_text(), c in any::<char>()) {
        let longer = format!("{text}{c}");
        prop_assert!(segments(&longer) >= segments(&text));
        prop_assert!(pages(&longer) >= pages(&text));
    }

    #[test]
    fn a_text_never_stands_in_debug_output(text in r"[QXZ]{4,40}") {
        let message = MessageText::parse(text, 10).unwrap();
        let shown = format!("{message:?} {:#?}", Some(&message));
        prop_assert!(!shown.contains(['Q', 'X', 'Z']), "{}", shown);
    }
}

#[test]
fn runs_say_where_pages_and_segments_end_and_what_is_foreign() {
    let marks = |text: &str| -> Vec<(usize, bool, Option<usize>, Option<usize>)> {
        let marks = runs(text).into_iter().map(|run| {
            let chars = run.text.chars().count();
            (chars, run.foreign, run.ends_segment, run.ends_page)
        });
        marks.collect()
    };
    assert_eq!(marks(""), []);
    assert_eq!(marks(&"a".repeat(160)), [(160, false, None, None)]);
    assert_eq!(
        marks(&"a".repeat(161)),
        [(152, false, Some(1), None), (8, false, None, Some(1)), (1, false, None, None),]
    );
    // With 152 septets each, there would be a third segment.
    assert_eq!(
        marks(&"a".repeat(306)),
        [(153, false, Some(1), None), (7, false, None, Some(1)), (146, false, None, None),]
    );
    assert_eq!(
        marks("ab’’c"),
        [(2, false, None, None), (2, true, None, None), (1, false, None, None),]
    );
    // Only 66 units of pairs fit into a segment, since the 34th pair would be split.
    assert_eq!(marks(&"😀".repeat(36)), [(33, true, Some(1), None), (3, true, None, None)]);
    assert_eq!(foreign_characters("a’b“c’"), ['’', '“']);
    assert_eq!(segments_in_gsm7(&format!("’{}", "a".repeat(159))), 1);
    assert_eq!(segments_in_gsm7(&format!("’{}", "a".repeat(160))), 2);
}

/// Returns the number of characters in each part that a carrier gets.
fn chars_of_parts(text: &str) -> Vec<usize> {
    let parts = parts(text, Segmentation::Udh, 1).unwrap();
    let chars = parts.into_iter().map(|part| {
        let header = match part.concatenation {
            Concatenation::Header => usize::from(part.bytes[0]) + 1,
            _ => 0,
        };
        let text = &part.bytes[header..];
        if part.data_coding == 0 {
            // An escape isn't a character.
            text.iter().filter(|septet| **septet != 0x1b).count()
        } else {
            let units = text.chunks(2).map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
            char::decode_utf16(units).count()
        }
    });
    chars.collect()
}

proptest! {
    #![proptest_config(seeded(300))]

    #[test]
    fn runs_are_the_text_and_agree_with_the_counts(
        parts in prop::collection::vec("[a-z€^’😀ж]{1,90}", 1..9),
    ) {
        let text = parts.concat();
        let found = runs(&text);
        let joined: String = found.iter().map(|run| run.text).collect();
        prop_assert_eq!(&joined, &text);
        let segment_ends: Vec<_> = found.iter().filter_map(|run| run.ends_segment).collect();
        prop_assert_eq!(segment_ends, (1..segments(&text)).collect::<Vec<_>>());
        let mut segment_chars = vec![0];
        for run in &found {
            *segment_chars.last_mut().unwrap() += run.text.chars().count();
            if run.ends_segment.is_some() {
                segment_chars.push(0);
            }
        }
        prop_assert_eq!(segment_chars, chars_of_parts(&text));
        let page_ends: Vec<_> = found.iter().filter_map(|run| run.ends_page).collect();
        prop_assert_eq!(page_ends, (1..pages(&text)).collect::<Vec<_>>());
        let foreign = found.iter().any(|run| run.foreign);
        prop_assert_eq!(foreign, encoding(&text) == Encoding::Ucs2);
        for run in &found {
            let alike = run.text.chars().all(|c| gsm7_septets(c).is_none() == run.foreign);
            prop_assert!(alike && !run.text.is_empty());
        }
    }
}

#[test]
fn common_characters_outside_gsm7_have_replacements() {
    let replaced = |text: &str| {
        let text = MessageText::parse(text.to_owned(), 10).unwrap();
        text.replaced().map(|text| text.as_str().to_owned())
    };
    for (text, wanted) in [
        ("“It’s” – ‹so›…\u{A0}«ok»", "\"It's\" - 'so'... \"ok\""),
        // Letters with accents that GSM-7 has stay.
        ("déjà ça, Cœur, Ça", "déjà ca, Coeur, Ça"),
        ("Zażółć gęślą jaźń, Łódź", "Zazolc gesla jazn, Lodz"),
        ("ăâîșț Việt İı", "aaist Viet Ii"),
        // Accents that are characters of their own.
        ("e\u{301} c\u{327}", "é c"),
    ] {
        assert_eq!(replaced(text).as_deref(), Some(wanted), "{text}");
    }
    // In GSM-7 already, or not all characters have a replacement.
    for text in ["Hello €5 ñ", "Привет – да", "“ok” 😀", "1\u{FE0F}\u{20E3}", "\u{301}", "й", "\t…"]
    {
        assert_eq!(replaced(text), None, "{text}");
    }
    // The replacement must not cost another page.
    let full = "x".repeat(159);
    assert_eq!(replaced(&format!("{full}…")), None);
    assert_eq!(replaced(&format!("{full}–")), Some(format!("{full}-")));
}

proptest! {
    #![proptest_config(seeded(300))]

    #[test]
    fn replacements_fit_gsm7_and_cost_no_more(text in "[ -~“”’–—…À-ſ\u{300}-\u{30F}]{1,400}") {
        let text = MessageText::parse(text, 10).unwrap();
        if let Some(replaced) = text.replaced() {
            prop_assert_eq!(encoding(replaced.as_str()), Encoding::Gsm7);
            prop_assert!(replaced.pages() <= text.pages());
        }
    }
}
