//! The customer's details on receipts and statements.

use serde::{Deserialize, Serialize};

/// The maximum number of characters of a name, an address and a tax number.
pub const NAME_CHARS_MAX: usize = 200;
pub const ADDRESS_CHARS_MAX: usize = 500;
pub const TAX_NUMBER_CHARS_MAX: usize = 50;

/// The customer on receipts and statements. Each field may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct BillingDetails {
    pub name: String,
    /// In lines, separated by LF.
    pub address: String,
    pub tax_number: String,
}

/// A text is too long, or has control characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidBillingDetails;

impl BillingDetails {
    /// Parses the details as a customer typed them.
    ///
    /// # Errors
    /// If a text is too long, or has control characters other than the address's line ends.
    pub fn parse(
        name: &str,
        address: &str,
        tax_number: &str,
    ) -> Result<Self, InvalidBillingDetails> {
        let read = |text: &str, chars_max: usize, in_lines: bool| {
            let text = text.trim().replace("\r\n", "\n");
            let is_plain = text.chars().all(|c| !c.is_control() || (in_lines && c == '\n'));
            let fits = text.chars().count() <= chars_max;
            (is_plain && fits).then_some(text).ok_or(InvalidBillingDetails)
        };
        Ok(Self {
            name: read(name, NAME_CHARS_MAX, false)?,
            address: read(address, ADDRESS_CHARS_MAX, true)?,
            tax_number: read(tax_number, TAX_NUMBER_CHARS_MAX, false)?,
        })
    }

    /// Returns the lines that a receipt shows.
    pub fn lines(&self) -> Vec<String> {
        let tax = (!self.tax_number.is_empty()).then(|| format!("Tax number: {}", self.tax_number));
        let name = (!self.name.is_empty()).then(|| self.name.clone());
        name.into_iter().chain(self.address.lines().map(str::to_owned)).chain(tax).collect()
    }
}
