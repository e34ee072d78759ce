//! The headers of Standard Webhooks.

use axum::http::{HeaderMap, HeaderName, HeaderValue};

use super::delivery::Delivery;

const ID: HeaderName = HeaderName::from_static("webhook-id");
const TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Adds the ID, the timestamp, and one signature for each secret. Without a secret nothing may be
/// sent, because the endpoint couldn't tell who sent it.
pub fn add_headers(headers: &mut HeaderMap, delivery: &Delivery<'_>) -> Result<(), String> {
    let Delivery { event_id, timestamp, body, secrets, .. } = delivery;
    if secrets.is_empty() {
        return Err("The webhook has no secret. Create one by rotating it.".to_owned());
    }
    let signatures: Vec<_> =
        secrets.iter().map(|secret| secret.sign(event_id, *timestamp, body)).collect();
    for (name, text) in [
        (ID, (*event_id).to_owned()),
        (TIMESTAMP, timestamp.to_string()),
        (SIGNATURE, signatures.join(" ")),
    ] {
        let value = HeaderValue::from_str(&text)
            .map_err(|_| format!("The header {name} can't have this value."))?;
        headers.insert(name, value);
    }
    Ok(())
}
