//! Numbers: which texts are numbers, and whether they are local or international.

use domain::{HomeCountry, Kind, Number, NumberWarning, WarningCounts};
use proptest::prelude::*;

use crate::seeded;

#[test]
fn numbers_are_classified_by_their_written_form() {
    let cases = [
        // text, digits, kind, rule
        ("58000000", "58000000", Kind::Local, "local_8_digits"),
        ("00000001", "00000001", Kind::Local, "local_8_digits"),
        ("1234", "1234", Kind::International, "international_not_8_digits"),
        ("1234567", "1234567", Kind::International, "international_not_8_digits"),
        ("123456789", "123456789", Kind::International, "international_not_8_digits"),
        ("123456789012345", "123456789012345", Kind::International, "international_not_8_digits"),
        ("+58000000", "58000000", Kind::International, "international_plus_sign"),
        ("+26658000000", "26658000000", Kind::International, "international_not_8_digits"),
    ];
    for (text, digits, kind, rule) in cases {
        let number = Number::parse(text).unwrap();
        assert_eq!(number.digits(), digits, "{text:?}");
        assert_eq!(number.kind(), kind, "{text:?}");
        assert_eq!(number.rule(), rule, "{text:?}");
    }
}

#[test]
fn texts_that_are_no_numbers_are_refused() {
    let cases = [
        "",
        "+",
        " ",
        "123",
        "+123",
        " 123",
        " 12345678",
        "1234567890123456",
        "+1234567890123456",
        "++12345678",
        "+ 12345678",
        "  12345678",
        "12345678+",
        "12345678 ",
        "1234 5678",
        "1234-5678",
        "12345678\n",
        "\t12345678",
        "12345678\0",
        "0x123456",
        "1e10",
        "-12345678",
        "12.345678",
        "abcdefgh",
        "\u{ff0b}12345678",
        // Digits of other scripts: Arabic-Indic, Devanagari, full width, superscript.
        "\u{661}\u{662}\u{663}\u{664}\u{665}\u{666}\u{667}\u{668}",
        "\u{967}\u{968}\u{969}\u{96a}",
        "\u{ff11}\u{ff12}\u{ff13}\u{ff14}",
        "1234567\u{b2}",
    ];
    for text in cases {
        assert!(Number::parse(text).is_err(), "{text:?} was taken for a number");
    }
}

#[test]
fn only_local_numbers_go_to_a_carrier_with_the_country_code_before_them() {
    let cases = [
        ("58000000", "26658000000"),
        ("+58000000", "58000000"),
        ("+26658000000", "26658000000"),
        ("27820000000", "27820000000"),
    ];
    for (text, for_carrier) in cases {
        assert_eq!(Number::parse(text).unwrap().for_carrier("266"), for_carrier, "{text:?}");
    }
}

#[test]
fn a_number_that_is_probably_a_mistake_has_warnings() {
    let cases = [
        ("26658000000", "looks_local"),
        ("+26658000000", "looks_local"),
        ("58000000", ""),
        ("08000000", ""),
        ("+58000000", ""),
        ("2665800000", ""),
        ("266580000000", ""),
        ("27758000000", ""),
        ("00266580000", "leading_zero"),
        ("0026658000000", "leading_zero"),
        ("+08000000", "leading_zero"),
        ("5800000", "near_local"),
        ("580000000", "near_local"),
        ("+580000000", "near_local"),
        ("058000000", "leading_zero near_local"),
    ];
    let mut counts = WarningCounts::default();
    for (text, words) in cases {
        let number = Number::parse(text).unwrap();
        let found = number.warnings("266").map(NumberWarning::as_str);
        assert_eq!(found.collect::<Vec<_>>().join(" "), words, "{text:?}");
        let local = number.local_form("266").map(|local| local.digits().to_owned());
        let is_local = words.contains("looks_local");
        assert_eq!(local, is_local.then(|| "58000000".to_owned()), "{text:?}");
        counts.add(&number, "266");
    }
    let counted: Vec<_> = counts.present().map(|(one, count)| (one.as_str(), count)).collect();
    assert_eq!(counted, [("looks_local", 2), ("leading_zero", 4), ("near_local", 4)]);
    assert_eq!(WarningCounts::default().present().count(), 0);
}

