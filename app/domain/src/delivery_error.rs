//! Stable codes for why a message wasn't delivered.

use crate::words::words;

words! {
    @only_written
    /// Why a message wasn't delivered, as reports and the API show it.
    ///
    /// A suffix may follow the code: `_` and a code from the network or the carrier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DeliveryError {
        /// No route matches the message.
        NoRoute = "no_route",
        /// The recipient opted out before the message was submitted.
        OptedOut = "opted_out",
        /// The application's limits don't allow the destination.
        InternationalDisabled = "international_disabled",
        /// The number is probably a mistake, and the application's limits refuse such numbers.
        DoubtfulNumber = "doubtful_number",
        /// The recipient had as many messages as the application's limits allow.
        RecipientFlooded = "recipient_flooded",
        /// Too many messages went to numbers like this one.
        TrafficPumping = "traffic_pumping",
        /// The carrier refused the number.
        InvalidDestination = "invalid_destination",
        /// The carrier refused the sender name.
        InvalidSender = "invalid_sender",
        /// The carrier refused the length, or no route accepts so many segments.
        InvalidLength = "invalid_length",
        /// The carrier refused the validity period.
        InvalidValidity = "invalid_validity",
        /// The carrier refused the message for another reason, whose number follows the code.
        Refused = "refused",
        /// The handset was off or out of reach.
        HandsetUnavailable = "handset_unavailable",
        /// The network couldn't deliver the message.
        Undeliverable = "undeliverable",
        /// The network rejected the message.
        RejectedByNetwork = "rejected_by_network",
        /// The carrier deleted the message.
        DeletedByCarrier = "deleted_by_carrier",
        /// The carrier doesn't know the outcome.
        UnknownToCarrier = "unknown_to_carrier",
        /// The validity period ended at the carrier.
        ValidityExpired = "validity_expired",
        /// The validity period ended before the message was submitted to a carrier.
        Validity = "validity",
        /// The carrier never answered the submit, and no receipt arrived.
        NoAnswer = "no_answer",
        /// The carrier accepted the message, but no receipt arrived.
        NoReceipt = "no_receipt",
        /// The message expired in our own queue.
        ExpiredInQueue = "expired_in_queue",
        /// The message expired after a carrier had accepted some of its segments.
        ExpiredInPart = "expired_in_part",
    }
}

/// The maximum length of a carrier's own code. An SMPP error number has two octets (SMPP 3.4,
/// 5.3.2.31), and some carriers write a longer one.
const CODE_CHARS_MAX: usize = 8;

impl DeliveryError {
    /// Returns the code, followed by the carrier's own if there is one. Anything else that a carrier
    /// writes there is left out, because customers see it.
    pub fn with_number(self, code: Option<&str>) -> String {
        let is_code = |text: &&str| {
            text.len() <= CODE_CHARS_MAX
                && text.bytes().all(|b| b.is_ascii_alphanumeric())
                && text.bytes().any(|b| b != b'0')
        };
        match code.filter(is_code) {
            Some(code) => format!("{self}_{code}"),
            None => self.as_str().to_owned(),
        }
    }

    /// Parses a code, with or without a suffix. Returns `None` for any other text.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|error| {
            text.strip_prefix(error.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    }
}
