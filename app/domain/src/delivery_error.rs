//! The stable words for why a message wasn't delivered.

/// Why a message wasn't delivered, as reports and the API name it. Carriers whose answers have
/// words of their own may leave others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeliveryError {
    /// No route leads to a carrier for it.
    NoRoute,
    /// The carrier refused its number.
    InvalidDestination,
    /// The carrier refused its sender name.
    InvalidSender,
    /// The carrier refused its length.
    InvalidLength,
    /// The carrier refused its validity period.
    InvalidValidity,
    /// The carrier refused it for another reason, which follows the word.
    Refused,
    /// The handset was off or out of reach.
    HandsetUnavailable,
    /// The network couldn't deliver it.
    Undeliverable,
    /// The network rejected it.
    RejectedByNetwork,
    /// The carrier deleted it.
    DeletedByCarrier,
    /// The carrier doesn't know how it ended.
    UnknownToCarrier,
    /// Its validity period ended at the carrier.
    ValidityExpired,
    /// The carrier never answered its submit, and no receipt came.
    NoAnswer,
    /// The carrier took it, and no receipt came.
    NoReceipt,
    /// Its time ran out in our own queue.
    ExpiredInQueue,
    /// Its time ran out when a carrier had taken some of its segments.
    ExpiredInPart,
}

impl DeliveryError {
    pub const ALL: [Self; 16] = [
        Self::NoRoute,
        Self::InvalidDestination,
        Self::InvalidSender,
        Self::InvalidLength,
        Self::InvalidValidity,
        Self::Refused,
        Self::HandsetUnavailable,
        Self::Undeliverable,
        Self::RejectedByNetwork,
        Self::DeletedByCarrier,
        Self::UnknownToCarrier,
        Self::ValidityExpired,
        Self::NoAnswer,
        Self::NoReceipt,
        Self::ExpiredInQueue,
        Self::ExpiredInPart,
    ];

    /// The word. `_` and a number of the network's or the carrier's may follow it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NoRoute => "no_route",
            Self::InvalidDestination => "invalid_destination",
            Self::InvalidSender => "invalid_sender",
            Self::InvalidLength => "invalid_length",
            Self::InvalidValidity => "invalid_validity",
            Self::Refused => "refused",
            Self::HandsetUnavailable => "handset_unavailable",
            Self::Undeliverable => "undeliverable",
            Self::RejectedByNetwork => "rejected_by_network",
            Self::DeletedByCarrier => "deleted_by_carrier",
            Self::UnknownToCarrier => "unknown_to_carrier",
            Self::ValidityExpired => "validity_expired",
            Self::NoAnswer => "no_answer",
            Self::NoReceipt => "no_receipt",
            Self::ExpiredInQueue => "expired_in_queue",
            Self::ExpiredInPart => "expired_in_part",
        }
    }

    /// Reads the word, with or without what may follow it; `None` for a carrier's own words.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|error| {
            text.strip_prefix(error.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
    }
}
