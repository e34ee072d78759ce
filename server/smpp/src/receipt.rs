//! Delivery receipts, by TLV or by text (SMPP 3.4, Appendix B, and its many dialects).

use crate::Delivery;

/// What a receipt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The message it is about, as the peer writes it.
    pub message_id: Option<String>,
    /// What became of it.
    pub state: State,
    /// The network's error code: the text's `err` as it stands there, or the TLV's number in decimal.
    pub error: Option<String>,
    /// When the message came to the SMSC, in ms since 1970 as if the peer's clock were UTC.
    pub submitted_at: Option<i64>,
    /// When it came to its state, in ms since 1970 as if the peer's clock were UTC: receipts carry no
    /// time zone.
    pub done_at: Option<i64>,
}

/// Where a message stands (SMPP 3.4, 5.2.28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Delivered to the handset.
    Delivered,
    /// It won't be.
    Failed(Failure),
    /// Its validity period ran out.
    Expired,
    /// Accepted by an operator on the recipient's behalf; most SMSCs mean an intermediate state.
    Accepted,
    /// Under way.
    Enroute,
    /// The SMSC doesn't know, or used a word that we don't.
    Unknown,
}

/// How a message failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// UNDELIV.
    Undeliverable,
    /// REJECTD.
    Rejected,
    /// DELETED.
    Deleted,
}

/// Reads a receipt; None when the delivery is none but a mobile's message.
pub fn parse(delivery: &Delivery) -> Option<Receipt> {
    let _ = delivery;
    None
}
