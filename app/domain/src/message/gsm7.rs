//! The 7-bit default alphabet and its extension table (3GPP TS 23.038 §6.2.1 and §6.2.1.1).

/// The septet that precedes a septet from the extension table.
pub(crate) const ESCAPE: u8 = 0x1b;

/// The basic table. The position of a character is its code. The escape is in the table only to
/// keep the later positions right; [`septets`] returns `None` for it.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{1b}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
    ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
/// The extension table, with the septets that follow an escape.
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

/// The septets of a character.
#[derive(Clone, Copy)]
pub(super) enum Septets {
    Basic(u8),
    /// One septet, after an escape.
    Extension(u8),
}

/// Returns a character's septets, or `None` if it is in neither table.
pub(super) fn septets(c: char) -> Option<Septets> {
    // Fast path for the most common characters, whose codes are the same as in ASCII.
    if let 'a'..='z' | 'A'..='Z' | '%'..='?' | ' '..='#' = c {
        return u8::try_from(c).ok().map(Septets::Basic);
    }
    let extension = EXTENSION.iter().find(|(character, _)| *character == c);
    if let Some((_, code)) = extension {
        return Some(Septets::Extension(*code));
    }
    let place = BASIC.chars().position(|character| character == c)?;
    u8::try_from(place).ok().filter(|code| *code != ESCAPE).map(Septets::Basic)
}

/// Returns the character of a septet. Returns `None` if `code` has more than 7 bits.
pub(crate) fn character(code: u8) -> Option<char> {
    // Fast path as in [`septets`].
    if let b'a'..=b'z' | b'A'..=b'Z' | b'%'..=b'?' | b' '..=b'#' = code {
        return Some(char::from(code));
    }
    BASIC.chars().nth(usize::from(code))
}

/// Returns the character of a septet that follows an escape. Returns `None` if the extension table
/// has no such character.
pub(crate) fn extended_character(code: u8) -> Option<char> {
    EXTENSION.iter().find(|(_, place)| *place == code).map(|(character, _)| *character)
}
