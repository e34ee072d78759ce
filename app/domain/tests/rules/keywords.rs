//! Keywords of shared numbers.

use domain::Keyword;
use domain::keyword::{InvalidKeyword, KEYWORD_CHARS_MAX};
use proptest::prelude::*;

use crate::seeded;

#[test]
fn a_keyword_has_1_to_20_letters_and_digits() {
    assert_eq!(KEYWORD_CHARS_MAX, 20);
    for (typed, expected) in [
        ("NEWS", "NEWS"),
        (" news\t", "NEWS"),
        ("n", "N"),
        ("24h", "24H"),
        ("café", "CAFE"),
        ("cafe\u{301}", "CAFE"),
        ("Straße", "STRASSE"),
        ("Łódź", "LODZ"),
        ("ışık", "ISIK"),
        ("İZMİR", "IZMIR"),
        ("việt", "VIET"),
        ("новости", "НОВОСТИ"),
        ("йод", "ЙОД"),
        ("abcdefghijklmnopqrst", "ABCDEFGHIJKLMNOPQRST"),
    ] {
        let keyword = Keyword::parse(typed).unwrap();
        assert_eq!(keyword.as_str(), expected, "{typed}");
        assert_eq!(keyword.to_string(), expected);
        assert_eq!(Keyword::parse(expected).as_ref(), Ok(&keyword));
    }
    for typed in [
        "",
        " ",
        "two words",
        "news!",
        "#news",
        "a-b",
        "a\0b",
        "\u{301}",
        "📰",
        "abcdefghijklmnopqrstu",
        // Folding makes it too long.
        "ßßßßßßßßßßß",
    ] {
        assert_eq!(Keyword::parse(typed), Err(InvalidKeyword), "{typed}");
    }
}

#[test]
fn the_first_word_of_a_message_may_be_a_keyword() {
    for (message, expected) in [
        ("news", Some("NEWS")),
        ("News please", Some("NEWS")),
        ("  «NEWS»: please", Some("NEWS")),
        ("news,please", Some("NEWS")),
        ("\u{feff}news\nplease", Some("NEWS")),
        ("ne\u{301}ws", Some("NEWS")),
        ("néws.", Some("NEWS")),
        ("👋 news", Some("NEWS")),
        ("newsletter", Some("NEWSLETTER")),
        ("", None),
        ("?!", None),
        ("\u{301} ", None),
        ("abcdefghijklmnopqrstu news", None),
    ] {
        let found = Keyword::first_of(message);
        assert_eq!(found.as_ref().map(Keyword::as_str), expected, "{message}");
    }
}

#[test]
fn accents_of_latin_letters_do_not_matter() {
    // Unicode's own decompositions of these letters begin with the letters on the right.
    for (accented, plain) in [
        ("ÀÁÂÃÄÅàáâãäåĀāĂăĄąǍǎạẠ", "A"),
        ("ÇçĆćĈĉĊċČč", "C"),
        ("ĎďĐđ", "D"),
        ("ÈÉÊËèéêëĒēĔĕĖėĘęĚěếẾ", "E"),
        ("ĜĝĞğĠġĢģ", "G"),
        ("ĤĥĦħẖ", "H"),
        ("ÌÍÎÏìíîïĨĩĪīĬĭĮįİı", "I"),
        ("Ĵĵǰ", "J"),
        ("Ķķ", "K"),
        ("ĹĺĻļĽľŁł", "L"),
        ("ÑñŃńŅņŇň", "N"),
        ("ÒÓÔÕÖØòóôõöøŌōŎŏŐőƠơợ", "O"),
        ("ŔŕŖŗŘř", "R"),
        ("ŚśŜŝŞşŠšȘșſ", "S"),
        ("ŢţŤťŦŧȚțẗ", "T"),
        ("ÙÚÛÜùúûüŨũŪūŬŭŮůŰűŲųƯưự", "U"),
        ("Ŵŵẁẃẅ", "W"),
        ("ÝýÿŶŷŸỳ", "Y"),
        ("ŹźŻżŽž", "Z"),
    ] {
        for letter in accented.chars() {
            let keyword = Keyword::parse(&letter.to_string()).unwrap();
            assert_eq!(keyword.as_str(), plain, "{letter}");
        }
    }
    // These are letters of their own.
    for letter in ["Æ", "Œ", "Þ", "Ð", "Å\u{30a}Æ"] {
        assert!(!Keyword::parse(letter).unwrap().as_str().is_ascii(), "{letter}");
    }
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn folding_twice_changes_nothing(message in any::<String>()) {
        if let Some(keyword) = Keyword::first_of(&message) {
            prop_assert_eq!(Keyword::first_of(keyword.as_str()), Some(keyword.clone()));
            prop_assert_eq!(Keyword::parse(keyword.as_str()), Ok(keyword.clone()));
            let json = serde_json::to_string(&keyword).unwrap();
            prop_assert_eq!(serde_json::from_str::<Keyword>(&json).unwrap(), keyword);
        }
    }

    #[test]
    fn a_message_that_starts_with_a_keyword_has_it(typed in r"[A-Za-z0-9éÑøжß]{1,10}", rest in "[ !-/].*") {
        let keyword = Keyword::parse(&typed).unwrap();
        prop_assert_eq!(Keyword::first_of(&(typed + &rest)), Some(keyword));
    }
}
