//! Encrypts data that is shown only once: new keys in a session, or a form in a cookie.
//!
//! The database has only fingerprints of keys. Decrypting the data of a session takes the session's
//! token, and the database has only a fingerprint of that token too. Forms are encrypted so that
//! nobody can forge one, and so that typed text can't be read on a disk.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead, KeyInit, Payload};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use hkdf::Hkdf;
use sha2::Sha256;

pub const NONCE_BYTES: usize = 12;
const KEY_BYTES: usize = 32;
/// Separates the key derived here from keys for other uses of the secret.
const PURPOSE: &[u8] = b"heliograph one-time display";

/// Encrypts a text. Decrypting it takes the same secret and the same `about`. The nonce must be
/// random.
pub fn seal(secret: &str, about: &str, text: &[u8], nonce: [u8; NONCE_BYTES]) -> Option<String> {
    let payload = Payload { msg: text, aad: about.as_bytes() };
    let sealed = cipher(secret)?.encrypt(&Nonce::from(nonce), payload).ok()?;
    Some(BASE64.encode([nonce.as_slice(), &sealed].concat()))
}

/// Decrypts a text from [`seal`]. Returns `None` if the secret, `about` or the text is wrong.
pub fn open(secret: &str, about: &str, sealed: &str) -> Option<Vec<u8>> {
    let bytes = BASE64.decode(sealed).ok()?;
    let (nonce, sealed) = bytes.split_first_chunk::<NONCE_BYTES>()?;
    let payload = Payload { msg: sealed, aad: about.as_bytes() };
    cipher(secret)?.decrypt(&Nonce::from(*nonce), payload).ok()
}

fn cipher(secret: &str) -> Option<ChaCha20Poly1305> {
    let mut key = [0; KEY_BYTES];
    Hkdf::<Sha256>::new(None, secret.as_bytes()).expand(PURPOSE, &mut key).ok()?;
    Some(ChaCha20Poly1305::new(&Key::from(key)))
}

#[cfg(test)]
mod tests {
    use super::{open, seal};

    #[test]
    fn only_the_same_token_and_subject_open_it() {
        let sealed = seal("token", "000123", b"key", [7; 12]).unwrap();
        assert_eq!(sealed.len(), (12_usize + 3 + 16) * 4 / 3 + 1);
        assert_eq!(open("token", "000123", &sealed).as_deref(), Some(b"key".as_slice()));
        assert_eq!(open("other", "000123", &sealed), None);
        assert_eq!(open("token", "000124", &sealed), None);
        let mut bent = sealed.into_bytes();
        let last = bent.len() - 1;
        bent[last] = if bent[last] == b'A' { b'Q' } else { b'A' };
        assert_eq!(open("token", "000123", std::str::from_utf8(&bent).unwrap()), None);
        assert_eq!(open("token", "000123", ""), None);
    }
}
