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
