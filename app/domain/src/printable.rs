//! Texts from outside, made safe to show.

use std::borrow::Cow;

/// The text with every control character written as its number, such as `\u{1b}`: a terminal would
/// obey them, a log would end its line, and those that turn the direction of writing (U+202A to
/// U+202E, U+2066 to U+2069) and the line ends U+2028 and U+2029 make a text look like another.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    if !text.contains(is_control) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_control(c) {
            shown.extend(c.escape_unicode());
        } else {
            shown.push(c);
        }
    }
    Cow::Owned(shown)
}

/// Each line of a text for itself: the line ends are our own.
#[must_use]
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Whether [`printable`] writes the character as its number.
#[must_use]
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
