//! How far a message's submission has come, and whether to resend the message.

use domain::LostAnswer::{Hold, Resend};
use domain::Submission::{self, Begun, None, Repeated};

#[test]
fn every_submission_has_its_code() {
    for (code, submission) in (0..).zip(Submission::ALL) {
        assert_eq!(submission.code(), code);
        assert_eq!(Submission::try_from(code).unwrap(), submission);
        assert_eq!(serde_json::to_string(&submission).unwrap(), code.to_string());
    }
    for code in [-1, 3, i64::MIN, i64::MAX] {
        let error = Submission::try_from(code).unwrap_err();
        assert_eq!(error.to_string(), format!("{code} isn't a submission code"));
    }
}

#[test]
fn a_message_is_sent_once_more_only_where_its_application_asks_for_it() {
    for (submission, policy, expected) in [
        (None, Hold, false),
        (None, Resend, true),
        (Begun, Hold, false),
        (Begun, Resend, true),
        (Repeated, Hold, false),
        (Repeated, Resend, false),
    ] {
        assert_eq!(submission.may_resend(policy), expected, "{submission:?} {policy:?}");
    }
}

#[test]
fn a_submit_never_takes_a_submission_back() {
    for (submission, begun, after) in [
        (None, false, None),
        (None, true, Begun),
        (Begun, false, Begun),
        (Begun, true, Begun),
        (Repeated, false, Repeated),
        (Repeated, true, Repeated),
    ] {
        assert_eq!(submission.after_submit(begun), after, "{submission:?} {begun}");
    }
}

#[test]
fn a_segment_is_repeated_once_and_only_without_an_answer() {
    for submission in Submission::ALL {
        for taken in [false, true] {
            for submits in 1..=3 {
                let expected = submission == Repeated && !taken && submits == 1;
                assert_eq!(
                    submission.repeats_segment(taken, submits),
                    expected,
                    "{submission:?} {taken} {submits}"
                );
            }
        }
    }
}
