//! The GSM 7 bit default alphabet, with one octet per character as in SMPP. The tests have a table
//! of their own, because with the program's table they wouldn't find errors in it.

/// The basic table (3GPP TS 23.038, 6.2.1). 0x1B is the escape.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{1b}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
                     ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
const ESCAPE: u8 = 0x1B;

/// Decodes a text. `None` if an octet is no character.
pub fn decode(octets: &[u8]) -> Option<String> {
    let mut octets = octets.iter();
    let mut text = String::new();
    while let Some(&octet) = octets.next() {
        text.push(match octet {
            ESCAPE => extension(*octets.next()?)?,
            basic => BASIC.chars().nth(usize::from(basic))?,
        });
    }
    Some(text)
}

/// Returns the character for the octet after an escape (6.2.1.1).
fn extension(octet: u8) -> Option<char> {
    Some(match octet {
        0x0A => '\u{c}',
        0x14 => '^',
        0x28 => '{',
        0x29 => '}',
        0x2F => '\\',
        0x3C => '[',
        0x3D => '~',
        0x3E => ']',
        0x40 => '|',
        0x65 => '€',
        _ => return None,
    })
}
