//! The national language shift tables of 3GPP TS 23.038, Annex A: Turkish, Spanish and Portuguese.
//!
//! Each list has only the codes that differ from the default alphabet or its extension table. An
//! unknown language is ignored, as TS 23.040 §9.2.3.24.15 and §9.2.3.24.16 require: its text is
//! read with the default tables. In the tables of the other languages, small Latin letters, digits
//! and spaces have the same codes.

use crate::message::gsm7;

const TURKISH: u8 = 1;
const SPANISH: u8 = 2;
const PORTUGUESE: u8 = 3;

/// §A.3.1.
const TURKISH_LOCKING: [(u8, char); 8] = [
    (0x04, '€'),
    (0x07, 'ı'),
    (0x0b, 'Ğ'),
    (0x0c, 'ğ'),
    (0x1c, 'Ş'),
    (0x1d, 'ş'),
    (0x40, 'İ'),
    (0x60, 'ç'),
];
/// §A.3.3.
const PORTUGUESE_LOCKING: [(u8, char); 30] = [
    (0x04, 'ê'),
    (0x06, 'ú'),
    (0x07, 'í'),
    (0x08, 'ó'),
    (0x09, 'ç'),
    (0x0b, 'Ô'),
    (0x0c, 'ô'),
    (0x0e, 'Á'),
    (0x0f, 'á'),
    (0x12, 'ª'),
    (0x13, 'Ç'),
    (0x14, 'À'),
    (0x15, '∞'),
    (0x16, '^'),
    (0x17, '\\'),
    (0x18, '€'),
    (0x19, 'Ó'),
    (0x1a, '|'),
    (0x1c, 'Â'),
    (0x1d, 'â'),
    (0x1e, 'Ê'),
    (0x24, 'º'),
    (0x40, 'Í'),
    (0x5b, 'Ã'),
    (0x5c, 'Õ'),
    (0x5d, 'Ú'),
    (0x60, '~'),
    (0x7b, 'ã'),
    (0x7c, 'õ'),
    (0x7d, '`'),
];
/// §A.2.1.
const TURKISH_SINGLE: [(u8, char); 7] =
    [(0x47, 'Ğ'), (0x49, 'İ'), (0x53, 'Ş'), (0x63, 'ç'), (0x67, 'ğ'), (0x69, 'ı'), (0x73, 'ş')];
/// §A.2.2.
const SPANISH_SINGLE: [(u8, char); 9] = [
    (0x09, 'ç'),
    (0x41, 'Á'),
    (0x49, 'Í'),
    (0x4f, 'Ó'),
    (0x55, 'Ú'),
    (0x61, 'á'),
    (0x69, 'í'),
    (0x6f, 'ó'),
    (0x75, 'ú'),
];
/// §A.2.3.
const PORTUGUESE_SINGLE: [(u8, char); 27] = [
    (0x05, 'ê'),
    (0x09, 'ç'),
    (0x0b, 'Ô'),
    (0x0c, 'ô'),
    (0x0e, 'Á'),
    (0x0f, 'á'),
    (0x12, 'Φ'),
    (0x13, 'Γ'),
    (0x15, 'Ω'),
    (0x16, 'Π'),
    (0x17, 'Ψ'),
    (0x18, 'Σ'),
    (0x19, 'Θ'),
    (0x1f, 'Ê'),
    (0x41, 'À'),
    (0x49, 'Í'),
    (0x4f, 'Ó'),
    (0x55, 'Ú'),
    (0x5b, 'Ã'),
    (0x5c, 'Õ'),
    (0x61, 'Â'),
    (0x69, 'í'),
    (0x6f, 'ó'),
    (0x75, 'ú'),
    (0x7b, 'ã'),
    (0x7c, 'õ'),
    (0x7f, 'â'),
];

/// The shift tables that a header selects, by national language identifier. 0 is the default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Languages {
    /// Replaces the default alphabet.
    pub(super) locking: u8,
    /// Replaces the extension table.
    pub(super) single: u8,
}

impl Languages {
    /// Decodes septets. A value of more than 7 bits becomes U+FFFD.
    pub(super) fn decode(self, septets: &[u16]) -> String {
        let codes = septets.iter().map(|&septet| u8::try_from(septet).unwrap_or(u8::MAX));
        let mut codes = codes.peekable();
        let mut text = String::with_capacity(septets.len());
        while let Some(code) = codes.next() {
            let character = if code == gsm7::ESCAPE {
                self.extended_character(codes.next())
            } else {
                self.character(code)
            };
            text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        text
    }

    fn character(self, code: u8) -> Option<char> {
        let table: &[_] = match self.locking {
            TURKISH => &TURKISH_LOCKING,
            PORTUGUESE => &PORTUGUESE_LOCKING,
            _ => &[],
        };
        find(table, code).or_else(|| gsm7::character(code))
    }

    /// Returns the character of the septet after an escape. If the extension table has none, TS
    /// 23.038 §6.2.1.1 requires the character of the main table. An escape without effect, before
    /// another escape or at the end, becomes a space.
    fn extended_character(self, code: Option<u8>) -> Option<char> {
        let Some(code) = code.filter(|code| *code != gsm7::ESCAPE) else {
            return Some(' ');
        };
        let table: &[_] = match self.single {
            TURKISH => &TURKISH_SINGLE,
            SPANISH => &SPANISH_SINGLE,
            PORTUGUESE => &PORTUGUESE_SINGLE,
            _ => &[],
        };
        find(table, code)
            .or_else(|| gsm7::extended_character(code))
            .or_else(|| self.character(code))
    }
}

fn find(table: &[(u8, char)], code: u8) -> Option<char> {
    table.iter().find(|(place, _)| *place == code).map(|(_, character)| *character)
}
