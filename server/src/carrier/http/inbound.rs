//! Messages from handsets that a carrier posts to us.

use serde_json::Value;
use service::{InboundContent, InboundDelivery};

use super::receipt::{field, find, is_one_of_several};
use crate::config::carriers::InboundSettings;
use crate::json::as_text;

/// Reads a message. Its text may be empty. Returns `None` if there isn't exactly one message.
pub(super) fn message(settings: &InboundSettings, fields: &Value) -> Option<InboundDelivery> {
    let names = [&settings.number, &settings.recipient, &settings.message];
    if names.into_iter().chain(&settings.message_id).any(|name| is_one_of_several(fields, name)) {
        return None;
    }
    let message_id = settings.message_id.as_ref().and_then(|name| field(fields, name));
    Some(InboundDelivery {
        number: number(&field(fields, &settings.number)?),
        recipient: number(&field(fields, &settings.recipient)?),
        content: InboundContent::Text {
            text: as_text(find(fields, &settings.message)?)?,
            message_id,
        },
    })
}

/// Returns the number with a leading `+` instead of a space. An unescaped `+` in a form decodes to
/// a space.
fn number(text: &str) -> String {
    text.strip_prefix(' ').map_or_else(|| text.to_owned(), |digits| format!("+{digits}"))
}
