//! Reserved test numbers.

use domain::test_number::SLOW_DELIVERY_MS;
use domain::{Number, Reason, TestNumber};
use proptest::prelude::*;

use crate::seeded;

/// The contract's table.
const TABLE: [(&str, TestNumber); 13] = [
    ("00000001", TestNumber::Delivered),
    ("00000002", TestNumber::HandsetUnavailable),
    ("00000003", TestNumber::Expired),
    ("00000004", TestNumber::Refused),
    ("00000005", TestNumber::DeliveredSlowly),
    ("00000006", TestNumber::SecondAttempt),
    ("00000007", TestNumber::ReceiptFirst),
    ("00000008", TestNumber::Answering),
    ("00000501", TestNumber::Answers(Reason::InsufficientFunds)),
    ("00000502", TestNumber::Answers(Reason::ApiPending)),
    ("00000503", TestNumber::Answers(Reason::ApiSuspended)),
    ("00000504", TestNumber::Answers(Reason::ApiInvalid)),
    ("00000505", TestNumber::Answers(Reason::ApiNotApplicable)),
];

#[test]
fn the_reserved_numbers_are_those_of_the_table() {
    assert_eq!(TestNumber::ALL.to_vec(), TABLE.map(|row| row.1).to_vec());
    assert_eq!(SLOW_DELIVERY_MS, 30_000);
    for (digits, reserved) in TABLE {
        assert_eq!(reserved.digits(), digits);
        let number = Number::parse(digits).unwrap();
        assert_eq!(TestNumber::of(&number), Some(reserved));
    }
}

#[test]
fn international_numbers_are_not_reserved() {
    for text in ["+00000001", "000000001", "0001", "0000501"] {
        let number = Number::parse(text).unwrap();
        assert_eq!(TestNumber::of(&number), None, "{text}");
    }
}

proptest! {
    #![proptest_config(seeded(256))]

    #[test]
    fn no_other_local_number_is_reserved(digits in "[0-9]{8}|00000[0-9]{3}") {
        let number = Number::parse(&digits).unwrap();
        let expected = TABLE.iter().find(|row| row.0 == digits).map(|row| row.1);
        prop_assert_eq!(TestNumber::of(&number), expected);
    }
}
