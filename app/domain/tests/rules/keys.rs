//! API keys: their format, the mistakes that their checksum catches, and the parts that they never
//! show.

use domain::api_key::{API_KEY_CHARS, ENTROPY_BYTES};
use domain::{ApiKey, KeyKind, Reference};
use proptest::prelude::*;

use crate::seeded;

/// Keys made by a Python program with `zlib.crc32`, `hashlib.sha256` and integer division.
const KNOWN: [(&str, KeyKind, [u8; ENTROPY_BYTES], &str, &str); 3] = [
    (
        "000000",
        KeyKind::Live,
        [0; ENTROPY_BYTES],
        "000000hk_0000000000000000000000000000001KXfCZ",
        "d480ad6b02b7e9a6977f81267e2302b28de28902cf1c98f901c5385228f86af5",
    ),
    (
        "123456",
        KeyKind::Live,
        [
            0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
            24, 25, 26, 27, 28, 29, 30, 31,
        ],
        "123456hk_flDIBkGwcRKRL9GXCgaFM3UNu2jQTC4Y0gk7",
        "0c73b3df086a0767fe60c767d1a2399dea9c95fd149491a538c54f5bfadc95a0",
    ),
    (
        "042042",
        KeyKind::Test,
        [0xff; ENTROPY_BYTES],
        "042042ht_1pX8wOr5j2ACunjH7GLL8mWZWHmY1L1v1y4U",
        "1cfe17c8f84fc2d5407407b8fa4b8dec6dc1e54457c45553fa63047c6de11015",
    ),
];

#[test]
fn known_keys_are_made_and_read() {
    for (reference, kind, entropy, text, hash) in KNOWN {
        let reference = Reference::parse(reference).unwrap();
        let made = ApiKey::from_entropy(reference, kind, entropy);
        assert_eq!(made.expose(), text);
        assert_eq!(made.hash(), hash);
        let read = ApiKey::parse(text).unwrap();
        assert!(read == made);
        assert_eq!((read.reference(), read.kind()), (reference, kind));
        assert_eq!(read.hash(), hash);
    }
}

/// Hand-written bodies with checksums from Python's `zlib.crc32`.
#[test]
fn the_checksum_is_crc_32_iso_hdlc_in_base_62() {
    for text in [
        "123456hk_0123456789ABCDEFGHIJKLMNOPQRST3VAawJ",
        "900001ht_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzz476Lt6",
    ] {
        assert!(ApiKey::parse(text).is_ok(), "{text}");
    }
}

#[test]
fn malformed_keys_are_refused() {
    let good = "123456hk_0123456789ABCDEFGHIJKLMNOPQRST3VAawJ";
    let cases = [
        String::new(),
        "1".to_owned(),
        "123456".to_owned(),
        good[..API_KEY_CHARS - 1].to_owned(),
        good[1..].to_owned(),
        format!("{good}0"),
        format!("0{good}"),
        format!(" {good}"),
        format!("{good} "),
        format!("{good}\n"),
        good.to_lowercase(),
        good.to_uppercase(),
        good.replace("hk_", "hx_"),
        good.replace("hk_", "ht_"),
        good.replace("hk_", "HK_"),
        good.replace("hk_", "hk-"),
        // The right number of bytes, but not ASCII.
        good.replace("01", "\u{e9}"),
        "\u{661}\u{662}\u{663}456hk_0123456789ABCDEFGHIJKLMNOPQRST".to_owned(),
        "0".repeat(API_KEY_CHARS),
        "\0".repeat(API_KEY_CHARS),
        "z".repeat(10_000),
    ];
    for text in cases {
        assert!(ApiKey::parse(&text).is_err(), "{text:?} was taken for a key");
    }
}

