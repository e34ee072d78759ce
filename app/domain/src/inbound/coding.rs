//! Decodes the octets of a payload according to its `data_coding`.

use super::header::Header;
use super::languages::Languages;
use crate::words::words;

words! {
    /// How a carrier writes texts in its default alphabet. SMPP leaves it to the carrier.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum DefaultAlphabet {
        /// GSM-7, one septet in each octet.
        #[default]
        Gsm7 = "gsm7",
        /// GSM-7, eight septets in seven octets, as on the radio side (3GPP TS 23.038 §6.1.2.1).
        Gsm7Packed = "gsm7-packed",
        Latin1 = "latin1",
    }
}

/// The meaning of a `data_coding`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    /// The carrier's default alphabet.
    Default,
    Latin1,
    Ucs2,
    /// No text, or a text that we can't decode.
    Binary,
}

impl Coding {
    /// Reads a value of SMPP 3.4 §5.2.19 (0x00 to 0x0f) or of 3GPP TS 23.038 §4 (all others).
    const fn of(data_coding: u8) -> Self {
        match data_coding {
            // ASCII is read as Latin-1, which contains it, so that an octet above 127 isn't lost.
            0x01 | 0x03 => Self::Latin1,
            // UCS-2, and message waiting in UCS-2.
            0x08 | 0xe0..=0xef => Self::Ucs2,
            // General groups: bits 3 and 2 are the alphabet.
            0x10..=0x1f | 0x40..=0x5f => match (data_coding >> 2) & 3 {
                1 => Self::Binary,
                2 => Self::Ucs2,
                _ => Self::Default,
            },
            // Octets, JIS, Cyrillic, Hebrew, pictograms, ISO-2022-JP, extended Kanji, Korean.
            0x02 | 0x04..=0x07 | 0x09 | 0x0a | 0x0d | 0x0e
            // General groups with bit 5: compressed texts.
            | 0x20..=0x3f | 0x60..=0x7f
            // Data coding and message class, with the bit for octets.
            | 0xf4..=0xf7 | 0xfc..=0xff => Self::Binary,
            // The carrier's default, message waiting, message class, and reserved values, which are
            // read as the default alphabet (§4).
            _ => Self::Default,
        }
    }
}

/// How units are decoded. Units of consecutive parts with equal alphabets are decoded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Alphabet {
    /// The units are septets.
    Gsm7(Languages),
    /// The units are UTF-16, or Latin-1, which has the same codes.
    Unicode,
    /// The units are octets.
    Octets,
}

impl Alphabet {
    /// Decodes units. The text can contain NUL.
    pub(super) fn decode(self, units: &[u16]) -> String {
        match self {
            Self::Gsm7(languages) => languages.decode(units),
            Self::Unicode => String::from_utf16_lossy(units),
            Self::Octets => {
                units.iter().flat_map(|octet| [octet >> 4, octet & 15]).map(digit).collect()
            }
        }
    }
}

/// Returns a hexadecimal digit.
fn digit(value: u16) -> char {
    char::from_digit(value.into(), 16).unwrap_or_default()
}

/// The units of one part.
pub(super) struct Units {
    pub(super) alphabet: Alphabet,
    pub(super) values: Vec<u16>,
    /// How many units a segment holds, alone and as one of several.
    pub(super) per_segment: (usize, usize),
}

impl Units {
    /// Reads the octets after a header.
    pub(super) fn read(
        octets: &[u8],
        data_coding: u8,
        header: Header,
        default_alphabet: DefaultAlphabet,
    ) -> Self {
        let each_octet = || octets.iter().copied().map(u16::from).collect();
        let (alphabet, values, per_segment) = match Coding::of(data_coding) {
            Coding::Default if default_alphabet == DefaultAlphabet::Gsm7Packed => {
                (Alphabet::Gsm7(header.languages), unpack(octets, header.octets), (160, 153))
            }
            Coding::Default if default_alphabet == DefaultAlphabet::Gsm7 => {
                (Alphabet::Gsm7(header.languages), each_octet(), (160, 153))
            }
            // The handset sent GSM-7, which the carrier converted.
            Coding::Default | Coding::Latin1 => (Alphabet::Unicode, each_octet(), (160, 153)),
            Coding::Ucs2 => (Alphabet::Unicode, utf16(octets), (70, 67)),
            Coding::Binary => (Alphabet::Octets, each_octet(), (140, 134)),
        };
        Self { alphabet, values, per_segment }
    }
}

/// Reads big-endian units. A single octet at the end becomes U+FFFD.
fn utf16(octets: &[u8]) -> Vec<u16> {
    let (units, rest) = octets.as_chunks::<2>();
    let units = units.iter().map(|unit| u16::from_be_bytes(*unit));
    units.chain(rest.iter().map(|_| 0xfffd)).collect()
}

/// Unpacks septets. After a header, the first septet begins at the next septet boundary, counted
/// from the start of the header.
///
/// Seven bits that are left over at the end may be a septet or padding, and SMPP doesn't transmit
/// the number of septets. A zero there counts as padding. Otherwise every eighth text would end
/// with `@`.
fn unpack(octets: &[u8], header_octets: usize) -> Vec<u16> {
    let header_bits = header_octets * 8;
    let fill_bits = header_bits.next_multiple_of(7) - header_bits;
    let bits = octets.len() * 8;
    let mut septets = Vec::with_capacity(bits / 7);
    let mut begin = fill_bits;
    while begin + 7 <= bits {
        // The lowest bit of an octet comes first.
        let low = octets[begin / 8];
        let high = octets.get(begin / 8 + 1).copied().unwrap_or(0);
        let pair = u16::from_le_bytes([low, high]);
        septets.push((pair >> (begin % 8)) & 0x7f);
        begin += 7;
    }
    if begin == bits && septets.last() == Some(&0) {
        septets.pop();
    }
    septets
}
