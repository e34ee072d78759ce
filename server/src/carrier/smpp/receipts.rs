//! Reads a receipt from a delivery.

use ::smpp::Delivery;
use ::smpp::receipt::{self, Failure, State};
use domain::{DeliveryError, MessageStatus, Timestamp};
use service::CarrierReceipt;

use super::super::error_code::with_number;
use super::ids;
use crate::config::carriers::MessageIdForm;

/// Returns what a receipt says about a message, or `None` if it has no final status. `receipt` is
/// what the delivery contains.
pub(super) fn read(
    delivery: &Delivery,
    receipt: &receipt::Receipt,
    form: MessageIdForm,
) -> Option<CarrierReceipt> {
    let (status, word) = match receipt.state {
        _ if receipt.intermediate => return None,
        State::Delivered => (MessageStatus::Delivered, None),
        State::Failed(Failure::Undeliverable) => {
            (MessageStatus::Failed, Some(DeliveryError::Undeliverable))
        }
        State::Failed(Failure::Rejected) => {
            (MessageStatus::Failed, Some(DeliveryError::RejectedByNetwork))
        }
        State::Failed(Failure::Deleted) => {
            (MessageStatus::Failed, Some(DeliveryError::DeletedByCarrier))
        }
        State::Expired => (MessageStatus::Expired, Some(DeliveryError::ValidityExpired)),
        // The carrier doesn't know the status and never will.
        State::Unknown => (MessageStatus::Failed, Some(DeliveryError::UnknownToCarrier)),
        State::Accepted | State::Enroute => return None,
        State::Unrecognised => {
            tracing::warn!(
                message_id =
                    receipt.message_id.as_deref().or(receipt.receipted_message_id.as_deref()),
                state = receipt.state_text.as_deref(),
                message_state = delivery.message_state,
                "ignored a receipt with an unknown state; ask the carrier what it means"
            );
            return None;
        }
    };
    // A mobile phone can send a text that looks like a receipt. If nothing but the text shows that
    // this is a receipt, it can match a message only by the carrier message ID, which a phone
    // doesn't know.
    let trusted = !receipt.by_text_alone;
    let number = delivery.source.trim_start_matches('+');
    Some(CarrierReceipt {
        message_ids: message_ids(receipt, form),
        status,
        error: word.map(|word| with_number(word, receipt.error.as_deref())),
        user_reference: delivery.user_message_reference,
        // The receipt's sender is the message's recipient.
        number: if trusted { number } else { "" }.to_owned(),
        sender: delivery.destination.trim_start_matches('+').to_owned(),
        submitted_at: receipt.submitted_at.map(Timestamp::from_unix_ms),
    })
}

/// Returns the possible carrier message IDs. The TLV has the ID in the answer's form, and the text
/// has it in the receipt's form. Some carriers use the receipt's form in the TLV, too.
fn message_ids(receipt: &receipt::Receipt, form: MessageIdForm) -> Vec<String> {
    let parameter = receipt.receipted_message_id.as_deref();
    let text = receipt.message_id.as_deref();
    let mut message_ids = Vec::new();
    for name in [
        parameter.map(|id| ids::of_answer(id, form)),
        parameter.map(|id| ids::of_receipt(id, form)),
        text.map(|id| ids::of_receipt(id, form)),
    ] {
        message_ids.extend(name.filter(|name| !name.is_empty() && !message_ids.contains(name)));
    }
    message_ids
}
