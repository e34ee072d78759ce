//! Reads a receipt from a delivery.

use ::smpp::Delivery;
use ::smpp::receipt::{self, Failure, State};
use domain::support::ReceiptKind;
use domain::{DeliveryError, MessageStatus, Timestamp};
use service::{CarrierReceipt, RawReceipt, WrittenReceipt};

use super::super::error_code::with_number;
use crate::config::carriers::{ReceiptState, SmppSettings};

/// The maximum length of a raw receipt. Receipts have about 150 octets.
const RAW_CHARS_MAX: usize = 1024;

/// A receipt, and what it says about a message. `read` is `None` if it has no final status.
pub(super) struct ReadReceipt {
    pub(super) raw: RawReceipt,
    pub(super) read: Option<CarrierReceipt>,
}

/// Reads what a receipt says about a message. `receipt` is what the delivery contains.
pub(super) fn read(
    delivery: &Delivery,
    receipt: &receipt::Receipt,
    settings: &SmppSettings,
) -> ReadReceipt {
    let meaning = meaning(receipt, settings);
    let number = delivery.source.trim_start_matches('+');
    let state = receipt.state_text.clone().unwrap_or_else(|| {
        delivery.message_state.map(|state| state.to_string()).unwrap_or_default()
    });
    let error = match &meaning {
        Meaning::Final(_, code) => code.map(|code| with_number(code, receipt.error.as_deref())),
        Meaning::OnTheWay | Meaning::Unknown => None,
    };
    let raw = RawReceipt {
        kind: match meaning {
            Meaning::Final(..) => ReceiptKind::Final,
            Meaning::OnTheWay => ReceiptKind::Intermediate,
            Meaning::Unknown => ReceiptKind::UnknownState,
        },
        text_id: receipt.message_id.clone(),
        parameter_id: receipt.receipted_message_id.clone(),
        number: number.to_owned(),
        state: state.clone(),
        error: error.clone(),
        raw: escaped(receipt::without_message(&delivery.text)),
    };
    let Meaning::Final(status, _) = meaning else {
        return ReadReceipt { raw, read: None };
    };
    // A mobile phone can send a text that looks like a receipt. If nothing but the text shows that
    // this is a receipt, it can match a message only by the carrier message ID, which a phone
    // doesn't know.
    let trusted = !receipt.by_text_alone;
    let (text_id, parameter_id) =
        (receipt.message_id.as_deref(), receipt.receipted_message_id.as_deref());
    let read = CarrierReceipt {
        message_ids: service::message_ids(text_id, parameter_id, Some(settings.message_id)),
        status,
        error,
        user_reference: delivery.user_message_reference,
        // The receipt's sender is the message's recipient.
        number: if trusted { number } else { "" }.to_owned(),
        sender: delivery.destination.trim_start_matches('+').to_owned(),
        submitted_at: receipt.submitted_at.map(Timestamp::from_unix_ms),
        received_at: None,
        written: WrittenReceipt {
            text_id: receipt.message_id.clone(),
            parameter_id: receipt.receipted_message_id.clone(),
            state,
        },
    };
    ReadReceipt { raw, read: Some(read) }
}

/// Returns the beginning of a text, with bytes other than printable ASCII escaped.
fn escaped(text: &[u8]) -> String {
    let text = &text[..text.len().min(RAW_CHARS_MAX)];
    let is_plain = |byte: &u8| matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\'' | b'\\');
    if text.iter().all(is_plain) {
        // The usual case, which has to be cheap.
        return String::from_utf8_lossy(text).into_owned();
    }
    text.escape_ascii().take(RAW_CHARS_MAX).map(char::from).collect()
}

/// What the state of a receipt means.
enum Meaning {
    Final(MessageStatus, Option<DeliveryError>),
    OnTheWay,
    Unknown,
}

/// Interprets the state. The carrier's own settings take precedence over what is common.
fn meaning(receipt: &receipt::Receipt, settings: &SmppSettings) -> Meaning {
    if receipt.intermediate {
        return Meaning::OnTheWay;
    }
    let of_carrier = receipt.state_text.as_deref().and_then(|text| settings.states.get(text));
    let (status, code) = match of_carrier.copied().unwrap_or_else(|| common(receipt.state)) {
        ReceiptState::Delivered => return Meaning::Final(MessageStatus::Delivered, None),
        ReceiptState::OnTheWay => return Meaning::OnTheWay,
        ReceiptState::Unknown => return Meaning::Unknown,
        ReceiptState::Failed(code) => (MessageStatus::Failed, code),
        ReceiptState::Expired => (MessageStatus::Expired, DeliveryError::ValidityExpired),
    };
    let number = receipt.error.as_deref();
    let of_carrier = number.and_then(|number| settings.errors.get(number)).copied();
    Meaning::Final(status, Some(of_carrier.unwrap_or(code)))
}

/// Returns what a state means if the carrier's settings don't say.
const fn common(state: State) -> ReceiptState {
    match state {
        State::Delivered => ReceiptState::Delivered,
        State::Failed(Failure::Undeliverable) => ReceiptState::Failed(DeliveryError::Undeliverable),
        State::Failed(Failure::Rejected) => ReceiptState::Failed(DeliveryError::RejectedByNetwork),
        State::Failed(Failure::Deleted) => ReceiptState::Failed(DeliveryError::DeletedByCarrier),
        State::Expired => ReceiptState::Expired,
        // The carrier doesn't know the status and never will.
        State::Unknown => ReceiptState::Failed(DeliveryError::UnknownToCarrier),
        State::Accepted | State::Enroute => ReceiptState::OnTheWay,
        State::Unrecognised => ReceiptState::Unknown,
    }
}
