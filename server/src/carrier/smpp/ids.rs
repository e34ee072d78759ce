//! Carrier message IDs. Some carriers write an ID in one form in the answer and in another form in
//! the receipt.

use crate::config::carriers::MessageIdForm;

/// Converts the ID in a submit's answer to the form that receipts are looked up by.
pub(super) fn of_answer(id: &str, form: MessageIdForm) -> String {
    match form {
        MessageIdForm::Text => id.to_owned(),
        MessageIdForm::Hex => hex(id),
        MessageIdForm::Decimal => decimal(id),
        MessageIdForm::HexToDecimal => converted(id, 16, |number| number.to_string()),
        MessageIdForm::DecimalToHex => converted(id, 10, |number| format!("{number:x}")),
    }
}

/// Converts the ID in a receipt to the same form.
pub(super) fn of_receipt(id: &str, form: MessageIdForm) -> String {
    match form {
        MessageIdForm::Text => id.to_owned(),
        MessageIdForm::Hex | MessageIdForm::DecimalToHex => hex(id),
        MessageIdForm::Decimal | MessageIdForm::HexToDecimal => decimal(id),
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
    use super::*;

    #[test]
    fn the_receipt_finds_the_answer() {
        use MessageIdForm::{Decimal, DecimalToHex, Hex, HexToDecimal, Text};
        for (form, answer, receipt, same) in [
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
        ] {
            let found = of_answer(answer, form) == of_receipt(receipt, form);
            assert_eq!(found, same, "{form:?} {answer} {receipt}");
        }
    }
}
