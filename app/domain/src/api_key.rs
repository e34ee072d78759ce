//! The format of an API key.
//!
//! 6 digits (the application's reference), `hk_` (live) or `ht_` (test), 30 random base62
//! characters and the CRC-32/ISO-HDLC of the characters before as 6 base62 characters, big-endian,
//! padded with `0`. By the checksum a mistyped or guessed key is refused without asking the
//! database, and secret scanners recognise a leaked key.

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
/// Length of every API key in characters, all of them ASCII.
pub const API_KEY_CHARS: usize = REFERENCE_DIGITS + PREFIX_CHARS + RANDOM_CHARS + CRC_CHARS;
/// How many characters of a key its owner is shown later.
const ENDING_CHARS: usize = 4;
/// How many random bytes a key is made from: 256 bits for 30 base62 characters (179 bits), so that
/// the bias of taking remainders stays below 2⁻⁷⁷.
pub const ENTROPY_BYTES: usize = 32;

words! {
    /// Which of an application's two keys.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum KeyKind {
        /// Sends for real and is charged.
        Live = "live",
        /// Sends to nobody, and is charged to the test balance.
        Test = "test",
    }
}

impl KeyKind {
    const fn prefix(self) -> &'static str {
        match self {
            Self::Live => "hk_",
            Self::Test => "ht_",
        }
    }
}

/// A well-formed API key. `Debug` shows its reference and kind alone.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    text: String,
    reference: Reference,
    kind: KeyKind,
}

/// The text isn't formed like an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not formed like an API key")]
pub struct MalformedKey;

impl ApiKey {
    /// Makes the key of an application from random bytes.
    pub fn from_entropy(reference: Reference, kind: KeyKind, entropy: [u8; ENTROPY_BYTES]) -> Self {
        let mut text = String::with_capacity(API_KEY_CHARS);
        text.push_str(reference.as_str());
        text.push_str(kind.prefix());
        let mut number = entropy;
        for _ in 0..RANDOM_CHARS {
            text.push(char::from(BASE62[divide_by_62(&mut number)]));
        }
        text.push_str(&checksum(&text));
        Self {
            text,
            reference,
            kind,
        }
    }

    /// Reads a key.
    ///
    /// # Errors
    /// When length, alphabet, prefix or checksum are wrong.
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
        Ok(Self {
            text: text.to_owned(),
            reference,
            kind,
        })
    }

    /// The whole key, to be shown once.
    pub fn expose(&self) -> &str {
        &self.text
    }

    /// The application's reference, the key's first 6 digits.
    /// The last characters: they tell one key from another, and nobody sends with them.
    pub fn last_four(&self) -> &str {
        // A key has ASCII characters alone.
        &self.text[API_KEY_CHARS - ENDING_CHARS..]
    }

    pub fn reference(&self) -> Reference {
        self.reference
    }

    /// Live or test.
    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// SHA-256 of the key's ASCII in lower-case hexadecimal: all that is stored of a key.
    pub fn hash(&self) -> String {
        let digest = Sha256::digest(self.text.as_bytes());
        let digits = digest.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        digits
            .filter_map(|digit| char::from_digit(digit.into(), 16))
            .collect()
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ApiKey({}{}…)", self.reference, self.kind.prefix())
    }
}

/// Divides a big-endian number in place and returns the remainder.
fn divide_by_62(number: &mut [u8; ENTROPY_BYTES]) -> usize {
    let mut remainder = 0_u16;
    for byte in number.iter_mut() {
        let value = (remainder << 8) | u16::from(*byte);
        // A remainder below 62 keeps the quotient below 256.
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
