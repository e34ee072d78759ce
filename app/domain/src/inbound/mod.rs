//! Inbound messages: decodes the payloads of carriers, and joins the parts of long messages.
//!
//! Parts are joined before they are decoded, because a carrier may split a surrogate pair or an
//! escape sequence. So a part is stored as it arrived.

mod coding;
mod header;
mod languages;
mod position;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::coding::DefaultAlphabet;
use self::coding::Units;
use self::header::Header;
pub use self::position::PartPosition;
use crate::opt_out::Command;
use crate::{InboundId, Timestamp};

/// The text that stands for consecutive parts that didn't arrive.
pub const MISSING_PARTS: &str = "[…]";

/// The bit of `esm_class` that announces a user data header (SMPP 3.4 §5.2.12).
const HEADER_INDICATOR: u8 = 0x40;

/// A message, or one part of a long message, as a carrier delivered it.
#[derive(Clone, PartialEq, Eq)]
pub struct ReceivedPart {
    data_coding: u8,
    header: Header,
    /// `None` if the message has no other part.
    position: Option<PartPosition>,
    /// The octets after the header.
    octets: Vec<u8>,
}

impl ReceivedPart {
    /// Reads the header of a payload, if `esm_class` announces one. A header that exceeds the
    /// payload, or has an element that exceeds the header, is kept as text.
    ///
    /// `sar` is the position that the SAR parameters state. A header has precedence.
    pub fn parse(
        esm_class: u8,
        data_coding: u8,
        payload: &[u8],
        sar: Option<PartPosition>,
    ) -> Self {
        let header = (esm_class & HEADER_INDICATOR != 0).then(|| Header::parse(payload)).flatten();
        let header = header.unwrap_or_default();
        let octets = payload.get(header.octets..).unwrap_or_default().to_vec();
        Self { data_coding, header, position: header.position.or(sar), octets }
    }

    /// Returns the part's position in a long message. `None` if the message has no other part.
    pub const fn position(&self) -> Option<PartPosition> {
        self.position
    }

    fn sequence(&self) -> u8 {
        self.position.map_or(1, |position| position.sequence)
    }

    fn total(&self) -> u8 {
        self.position.map_or(1, |position| position.total)
    }

    fn units(&self, default_alphabet: DefaultAlphabet) -> Units {
        Units::read(&self.octets, self.data_coding, self.header, default_alphabet)
    }
}

impl fmt::Debug for ReceivedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceivedPart({:?}, {} octets)", self.position, self.octets.len())
    }
}

/// Returns true if every part of the message is there. All parts must have the same reference and
/// total.
pub fn is_complete(parts: &[ReceivedPart]) -> bool {
    parts.first().is_some_and(|first| in_order(parts).len() == usize::from(first.total()))
}

/// Returns the text of a message. All parts must have the same reference and total. They can be in
/// any order. If a part arrived twice, the first one counts. [`MISSING_PARTS`] stands for each run
/// of missing parts.
///
/// Binary payloads become hexadecimal digits. Octets that can't be decoded become U+FFFD. The text
/// has no NUL; see [`without_nul`].
pub fn join(parts: &[ReceivedPart], default_alphabet: DefaultAlphabet) -> String {
    let mut text = String::new();
    // Consecutive parts with the same alphabet, not decoded yet.
    let mut run: Option<Units> = None;
    let end_run = |run: &mut Option<Units>, text: &mut String| {
        if let Some(run) = run.take() {
            text.push_str(&run.alphabet.decode(&run.values));
        }
    };
    let mut expected = 1;
    for part in in_order(parts) {
        let is_next = u16::from(part.sequence()) == expected;
        let units = part.units(default_alphabet);
        match &mut run {
            Some(run) if is_next && run.alphabet == units.alphabet => {
                run.values.extend(units.values);
            }
            _ => {
                end_run(&mut run, &mut text);
                if !is_next {
                    text.push_str(MISSING_PARTS);
                }
                run = Some(units);
            }
        }
        expected = u16::from(part.sequence()) + 1;
    }
    end_run(&mut run, &mut text);
    if parts.first().is_some_and(|first| expected <= u16::from(first.total())) {
        text.push_str(MISSING_PARTS);
    }
    without_nul(text)
}

/// Returns the number of segments in which the handset sent a message, including missing ones. If
/// the carrier joined them, the length of the text determines it.
pub fn segments(parts: &[ReceivedPart], default_alphabet: DefaultAlphabet) -> usize {
    let Some(first) = parts.first() else {
        return 0;
    };
    if let Some(position) = first.position {
        return usize::from(position.total);
    }
    let units = first.units(default_alphabet);
    let (alone, joined) = units.per_segment;
    if units.values.len() <= alone { 1 } else { units.values.len().div_ceil(joined) }
}

/// Removes NUL characters from a text, because PostgreSQL can't store them. They are removed rather
/// than replaced, because carriers send them as terminators.
pub fn without_nul(mut text: String) -> String {
    text.retain(|c| c != '\0');
    text
}

/// Returns the parts by their number. Of parts with the same number, only the first remains.
fn in_order(parts: &[ReceivedPart]) -> Vec<&ReceivedPart> {
    let mut parts: Vec<_> = parts.iter().collect();
    parts.sort_by_key(|part| part.sequence());
    parts.dedup_by_key(|part| part.sequence());
    parts
}

/// An inbound message as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundRecord {
    pub inboundid: InboundId,
    /// The handset's number.
    pub number: String,
    /// Our number.
    pub recipient: String,
    pub message: String,
    /// Radio units.
    pub segments: i64,
    /// The keyword that assigned the message to the application, if several applications share the
    /// number.
    pub keyword: Option<String>,
    /// The command that the message consists of, if it is one.
    pub optout: Option<Command>,
    /// Whether it was simulated with the test key.
    pub test: bool,
    pub received_at: Timestamp,
}
