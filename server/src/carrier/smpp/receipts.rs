//! What a delivery says about a message.

use ::smpp::Delivery;
use ::smpp::receipt::{self, Failure, State};
use domain::{MessageStatus, Timestamp};
use service::CarrierReceipt;

use super::ids;
use crate::config::carriers::MessageIdForm;

/// The receipt in a delivery; `None` when it isn't one, or doesn't say how the message ended.
pub(super) fn read(delivery: &Delivery, form: MessageIdForm) -> Option<CarrierReceipt> {
    let receipt = receipt::parse(delivery)?;
    let (status, word) = match receipt.state {
        _ if receipt.intermediate => return None,
        State::Delivered => (MessageStatus::Delivered, None),
        State::Failed(Failure::Undeliverable) => (MessageStatus::Failed, Some("undeliverable")),
        State::Failed(Failure::Rejected) => (MessageStatus::Failed, Some("rejected_by_network")),
        State::Failed(Failure::Deleted) => (MessageStatus::Failed, Some("deleted_by_carrier")),
        State::Expired => (MessageStatus::Expired, Some("validity_expired")),
        // The carrier knows no more than we do, and will not.
        State::Unknown => (MessageStatus::Failed, Some("unknown_to_carrier")),
        State::Accepted | State::Enroute => return None,
        State::Unrecognised => {
            tracing::warn!("a receipt doesn't say how its message ended, and is left aside");
            return None;
        }
    };
    // What a mobile could have written finds a message by the carrier's name alone: nobody else
    // knows that.
    let trusted = !receipt.by_text_alone;
    let number = delivery.source.trim_start_matches('+');
    Some(CarrierReceipt {
        names: names(&receipt, form),
        status,
        error: word.map(|word| with_number(word, receipt.error.as_deref())),
        user_reference: delivery.user_message_reference,
        // It comes from whom the message went to.
        number: if trusted { number } else { "" }.to_owned(),
        sender: delivery.destination.trim_start_matches('+').to_owned(),
        submitted_at: receipt.submitted_at.map(Timestamp::from_unix_ms),
    })
}

/// The parameter has the id as the answer had it, the text as receipts write it; but some carriers
/// write the parameter as the text.
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

/// The network's own number says more to those who know it.
fn with_number(word: &str, number: Option<&str>) -> String {
    match number {
        Some(number) if number.bytes().any(|b| b != b'0') => format!("{word}_{number}"),
        _ => word.to_owned(),
    }
}
