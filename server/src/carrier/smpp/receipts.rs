//! Reads a receipt from a delivery.

use ::smpp::Delivery;
use ::smpp::receipt::{self, Failure, State};
use domain::support::ReceiptKind;
use domain::{DeliveryError, MessageStatus, Timestamp};
use service::{CarrierReceipt, RawReceipt, WrittenReceipt};

use super::super::escaped;
use crate::config::carriers::{ReceiptState, SmppSettings};

/// The maximum length of a raw receipt. Receipts have about 150 octets.
const RAW_CHARS_MAX: usize = 1024;

/// A receipt, raw and as it was read. `read` is `None` if the receipt has no final status.
pub(super) struct ReadReceipt {
    pub(super) raw: RawReceipt,
    pub(super) read: Option<CarrierReceipt>,
}

/// Reads what a receipt reports about a message. `receipt` is the content of the delivery.
pub(super) fn read(
    delivery: &Delivery,
    receipt: &receipt::Receipt,
    settings: &SmppSettings,
) -> ReadReceipt {
    let number = delivery.source.trim_start_matches('+');
    let state = receipt.state_text.clone().unwrap_or_else(|| {
        delivery.message_state.map(|state| state.to_string()).unwrap_or_default()
    });
    let meaning = meaning(receipt, &state, settings);
    let error = match &meaning {
        Meaning::Final(_, code) => code.map(|code| code.with_number(receipt.error.as_deref())),
        Meaning::OnTheWay => None,
        // Once the settings name the state, they can also give this number a meaning.
        Meaning::Unknown => receipt.error.clone(),
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
        raw: escaped(receipt::without_message(&delivery.text), RAW_CHARS_MAX),
        message_id: None,
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

/// The meaning of a receipt's state.
enum Meaning {
    Final(MessageStatus, Option<DeliveryError>),
    OnTheWay,
    Unknown,
}

/// Interprets the state, which is a word or the number of a message_state. The carrier's settings
/// take precedence over the usual meaning.
fn meaning(receipt: &receipt::Receipt, state: &str, settings: &SmppSettings) -> Meaning {
    if receipt.intermediate {
        return Meaning::OnTheWay;
    }
    let of_carrier = settings.states.get(state).copied();
    let (status, code) = match of_carrier.unwrap_or_else(|| common(receipt.state)) {
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

/// Returns the usual meaning of a state.
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
