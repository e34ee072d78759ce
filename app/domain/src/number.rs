//! Destination numbers: local or international.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;

/// Digits of a local number, exactly.
pub const LOCAL_DIGITS: usize = 8;
/// Fewest digits of any number.
pub const DIGITS_MIN: usize = 4;
/// Most digits of any number (ITU-T E.164 §6.2.1).
pub const DIGITS_MAX: usize = 15;

words! {
    /// Whether a number is local or international, which decides its price.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        Local = "local",
        International = "international",
    }
}

/// A destination: 4 to 15 ASCII digits, local or international.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number {
    digits: String,
    kind: Kind,
}

/// The text isn't a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("number must be {DIGITS_MIN} to {DIGITS_MAX} digits, with at most a leading +")]
pub struct InvalidNumber;

impl Number {
    /// Reads a number. A leading `+` (or the space that an unescaped `+` decodes to in a query)
    /// marks an international number and is dropped. Exactly 8 digits without it are a local
    /// number; every other number is international.
    ///
    /// # Errors
    /// When what is left isn't 4 to 15 ASCII digits.
    pub fn parse(text: &str) -> Result<Self, InvalidNumber> {
        let (digits, plus) = match text.strip_prefix(['+', ' ']) {
            Some(rest) => (rest, true),
            None => (text, false),
        };
        if !digits.bytes().all(|b| b.is_ascii_digit())
            || !(DIGITS_MIN..=DIGITS_MAX).contains(&digits.len())
        {
            return Err(InvalidNumber);
        }
        let kind = if !plus && digits.len() == LOCAL_DIGITS {
            Kind::Local
        } else {
            Kind::International
        };
        Ok(Self {
            digits: digits.to_owned(),
            kind,
        })
    }

    /// Reads a number as people type it: with spaces and hyphens wherever they like.
    ///
    /// # Errors
    /// As [`Self::parse`], of the text without them.
    pub fn parse_typed(text: &str) -> Result<Self, InvalidNumber> {
        let is_left_out = |c: char| c.is_whitespace() || c == '-';
        let text: String = text.chars().filter(|c| !is_left_out(*c)).collect();
        Self::parse(&text)
    }

    /// The number with its last three digits alone: `•••••987`.
    #[must_use]
    pub fn masked(&self) -> String {
        let hidden = self.digits.len().saturating_sub(3);
        format!("{}{}", "•".repeat(hidden), &self.digits[hidden..])
    }

    /// A number as it was stored.
    #[must_use]
    pub fn from_stored(digits: String, kind: Kind) -> Self {
        Self { digits, kind }
    }

    /// The digits, without `+`.
    #[must_use]
    pub fn digits(&self) -> &str {
        &self.digits
    }

    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether an international number reads as country code and local number: it was probably
    /// meant to be local, which costs less.
    #[must_use]
    pub fn looks_local(&self, country_code: &str) -> bool {
        self.kind == Kind::International
            && self
                .digits
                .strip_prefix(country_code)
                .is_some_and(|rest| rest.len() == LOCAL_DIGITS)
    }

    /// The number as a carrier gets it: with country code, without `+`.
    #[must_use]
    pub fn for_carrier(&self, country_code: &str) -> String {
        match self.kind {
            Kind::Local => format!("{country_code}{}", self.digits),
            Kind::International => self.digits.clone(),
        }
    }

    /// The rule by which the number is local or international, as a stable word.
    #[must_use]
    pub fn rule(&self) -> &'static str {
        match self.kind {
            Kind::Local => "local_8_digits",
            Kind::International if self.digits.len() == LOCAL_DIGITS => "international_plus_sign",
            Kind::International => "international_not_8_digits",
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Number({}, hidden)", self.kind.as_str())
    }
}
