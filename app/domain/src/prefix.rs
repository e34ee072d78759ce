//! Prefixes of international numbers.

use std::borrow::Borrow;
use std::fmt;

use crate::number::DIGITS_MAX;
use crate::words::serde_as_text;

/// The leading digits of international numbers: 1 to 15 ASCII digits, without `+`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix(String);

/// The text isn't a valid prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("A prefix is 1 to {DIGITS_MAX} digits at the start of a number, like 27 or +2782.")]
pub struct InvalidPrefix;

impl Prefix {
    /// Parses a prefix. Drops a leading `+` and white space around the text.
    ///
    /// # Errors
    /// Returns an error unless the rest is 1 to 15 ASCII digits.
    pub fn parse(text: &str) -> Result<Self, InvalidPrefix> {
        let text = text.trim();
        let digits = text.strip_prefix('+').unwrap_or(text);
        let is_prefix =
            digits.bytes().all(|b| b.is_ascii_digit()) && (1..=DIGITS_MAX).contains(&digits.len());
        if is_prefix { Ok(Self(digits.to_owned())) } else { Err(InvalidPrefix) }
    }

    pub fn digits(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Prefix {
    fn borrow(&self) -> &str {
        &self.0
    }
}

serde_as_text!(Prefix, Self::parse);

impl From<Prefix> for String {
    fn from(prefix: Prefix) -> Self {
        prefix.0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
