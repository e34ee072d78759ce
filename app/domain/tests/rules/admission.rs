//! Who may send: the first reason that applies.

use domain::admission::{
    Admission, EarlierRequest, SendAttempt, SendingApplication, admit, reserved_outcome,
};
use domain::{ApplicationStatus, Category, KeyKind, Number, Reason, SenderState};

/// An attempt that passes every check.
const GOOD: SendAttempt = SendAttempt {
    application: Some(SendingApplication {
        category: Category::Sms,
        status: ApplicationStatus::Active,
        sender: SenderState::Accepted,
    }),
    key: KeyKind::Live,
    earlier: EarlierRequest::None,
    reserved_outcome: None,
    is_opted_out: false,
    refused_origin: None,
    limited: None,
};

/// The same attempt with a changed application.
fn with(change: impl FnOnce(&mut SendingApplication)) -> SendAttempt {
    let mut attempt = GOOD;
    change(attempt.application.as_mut().unwrap());
    attempt
}

#[test]
fn each_check_has_its_reason() {
    let refused = |attempt: &SendAttempt| admit(attempt).unwrap_err();
    let no_key = SendAttempt { application: None, ..GOOD };
    assert_eq!(refused(&no_key), Reason::ApiInvalid);
    let electricity = with(|application| application.category = Category::Electricity);
    assert_eq!(refused(&electricity), Reason::ApiNotApplicable);
    let other = SendAttempt { earlier: EarlierRequest::Other, ..GOOD };
    assert_eq!(refused(&other), Reason::IdempotencyMismatch);
    let suspended = with(|application| application.status = ApplicationStatus::Suspended);
    assert_eq!(refused(&suspended), Reason::ApiSuspended);
    let pending = with(|application| application.status = ApplicationStatus::Pending);
    assert_eq!(refused(&pending), Reason::ApiPending);
    let sender_pending = with(|application| application.sender = SenderState::Pending);
    assert_eq!(refused(&sender_pending), Reason::SenderPending);
    let sender_rejected = with(|application| application.sender = SenderState::Rejected);
    assert_eq!(refused(&sender_rejected), Reason::SenderRejected);
    let reserved = SendAttempt { reserved_outcome: Some(Reason::InsufficientFunds), ..GOOD };
    assert_eq!(refused(&reserved), Reason::InsufficientFunds);
    let elsewhere = Some(Reason::AddressNotAllowed);
    let elsewhere = SendAttempt { refused_origin: elsewhere, ..GOOD };
    assert_eq!(refused(&elsewhere), Reason::AddressNotAllowed);
    let limited = SendAttempt { limited: Some(Reason::DoubtfulNumber), ..GOOD };
    assert_eq!(refused(&limited), Reason::DoubtfulNumber);
    let opted_out = SendAttempt { is_opted_out: true, ..GOOD };
    assert_eq!(refused(&opted_out), Reason::OptedOut);
    assert_eq!(admit(&GOOD), Ok(Admission::New));
    let without_name = with(|application| application.sender = SenderState::None);
    assert_eq!(admit(&without_name), Ok(Admission::New));
}

/// An attempt that fails every check. The test removes one fault at a time, in the contract's
/// order.
#[test]
fn the_first_reason_that_applies_is_the_answer() {
    let mut attempt = SendAttempt {
        application: None,
        key: KeyKind::Live,
        earlier: EarlierRequest::Other,
        reserved_outcome: Some(Reason::InsufficientFunds),
        is_opted_out: true,
        refused_origin: Some(Reason::AddressNotAllowed),
        limited: Some(Reason::DoubtfulNumber),
    };
    let mut application = SendingApplication {
        category: Category::Electricity,
        status: ApplicationStatus::Suspended,
        sender: SenderState::Rejected,
    };
    assert_eq!(admit(&attempt), Err(Reason::ApiInvalid));
    attempt.application = Some(application);
    assert_eq!(admit(&attempt), Err(Reason::ApiNotApplicable));
    application.category = Category::Sms;
    attempt.application = Some(application);
    assert_eq!(admit(&attempt), Err(Reason::AddressNotAllowed));
    attempt.refused_origin = None;
    assert_eq!(admit(&attempt), Err(Reason::IdempotencyMismatch));
    attempt.earlier = EarlierRequest::None;
    assert_eq!(admit(&attempt), Err(Reason::ApiSuspended));
    application.status = ApplicationStatus::Pending;
    attempt.application = Some(application);
    assert_eq!(admit(&attempt), Err(Reason::ApiPending));
    application.status = ApplicationStatus::Active;
    attempt.application = Some(application);
    assert_eq!(admit(&attempt), Err(Reason::SenderRejected));
    application.sender = SenderState::Accepted;
    attempt.application = Some(application);
    assert_eq!(admit(&attempt), Err(Reason::InsufficientFunds));
    attempt.reserved_outcome = None;
    assert_eq!(admit(&attempt), Err(Reason::OptedOut));
    attempt.is_opted_out = false;
    assert_eq!(admit(&attempt), Err(Reason::DoubtfulNumber));
    attempt.limited = None;
    assert_eq!(admit(&attempt), Ok(Admission::New));
}

#[test]
fn a_repeated_request_is_answered_again_whatever_the_status_is_now() {
    for status in ApplicationStatus::ALL {
        for sender in
            [SenderState::Pending, SenderState::Rejected, SenderState::None, SenderState::Requested]
        {
            let attempt = SendAttempt {
                earlier: EarlierRequest::Same,
                ..with(|application| {
                    application.status = status;
                    application.sender = sender;
                })
            };
            assert_eq!(admit(&attempt), Ok(Admission::Repeated), "{attempt:?}");
        }
    }
}

#[test]
fn a_test_key_works_while_pending_with_any_sender_name_and_not_while_suspended() {
    for sender in [SenderState::Pending, SenderState::Rejected, SenderState::None] {
        for status in ApplicationStatus::ALL {
            let attempt = SendAttempt {
                key: KeyKind::Test,
                ..with(|application| {
                    application.status = status;
                    application.sender = sender;
                })
            };
            let expected = match status {
                ApplicationStatus::Suspended => Err(Reason::ApiSuspended),
                _ => Ok(Admission::New),
            };
            assert_eq!(admit(&attempt), expected, "{attempt:?}");
        }
    }
}

#[test]
fn reserved_numbers_answer_their_code_to_a_test_key_alone() {
    let codes = [
        ("00000501", 501),
        ("00000502", 502),
        ("00000503", 503),
        ("00000504", 504),
        ("00000505", 505),
    ];
    for (digits, code) in codes {
        let number = Number::parse(digits).unwrap();
        let outcome = reserved_outcome(&number, KeyKind::Test).unwrap();
        assert_eq!(outcome.code(), code, "{digits}");
        assert_eq!(reserved_outcome(&number, KeyKind::Live), None, "{digits}");
    }
    for digits in ["00000500", "00000506", "57000001", "+00000501"] {
        let number = Number::parse(digits).unwrap();
        assert_eq!(reserved_outcome(&number, KeyKind::Test), None, "{digits}");
    }
}
