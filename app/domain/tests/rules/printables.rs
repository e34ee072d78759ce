//! Untrusted text, made safe to display.

use domain::printable::{is_control, printable, printable_lines};
use proptest::prelude::*;

#[test]
fn control_characters_are_written_as_their_numbers() {
    for (text, shown) in [
        ("", ""),
        (
            "Rent for May, 5 \u{20ac} \u{2013} caf\u{e9}",
            "Rent for May, 5 \u{20ac} \u{2013} caf\u{e9}",
        ),
        ("\u{1b}[2J\u{7}", "\\u{1b}[2J\\u{7}"),
        ("a\r\nb\tc\0", "a\\u{d}\\u{a}b\\u{9}c\\u{0}"),
        ("\u{7f}\u{9b}31m", "\\u{7f}\\u{9b}31m"),
        ("\u{202e}xcod\u{2066}\u{2069}", "\\u{202e}xcod\\u{2066}\\u{2069}"),
        ("a\u{2028}b", "a\\u{2028}b"),
    ] {
        assert_eq!(printable(text), shown);
    }
    assert_eq!(printable_lines("a\n\u{1b}\n"), "a\n\\u{1b}\n");
}

proptest! {
    #[test]
    fn printable_text_has_no_control_characters(text: String) {
        prop_assert!(!printable(&text).contains(is_control));
    }
}
