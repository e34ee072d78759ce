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

words! {
    /// Why a number is probably not the one that was meant. In the order in which answers name them.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum NumberWarning {
        /// The home country's code before 8 digits: without the code it costs less.
        LooksLocal = "looks_local",
        /// No country code begins with 0.
        LeadingZero = "leading_zero",
        /// 7 or 9 digits, where a local number has 8.
        NearLocal = "near_local",
    }
}

/// How many numbers have each warning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarningCounts([u64; NumberWarning::ALL.len()]);

impl WarningCounts {
    /// Counts the warnings about one more number.
    pub fn add(&mut self, number: &Number, country_code: &str) {
        for warning in number.warnings(country_code) {
            self.0[warning as usize] += 1;
        }
    }

    /// The warnings that some number has, and how many have it.
    pub fn present(self) -> impl Iterator<Item = (NumberWarning, u64)> {
        let counted = NumberWarning::ALL.into_iter().zip(self.0);
        counted.filter(|(_, count)| *count > 0)
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
    /// Reads a number. A leading `+` marks an international number and is dropped. Exactly 8 digits
    /// without it are a local number; every other number is international.
    ///
    /// # Errors
    /// When what is left isn't 4 to 15 ASCII digits.
    pub fn parse(text: &str) -> Result<Self, InvalidNumber> {
        match text.strip_prefix('+') {
            Some(digits) => Self::of_digits(digits, true),
            None => Self::of_digits(text, false),
        }
    }

    /// Reads a number out of a query or a URL-encoded form, where a `+` that wasn't escaped decodes
    /// to a space: a leading space is such a `+`.
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
    pub fn masked(&self) -> String {
        let hidden = self.digits.len().saturating_sub(3);
        format!("{}{}", "•".repeat(hidden), &self.digits[hidden..])
    }

    /// A number as it was stored.
    pub fn from_stored(digits: String, kind: Kind) -> Self {
        Self { digits, kind }
    }

    /// The digits, without `+`.
    pub fn digits(&self) -> &str {
        &self.digits
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The local number that an international one was probably meant to be, which costs less: its
    /// digits are the country code and 8 more.
    pub fn local_form(&self, country_code: &str) -> Option<Self> {
        let digits = self.digits.strip_prefix(country_code)?;
        let is_meant = self.kind == Kind::International && digits.len() == LOCAL_DIGITS;
        is_meant.then(|| Self::from_stored(digits.to_owned(), Kind::Local))
    }

    /// Why an international number is probably a mistake. A local number has no warning.
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

    /// The number as a carrier gets it: with country code, without `+`.
    pub fn for_carrier(&self, country_code: &str) -> String {
        match self.kind {
            Kind::Local => format!("{country_code}{}", self.digits),
            Kind::International => self.digits.clone(),
        }
    }

    /// The rule by which the number is local or international, as a stable word.
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
