//! The tokens of sessions and of links in mails. Only their hashes are stored.

use sha2::{Digest as _, Sha256};

use crate::Service;

const TOKEN_BYTES: usize = 32;

pub(crate) const RESET_LIFETIME_MS: i64 = 60 * 60 * 1000;
/// How long a link that confirms an email is valid after it was sent.
pub(crate) const CONFIRMATION_LIFETIME_MS: i64 = 3 * 24 * 60 * 60 * 1000;

impl Service {
    pub(crate) fn new_token(&self) -> String {
        hex::encode(self.entropy().bytes::<TOKEN_BYTES>())
    }
}

/// Returns the hash that is stored in place of a token.
pub(crate) fn token_hash(token: &str) -> String {
    hex::encode(Sha256::digest(token.as_bytes()))
}
