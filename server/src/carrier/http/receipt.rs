//! Receipts that an upstream posts to us.

use serde_json::{Map, Value};

use crate::config::carriers::ReceiptSettings;
use crate::json::as_text;

/// What a receipt says of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReceipt {
    /// The id that the submit's answer gave.
    pub message_id: String,
    pub state: ReceiptState,
    /// The upstream's reason, when it gives one; not for what was delivered.
    pub error: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiptState {
    Delivered,
    Failed,
    Expired,
    /// Still on the way, or a status that the settings don't name.
    Intermediate,
}

/// The parameters of a query or a form as what [`receipt`] reads; of one that stands twice, the
/// first.
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
