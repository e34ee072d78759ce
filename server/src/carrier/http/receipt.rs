//! Receipts that an upstream posts to us.

use serde_json::map::Entry;
use serde_json::{Map, Value};

use crate::config::carriers::ReceiptSettings;
use crate::json::as_text;

/// The status of a message according to a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReceipt {
    /// The ID from the answer to the submit.
    pub message_id: String,
    pub state: ReceiptState,
    /// The upstream's reason, if it gave one. `None` for a delivered message.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptState {
    Delivered,
    Failed,
    Expired,
    /// The message is on the way, or the settings don't list its status.
    Intermediate,
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
    let state = if settings.delivered.contains(&status) {
        ReceiptState::Delivered
    } else if settings.failed.contains(&status) {
        ReceiptState::Failed
    } else if settings.expired.contains(&status) {
        ReceiptState::Expired
    } else {
        ReceiptState::Intermediate
    };
    let error = settings.error.as_deref();
    let error = error.filter(|_| state != ReceiptState::Delivered);
    Ok(HttpReceipt { message_id, state, error: error.and_then(|name| field(fields, name)) })
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
