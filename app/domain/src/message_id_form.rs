//! Carrier message IDs. Some carriers write an ID in one form in the answer and in another form in
//! the receipt.

use serde::{Deserialize, Serialize};

use crate::words::words;

/// A carrier may pad its IDs with zeros up to this length. No number that fits into 64 bits is
/// longer.
const PADDED_CHARS_MAX: usize = 20;

words! {
    /// How a carrier writes a message ID in its answer and in its receipt.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum MessageIdForm [
        /// What a receipt and its answer have in common, in words for the operator.
        pub explanation: &'static str,
    ] {
        /// As a text, the same in both.
        Text = "text", "the receipt's ID is the answer's ID, as it is written";
        /// As decimal numbers. Leading zeros don't matter.
        Decimal = "decimal", "the IDs are decimal and differ in leading zeros";
        /// As hexadecimal numbers. Case and leading zeros don't matter.
        Hex = "hex", "the IDs are hexadecimal and differ in case or leading zeros";
        /// Hexadecimal in the answer, decimal in the receipt.
        HexToDecimal = "hex-to-decimal",
            "the receipt's ID is decimal, and the answer's is hexadecimal";
        /// Decimal in the answer, hexadecimal in the receipt.
        DecimalToHex = "decimal-to-hex",
            "the receipt's ID is hexadecimal, and the answer's is decimal";
    }
}

impl MessageIdForm {
    /// Converts the ID in a submit's answer to the form that receipts are looked up by.
    pub fn of_answer(self, id: &str) -> String {
        match self {
            Self::Text => id.to_owned(),
            Self::Hex => hex(id),
            Self::Decimal => decimal(id),
            Self::HexToDecimal => converted(id, 16, |number| number.to_string()),
            Self::DecimalToHex => converted(id, 10, |number| format!("{number:x}")),
        }
    }

    /// Converts the ID in a receipt to the same form.
    pub fn of_receipt(self, id: &str) -> String {
        match self {
            Self::Text => id.to_owned(),
            Self::Hex | Self::DecimalToHex => hex(id),
            Self::Decimal | Self::HexToDecimal => decimal(id),
        }
    }

    /// Returns the IDs under which the message of a receipt may be stored. The carrier uses this
    /// form, but the settings had another form when the answer was stored.
    pub fn stored_for_receipt(self, id: &str) -> Vec<String> {
        let mut stored = Vec::new();
        for answer in self.possible_answers(id) {
            for form in Self::ALL {
                let of_answer = form.of_answer(&answer);
                if !of_answer.is_empty() && !stored.contains(&of_answer) {
                    stored.push(of_answer);
                }
            }
        }
        stored
    }

    /// Returns the IDs that the answer may have had, as the carrier wrote them.
    fn possible_answers(self, id: &str) -> Vec<String> {
        let number = match self {
            Self::Text => return vec![id.to_owned()],
            Self::Hex | Self::Decimal => self.of_receipt(id),
            Self::HexToDecimal => match decimal(id).parse::<u128>() {
                Ok(number) => format!("{number:x}"),
                Err(_) => return vec![id.to_owned()],
            },
            Self::DecimalToHex => match u128::from_str_radix(&hex(id), 16) {
                Ok(number) => number.to_string(),
                Err(_) => return vec![id.to_owned()],
            },
        };
        let cases = [number.clone(), number.to_ascii_uppercase()];
        let cases = if cases[0] == cases[1] { &cases[..1] } else { &cases[..] };
        let mut answers: Vec<String> = cases
            .iter()
            .flat_map(|number| {
                let widths = number.len()..=PADDED_CHARS_MAX.max(number.len());
                widths.map(move |width| format!("{number:0>width$}"))
            })
            .collect();
        // The ID as in the receipt, if it has mixed case or more zeros.
        if matches!(self, Self::Hex | Self::Decimal) && !answers.iter().any(|known| known == id) {
            answers.push(id.to_owned());
        }
        answers
    }

    /// Returns whether this form would store the answer `stored` under one of the IDs `looked_up`,
    /// if the settings changed to this form. `stored` is the ID under which the form `present` has
    /// stored the answer.
    pub fn finds_new_answer(self, present: Self, stored: &str, looked_up: &[String]) -> bool {
        let answers = present.answers_stored_as(stored).into_iter();
        answers
            .filter(|(answer, is_verbatim)| match self {
                Self::Text => *is_verbatim,
                Self::Hex => true,
                Self::HexToDecimal => u128::from_str_radix(answer.trim(), 16).is_ok(),
                Self::Decimal | Self::DecimalToHex => answer.trim().parse::<u128>().is_ok(),
            })
            .any(|(answer, _)| looked_up.contains(&self.of_answer(&answer)))
    }

    /// Returns the answers that are stored as this ID. The flag of each says whether its zeros and
    /// case are as the carrier wrote them.
    fn answers_stored_as(self, stored: &str) -> Vec<(String, bool)> {
        let verbatim = (stored.to_owned(), true);
        let converted = match self {
            Self::Text => return vec![verbatim],
            Self::Hex | Self::Decimal => return vec![(stored.to_owned(), false)],
            Self::HexToDecimal => stored.parse::<u128>().map(|number| format!("{number:x}")),
            Self::DecimalToHex => u128::from_str_radix(stored, 16).map(|number| number.to_string()),
        };
        let converted = converted.into_iter().filter(|answer| self.of_answer(answer) == stored);
        let converted = converted.map(|answer| (answer, false));
        // An ID that couldn't be converted is stored as it was written.
        let verbatim = Some(verbatim).filter(|(answer, _)| self.of_answer(answer) == stored);
        converted.chain(verbatim).collect()
    }
}

fn hex(id: &str) -> String {
    without_zeros(id).to_ascii_lowercase()
}

fn decimal(id: &str) -> String {
    without_zeros(id).to_owned()
}

fn without_zeros(id: &str) -> &str {
    let id = id.trim();
    match id.trim_start_matches('0') {
        "" if !id.is_empty() => "0",
        rest => rest,
    }
}

/// Converts a number. Returns an ID that isn't such a number unchanged.
fn converted(id: &str, radix: u32, write: impl Fn(u128) -> String) -> String {
    u128::from_str_radix(id.trim(), radix).map_or_else(|_| id.to_owned(), write)
}

#[cfg(test)]
mod tests;
