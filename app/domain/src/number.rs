//! Destination numbers, local and international.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;

pub const LOCAL_DIGITS: usize = 8;
/// The minimum number of digits in any number.
pub const DIGITS_MIN: usize = 4;
/// The maximum number of digits in any number (ITU-T E.164 §6.2.1).
pub const DIGITS_MAX: usize = 15;

words! {
    /// The kind of a number, which determines its base price.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Kind {
        Local = "local",
        International = "international",
    }
}

words! {
    /// A sign that the sender probably meant a different number. Responses list warnings in this
    /// order.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum NumberWarning {
        /// The number is the home country's code followed by 8 digits. It would cost less without
        /// the code.
        LooksLocal = "looks_local",
        /// The number starts with 0, but no country code does.
        LeadingZero = "leading_zero",
        /// The number has 7 or 9 digits. A local number has 8.
        NearLocal = "near_local",
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningCounts([u64; NumberWarning::ALL.len()]);

impl WarningCounts {
    /// Counts the warnings of one more number.
    pub fn add(&mut self, number: &Number, country_code: &str) {
        for warning in number.warnings(country_code) {
            self.0[warning as usize] += 1;
        }
    }

    /// Returns each warning that at least one number has, with its count.
    pub fn present(self) -> impl Iterator<Item = (NumberWarning, u64)> {
        let counted = NumberWarning::ALL.into_iter().zip(self.0);
        counted.filter(|(_, count)| *count > 0)
    }
}

/// A destination number: 4 to 15 ASCII digits, local or international.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Number {
    digits: String,
    kind: Kind,
}

/// The text isn't a valid number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("number must be {DIGITS_MIN} to {DIGITS_MAX} digits, with at most a leading +")]
pub struct InvalidNumber;

impl Number {
    /// Parses a number. A leading `+` marks an international number and is dropped. Without it,
    /// exactly 8 digits are a local number. Every other number is international.
    ///
    /// # Errors
    /// Returns an error unless the rest is 4 to 15 ASCII digits.
    pub fn parse(text: &str) -> Result<Self, InvalidNumber> {
        match text.strip_prefix('+') {
            Some(digits) => Self::of_digits(digits, true),
            None => Self::of_digits(text, false),
        }
    }

    /// Parses a number from a query or a URL-encoded form. An unescaped `+` decodes to a space
    /// there, so a leading space is read as `+`.
    pub fn parse_url_decoded(text: &str) -> Result<Self, InvalidNumber> {
        match text.strip_prefix(' ') {
            Some(digits) => Self::of_digits(digits, true),
            None => Self::parse(text),
        }
    }

    fn of_digits(digits: &str, plus: bool) -> Result<Self, InvalidNumber> {
        if !digits.bytes().all(|b| b.is_ascii_digit())
            || !(DIGITS_MIN..=DIGITS_MAX).contains(&digits.len())
        {
            return Err(InvalidNumber);
        }
        let kind =
            if !plus && digits.len() == LOCAL_DIGITS { Kind::Local } else { Kind::International };
        Ok(Self { digits: digits.to_owned(), kind })
    }

    /// Returns a local number of 8 digits that is known to be one.
    pub(crate) const fn local(digits: String) -> Self {
        Self { digits, kind: Kind::Local }
    }

    /// Parses a number as people type it. Ignores white space and hyphens.
    ///
    /// # Errors
    /// Returns an error if [`Self::parse`] refuses the remaining text.
    pub fn parse_typed(text: &str) -> Result<Self, InvalidNumber> {
        let is_left_out = |c: char| c.is_whitespace() || c == '-';
        let text: String = text.chars().filter(|c| !is_left_out(*c)).collect();
        Self::parse(&text)
    }

    /// Returns the number with all but its last three digits masked: `•••••987`.
    pub fn masked(&self) -> String {
        let hidden = self.digits.len().saturating_sub(3);
        format!("{}{}", "•".repeat(hidden), &self.digits[hidden..])
    }

    /// Creates a number from stored digits, without validation.
    pub fn from_stored(digits: String, kind: Kind) -> Self {
        Self { digits, kind }
    }

    /// Returns the digits, without `+`.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Returns the local number that the sender probably meant, if this is an international number
    /// that consists of the country code and 8 digits. The local number costs less.
    pub fn local_form(&self, country_code: &str) -> Option<Self> {
        let digits = self.digits.strip_prefix(country_code)?;
        let is_meant = self.kind == Kind::International && digits.len() == LOCAL_DIGITS;
        is_meant.then(|| Self::from_stored(digits.to_owned(), Kind::Local))
    }

    /// Returns the number as it is, and in its other form if it is one of the home country.
    pub fn forms(&self, country_code: &str) -> Vec<Self> {
        let other = match self.kind {
            Kind::Local => {
                Some(Self::from_stored(self.for_carrier(country_code), Kind::International))
            }
            Kind::International => self.local_form(country_code),
        };
        [self.clone()].into_iter().chain(other).collect()
    }

    /// Returns the reasons why an international number is probably a mistake. Local numbers have
    /// none.
    pub fn warnings(&self, country_code: &str) -> impl Iterator<Item = NumberWarning> {
        let is_international = self.kind == Kind::International;
        let near = [LOCAL_DIGITS - 1, LOCAL_DIGITS + 1];
        let found = [
            self.local_form(country_code).is_some(),
            is_international && self.digits.starts_with('0'),
            is_international && near.contains(&self.digits.len()),
        ];
        let all = NumberWarning::ALL.into_iter().zip(found);
        all.filter_map(|(warning, applies)| applies.then_some(warning))
    }

    /// Returns the number as carriers get it: with country code, without `+`.
    pub fn for_carrier(&self, country_code: &str) -> String {
        match self.kind {
            Kind::Local => format!("{country_code}{}", self.digits),
            Kind::International => self.digits.clone(),
        }
    }

    /// Returns a stable code for the rule that made the number local or international.
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
