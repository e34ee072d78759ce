//! Submits, deliveries and events.

use tokio::time::Instant;

/// An address as SMPP carries it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// Type of number (SMPP 3.4, 5.2.5).
    pub ton: u8,
    /// Numbering plan (SMPP 3.4, 5.2.6).
    pub npi: u8,
    /// Digits or, for an alphanumeric sender, its name; at most 20 ASCII characters.
    pub digits: String,
}

/// One submit_sm.
///
/// A submit that SMPP can't carry (an address that is too long, a text over 255 octets) isn't
/// written and is answered [`Outcome::Refused`] with the status that an SMSC would give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// Chosen by the caller; comes back with the answer.
    pub tag: u64,
    /// The last time to begin writing the submit; after it, it is answered [`Outcome::NotSent`].
    /// The time is checked right before each write, so that a process which was stopped for a while
    /// sends one late submit per link at most. A submit that isn't written whole five seconds after
    /// this ends the link and is [`Outcome::NotSent`], too. Over TLS a submit counts as written
    /// when TLS takes it, which is when the one before has left.
    pub not_after: Instant,
    /// At most 5 ASCII characters; mostly empty.
    pub service_type: String,
    /// Who it is from.
    pub source: Address,
    /// Who it is for.
    pub destination: Address,
    /// SMPP 3.4, 5.2.12.
    pub esm_class: u8,
    /// As SMPP writes times: 16 characters (SMPP 3.4, 7.1.1).
    pub validity_period: Option<String>,
    /// SMPP 3.4, 5.2.17.
    pub registered_delivery: u8,
    /// SMPP 3.4, 5.2.19.
    pub data_coding: u8,
    /// At most 255 octets; empty when `message_payload` carries the text.
    pub short_message: Vec<u8>,
    /// TLV 0x020C.
    pub sar_msg_ref_num: Option<u16>,
    /// TLV 0x020E.
    pub sar_total_segments: Option<u8>,
    /// TLV 0x020F.
    pub sar_segment_seqnum: Option<u8>,
    /// TLV 0x0424.
    pub message_payload: Option<Vec<u8>>,
    /// TLV 0x0204.
    pub user_message_reference: Option<u16>,
}

/// What happens on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// What became of a submit.
    Answer {
        /// The submit's.
        tag: u64,
        /// What became of it.
        outcome: Outcome,
    },
    /// A delivery arrived; to be acknowledged with [`crate::Connection::acknowledge`].
    Deliver(Delivery),
}

/// What became of a submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Status 0.
    Accepted {
        /// `None` when the body has none, or one that can't be read.
        message_id: Option<String>,
    },
    /// Any other status, also in a generic_nack with the submit's sequence number.
    Refused {
        /// The command_status.
        status: u32,
    },
    /// Not all of the submit left, which is certain: it may be repeated.
    NotSent,
    /// All of the submit was handed to the socket, and what became of it isn't known. After
    /// [`UnknownCause::NoAnswer`] a late answer on the same bind is still reported, as a second
    /// [`Event::Answer`] with the same tag.
    Unknown {
        /// Why it isn't known.
        cause: UnknownCause,
    },
}

/// Why a submit's outcome isn't known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownCause {
    /// No answer came within [`crate::Timers::answer`]. If no other submit was answered either
    /// since this one was written, the link ends and binds again.
    NoAnswer,
    /// The connection ended first.
    ConnectionLost,
    /// We closed the connection before the answer came.
    Closed,
}

/// A deliver_sm (or data_sm) from the peer: a receipt or a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// What the acknowledgement names.
    pub handle: DeliveryHandle,
    /// The source address's digits.
    pub source: String,
    /// The destination address's digits.
    pub destination: String,
    /// SMPP 3.4, 5.2.12.
    pub esm_class: u8,
    /// SMPP 3.4, 5.2.19.
    pub data_coding: u8,
    /// short_message or, when that is empty, message_payload; undecoded.
    pub text: Vec<u8>,
    /// TLV 0x001E.
    pub receipted_message_id: Option<String>,
    /// TLV 0x0427.
    pub message_state: Option<u8>,
    /// TLV 0x0423: network type and error code.
    pub network_error_code: Option<[u8; 3]>,
    /// TLV 0x0204.
    pub user_message_reference: Option<u16>,
}

/// Names a delivery on the bind that brought it. The default names none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DeliveryHandle {
    /// Index of the link.
    pub(crate) link: usize,
    /// Counts the connection's binds; 0 is none.
    pub(crate) bind: u64,
    /// Counts the bind's deliveries: a peer may use one sequence number twice.
    pub(crate) serial: u64,
    /// The peer's sequence number.
    pub(crate) sequence: u32,
    /// Whether it came as a data_sm and must be answered as one.
    pub(crate) data: bool,
}

/// Values of command_status (SMPP 3.4, 5.1.3) that callers and this crate name.
pub mod status_code {
    /// No error.
    pub const OK: u32 = 0x00;
    /// Message length is invalid.
    pub const INVALID_MESSAGE_LENGTH: u32 = 0x01;
    /// Command length is invalid.
    pub const INVALID_COMMAND_LENGTH: u32 = 0x02;
    /// Command id is invalid.
    pub const INVALID_COMMAND_ID: u32 = 0x03;
    /// Not possible in this bind state.
    pub const INCORRECT_BIND_STATUS: u32 = 0x04;
    /// System error.
    pub const SYSTEM_ERROR: u32 = 0x08;
    /// Source address is invalid.
    pub const INVALID_SOURCE: u32 = 0x0A;
    /// Destination address is invalid.
    pub const INVALID_DESTINATION: u32 = 0x0B;
    /// The peer's queue is full.
    pub const QUEUE_FULL: u32 = 0x14;
    /// Service type is invalid.
    pub const INVALID_SERVICE_TYPE: u32 = 0x15;
    /// The peer's limit is exceeded.
    pub const THROTTLED: u32 = 0x58;
    /// Validity period is invalid.
    pub const INVALID_VALIDITY: u32 = 0x62;
    /// Temporary error at the receiving side.
    pub const TEMPORARY_ERROR: u32 = 0x64;
    /// Unknown error.
    pub const UNKNOWN_ERROR: u32 = 0xFF;
}
