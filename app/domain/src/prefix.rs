//! Prefixes of international numbers.

use std::borrow::Borrow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::number::DIGITS_MAX;

/// The leading digits of international numbers: 1 to 15 ASCII digits, without `+`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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

impl TryFrom<String> for Prefix {
    type Error = InvalidPrefix;

    fn try_from(text: String) -> Result<Self, InvalidPrefix> {
        Self::parse(&text)
    }
}

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
