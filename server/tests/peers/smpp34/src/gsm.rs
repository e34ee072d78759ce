//! The GSM 7 bit default alphabet, an octet per character as SMPP has it. Written down here once
//! more: a fault in the tested program's table can't hide behind itself.

/// 3GPP TS 23.038, 6.2.1; 0x1B is the escape.
const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞ\u{1b}ÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?\
                     ¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
const ESCAPE: u8 = 0x1B;

/// The text, or `None` for what is no character.
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

/// 6.2.1.1: what follows an escape.
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
