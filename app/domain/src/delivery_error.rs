//! The stable words for why a message wasn't delivered.

use crate::words::words;

words! {
    @only_written
    /// Why a message wasn't delivered, as reports and the API name it. Carriers whose answers have
    /// words of their own may leave others. `_` and a number of the network's or the carrier's may
    /// follow the word.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum DeliveryError {
        /// No route leads to a carrier for it.
        NoRoute = "no_route",
        /// The carrier refused its number.
        InvalidDestination = "invalid_destination",
        /// The carrier refused its sender name.
        InvalidSender = "invalid_sender",
        /// The carrier refused its length.
        InvalidLength = "invalid_length",
        /// The carrier refused its validity period.
        InvalidValidity = "invalid_validity",
        /// The carrier refused it for another reason, which follows the word.
        Refused = "refused",
        /// The handset was off or out of reach.
        HandsetUnavailable = "handset_unavailable",
        /// The network couldn't deliver it.
        Undeliverable = "undeliverable",
        /// The network rejected it.
        RejectedByNetwork = "rejected_by_network",
        /// The carrier deleted it.
        DeletedByCarrier = "deleted_by_carrier",
        /// The carrier doesn't know how it ended.
        UnknownToCarrier = "unknown_to_carrier",
        /// Its validity period ended at the carrier.
        ValidityExpired = "validity_expired",
        /// The carrier never answered its submit, and no receipt came.
        NoAnswer = "no_answer",
        /// The carrier took it, and no receipt came.
        NoReceipt = "no_receipt",
        /// Its time ran out in our own queue.
        ExpiredInQueue = "expired_in_queue",
        /// Its time ran out when a carrier had taken some of its segments.
        ExpiredInPart = "expired_in_part",
    }
}

impl DeliveryError {
    /// Reads the word, with or without what may follow it; `None` for a carrier's own words.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|error| {
            text.strip_prefix(error.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    }
}
