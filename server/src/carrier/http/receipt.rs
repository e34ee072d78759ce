//! Receipts that an upstream posts to us.

use serde_json::{Map, Value};

use crate::config::carriers::ReceiptSettings;
use crate::json::as_text;

/// A message's status by a receipt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReceipt {
    /// The id in the submit's answer.
    pub message_id: String,
    pub state: ReceiptState,
    /// The upstream's reason, if there is one; not for a delivered message.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptState {
    Delivered,
    Failed,
    Expired,
    /// The message is on the way, or the settings don't name its status.
    Intermediate,
}

/// The parameters of a query or a form, for [`receipt`]. The first one counts where a name is
/// repeated.
pub fn fields(pairs: impl IntoIterator<Item = (String, String)>) -> Value {
    let mut fields = Map::new();
    for (name, value) in pairs {
        fields.entry(name).or_insert(Value::String(value));
    }
    Value::Object(fields)
}

/// Reads a receipt; `None` when it names no message or no status.
pub fn receipt(settings: &ReceiptSettings, fields: &Value) -> Option<HttpReceipt> {
    let message_id = field(fields, &settings.message_id)?;
    let status = field(fields, &settings.status)?;
    let state = if settings.delivered.contains(&status) {
        ReceiptState::Delivered
    } else if settings.failed.contains(&status) {
        ReceiptState::Failed
    } else if settings.expired.contains(&status) {
        ReceiptState::Expired
    } else {
        ReceiptState::Intermediate
    };
    let named = settings
        .error
        .as_deref()
        .filter(|_| state != ReceiptState::Delivered);
    Some(HttpReceipt {
        message_id,
        state,
        error: named.and_then(|name| field(fields, name)),
    })
}

/// A plain value that isn't empty, as a text.
fn field(fields: &Value, name: &str) -> Option<String> {
    let value = if name.starts_with('/') {
        fields.pointer(name)
    } else {
        fields.get(name)
    };
    as_text(value?).filter(|text| !text.is_empty())
}
