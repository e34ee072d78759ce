//! Emails.

use domain::Email;
use domain::account::{EMAIL_CHARS_MAX, letter_name};
use proptest::prelude::*;

use crate::seeded;

#[test]
fn addresses_are_accepted() {
    let cases = [
        ("name@example.org", "name@example.org"),
        ("  name@example.org\t", "name@example.org"),
        ("Name@Example.ORG", "name@example.org"),
        ("first.last+tag@mail.example.co.ls", "first.last+tag@mail.example.co.ls"),
        ("o'brien@example.org", "o'brien@example.org"),
        ("a@b", "a@b"),
        ("a@xn--bcher-kva.example", "a@xn--bcher-kva.example"),
        ("käse@bücher.example", "käse@bücher.example"),
    ];
    for (text, kept) in cases {
        assert_eq!(Email::parse(text).unwrap().as_str(), kept, "{text:?}");
    }
    let longest_local = format!("{}@example.org", "a".repeat(64));
    assert!(Email::parse(&longest_local).is_ok());
}

#[test]
fn texts_that_are_no_addresses_are_refused() {
    let long_local = format!("{}@example.org", "a".repeat(65));
    let long = format!("a@{}.org", "b".repeat(250));
    let cases = [
        "",
        " ",
        "@",
        "name",
        "name@",
        "@example.org",
        "na me@example.org",
        "name@exam ple.org",
        "name@@example.org",
        "a@b@c",
        "name@example..org",
        "name@.example.org",
        "name@example.org.",
        "name@-example.org",
        "name@example-.org",
        "name@example.org\nBcc: other@example.org",
        "na\0me@example.org",
        "name@exam\0ple.org",
        "<name@example.org>",
        "Name <name@example.org>",
        "a,b@example.org",
        "\"a b\"@example.org",
        "name@[127.0.0.1]",
        "name@exa_mple.org",
        &long_local,
        &long,
    ];
    for text in cases {
        assert!(Email::parse(text).is_err(), "{text:?} was taken for an address");
    }
}

#[test]
fn characters_that_nobody_sees_are_refused_in_an_address() {
    for c in [
        '\u{ad}',
        '\u{34f}',
        '\u{301}',
        '\u{61c}',
        '\u{115f}',
        '\u{180e}',
        '\u{200b}',
        '\u{200d}',
        '\u{200e}',
        '\u{202e}',
        '\u{2060}',
        '\u{2066}',
        '\u{2800}',
        '\u{3164}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{fff9}',
        '\u{1d173}',
        '\u{e000}',
        '\u{e0041}',
        '\u{e0100}',
    ] {
        for text in [
            format!("cus{c}tomer@example.org"),
            format!("{c}customer@example.org"),
            format!("customer{c}@example.org"),
            format!("customer@exam{c}ple.org"),
            format!("customer@example.org{c}"),
        ] {
            assert!(Email::parse(&text).is_err(), "{text:?} was taken");
        }
    }
}

#[test]
fn letters_that_look_like_latin_ones_are_named() {
    for usual in ["name@example.org", "käse@bücher.example", "łódź@example.pl"] {
        assert_eq!(Email::unusual_letters(usual), None, "{usual}");
    }
    for (address, unusual) in [
        ("n\u{430}me@ex\u{430}mple.org", "\u{430}"),
        ("\u{455}\u{43e}s@example.org", "\u{455}\u{43e}"),
        ("info@b\u{131}g.example", "\u{131}"),
        ("\u{251}da@example.org", "\u{251}"),
        ("\u{ff41}da@example.org", "\u{ff41}"),
        ("\u{1d41a}da@example.org", "\u{1d41a}"),
    ] {
        let found = Email::unusual_letters(address);
        assert_eq!(found.as_deref(), Some(unusual), "{address}");
    }
    assert_eq!(letter_name('\u{430}'), "Cyrillic \u{430} (U+0430)");
    assert_eq!(letter_name('\u{251}'), "\u{251} (U+0251)");
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn a_parsed_address_is_parsed_to_itself(
        text in r"[A-Za-z0-9.+İΣǅẞé]{1,10}@[A-Za-z0-9İΣé\-.]{1,12}|\PC{1,8}@\PC{1,8}",
    ) {
        if let Ok(email) = Email::parse(&text) {
            prop_assert_eq!(Email::parse(email.as_str()), Ok(email.clone()));
            prop_assert!(email.as_str().chars().count() <= EMAIL_CHARS_MAX);
            prop_assert_eq!(email.as_str().matches('@').count(), 1);
            prop_assert!(!email.as_str().contains(|c: char| c.is_whitespace() || c.is_control()));
        }
    }

    #[test]
    fn two_spellings_are_one_address(
        local in "[a-z0-9]{1,10}",
        host in "[a-z0-9]{1,10}",
        flips in any::<u32>(),
    ) {
        let text = format!("{local}@{host}.org");
        let other: String = text
            .chars()
            .enumerate()
            .map(|(i, c)| if flips >> i & 1 == 0 { c } else { c.to_ascii_uppercase() })
            .collect();
        prop_assert_eq!(Email::parse(&text), Email::parse(&other));
    }
}
