//! Reads a receipt from a delivery.

use ::smpp::Delivery;
use ::smpp::receipt::{self, Failure, State};
use domain::{DeliveryError, MessageStatus, Timestamp};
use service::CarrierReceipt;

use super::ids;
use crate::config::carriers::MessageIdForm;

/// The receipt in a delivery; `None` when it isn't one, or doesn't say how the message ended.
pub(super) fn read(delivery: &Delivery, form: MessageIdForm) -> Option<CarrierReceipt> {
    let receipt = receipt::parse(delivery)?;
    let (status, word) = match receipt.state {
        _ if receipt.intermediate => return None,
        State::Delivered => (MessageStatus::Delivered, None),
        State::Failed(Failure::Undeliverable) => {
            (MessageStatus::Failed, Some(DeliveryError::Undeliverable))
        }
        State::Failed(Failure::Rejected) => (
            MessageStatus::Failed,
            Some(DeliveryError::RejectedByNetwork),
        ),
        State::Failed(Failure::Deleted) => {
            (MessageStatus::Failed, Some(DeliveryError::DeletedByCarrier))
        }
        State::Expired => (MessageStatus::Expired, Some(DeliveryError::ValidityExpired)),
        // The carrier doesn't know and will not know.
        State::Unknown => (MessageStatus::Failed, Some(DeliveryError::UnknownToCarrier)),
        State::Accepted | State::Enroute => return None,
        State::Unrecognised => {
            tracing::warn!("a receipt has no state that is known and is ignored");
            return None;
        }
    };
    // A mobile could have written a receipt that is one by its text alone: such a receipt finds a
    // message only by the carrier's id, which a mobile doesn't know.
    let trusted = !receipt.by_text_alone;
    let number = delivery.source.trim_start_matches('+');
    Some(CarrierReceipt {
        names: names(&receipt, form),
        status,
        error: word.map(|word| with_number(word.as_str(), receipt.error.as_deref())),
        user_reference: delivery.user_message_reference,
        // The receipt's sender is the message's recipient.
        number: if trusted { number } else { "" }.to_owned(),
        sender: delivery.destination.trim_start_matches('+').to_owned(),
        submitted_at: receipt.submitted_at.map(Timestamp::from_unix_ms),
    })
}

/// The message's possible ids. The TLV has the id in the answer's form and the text in the
/// receipt's form, but some carriers use the receipt's form for the TLV, too.
fn names(receipt: &receipt::Receipt, form: MessageIdForm) -> Vec<String> {
    let parameter = receipt.receipted_message_id.as_deref();
    let text = receipt.message_id.as_deref();
    let mut names = Vec::new();
    for name in [
        parameter.map(|id| ids::of_answer(id, form)),
        parameter.map(|id| ids::of_receipt(id, form)),
        text.map(|id| ids::of_receipt(id, form)),
    ] {
        names.extend(name.filter(|name| !name.is_empty() && !names.contains(name)));
    }
    names
}

/// A stable word with the network's own error number, if there is one.
fn with_number(word: &str, number: Option<&str>) -> String {
    match number {
        Some(number) if number.bytes().any(|b| b != b'0') => format!("{word}_{number}"),
        _ => word.to_owned(),
    }
}
