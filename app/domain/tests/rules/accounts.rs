//! Emails.

use domain::Email;
use domain::account::EMAIL_CHARS_MAX;
use proptest::prelude::*;

use crate::seeded;

#[test]
fn addresses_are_accepted() {
    let cases = [
        ("name@example.org", "name@example.org"),
        ("  name@example.org\t", "name@example.org"),
        ("Name@Example.ORG", "name@example.org"),
        (
            "first.last+tag@mail.example.co.ls",
            "first.last+tag@mail.example.co.ls",
        ),
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
        assert!(
            Email::parse(text).is_err(),
            "{text:?} was taken for an address"
        );
    }
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
