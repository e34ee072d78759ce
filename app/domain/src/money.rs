//! Amounts of money in the installation's only currency.

use std::fmt;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// The maximum number of decimals in an amount.
pub const MONEY_DECIMALS: u32 = 6;
const MICROS_PER_UNIT: i64 = 1_000_000;

/// An amount in whole micro-units: 1,000,000 make one unit of the currency. Storage and our own
/// programs use this integer. `Display` writes a plain decimal without exponent or trailing zeros.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(i64);

/// The text isn't a valid amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("An amount is a decimal number like 12.50, with at most {MONEY_DECIMALS} decimals.")]
pub struct InvalidMoney;

impl Money {
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Returns the amount of `units` whole units, or `None` on overflow.
    pub const fn from_units(units: i64) -> Option<Self> {
        match units.checked_mul(MICROS_PER_UNIT) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Parses a plain decimal: digits and at most one point, without sign or exponent.
    ///
    /// # Errors
    /// Returns an error for any other text, for more than 6 decimals, and on overflow.
    pub fn parse(text: &str) -> Result<Self, InvalidMoney> {
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.')
            && text.starts_with(|c: char| c.is_ascii_digit())
            && text.ends_with(|c: char| c.is_ascii_digit());
        if !plain {
            return Err(InvalidMoney);
        }
        let amount = Decimal::from_str_exact(text).map_err(|_| InvalidMoney)?;
        if amount.scale() > MONEY_DECIMALS {
            return Err(InvalidMoney);
        }
        let micros = amount.checked_mul(Decimal::from(MICROS_PER_UNIT)).ok_or(InvalidMoney)?;
        i64::try_from(micros).map(Self).map_err(|_| InvalidMoney)
    }

    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    pub const fn checked_sub(self, other: Self) -> Option<Self> {
        match self.0.checked_sub(other.0) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    /// Returns this amount times `count`, or `None` on overflow.
    pub fn checked_times(self, count: usize) -> Option<Self> {
        self.0.checked_mul(i64::try_from(count).ok()?).map(Self)
    }
}

impl Money {
    /// Formats the amount for people: with commas between thousands and at least two decimals.
    pub fn shown(self) -> String {
        let plain = self.to_string();
        let (sign, digits) = match plain.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", plain.as_str()),
        };
        let (units, decimals) = digits.split_once('.').unwrap_or((digits, ""));
        format!("{sign}{}.{decimals:0<2}", grouped(units))
    }
}

/// Adds commas between thousands.
fn grouped(digits: &str) -> String {
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

impl fmt::Display for Money {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Decimal::new(self.0, MONEY_DECIMALS).normalize())
    }
}
