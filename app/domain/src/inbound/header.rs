//! The user data header before a text (3GPP TS 23.040 §9.2.3.24).

use super::languages::Languages;
use super::position::PartPosition;

/// "Concatenated short messages", with an 8-bit reference.
const CONCATENATION_8_BIT: u8 = 0x00;
/// The same, with a 16-bit reference.
const CONCATENATION_16_BIT: u8 = 0x08;
const SINGLE_SHIFT: u8 = 0x24;
const LOCKING_SHIFT: u8 = 0x25;

/// The elements of a header that matter for a text. Other elements, such as ports, are ignored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Header {
    /// The octets of the header, including its length octet. 0 without a header.
    pub(super) octets: usize,
    /// `None` if the message has no other part.
    pub(super) position: Option<PartPosition>,
    pub(super) languages: Languages,
}

impl Header {
    /// Parses the header at the start of `bytes`. Returns `None` if the header or one of its
    /// elements is longer than the bytes. Then these are probably not a header at all.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (length, rest) = bytes.split_first()?;
        let mut elements = rest.get(..usize::from(*length))?;
        let mut header = Self { octets: elements.len() + 1, ..Self::default() };
        while let [id, length, rest @ ..] = elements {
            let (data, rest) = rest.split_at_checked(usize::from(*length))?;
            header.read(*id, data);
            elements = rest;
        }
        elements.is_empty().then_some(header)
    }

    /// Reads one element. Ignores an invalid one. If a header has an element twice, the last one
    /// counts (§9.2.3.24).
    fn read(&mut self, id: u8, data: &[u8]) {
        match (id, data) {
            (CONCATENATION_8_BIT, &[reference, total, sequence]) => {
                self.position = PartPosition::of_8_bit(reference, total, sequence);
            }
            (CONCATENATION_16_BIT, &[high, low, total, sequence]) => {
                let reference = u16::from_be_bytes([high, low]);
                self.position = PartPosition::of_16_bit(reference, total, sequence);
            }
            (SINGLE_SHIFT, &[language]) => self.languages.single = language,
            (LOCKING_SHIFT, &[language]) => self.languages.locking = language,
            _ => {}
        }
    }
}
