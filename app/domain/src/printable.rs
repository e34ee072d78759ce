//! Texts from outside, made safe to show.

use std::borrow::Cow;

/// The text with every control character written as its number, such as `\u{1b}`: a terminal would
/// obey them, a log would end its line, and those that turn the direction of writing (U+202A to
/// U+202E, U+2066 to U+2069) and the line ends U+2028 and U+2029 make a text look like another.
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
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Whether [`printable`] writes the character as its number.
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether nobody sees the character: those that Unicode calls format characters or ignorable by
/// default, blanks that aren't white space, marks that sit on the letter before them (a letter with
/// an accent has a character of its own), and those that have no meaning that everybody shares.
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        // Soft hyphen; marks of Latin letters; the Arabic letter mark and number signs.
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}'
        | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        // Fillers, and selectors of variants.
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        // Zero width, direction of writing, joiners.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{20d0}'..='\u{20ff}' | '\u{2800}' | '\u{3164}'
        // Private use; selectors of variants; byte order mark; specials.
        | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}
