//! Reads delivery receipts, from TLVs or from text (SMPP 3.4, Appendix B, and its many dialects).

mod dates;
mod fields;

use std::borrow::Cow;

use crate::Delivery;
use fields::Fields;

/// The message type bits of esm_class (SMPP 3.4, 5.2.12).
const MESSAGE_TYPE: u8 = 0x3C;
/// The message types of a delivery receipt and of an intermediate notification. Both carry the text
/// of a receipt.
const RECEIPT_BIT: u8 = 0x04;
const INTERMEDIATE: u8 = 0x20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The message ID in the text.
    pub message_id: Option<String>,
    /// The message ID in the TLV. It usually has the same form as in the answer to the submit.
    pub receipted_message_id: Option<String>,
    /// Whether this is an intermediate notification. Another receipt follows it.
    pub intermediate: bool,
    /// Whether only the text marks the delivery as a receipt. A mobile phone can send such a text.
    pub by_text_alone: bool,
    /// The state of the message.
    pub state: State,
    pub state_text: Option<String>,
    /// The network's error code: the text's `err` as written there, otherwise the TLV's number in
    /// decimal. `None` if there is neither. Most SMSCs write `000` for no error.
    pub error: Option<String>,
    /// When the message reached the SMSC, in Unix milliseconds. Receipts carry no time zone, so the
    /// peer's clock counts as UTC.
    pub submitted_at: Option<i64>,
    /// When the message reached its state, in the same form.
    pub done_at: Option<i64>,
}

/// The state of a message (SMPP 3.4, 5.2.28).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Delivered to the handset.
    Delivered,
    /// Permanently not delivered.
    Failed(Failure),
    /// The validity period ran out.
    Expired,
    /// Accepted on the recipient's behalf. Most SMSCs mean that the message is on the way.
    Accepted,
    /// On the way.
    Enroute,
    /// The SMSC doesn't know the state.
    Unknown,
    /// The receipt has no state, or a state that we don't recognise.
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

/// Parses a receipt. Returns `None` if the delivery is a message from a mobile phone.
///
/// A delivery is a receipt if its esm_class says so or a TLV contains a message ID. Some SMSCs set
/// neither. Then the text must contain a message ID, a known state and both dates, because a
/// message from a phone may begin with `id:`, too. The state in the TLV takes precedence over the
/// one in the text, because some SMSCs cut off the text. For the error code, the text takes
/// precedence.
pub fn parse(delivery: &Delivery) -> Option<Receipt> {
    let marked = matches!(delivery.esm_class & MESSAGE_TYPE, RECEIPT_BIT | INTERMEDIATE);
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
        state_text: fields.get("stat").map(str::to_owned),
        error: fields
            .get("err")
            .map(str::to_owned)
            .or_else(|| delivery.network_error_code.map(error_number)),
        submitted_at: fields.get("submit date").and_then(dates::milliseconds),
        done_at: fields.get("done date").and_then(dates::milliseconds),
    })
}

/// Returns whether a text has all fields that an unmarked receipt needs.
fn is_whole(fields: &Fields<'_>) -> bool {
    let known = |word| by_word(word) != State::Unrecognised;
    fields.get("id").is_some()
        && fields.get("stat").is_some_and(known)
        && fields.get("submit date").is_some()
        && fields.get("done date").is_some()
}

/// Returns the error code, which is in the second and third octets. The first octet is the network
/// type.
fn error_number([_, high, low]: [u8; 3]) -> String {
    u16::from_be_bytes([high, low]).to_string()
}

/// Returns the state for a message_state, or `None` for values that the specification doesn't
/// define.
fn by_number(state: u8) -> Option<State> {
    Some(match state {
        // Scheduled, in SMPP 5.0.
        0 | 1 => State::Enroute,
        2 => State::Delivered,
        3 => State::Expired,
        4 => State::Failed(Failure::Deleted),
        5 => State::Failed(Failure::Undeliverable),
        6 => State::Accepted,
        7 => State::Unknown,
        // 9 is skipped, in SMPP 5.0.
        8 | 9 => State::Failed(Failure::Rejected),
        _ => return None,
    })
}

/// Returns the state for a value of `stat`. Only the first letters count: some SMSCs cut the word
/// short, and some write it out.
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
        // Not in SMPP 3.4, but common.
        ("FAILE", State::Failed(Failure::Undeliverable)),
        ("BUFFE", State::Enroute),
        ("BUFFR", State::Enroute),
        // SMPP 5.0, 4.7.15.
        ("SCHED", State::Enroute),
        ("SKIPP", State::Failed(Failure::Rejected)),
    ];
    let matches = |stem: &str| {
        let length = word.len().min(stem.len());
        // With three letters, DEL could be DELIVRD or DELETED.
        length >= 4 && word.as_bytes()[..length] == stem.as_bytes()[..length]
    };
    let found = known.into_iter().find(|(stem, _)| matches(stem));
    found.map_or(State::Unrecognised, |(_, state)| state)
}

/// Returns the fields at the beginning of a receipt (SMPP 3.4, Appendix B), without the message's
/// own text. The text needn't have a label, and a receipt may consist of nothing else.
pub fn without_message(text: &[u8]) -> &[u8] {
    // One character per octet or pair of octets, so that positions can be converted.
    let ascii = |octet: u8| if octet.is_ascii() { char::from(octet) } else { '?' };
    let Some(octets) = wide(text) else {
        let narrow: String = text.iter().copied().map(ascii).collect();
        return &text[..fields::end(&narrow)];
    };
    let letter = |pair: &[u8]| if pair[0] == 0 { ascii(pair[1]) } else { '?' };
    let narrow: String = octets.chunks_exact(2).map(letter).collect();
    &text[..text.len() - octets.len() + 2 * fields::end(&narrow)]
}

/// Returns the octets of a text in UCS-2 without their byte order mark, or `None` for another
/// coding.
fn wide(text: &[u8]) -> Option<&[u8]> {
    // The octets tell whether the text is UCS-2. The data_coding doesn't, because many SMSCs copy
    // it from the message. A text in another coding begins neither with an octet 0 nor with a byte
    // order mark.
    let text = text.strip_prefix(&[0xfe, 0xff]).unwrap_or(text);
    (text.len() >= 2 && text[0] == 0 && text[1] != 0).then_some(text)
}

/// Decodes the text. Receipts are ASCII in any coding, so other characters don't matter.
fn decode(text: &[u8]) -> Cow<'_, str> {
    let Some(octets) = wide(text) else {
        return String::from_utf8_lossy(text.strip_prefix(&[0xfe, 0xff]).unwrap_or(text));
    };
    let units = octets.chunks_exact(2);
    let units: Vec<u16> = units.map(|unit| u16::from_be_bytes([unit[0], unit[1]])).collect();
    Cow::Owned(String::from_utf16_lossy(&units))
}
