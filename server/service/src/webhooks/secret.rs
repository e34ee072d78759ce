//! The secrets that sign webhooks, as Standard Webhooks describes
//! (github.com/standard-webhooks/standard-webhooks, spec/standard-webhooks.md).

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// The length of a secret in bytes. Standard Webhooks recommends at least 24.
pub const WEBHOOK_SECRET_BYTES: usize = 24;
/// The block size of SHA-256 in bytes.
const HMAC_BLOCK_BYTES: usize = 64;
const PREFIX: &str = "whsec_";

/// A secret that the server and one endpoint share. It has no `Display` and a `Debug` without its
/// value, so that no log can contain it.
#[derive(Clone)]
pub struct WebhookSecret([u8; WEBHOOK_SECRET_BYTES]);

/// The text isn't `whsec_` and the base64 of 24 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("This isn't a webhook secret.")]
pub struct BadWebhookSecret;

impl WebhookSecret {
    /// Creates a secret of bytes from a random source that is fit for secrets.
    pub fn new(bytes: [u8; WEBHOOK_SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// Returns the raw bytes, for encrypting and storing them.
    pub fn as_bytes(&self) -> &[u8; WEBHOOK_SECRET_BYTES] {
        &self.0
    }

    /// Returns the text that the customer gets once: `whsec_` and the bytes in base64.
    pub fn expose(&self) -> String {
        format!("{PREFIX}{}", STANDARD.encode(self.0))
    }

    /// Returns the signature for the header `webhook-signature`. The timestamp is in Unix seconds.
    pub fn sign(&self, event_id: &str, timestamp: i64, body: &[u8]) -> String {
        // HMAC itself pads a short key with zeros to a block. A whole block as the key can't fail.
        let mut key = [0; HMAC_BLOCK_BYTES];
        key[..WEBHOOK_SECRET_BYTES].copy_from_slice(&self.0);
        let mut mac = Hmac::<Sha256>::new(&key.into());
        mac.update(format!("{event_id}.{timestamp}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

impl FromStr for WebhookSecret {
    type Err = BadWebhookSecret;

    fn from_str(text: &str) -> Result<Self, BadWebhookSecret> {
        let encoded = text.strip_prefix(PREFIX).ok_or(BadWebhookSecret)?;
        let bytes = STANDARD.decode(encoded).map_err(|_| BadWebhookSecret)?;
        bytes.try_into().map(Self).map_err(|_| BadWebhookSecret)
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(hidden)")
    }
}

#[cfg(test)]
mod tests;
