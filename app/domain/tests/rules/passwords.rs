//! New passwords and the strength meter.

use domain::Password;
use domain::password::InvalidPassword::{self, Length, OfEmail, OfService, Repeated, Sequence};
use domain::password::{PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, Strength};
use proptest::prelude::*;

use crate::seeded;

const EMAIL: &str = "anna.johnsen@mountain-telecom.example.ls";

fn judged(text: &str) -> Result<(), InvalidPassword> {
    Password::parse(text)?.must_differ_from(EMAIL)
}

#[test]
fn passwords_have_10_to_128_characters() {
    assert_eq!((PASSWORD_CHARS_MIN, PASSWORD_CHARS_MAX), (10, 128));
    let good = "\u{1f600}a\u{1f601}b\u{1f602}c\u{1f603}d\u{1f604}e";
    let longest = "wombat 7 ".repeat(14) + "42";
    for good in [good, &longest, "correct horse", "gzTw83,lPq"] {
        assert_eq!(Password::parse(good).unwrap().expose(), good);
    }
    for bad in ["", "gzTw83,lP", &(longest.clone() + "x"), &good[..9]] {
        let refused = Password::parse(bad).unwrap_err();
        assert_eq!(refused, Length, "{bad:?}");
    }
}

#[test]
fn patterns_are_refused() {
    for text in
        ["aaaaaaaaaa", "          ", "ababababab", "Abcabcabca", "1212121212", "xY1!xY1!xY1!"]
    {
        assert_eq!(judged(text), Err(Repeated), "{text:?}");
    }
    for text in [
        "1234567890",
        "0987654321",
        "abcdefghij",
        "qwertyuiop",
        "QWERTYuiop",
        "poiuytrewq",
        "qwertasdfg",
        "qwertzuiop",
        "azertyuiop",
        "asdfghjklzxcvbnm",
        "aaaaabbbbb",
        "9876543210123",
    ] {
        assert_eq!(judged(text), Err(Sequence), "{text:?}");
    }
}

#[test]
fn the_email_and_the_name_of_the_service_make_no_password() {
    for text in [
        "johnsen2026",
        "Johnsen2026",
        "anna.johnsen1",
        "anna.johnsen@mountain",
        "mountain99",
        "telecom-johnsen",
        EMAIL,
    ] {
        assert_eq!(judged(text), Err(OfEmail), "{text:?}");
    }
    for text in ["heliograph", "Heliograph1", "1HELIOGRAPH!", "heliograph-2026"] {
        assert_eq!(judged(text), Err(OfService), "{text:?}");
    }
}

#[test]
fn short_parts_of_the_email_do_not_count_nor_does_a_part_beside_enough_else() {
    for text in ["anna 77 blue", "johnsen-battery-staple", "the heliograph of 1821", "lsls-anna-12"]
    {
        assert_eq!(judged(text), Ok(()), "{text:?}");
    }
    // Without an email, every password is different enough.
    assert_eq!(Password::parse("johnsen2026").unwrap().must_differ_from(""), Ok(()));
}

#[test]
fn the_meter_counts_what_cannot_be_foretold() {
    for (text, strength) in [
        ("password123", Strength::Weak),
        ("johnsen johnsen", Strength::Weak),
        ("aaaaaaaaaaaaaaaaaaaaaaaa", Strength::Weak),
        ("gzTw83,lPq", Strength::Fair),
        ("correct horse battery", Strength::Strong),
    ] {
        assert_eq!(Strength::of(text, EMAIL), strength, "{text}");
    }
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn a_password_never_stands_in_debug_output(text in "[QXZ]{20,128}") {
        if let Ok(password) = Password::parse(&text) {
            prop_assert_eq!(password.expose(), text.as_str());
            let shown = format!("{password:?} {:#?}", Some(&password));
            prop_assert!(!shown.contains(['Q', 'X', 'Z']), "{}", shown);
        }
    }

    #[test]
    fn any_text_is_judged_and_only_its_length_is_refused_for_its_length(text in r"[\s\S]{0,140}") {
        let fits = (10..=128).contains(&text.chars().count());
        prop_assert_eq!(Password::parse(&text) != Err(Length), fits);
        let _ = Strength::of(&text, EMAIL);
    }
}
