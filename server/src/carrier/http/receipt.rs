//! Receipts that a carrier posts to us.

use domain::DeliveryError;
use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::config::carriers::ReceiptSettings;
use crate::json::as_text;

/// The status of a message according to a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReceipt {
    /// The ID from the answer to the submit.
    pub message_id: String,
    /// The carrier's status.
    pub status: String,
    pub state: ReceiptState,
    /// For a message that failed or expired: our code, followed by the carrier's code if there is
    /// one. For an unknown state: the carrier's code. Otherwise `None`.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptState {
    Delivered,
    Failed,
    Expired,
    /// The message is on the way.
    Enroute,
    /// The settings don't list the status.
    Unknown,
}

/// Why a posted request isn't exactly one receipt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoReceipt {
    /// The message ID or the status is missing.
    Incomplete,
    /// There are several message IDs or statuses. Reading only one of them would lose the others.
    Several,
}

/// Collects the parameters of a query or a form for [`receipt`]. A name with different values gets
/// the list of them.
pub fn fields(pairs: impl IntoIterator<Item = (String, String)>) -> Value {
    let mut fields = Map::new();
    for (name, value) in pairs {
        let value = Value::String(value);
        match fields.entry(name) {
            Entry::Vacant(entry) => {
                entry.insert(value);
            }
            Entry::Occupied(mut entry) => match entry.get_mut() {
                Value::Array(values) => values.push(value),
                first if *first != value => *first = Value::Array(vec![first.take(), value]),
                _ => {}
            },
        }
    }
    Value::Object(fields)
}

/// Reads a receipt.
///
/// # Errors
/// Fails if there isn't exactly one receipt.
pub fn receipt(settings: &ReceiptSettings, fields: &Value) -> Result<HttpReceipt, NoReceipt> {
    let names = [&settings.message_id, &settings.status];
    if names.iter().any(|name| is_one_of_several(fields, name)) {
        return Err(NoReceipt::Several);
    }
    let message_id = field(fields, &settings.message_id).ok_or(NoReceipt::Incomplete)?;
    let status = field(fields, &settings.status).ok_or(NoReceipt::Incomplete)?;
    let is_in = |list: &[String]| list.contains(&status);
    let (state, word) = if is_in(&settings.delivered) {
        (ReceiptState::Delivered, None)
    } else if is_in(&settings.failed) {
        (ReceiptState::Failed, Some(DeliveryError::Undeliverable))
    } else if is_in(&settings.expired) {
        (ReceiptState::Expired, Some(DeliveryError::ValidityExpired))
    } else if is_in(&settings.enroute) {
        (ReceiptState::Enroute, None)
    } else {
        (ReceiptState::Unknown, None)
    };
    let code = settings.error.as_deref().and_then(|name| field(fields, name));
    let error = match word {
        Some(word) => {
            let known = code.iter().chain([&status]).find_map(|code| settings.errors.get(code));
            Some(known.unwrap_or(&word).with_number(code.as_deref()))
        }
        None => code.filter(|_| state == ReceiptState::Unknown),
    };
    Ok(HttpReceipt { message_id, status, state, error })
}

/// Returns a plain value as a text, or `None` if it is empty.
pub(super) fn field(fields: &Value, name: &str) -> Option<String> {
    as_text(find(fields, name)?).filter(|text| !text.is_empty())
}

/// Returns the value with a name, or at a JSON pointer.
pub(super) fn find<'a>(fields: &'a Value, name: &str) -> Option<&'a Value> {
    if name.starts_with('/') { fields.pointer(name) } else { fields.get(name) }
}

/// Returns whether the value, or anything on the path to it, is a list with more than one entry.
pub(super) fn is_one_of_several(fields: &Value, name: &str) -> bool {
    let is_list = |value: &Value| value.as_array().is_some_and(|list| list.len() > 1);
    let ends = name.match_indices('/').map(|(end, _)| &name[..end]);
    let passed = ends.filter_map(|pointer| fields.pointer(pointer));
    is_list(fields) || passed.chain(find(fields, name)).any(is_list)
}
