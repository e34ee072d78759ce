//! The format of an API key. A key consists of:
//!
//! 1. 6 digits: the application's reference.
//! 2. `hk_` (live) or `ht_` (test).
//! 3. 30 random base62 characters.
//! 4. A checksum: the CRC-32/ISO-HDLC of all characters before it, as 6 base62 characters,
//!    big-endian, padded with `0`.
//!
//! The checksum lets the server refuse a mistyped or guessed key without a database query. It also
//! lets secret scanners recognise a leaked key.

use std::fmt;

use crc::{CRC_32_ISO_HDLC, Crc};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::ids::{REFERENCE_DIGITS, Reference};
use crate::words::words;

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_CHARS: usize = 30;
const CRC_CHARS: usize = 6;
const PREFIX_CHARS: usize = 3;
/// The number of characters in every API key. All of them are ASCII.
pub const API_KEY_CHARS: usize = REFERENCE_DIGITS + PREFIX_CHARS + RANDOM_CHARS + CRC_CHARS;
/// The number of characters at the end of a key that its owner can see later.
const LAST_FOUR_CHARS: usize = 4;
/// The number of random bytes that a key is made from. With 256 bits for 30 base62 characters (179
/// bits), the modulo bias stays below 2⁻⁷⁷.
pub const ENTROPY_BYTES: usize = 32;

words! {
    /// Which of an application's two keys this is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum KeyKind [
        prefix: &'static str,
    ] {
        /// Sends real messages, which are charged.
        Live = "live", "hk_";
        /// Sends to nobody and charges the test balance.
        Test = "test", "ht_";
    }
}

/// A well-formed API key. `Debug` shows only its reference and kind.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: String,
    reference: Reference,
    kind: KeyKind,
}

/// The text isn't a well-formed API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not formed like an API key")]
pub struct MalformedKey;

impl ApiKey {
    /// Creates an application's key from random bytes.
    pub fn from_entropy(reference: Reference, kind: KeyKind, entropy: [u8; ENTROPY_BYTES]) -> Self {
        let mut text = String::with_capacity(API_KEY_CHARS);
        text.push_str(reference.as_str());
        text.push_str(kind.prefix());
        let mut number = entropy;
        for _ in 0..RANDOM_CHARS {
            text.push(char::from(BASE62[divide_by_62(&mut number)]));
        }
        text.push_str(&checksum(&text));
        Self { text, reference, kind }
    }

    /// Parses a key.
    ///
    /// # Errors
    /// Returns an error if the length, alphabet, prefix or checksum is wrong.
    pub fn parse(text: &str) -> Result<Self, MalformedKey> {
        if text.len() != API_KEY_CHARS || !text.is_ascii() {
            return Err(MalformedKey);
        }
        let (body, crc) = text.split_at(API_KEY_CHARS - CRC_CHARS);
        let (reference, rest) = body.split_at(REFERENCE_DIGITS);
        let (prefix, random) = rest.split_at(PREFIX_CHARS);
        let reference = Reference::parse(reference).map_err(|_| MalformedKey)?;
        let kind = match prefix {
            "hk_" => KeyKind::Live,
            "ht_" => KeyKind::Test,
            _ => return Err(MalformedKey),
        };
        if !random.bytes().all(|b| b.is_ascii_alphanumeric()) || checksum(body) != crc {
            return Err(MalformedKey);
        }
        Ok(Self { text: text.to_owned(), reference, kind })
    }

    /// Returns the whole key, to be shown once.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// Returns the last four characters. They identify the key to its owner, but can't be used to
    /// send.
    pub fn last_four(&self) -> &str {
        // Keys are ASCII, so the slice starts at a character boundary.
        &self.text[API_KEY_CHARS - LAST_FOUR_CHARS..]
    }

    /// Returns the application's reference, the key's first 6 digits.
    pub fn reference(&self) -> Reference {
        self.reference
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Returns the SHA-256 of the key's ASCII text in lower-case hexadecimal. The database stores
    /// this hash instead of the key.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}{}…)", self.reference, self.kind.prefix())
    }
}

/// Divides a big-endian number by 62 in place and returns the remainder.
fn divide_by_62(number: &mut [u8; ENTROPY_BYTES]) -> usize {
    let mut remainder = 0_u16;
    for byte in number.iter_mut() {
        let value = (remainder << 8) | u16::from(*byte);
        // The remainder is below 62, so the quotient fits into a byte.
        *byte = (value / 62).to_be_bytes()[1];
        remainder = value % 62;
    }
    usize::from(remainder)
}

fn checksum(body: &str) -> String {
    const CRC32: Crc<u32> = Crc::<u32>::new(&CRC_32_ISO_HDLC);
    let mut value = CRC32.checksum(body.as_bytes());
    let mut chars = [b'0'; CRC_CHARS];
    for slot in chars.iter_mut().rev() {
        *slot = BASE62[(value % 62) as usize];
        value /= 62;
    }
    chars.iter().map(|&b| char::from(b)).collect()
}
