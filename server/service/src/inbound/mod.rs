//! Messages from handsets: how they are received, joined from their parts, given to the
//! applications that have their numbers, and listed.

mod assigning;
mod commands;
mod counts;
mod joining;
mod listing;
mod numbers;
mod receiving;
mod testing;
mod upkeep;

use domain::{InboundId, Number};

use crate::Service;

pub(crate) use counts::InboundCounts;
pub use listing::InboundFilter;
pub use receiving::{InboundContent, InboundDelivery};
pub use testing::{ReceivedTest, TestInbound};

/// The maximum number of characters of an address. SMPP allows 20.
const ADDRESS_CHARS_MAX: usize = 40;

/// A message from a handset, with all of its parts.
struct Arrived {
    id: InboundId,
    carrier: String,
    /// The handset's number.
    number: String,
    /// Our number.
    recipient: String,
    text: String,
    segments: i64,
    /// False if parts are missing. Such a message can't be a command.
    is_whole: bool,
    /// Whether an equal message arrived just before. If so, this message isn't stored, because the
    /// carrier probably repeated it. A STOP in it still counts.
    is_repeated: bool,
}

impl Service {
    /// Returns a number as carriers write it, so that all forms of a number are equal. Returns any
    /// other text without control characters, and cut to the length of an address.
    fn carrier_form(&self, address: &str) -> String {
        if let Ok(number) = Number::parse(address.trim()) {
            return number.for_carrier(&self.inner.router.country_code);
        }
        let shown = address.trim().chars().filter(|c| !c.is_control());
        shown.take(ADDRESS_CHARS_MAX).collect()
    }
}
