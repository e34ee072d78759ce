//! Splits a text into the parts that a carrier gets, and marks several parts as one message
//! (concatenation).
//!
//! # Sizes
//! A part fills at most the 140 octets of a short message on the radio side. A user data header for
//! concatenation takes some of them:
//!
//! - With an 8-bit reference (3GPP TS 23.040 §9.2.3.24.1), the header takes 6 octets, which use up
//!   7 septets. That leaves 153 septets or 67 UTF-16 units.
//! - With a 16-bit reference (§9.2.3.24.8), the header takes 7 octets. That leaves 152 septets or
//!   66 units.
//!
//! A 16-bit reference distinguishes more messages to the same number. However, a message counts as
//! its [`segments`](super::segments) of 153 or 67, and carriers charge by the part. So the
//! reference has 16 bits unless that would need another part (for example for a text of 153 × 2
//! septets).

use super::gsm7::{self, Septets};
use super::{Encoding, cuts, encoding};
use crate::words::words;

/// The maximum number of parts in a message. The header and `sar_total_segments` store the number
/// in one octet.
pub const PARTS_MAX: usize = 255;

/// The number of units that a part loses if its header has a 16-bit reference.
const WIDE_UNITS: usize = 1;

words! {
    /// How the parts of a long message are marked as one message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Segmentation {
        /// With a user data header before each part's text.
        Udh = "udh",
        /// With SMPP's optional parameters `sar_…`.
        Sar = "sar",
        /// The text isn't split. The carrier gets all of it in `message_payload`.
        Payload = "payload",
    }
}

words! {
    /// How texts in the GSM 7-bit alphabet are written.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum SubmitAlphabet {
        /// One septet in each octet.
        Gsm7 = "gsm7",
        /// For a carrier that takes Latin-1 and converts it to the GSM 7-bit alphabet. The parts
        /// are as long as they are in that alphabet. A text with characters that one of the two
        /// lacks, such as `€` or `â`, becomes UCS-2.
        Latin1 = "latin1",
    }
}

/// The content of one submit to a carrier.
#[derive(Clone, PartialEq, Eq)]
pub struct Part {
    /// SMPP's `data_coding`: 0 for the default alphabet, 8 for UCS-2.
    pub data_coding: u8,
    /// The header, if any, and the text: one septet per octet (unpacked), Latin-1, or UTF-16
    /// big-endian.
    pub bytes: Vec<u8>,
    pub concatenation: Concatenation,
}

/// How a part is marked as one of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Concatenation {
    /// The message has no other part.
    Alone,
    /// `bytes` starts with a user data header. `esm_class` must say so (0x40).
    Header,
    /// The values of the parameters `sar_msg_ref_num`, `sar_total_segments` and
    /// `sar_segment_seqnum`.
    Sar { reference: u16, total: u8, sequence: u8 },
    /// `bytes` is longer than a part and belongs in `message_payload`.
    Payload,
}

/// The text needs more than [`PARTS_MAX`] parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the message needs more than {PARTS_MAX} parts")]
pub struct TooManyParts;

impl std::fmt::Debug for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Part({:?}, {} bytes)", self.concatenation, self.bytes.len())
    }
}

/// Returns the parts of a text, in order. While the parts are on their way, no other message to the
/// same number may have the same `reference`. A header with an 8-bit reference carries only the low
/// octet of `reference`.
///
/// # Errors
/// Returns an error if there would be more parts than can be numbered. A payload isn't split, so it
/// has no such limit.
pub fn parts(text: &str, way: Segmentation, reference: u16) -> Result<Vec<Part>, TooManyParts> {
    parts_in(SubmitAlphabet::Gsm7, text, way, reference)
}

/// Returns the parts of a text like [`parts`], in this alphabet if possible, otherwise in UCS-2.
///
/// # Errors
/// Like [`parts`].
pub fn parts_in(
    alphabet: SubmitAlphabet,
    text: &str,
    way: Segmentation,
    reference: u16,
) -> Result<Vec<Part>, TooManyParts> {
    let in_latin1 = alphabet == SubmitAlphabet::Latin1;
    let fits = !in_latin1 || text.chars().all(|c| u8::try_from(c).is_ok());
    let encoding = if fits { encoding(text) } else { Encoding::Ucs2 };
    let (cuts, wide) = match way {
        Segmentation::Udh => headed_in(text, encoding),
        Segmentation::Sar | Segmentation::Payload => (cuts(text, encoding, 0).collect(), false),
    };
    let part = |concatenation, mut bytes: Vec<u8>, text: &str| {
        if in_latin1 && encoding == Encoding::Gsm7 {
            bytes.extend(text.chars().filter_map(|c| u8::try_from(c).ok()));
        } else {
            write(text, encoding, &mut bytes);
        }
        Part { data_coding: data_coding(encoding), bytes, concatenation }
    };
    if cuts.len() == 1 {
        return Ok(vec![part(Concatenation::Alone, Vec::new(), text)]);
    }
    if way == Segmentation::Payload {
        return Ok(vec![part(Concatenation::Payload, Vec::new(), text)]);
    }
    let total = u8::try_from(cuts.len()).map_err(|_| TooManyParts)?;
    let numbered = (1..=total).zip(cuts);
    Ok(numbered
        .map(|(sequence, text)| {
            if way == Segmentation::Sar {
                let concatenation = Concatenation::Sar { reference, total, sequence };
                part(concatenation, Vec::new(), text)
            } else {
                part(Concatenation::Header, header(wide, reference, total, sequence), text)
            }
        })
        .collect())
}

/// Returns the text of each part without its header, and whether the header has a 16-bit reference.
/// A text of one part has no header.
pub(super) fn headed(text: &str) -> (Vec<&str>, bool) {
    headed_in(text, encoding(text))
}

fn headed_in(text: &str, encoding: Encoding) -> (Vec<&str>, bool) {
    let cuts: Vec<&str> = super::cuts(text, encoding, 0).collect();
    let shorter: Vec<&str> = super::cuts(text, encoding, WIDE_UNITS).collect();
    if shorter.len() == cuts.len() { (shorter, true) } else { (cuts, false) }
}

const fn data_coding(encoding: Encoding) -> u8 {
    match encoding {
        Encoding::Gsm7 => 0,
        Encoding::Ucs2 => 8,
    }
}

/// Returns the user data header: its length, then the information element "concatenated short
/// messages" with a 16-bit or 8-bit reference.
fn header(wide: bool, reference: u16, total: u8, sequence: u8) -> Vec<u8> {
    let [high, low] = reference.to_be_bytes();
    if wide {
        vec![6, 0x08, 4, high, low, total, sequence]
    } else {
        vec![5, 0x00, 3, low, total, sequence]
    }
}

/// Appends a text to `bytes`. The encoding must contain every character.
fn write(text: &str, encoding: Encoding, bytes: &mut Vec<u8>) {
    match encoding {
        Encoding::Gsm7 => {
            for septets in text.chars().filter_map(gsm7::septets) {
                match septets {
                    Septets::Basic(code) => bytes.push(code),
                    Septets::Extension(code) => bytes.extend([gsm7::ESCAPE, code]),
                }
            }
        }
        Encoding::Ucs2 => bytes.extend(text.encode_utf16().flat_map(u16::to_be_bytes)),
    }
}
