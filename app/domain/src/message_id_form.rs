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
    pub enum MessageIdForm {
        /// As a text, the same in both.
        Text = "text",
        /// As decimal numbers. Leading zeros don't matter.
        Decimal = "decimal",
        /// As hexadecimal numbers. Case and leading zeros don't matter.
        Hex = "hex",
        /// Hexadecimal in the answer, decimal in the receipt.
        HexToDecimal = "hex-to-decimal",
        /// Decimal in the answer, hexadecimal in the receipt.
        DecimalToHex = "decimal-to-hex",
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
        // With other letters, or with more zeros.
        if matches!(self, Self::Hex | Self::Decimal) && !answers.iter().any(|known| known == id) {
            answers.push(id.to_owned());
        }
        answers
    }

    /// Returns whether one of the IDs `looked_up` would find a message whose answer comes after a
    /// change of the settings to this form. `stored` is the ID under which the form `present` has
    /// stored the same answer.
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

    /// Explains what a receipt and its answer have in common if the carrier uses this form, in
    /// words for the operator.
    pub const fn explanation(self) -> &'static str {
        match self {
            Self::Text => "the receipt's ID is the answer's ID, as it is written",
            Self::Decimal => "the IDs are decimal and differ in leading zeros",
            Self::Hex => "the IDs are hexadecimal and differ in case or leading zeros",
            Self::HexToDecimal => "the receipt's ID is decimal, and the answer's is hexadecimal",
            Self::DecimalToHex => "the receipt's ID is hexadecimal, and the answer's is decimal",
        }
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
mod tests {
    use super::MessageIdForm::{self, Decimal, DecimalToHex, Hex, HexToDecimal, Text};

    /// The forms, an ID in the answer and in the receipt, and whether they match.
    const PAIRS: [(MessageIdForm, &str, &str, bool); 15] = [
        (Text, "Ab0", "Ab0", true),
        (Text, "Ab0", "ab0", false),
        (Text, "007", "7", false),
        (Hex, "00aBc", "ABC", true),
        (Hex, "0", "000", true),
        (Hex, "ab", "ac", false),
        (Decimal, "0000000042", "42", true),
        (Decimal, "42", "0042 ", true),
        (HexToDecimal, "2A", "42", true),
        (HexToDecimal, "2a", "0000000042", true),
        (HexToDecimal, "42", "42", false),
        (HexToDecimal, "not-hex", "not-hex", true),
        (DecimalToHex, "42", "2A", true),
        (DecimalToHex, "42", "0000002a", true),
        (DecimalToHex, "4294967295", "FFFFFFFF", true),
    ];

    #[test]
    fn the_receipt_finds_the_answer() {
        for (form, answer, receipt, same) in PAIRS {
            let found = form.of_answer(answer) == form.of_receipt(receipt);
            assert_eq!(found, same, "{form:?} {answer} {receipt}");
        }
    }

    /// The answer was stored while the settings had another form.
    #[test]
    fn the_receipt_finds_an_answer_that_was_stored_in_another_form() {
        for (form, answer, receipt, same) in PAIRS {
            let found = form.stored_for_receipt(receipt);
            for stored_as in MessageIdForm::ALL {
                let stored = stored_as.of_answer(answer);
                if same && answer != "00aBc" {
                    assert!(found.contains(&stored), "{form:?} {stored_as:?} {answer} {receipt}");
                }
            }
        }
        assert!(!HexToDecimal.stored_for_receipt("43").contains(&"2a".to_owned()));
        assert!(Hex.stored_for_receipt("ABC").contains(&"000abc".to_owned()));
    }

    /// A form is suggested only if the answers that come after the change match, too.
    #[test]
    fn a_form_fits_a_stored_answer_only_if_new_answers_match() {
        for (answer, receipt, fitting) in [
            ("4580604", "45e4fc", &[DecimalToHex][..]),
            ("abc45e583", "46108370307", &[HexToDecimal]),
            ("0000AB00", "43776", &[HexToDecimal]),
            ("0000AB00", "ab00", &[Hex]),
            ("0042", "42", &[Decimal, Hex]),
        ] {
            for present in MessageIdForm::ALL.into_iter().filter(|form| !fitting.contains(form)) {
                let stored = present.of_answer(answer);
                let finds = |form: &MessageIdForm| {
                    form.finds_new_answer(present, &stored, &[form.of_receipt(receipt)])
                };
                let others = MessageIdForm::ALL.into_iter().filter(|form| *form != present);
                let found: Vec<_> = others.filter(finds).collect();
                let case = format!("{present:?} {answer} {receipt}: {found:?}");
                // A hexadecimal number may be stored as it was, or for a decimal one.
                if present == DecimalToHex {
                    assert!(fitting.iter().all(|form| found.contains(form)), "{case}");
                } else {
                    assert_eq!(found, fitting, "{case}");
                }
            }
        }
    }
}
