//! The 7-bit default alphabet and its extension (3GPP TS 23.038 §6.2.1 and §6.2.1.1).

/// The septet that stands before one of the extension table.
pub(super) const ESCAPE: u8 = 0x1b;

/// The basic table: a character's position is its code. The escape stands at its own position and
/// is no character of a text.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{1b}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
    ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/// The extension table: the septets that follow an escape.
const EXTENSION: [(char, u8); 10] = [
    ('\u{c}', 0x0a),
    ('^', 0x14),
    ('{', 0x28),
    ('}', 0x29),
    ('\\', 0x2f),
    ('[', 0x3c),
    ('~', 0x3d),
    (']', 0x3e),
    ('|', 0x40),
    ('€', 0x65),
];

/// How a character is written.
#[derive(Clone, Copy)]
pub(super) enum Septets {
    Basic(u8),
    /// After an escape.
    Extension(u8),
}

/// A character's septets; `None` when it is in neither table.
pub(super) fn septets(c: char) -> Option<Septets> {
    // Most characters of most texts: their codes are those of ASCII.
    if let 'a'..='z' | 'A'..='Z' | '%'..='?' | ' '..='#' = c {
        return u8::try_from(c).ok().map(Septets::Basic);
    }
    let extension = EXTENSION.iter().find(|(character, _)| *character == c);
    if let Some((_, code)) = extension {
        return Some(Septets::Extension(*code));
    }
    let place = BASIC.chars().position(|character| character == c)?;
    u8::try_from(place)
        .ok()
        .filter(|code| *code != ESCAPE)
        .map(Septets::Basic)
}
