//! Delivery receipts, by TLV or by text (SMPP 3.4, Appendix B, and its many dialects).

mod dates;
mod fields;

use std::borrow::Cow;

use crate::Delivery;
use fields::Fields;

/// Message type bits of esm_class (SMPP 3.4, 5.2.12).
const MESSAGE_TYPE: u8 = 0x3C;
/// The bits of a delivery receipt or an intermediate notification, whose text is a receipt's.
const RECEIPT_BIT: u8 = 0x04;
const INTERMEDIATE: u8 = 0x20;

/// What a receipt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The message id as the text writes it.
    pub message_id: Option<String>,
    /// The message id as the TLV writes it, mostly as the submit's answer did.
    pub receipted_message_id: Option<String>,
    /// Whether it is an intermediate notification, after which another receipt follows.
    pub intermediate: bool,
    /// Whether only its text says that it is a receipt: a mobile could have written that.
    pub by_text_alone: bool,
    /// What became of it.
    pub state: State,
    /// The network's error code: the text's `err` as it stands there, otherwise the TLV's number in
    /// decimal. `None` when neither is there; most write `000` for no error.
    pub error: Option<String>,
    /// When the message came to the SMSC, in ms since 1970 as if the peer's clock were UTC:
    /// receipts carry no time zone.
    pub submitted_at: Option<i64>,
    /// When the message came to its state, in the same form.
    pub done_at: Option<i64>,
}

/// A message's state (SMPP 3.4, 5.2.28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Delivered to the handset.
    Delivered,
    /// Not delivered, for good.
    Failed(Failure),
    /// Its validity period ran out.
    Expired,
    /// Accepted on the recipient's behalf; most SMSCs mean by it that the message is on the way.
    Accepted,
    /// On the way.
    Enroute,
    /// The SMSC says that it doesn't know.
    Unknown,
    /// The receipt has no state, or one that we don't know.
    Unrecognised,
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

/// Reads a receipt; `None` when the delivery is a mobile's message.
///
/// A delivery is a receipt if its esm_class says so or a TLV names a message. Some SMSCs do
/// neither: then the text must have everything that Appendix B asks for, since a mobile's message
/// may begin with `id:`, too. The TLVs count more than the text, which some SMSCs cut off.
pub fn parse(delivery: &Delivery) -> Option<Receipt> {
    let marked = matches!(
        delivery.esm_class & MESSAGE_TYPE,
        RECEIPT_BIT | INTERMEDIATE
    );
    let by_text_alone = !marked && delivery.receipted_message_id.is_none();
    let text = decode(&delivery.text);
    let fields = Fields::read(&text);
    if by_text_alone && !is_whole(&fields) {
        return None;
    }
    let by_tlv = delivery.message_state.and_then(by_number);
    let by_text = fields.get("stat").map_or(State::Unrecognised, by_word);
    Some(Receipt {
        message_id: fields.get("id").map(str::to_owned),
        receipted_message_id: delivery.receipted_message_id.clone(),
        intermediate: delivery.esm_class & MESSAGE_TYPE == INTERMEDIATE,
        by_text_alone,
        state: by_tlv.unwrap_or(by_text),
        error: fields
            .get("err")
            .map(str::to_owned)
            .or_else(|| delivery.network_error_code.map(error_number)),
        submitted_at: fields.get("submit date").and_then(dates::milliseconds),
        done_at: fields.get("done date").and_then(dates::milliseconds),
    })
}

/// Whether a text has every field of a receipt.
fn is_whole(fields: &Fields<'_>) -> bool {
    let known = |word| by_word(word) != State::Unrecognised;
    fields.get("id").is_some()
        && fields.get("stat").is_some_and(known)
        && fields.get("submit date").is_some()
        && fields.get("done date").is_some()
}

/// The error code, whose low octet is the third one. The first octet tells the network's type.
fn error_number([_, high, low]: [u8; 3]) -> String {
    u16::from_be_bytes([high, low]).to_string()
}

/// The state for a message_state; `None` for values that the specification doesn't have.
fn by_number(state: u8) -> Option<State> {
    Some(match state {
        1 => State::Enroute,
        2 => State::Delivered,
        3 => State::Expired,
        4 => State::Failed(Failure::Deleted),
        5 => State::Failed(Failure::Undeliverable),
        6 => State::Accepted,
        7 => State::Unknown,
        8 => State::Failed(Failure::Rejected),
        _ => return None,
    })
}

/// The state for a word of `stat`. Its first letters decide: some SMSCs cut the word, some write it
/// out.
fn by_word(word: &str) -> State {
    let word = word.to_ascii_uppercase();
    let known = [
        ("DELIV", State::Delivered),
        ("DELET", State::Failed(Failure::Deleted)),
        ("EXPIR", State::Expired),
        ("UNDEL", State::Failed(Failure::Undeliverable)),
        ("REJEC", State::Failed(Failure::Rejected)),
        ("ACCEP", State::Accepted),
        ("ENROU", State::Enroute),
        ("UNKNO", State::Unknown),
    ];
    let matches = |stem: &str| {
        let length = word.len().min(stem.len());
        // With three letters, DEL could be two words.
        length >= 4 && word.as_bytes()[..length] == stem.as_bytes()[..length]
    };
    let found = known.into_iter().find(|(stem, _)| matches(stem));
    found.map_or(State::Unrecognised, |(_, state)| state)
}

/// The text as characters. Receipts are ASCII in whatever coding they come; the rest doesn't
/// matter.
fn decode(text: &[u8]) -> Cow<'_, str> {
    // The octets tell whether it is UCS-2, and not data_coding, which many SMSCs copy from the
    // message: a text in another coding begins neither with an octet 0 nor with a byte order mark.
    let text = text.strip_prefix(&[0xfe, 0xff]).unwrap_or(text);
    let wide = text.len() >= 2 && text[0] == 0 && text[1] != 0;
    if !wide {
        return String::from_utf8_lossy(text);
    }
    let units = text.chunks_exact(2);
    let units: Vec<u16> = units
        .map(|unit| u16::from_be_bytes([unit[0], unit[1]]))
        .collect();
    Cow::Owned(String::from_utf16_lossy(&units))
}