fn any_key() -> impl Strategy<Value = ApiKey> {
    (0..1_000_000_u32, any::<bool>(), any::<[u8; ENTROPY_BYTES]>()).prop_map(
        |(reference, live, entropy)| {
            let kind = if live { KeyKind::Live } else { KeyKind::Test };
            ApiKey::from_entropy(Reference::from_number(reference), kind, entropy)
        },
    )
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn a_key_is_read_back_as_it_was_made(key in any_key()) {
        let text = key.expose();
        prop_assert_eq!(text.len(), API_KEY_CHARS);
        prop_assert_eq!(text.len(), 45);
        prop_assert_eq!(&text[..6], key.reference().to_string());
        prop_assert_eq!(&text[6..9], if key.kind() == KeyKind::Live { "hk_" } else { "ht_" });
        prop_assert!(text[9..].bytes().all(|b| b.is_ascii_alphanumeric()));
        // A key needs no escaping in a path or a header.
        prop_assert!(text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'));
        let read = ApiKey::parse(text).unwrap();
        prop_assert!(read == key);
        prop_assert_eq!((read.reference(), read.kind()), (key.reference(), key.kind()));
    }

    #[test]
    fn the_hash_is_64_lower_case_hexadecimal_digits(key in any_key()) {
        let hash = key.hash();
        prop_assert_eq!(hash.len(), 64);
        prop_assert!(hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')));
    }

    #[test]
    fn debug_shows_the_reference_and_the_kind_alone(key in any_key()) {
        let prefix = &key.expose()[6..9];
        prop_assert_eq!(format!("{key:?}"), format!("ApiKey({}{prefix}…)", key.reference()));
    }

    #[test]
    fn other_entropy_makes_another_key(
        reference in 0..1_000_000_u32, one in any::<[u8; ENTROPY_BYTES]>(), bit in 0..128_usize,
    ) {
        // A key uses the entropy modulo 62^30, which is more than 2^178. A change in the low half
        // always shows.
        let mut other = one;
        other[ENTROPY_BYTES - 1 - bit / 8] ^= 1 << (bit % 8);
        let reference = Reference::from_number(reference);
        let key = |entropy| ApiKey::from_entropy(reference, KeyKind::Live, entropy);
        prop_assert!(key(one) != key(other));
        prop_assert!(key(one).hash() != key(other).hash());
    }

    #[test]
    fn every_text_is_a_key_or_refused(text in r"\PC{0,60}|[0-9]{6}h[kt]_[0-9A-Za-z]{36}") {
        // A random text is a key with a probability of 1 in 2^32. These cases are the same in every
        // run.
        prop_assert!(ApiKey::parse(&text).is_err());
    }
}

proptest! {
    #![proptest_config(seeded(64))]

    /// CRC-32 detects every change within 32 bits, and a number has only one form in 6 base62
    /// characters. So this holds for every key.
    #[test]
    fn any_one_changed_character_is_refused(key in any_key(), other_script in any::<char>()) {
        let text = key.expose();
        for position in 0..API_KEY_CHARS {
            let replacements = (0..=127_u8).map(char::from).chain([other_script, '\u{e9}', '٣']);
            for c in replacements.filter(|c| !text[position..].starts_with(*c)) {
                let changed = format!("{}{c}{}", &text[..position], &text[position + 1..]);
                prop_assert!(ApiKey::parse(&changed).is_err(), "{} at {}", c, position);
            }
        }
    }

    /// Swapping two characters makes the same error pattern in two places. The polynomial is
    /// primitive, so no such pattern within a key is a multiple of it. Swaps between body and
    /// checksum were enumerated: none results in a valid key.
    #[test]
    fn any_two_swapped_characters_are_refused(key in any_key()) {
        let text = key.expose();
        for left in 0..API_KEY_CHARS {
            for right in left + 1..API_KEY_CHARS {
                let mut swapped = text.as_bytes().to_vec();
                swapped.swap(left, right);
                let swapped = String::from_utf8(swapped).unwrap();
                if swapped != text {
                    prop_assert!(ApiKey::parse(&swapped).is_err(), "{} and {}", left, right);
                }
            }
        }
    }

    #[test]
    fn a_character_lost_or_added_is_refused(key in any_key(), c in any::<char>()) {
        let text = key.expose();
        for position in 0..=API_KEY_CHARS {
            let longer = format!("{}{c}{}", &text[..position], &text[position..]);
            prop_assert!(ApiKey::parse(&longer).is_err());
            if position < API_KEY_CHARS {
                let shorter = format!("{}{}", &text[..position], &text[position + 1..]);
                prop_assert!(ApiKey::parse(&shorter).is_err());
            }
        }
    }
}
