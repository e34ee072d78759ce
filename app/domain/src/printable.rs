//! Makes untrusted text safe to display.

use std::borrow::Cow;

/// Escapes every control character, for example as `\u{1b}`.
///
/// A terminal would obey control characters, and a line end would split a log entry. The
/// bidirectional controls (U+202A to U+202E, U+2066 to U+2069) and the line ends U+2028 and U+2029
/// are escaped too, because they can make one text look like another.
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

/// Applies [`printable`] to each line. Use this for texts whose line ends are our own.
pub fn printable_lines(text: &str) -> String {
    let lines: Vec<_> = text.split('\n').map(printable).collect();
    lines.join("\n")
}

/// Whether [`printable`] escapes the character.
pub fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Whether a character is invisible or has no agreed appearance.
///
/// These are Unicode's format characters and default-ignorable characters, blanks that aren't white
/// space, combining marks, and private-use characters. Letters with common accents stay visible,
/// because they have characters of their own.
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        // Soft hyphen; combining diacritical marks; Arabic letter mark and number signs.
        '\u{ad}' | '\u{300}'..='\u{36f}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}'
        | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
        // Fillers, variation selectors, more combining marks.
        | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}'
        // Zero-width characters, bidirectional controls, joiners; marks for symbols; blanks.
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{20d0}'..='\u{20ff}' | '\u{2800}' | '\u{3164}'
        // Private use; variation selectors; byte order mark; specials.
        | '\u{e000}'..='\u{f8ff}' | '\u{fe00}'..='\u{fe0f}' | '\u{fe20}'..='\u{fe2f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{ffff}'
        | '\u{110bd}' | '\u{110cd}' | '\u{13430}'..='\u{1345f}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{10ffff}')
}
