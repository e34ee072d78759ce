//! Stable codes for why a message wasn't delivered.

use crate::status::{ASK_SUPPORT, SEND_AGAIN_LATER};
use crate::words::words;

const ASK_BEFORE_SENDING: &str =
    "Ask the person whether it arrived before you send it again. Otherwise it may arrive twice.";

words! {
    @only_written
    /// Why a message wasn't delivered, as reports and the API show it.
    ///
    /// A suffix may follow the code: `_` and a code from the network or the carrier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DeliveryError [
        pub meaning: &'static str,
        /// What the customer can do.
        pub advice: &'static str,
    ] {
        /// No route matches the message.
        NoRoute = "no_route",
            "No carrier accepts messages to this number.",
            "Check the country code. If it is right, ask support whether the country is served.";
        /// The recipient opted out before the message was submitted.
        OptedOut = "opted_out",
            "The recipient doesn't want messages from this application.",
            "Don't send to this number. The application's list of opt-outs has it.";
        InternationalDisabled = "international_disabled",
            "The application's limits don't allow this destination.",
            "If the destination is right, allow it in the application's settings.";
        DoubtfulNumber = "doubtful_number",
            "The number is probably a mistake, and the application's limits refuse such numbers.",
            "Check the number. Write a local number with 8 digits, and an international one with \
             its country code.";
        RecipientFlooded = "recipient_flooded",
            "The recipient had as many messages as the application's limits allow.",
            "Check why so many messages go to this recipient.";
        TrafficPumping = "traffic_pumping",
            "Too many messages went to numbers like this one.",
            "Find out who asks for these messages before you send more.";
        /// The carrier refused the number.
        InvalidDestination = "invalid_destination",
            "The carrier says that there is no such number.",
            "Ask the person for the number again, with the country code if it is abroad.";
        /// The carrier refused the sender name.
        InvalidSender = "invalid_sender",
            "The carrier doesn't accept messages from this sender name.",
            "Ask support whether the name can be registered, or request another sender name.";
        /// The carrier refused the length, or no route accepts so many segments.
        InvalidLength = "invalid_length",
            "The message is too long for the carrier.",
            "Shorten the text, or send it in parts.";
        /// The carrier refused the validity period.
        InvalidValidity = "invalid_validity",
            "The carrier doesn't accept messages with so little time left.",
            "Send the message again.";
        /// The carrier refused the message for another reason, whose number follows the code.
        Refused = "refused",
            "The carrier refused the message.", ASK_SUPPORT;
        HandsetUnavailable = "handset_unavailable",
            "The phone was off or out of reach.", SEND_AGAIN_LATER;
        Undeliverable = "undeliverable",
            "The network couldn't deliver it to the phone.", SEND_AGAIN_LATER;
        RejectedByNetwork = "rejected_by_network",
            "The network rejected the message.",
            "Ask the person whether messages of your sender name are blocked on the phone.";
        DeletedByCarrier = "deleted_by_carrier",
            "The carrier deleted it before it was delivered.", SEND_AGAIN_LATER;
        UnknownToCarrier = "unknown_to_carrier",
            "The carrier doesn't know what became of it.", ASK_BEFORE_SENDING;
        /// The validity period ended at the carrier.
        ValidityExpired = "validity_expired",
            "The phone wasn't reached in time.", SEND_AGAIN_LATER;
        /// The validity period ended before the message was submitted to a carrier.
        Validity = "validity",
            "Its validity ended before a carrier could accept it.",
            "Send the message again if it is still useful, or with a longer validity.";
        /// The carrier never answered the submit, and no receipt arrived.
        NoAnswer = "no_answer",
            "The carrier never said whether it accepted the message, and sent no receipt. The \
             message may have arrived.", ASK_BEFORE_SENDING;
        /// The carrier accepted the message, but no receipt arrived.
        NoReceipt = "no_receipt",
            "The carrier accepted the message but sent no receipt. The message may have arrived.",
            ASK_BEFORE_SENDING;
        /// The message expired in our own queue.
        ExpiredInQueue = "expired_in_queue",
            "No carrier could accept it within 48 hours.",
            "Send the message again if it is still useful.";
        /// The message expired after a carrier had accepted some of its segments.
        ExpiredInPart = "expired_in_part",
            "Carriers accepted only some of its segments in time.", ASK_BEFORE_SENDING;
    }
}

/// The maximum length of a carrier's own code. An SMPP error number has two octets (SMPP 3.4,
/// 5.3.2.31), and some carriers write a longer one.
const CODE_CHARS_MAX: usize = 8;

impl DeliveryError {
    /// Returns the code, followed by the carrier's own if there is one. Anything else that a
    /// carrier writes there is left out, because customers see it.
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
