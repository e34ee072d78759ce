//! Money: whole micro-units of the one currency, 1,000,000 to one unit.

use std::fmt;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

/// Most decimals of an amount.
pub const MONEY_DECIMALS: u32 = 6;
const MICROS_PER_UNIT: i64 = 1_000_000;

/// An amount in micro-units. In storage and between our own programs it is this integer; shown, it
/// is a plain decimal without exponent or trailing zeros.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Money(i64);

/// The text isn't an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("An amount is a decimal number like 12.50, with at most {MONEY_DECIMALS} decimals.")]
pub struct InvalidMoney;

impl Money {
    pub const ZERO: Self = Self(0);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// The amount of so many whole units; `None` when that is more than can be held.
    pub const fn from_units(units: i64) -> Option<Self> {
        match units.checked_mul(MICROS_PER_UNIT) {
            Some(micros) => Some(Self(micros)),
            None => None,
        }
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    /// Reads a plain decimal of digits and at most one point; no sign, no exponent.
    ///
    /// # Errors
    /// When it is anything else, has more than 6 decimals, or is more than can be held.
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
        let micros = amount
            .checked_mul(Decimal::from(MICROS_PER_UNIT))
            .ok_or(InvalidMoney)?;
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

    /// This amount times `count`; `None` when that is more than can be held.
    pub fn checked_times(self, count: usize) -> Option<Self> {
        self.0.checked_mul(i64::try_from(count).ok()?).map(Self)
    }
}

impl Money {
    /// The amount for people: with commas between thousands, and with two decimals at least.
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

/// Digits with commas between thousands.
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