#[test]
fn kinds_have_their_words() {
    for (kind, word) in [(Kind::Local, "local"), (Kind::International, "international")] {
        assert_eq!(kind.as_str(), word);
        assert_eq!(Kind::parse(word), Some(kind));
    }
    for word in ["", "Local", "INTERNATIONAL", "local "] {
        assert_eq!(Kind::parse(word), None, "{word:?}");
    }
}

/// A model of the rule in a different form: a pattern, then two conditions.
fn model(text: &str, signs: &[char]) -> Option<(String, Kind)> {
    let chars: Vec<char> = text.chars().collect();
    let marked = chars.first().is_some_and(|first| signs.contains(first));
    let rest = &chars[usize::from(marked)..];
    let digits: String = rest.iter().filter(|c| "0123456789".contains(**c)).collect();
    if digits.len() != rest.len() || digits.len() < 4 || digits.len() > 15 {
        return None;
    }
    let kind = match (marked, digits.len()) {
        (false, 8) => Kind::Local,
        _ => Kind::International,
    };
    Some((digits, kind))
}

proptest! {
    #![proptest_config(seeded(2_000))]

    #[test]
    fn numbers_are_classified_as_the_model_does(text in r"[+ ]?[0-9]{0,18}") {
        let found = Number::parse(&text).ok().map(|n| (n.digits().to_owned(), n.kind()));
        prop_assert_eq!(found, model(&text, &['+']));
        let decoded = Number::parse_url_decoded(&text);
        let decoded = decoded.ok().map(|n| (n.digits().to_owned(), n.kind()));
        prop_assert_eq!(decoded, model(&text, &['+', ' ']));
    }

    #[test]
    fn any_text_is_read_as_the_model_does(text in r"[+ 0-9a\u{661}\u{ff11}\-]{0,12}|\PC{0,20}") {
        let found = Number::parse(&text).ok().map(|n| (n.digits().to_owned(), n.kind()));
        prop_assert_eq!(found, model(&text, &['+']));
    }

    #[test]
    fn storing_and_reading_back_changes_nothing(
        text in r"\+?[0-9]{4,15}",
        code in r"[1-9][0-9]{0,2}",
    ) {
        let number = Number::parse(&text).unwrap();
        let stored = Number::from_stored(number.digits().to_owned(), number.kind());
        prop_assert!(stored == number);
        prop_assert_eq!(Kind::parse(number.kind().as_str()), Some(number.kind()));
        prop_assert_eq!(stored.rule(), number.rule());
        prop_assert_eq!(stored.for_carrier(&code), number.for_carrier(&code));
        let for_carrier = number.for_carrier(&code);
        prop_assert!(for_carrier.ends_with(number.digits()));
        prop_assert_eq!(
            for_carrier.len() - number.digits().len(),
            if number.kind() == Kind::Local { code.len() } else { 0 }
        );
    }

    #[test]
    fn a_number_never_stands_in_debug_output(text in r"\+?[0-9]{4,15}") {
        let number = Number::parse(&text).unwrap();
        let shown = format!("{number:?} {:#?}", Some(&number));
        prop_assert!(!shown.contains(|c: char| c.is_ascii_digit()), "{}", shown);
    }
}

#[test]
fn a_typed_number_may_have_spaces_and_hyphens() {
    for (typed, digits, kind) in [
        ("58 00 19 87", "58001987", Kind::Local),
        (" 5800-1987\u{a0}", "58001987", Kind::Local),
        ("+266 5800 1987", "26658001987", Kind::International),
        ("- +49 151", "49151", Kind::International),
    ] {
        let number = Number::parse_typed(typed).unwrap();
        assert_eq!((number.digits(), number.kind()), (digits, kind), "{typed:?}");
    }
    for typed in ["", " - ", "58 00 1x", "1 2 3", "58(00)1987", "5800+1987"] {
        assert!(Number::parse_typed(typed).is_err(), "{typed:?}");
    }
}

#[test]
fn the_home_country_is_named_by_its_code() {
    for (code, named) in [
        ("1", "the United States or Canada (+1)"),
        ("266", "Lesotho (+266)"),
        ("31", "the Netherlands (+31)"),
        ("998", "Uzbekistan (+998)"),
        ("99", "the country with the code +99"),
        ("", "the country with the code +"),
    ] {
        assert_eq!(HomeCountry::of_code(code).to_string(), named);
    }
}
