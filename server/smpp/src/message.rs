//! Submits, deliveries and events.

use tokio::time::Instant;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Address {
    /// Type of number (SMPP 3.4, 5.2.5).
    pub ton: u8,
    /// Numbering plan (SMPP 3.4, 5.2.6).
    pub npi: u8,
    /// Digits, or the name of an alphanumeric sender. At most 20 ASCII characters.
    pub digits: String,
}

/// One submit_sm.
///
/// A submit that SMPP can't carry (for example, because an address is too long or the text exceeds
/// 255 octets) isn't written. It gets [`Outcome::Unsendable`] with the status that an SMSC would
/// return.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submit {
    /// Chosen by the caller, and returned with the answer.
    pub tag: u64,
    /// The deadline for beginning to write the submit. After it, the submit gets
    /// [`Outcome::NotSent`]. The deadline is checked right before each write, so a process that was
    /// suspended for a while sends at most one late submit per link. If a submit was begun in time
    /// but isn't written in full five seconds after the deadline, the link ends and the submit also
    /// gets [`Outcome::NotSent`]. Over TLS, a submit counts as written when TLS accepts it. TLS
    /// accepts a submit only after the previous one has left.
    pub not_after: Instant,
    /// Whether traces always hide the text.
    pub is_secret: bool,
    /// At most 5 ASCII characters. Usually empty.
    pub service_type: String,
    pub source: Address,
    pub destination: Address,
    /// SMPP 3.4, 5.2.12.
    pub esm_class: u8,
    /// A time in SMPP's format: 16 characters (SMPP 3.4, 7.1.1).
    pub validity_period: Option<String>,
    /// SMPP 3.4, 5.2.17.
    pub registered_delivery: u8,
    /// SMPP 3.4, 5.2.19.
    pub data_coding: u8,
    /// At most 255 octets. Empty if `message_payload` carries the text.
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
    /// Other TLVs, such as a vendor's.
    pub tlvs: Vec<Tlv>,
}

/// An optional parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tlv {
    /// Its number.
    pub tag: u16,
    /// Its bytes.
    pub value: Vec<u8>,
}

/// An event on a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A submit was answered or given up.
    Answer {
        tag: u64,
        /// The outcome of the submit.
        outcome: Outcome,
    },
    /// A delivery arrived. Acknowledge it with [`crate::Connection::acknowledge`].
    Deliver(Delivery),
}

/// The outcome of a submit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The peer answered with status 0.
    Accepted {
        /// `None` if the response has no message ID, or an unreadable one.
        message_id: Option<String>,
    },
    /// The peer answered with any other status, or with a generic_nack for the submit's sequence
    /// number.
    Refused {
        /// The command_status.
        status: u32,
        /// The message ID in the response. SMPP has none in a refusal, but some peers send one.
        message_id: Option<String>,
    },
    /// SMPP can't carry the submit; see [`Submit`]. Nothing was sent.
    Unsendable {
        /// The command_status that an SMSC would return.
        status: u32,
    },
    /// The submit certainly wasn't sent in full, so the caller may send it again.
    NotSent,
    /// The socket accepted the whole submit, but its outcome isn't known. After
    /// [`UnknownCause::NoAnswer`], a late answer on the same bind is still reported, as a second
    /// [`Event::Answer`] with the same tag.
    Unknown {
        /// Why the outcome isn't known.
        cause: UnknownCause,
    },
}

/// Why the outcome of a submit isn't known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownCause {
    /// No answer came within [`crate::Timers::answer`]. If the peer also answered no other submit
    /// since this one was written, the link ends and binds again.
    NoAnswer,
    /// The connection ended before the answer came.
    ConnectionLost,
    /// We closed the connection before the answer came.
    Closed,
}

/// A deliver_sm (or data_sm) from the peer: a receipt or a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Delivery {
    /// The handle that acknowledges the delivery.
    pub handle: DeliveryHandle,
    pub source: String,
    /// The digits of the destination address.
    pub destination: String,
    /// SMPP 3.4, 5.2.12.
    pub esm_class: u8,
    /// SMPP 3.4, 5.2.19.
    pub data_coding: u8,
    /// The short_message or, if that is empty, the message_payload. Not decoded.
    pub text: Vec<u8>,
    /// TLV 0x001E.
    pub receipted_message_id: Option<String>,
    /// TLV 0x0427.
    pub message_state: Option<u8>,
    /// TLV 0x0423: network type and error code.
    pub network_error_code: Option<[u8; 3]>,
    /// TLV 0x0204.
    pub user_message_reference: Option<u16>,
    /// TLV 0x020C.
    pub sar_msg_ref_num: Option<u16>,
    /// TLV 0x020E.
    pub sar_total_segments: Option<u8>,
    /// TLV 0x020F.
    pub sar_segment_seqnum: Option<u8>,
}

/// Identifies a delivery and the bind that it arrived on. The default identifies none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub struct DeliveryHandle {
    /// The index of the link.
    pub(crate) link: usize,
    /// The number of the bind, counted per connection. 0 if none.
    pub(crate) bind: u64,
    /// The number of the delivery, counted per bind. The sequence number isn't enough, because a
    /// peer may use one twice.
    pub(crate) serial: u64,
    /// The peer's sequence number.
    pub(crate) sequence: u32,
    /// Whether the delivery came as a data_sm, and must be answered as one.
    pub(crate) data: bool,
}

/// The values of command_status (SMPP 3.4, 5.1.3) that this crate and its callers use.
pub mod status_code {
    /// No error.
    pub const OK: u32 = 0x00;
    pub const INVALID_MESSAGE_LENGTH: u32 = 0x01;
    pub const INVALID_COMMAND_LENGTH: u32 = 0x02;
    pub const INVALID_COMMAND_ID: u32 = 0x03;
    /// Not possible in this bind state.
    pub const INCORRECT_BIND_STATUS: u32 = 0x04;
    pub const ALREADY_BOUND: u32 = 0x05;
    pub const SYSTEM_ERROR: u32 = 0x08;
    pub const INVALID_SOURCE: u32 = 0x0A;
    /// Destination address is invalid.
    pub const INVALID_DESTINATION: u32 = 0x0B;
    pub const BIND_FAILED: u32 = 0x0D;
    pub const INVALID_PASSWORD: u32 = 0x0E;
    pub const INVALID_SYSTEM_ID: u32 = 0x0F;
    /// The peer's queue is full.
    pub const QUEUE_FULL: u32 = 0x14;
    pub const INVALID_SERVICE_TYPE: u32 = 0x15;
    pub const SUBMIT_FAILED: u32 = 0x45;
    pub const INVALID_SYSTEM_TYPE: u32 = 0x53;
    /// The peer's limit is exceeded.
    pub const THROTTLED: u32 = 0x58;
    /// Validity period is invalid.
    pub const INVALID_VALIDITY: u32 = 0x62;
    /// Temporary error at the receiving side.
    pub const TEMPORARY_ERROR: u32 = 0x64;
    pub const DELIVERY_FAILED: u32 = 0xFE;
    pub const UNKNOWN_ERROR: u32 = 0xFF;
}
