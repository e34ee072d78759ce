//! A one-time code.

use std::fmt;
use std::hint::black_box;
use std::ops::RangeInclusive;

use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

use crate::printable::{is_control, is_invisible};

/// The numbers of digits that a code can have.
pub const CODE_DIGITS: RangeInclusive<usize> = 4..=10;
/// The number of digits if the caller chooses none.
pub const DEFAULT_DIGITS: usize = 6;
/// The length of the server's secret.
pub const SECRET_BYTES: usize = 32;
/// The length of a key for HMAC-SHA256: the block size of SHA-256.
const HMAC_KEY_BYTES: usize = 64;
/// Keeps codes apart from everything else that is derived from the same secret.
const PURPOSE: &[u8] = b"heliograph one-time code";
/// Keeps digests of typed codes apart from codes.
const TYPED: &[u8] = b"heliograph typed code";
/// The digits of codes with a test key. Nobody can read a real code, because nothing reaches a
/// handset.
const TEST_DIGITS: &str = "9876543210";
/// Bytes of at least this value are skipped. They would make some digits more likely than others,
/// because 256 isn't a multiple of 10.
const BYTES_END: u8 = 250;

/// A one-time code. It is derived whenever it is needed, and never stored.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

impl Code {
    /// Derives the code of a verification from the server's secret and the verification's random
    /// nonce. `digits` is one of [`CODE_DIGITS`].
    pub fn derive(secret: &[u8; SECRET_BYTES], nonce: &[u8], digits: usize) -> Self {
        let blocks = (0_u32..).map(|block| mac(secret, &[PURPOSE, &block.to_be_bytes(), nonce]));
        let bytes = blocks.flatten().filter(|byte| *byte < BYTES_END);
        Self(bytes.take(digits).map(|byte| char::from(b'0' + byte % 10)).collect())
    }

    /// Returns the code of every verification with a test key.
    pub fn of_test(digits: usize) -> Self {
        Self(TEST_DIGITS.chars().take(digits).collect())
    }

    /// Returns the digits. Only the text of the message may contain them.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether this is the code that was typed. The time doesn't depend on how many digits match.
    pub fn is(&self, typed: &TypedCode) -> bool {
        let pairs = self.0.bytes().zip(typed.0.bytes());
        let difference = pairs.fold(0, |sum, (one, other)| sum | (one ^ other));
        self.0.len() == typed.0.len() && black_box(difference) == 0
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(hidden)")
    }
}

/// Returns 32 bytes that nobody can predict without the secret.
pub(crate) fn mac(secret: &[u8; SECRET_BYTES], parts: &[&[u8]]) -> [u8; 32] {
    // HMAC fills a shorter key up with zeros (RFC 2104 §2).
    let mut key = [0; HMAC_KEY_BYTES];
    key[..SECRET_BYTES].copy_from_slice(secret);
    let mut mac = Hmac::<Sha256>::new(&key.into());
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// A code as a person typed it.
#[derive(Clone, PartialEq, Eq)]
pub struct TypedCode(String);

impl TypedCode {
    /// Reads a code as people type or paste it. Spaces, dashes and invisible characters are
    /// ignored, and full-width and Arabic-Indic digits are read as 0 to 9. Returns `None` if no
    /// code can be meant.
    pub fn parse(text: &str) -> Option<Self> {
        let kept = text.chars().filter(|c| !is_ignored(*c));
        let digits: String = kept.map(digit).collect::<Option<_>>()?;
        CODE_DIGITS.contains(&digits.len()).then_some(Self(digits))
    }

    pub fn digits(&self) -> &str {
        &self.0
    }

    /// Returns a digest that is equal only for equal attempts. Without the secret, nobody can find
    /// the code by trying all digits.
    pub fn digest(&self, secret: &[u8; SECRET_BYTES]) -> [u8; 32] {
        mac(secret, &[TYPED, self.0.as_bytes()])
    }
}

impl fmt::Debug for TypedCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TypedCode(hidden)")
    }
}

fn is_ignored(c: char) -> bool {
    c.is_whitespace()
        || is_control(c)
        || is_invisible(c)
        || matches!(c, '-' | '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{ff0d}')
}

/// Returns the ASCII digit of a digit that phones' keyboards write.
fn digit(c: char) -> Option<char> {
    let zero = match c {
        '0'..='9' => '0',
        '\u{660}'..='\u{669}' => '\u{660}',
        '\u{6f0}'..='\u{6f9}' => '\u{6f0}',
        '\u{ff10}'..='\u{ff19}' => '\u{ff10}',
        _ => return None,
    };
    char::from_digit(u32::from(c) - u32::from(zero), 10)
}
