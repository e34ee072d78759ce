//! How far a message's hand-over has come, and whether the message may be sent once more.

use domain::HandOver::{self, Begun, None, Repeated};
use domain::LostAnswer::{Hold, Resend};

#[test]
fn every_hand_over_has_its_code() {
    for (code, hand_over) in (0..).zip(HandOver::ALL) {
        assert_eq!(hand_over.code(), code);
        assert_eq!(HandOver::try_from(code).unwrap(), hand_over);
        assert_eq!(serde_json::to_string(&hand_over).unwrap(), code.to_string());
    }
    for code in [-1, 3, i64::MIN, i64::MAX] {
        let error = HandOver::try_from(code).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("{code} is no code of a hand-over")
        );
    }
}

#[test]
fn a_message_is_sent_once_more_only_where_its_application_asks_for_it() {
    for (hand_over, policy, expected) in [
        (None, Hold, false),
        (None, Resend, true),
        (Begun, Hold, false),
        (Begun, Resend, true),
        (Repeated, Hold, false),
        (Repeated, Resend, false),
    ] {
        assert_eq!(
            hand_over.may_resend(policy),
            expected,
            "{hand_over:?} {policy:?}"
        );
    }
}

#[test]
fn a_submit_never_takes_a_hand_over_back() {
    for (hand_over, begun, after) in [
        (None, false, None),
        (None, true, Begun),
        (Begun, false, Begun),
        (Begun, true, Begun),
        (Repeated, false, Repeated),
        (Repeated, true, Repeated),
    ] {
        assert_eq!(
            hand_over.after_submit(begun),
            after,
            "{hand_over:?} {begun}"
        );
    }
}

#[test]
fn a_segment_is_repeated_once_and_only_without_an_answer() {
    for hand_over in HandOver::ALL {
        for taken in [false, true] {
            for submits in 1..=3 {
                let expected = hand_over == Repeated && !taken && submits == 1;
                assert_eq!(
                    hand_over.repeats_segment(taken, submits),
                    expected,
                    "{hand_over:?} {taken} {submits}"
                );
            }
        }
    }
}
