//! Refusals: each has its own sentence, and only those for pages cross the network.

use std::collections::HashSet;

use domain::application::StatusAction;
use domain::decision::Decided;
use domain::password::InvalidPassword;
use domain::refusal::{FAILED, UNCERTAIN};
use domain::{ApplicationStatus, Money, Prefix, Refusal, SenderStatus, Timestamp};

/// The refusals that a page can show.
fn of_pages() -> Vec<Refusal> {
    [of_customers(), of_staff()].concat()
}

fn of_customers() -> Vec<Refusal> {
    vec![
        Refusal::EmailTaken,
        Refusal::TimeZoneUnknown,
        Refusal::WebOtpDomainInvalid,
        Refusal::WrongCodeLength(6),
        Refusal::WrongCredentials,
        Refusal::WrongPassword,
        Refusal::InvalidPassword(InvalidPassword::Length),
        Refusal::InvalidPassword(InvalidPassword::Repeated),
        Refusal::InvalidPassword(InvalidPassword::Sequence),
        Refusal::InvalidPassword(InvalidPassword::Common),
        Refusal::InvalidPassword(InvalidPassword::OfEmail),
        Refusal::InvalidPassword(InvalidPassword::OfService),
        Refusal::AccountDisabled,
        Refusal::WrongCode,
        Refusal::WrongRecoveryCode,
        Refusal::SignInOver,
        Refusal::CodeNeeded,
        Refusal::CodeOrPasskeyNeeded,
        Refusal::PasswordNeeded,
        Refusal::StepUpCodeWrong,
        Refusal::StepUpPasswordWrong,
        Refusal::SecondFactorRequired,
        Refusal::NoSecondFactor,
        Refusal::PasskeyRefused,
        Refusal::PasskeyCopied,
        Refusal::PasskeyOver,
        Refusal::PasskeyNotAdded,
        Refusal::PasskeyNameInvalid,
        Refusal::TooManyPasskeys,
        Refusal::NoSuchPasskey,
        Refusal::PasskeysUnavailable,
        Refusal::Throttled { retry_after_s: 900 },
        Refusal::TooManyChanges { retry_after_s: 2 },
        Refusal::Busy,
        Refusal::CategoryTaken,
        Refusal::SenderlessTaken,
        Refusal::SenderNameTaken,
        Refusal::SenderNameUnchanged,
        Refusal::TooManySenderRequests,
        Refusal::NoSuchApplication,
        Refusal::NoSuchAccount,
        Refusal::OutcomeKnown,
        Refusal::StillOpen,
        Refusal::NotCancellable,
        Refusal::TooManyWithdrawn,
        Refusal::BatchEnded,
        Refusal::TakenByCarrier,
        Refusal::BeingSubmitted,
        Refusal::SubmittedTwice,
        Refusal::NoSuchCarrier,
        Refusal::NoSuchDevice,
        Refusal::ActivationNotPossible { status: ApplicationStatus::Active },
        Refusal::ResetLinkInvalid,
        Refusal::ConfirmationInvalid,
        Refusal::EmailNotConfirmed,
        Refusal::ApplicationInUse,
        Refusal::EmailConfirmed,
        Refusal::NoSuchMail,
        Refusal::MailSent,
        Refusal::NoSuchSenderRequest,
        Refusal::StatusConflict {
            status: ApplicationStatus::Active,
            action: StatusAction::Approve,
            decided: None,
        },
        Refusal::SenderDecided { status: SenderStatus::Accepted, decided: None },
        Refusal::LastCarrier { waiting: 3 },
    ]
}

fn of_staff() -> Vec<Refusal> {
    vec![
        Refusal::NoSuchIncident,
        Refusal::IncidentInvalid,
        Refusal::TooManyIncidents,
        Refusal::ChangedMeanwhile { decided: None },
        Refusal::NothingToDo { decided: None },
        Refusal::ReasonMissing,
        Refusal::ReasonInvalid,
        Refusal::ListInvalid,
        Refusal::InvalidCursor,
        Refusal::DaysInvalid,
        Refusal::PriceInvalid,
        Refusal::PriceRepeatDiffers,
        Refusal::PriceNotCancellable,
        Refusal::PricesInvalid,
        Refusal::PrefixInvalid,
        Refusal::TimeInvalid,
        Refusal::PriceInPast,
        Refusal::PriceSetTwice { at: Timestamp::from_unix_ms(1_767_225_600_000) },
        Refusal::NoSuchPrefix,
        Refusal::PriceNotDearer {
            prefix: Prefix::parse("27").unwrap(),
            at: Timestamp::from_unix_ms(1_767_225_600_000),
            price: Money::from_micros(10_000),
            local: Money::from_micros(50_000),
        },
        Refusal::NoSuchMessage,
        Refusal::NoSuchBatch,
        Refusal::NoteInvalid,
        Refusal::AccountDisabledAlready,
        Refusal::AccountNotDisabled,
        Refusal::StaffAlready,
        Refusal::NotStaff,
        Refusal::FactorBeforeStaff,
        Refusal::OwnApplication,
        Refusal::OwnAccount,
        Refusal::OwnPrices,
        Refusal::OwnRequest,
        Refusal::NoSuchApproval,
        Refusal::LastStaff,
        Refusal::InboundNumberTaken,
        Refusal::NoSuchInboundNumber,
        Refusal::InboundNumberInvalid,
        Refusal::KeywordInvalid,
        Refusal::KeywordIsCommand,
        Refusal::NoSuchDeposit,
        Refusal::DepositAssigned,
        Refusal::DepositReturned,
        Refusal::BillingDetailsInvalid,
        Refusal::BankFileGone,
        Refusal::ColumnRepeated,
        Refusal::StatementConfirmed,
        Refusal::BalanceTooLarge,
    ]
}

/// The refusals that only the command line shows.
fn of_the_command_line() -> Vec<Refusal> {
    vec![
        Refusal::InvalidAmount,
        Refusal::InvalidBankId,
        Refusal::BankIdConflict { bank_id: "B1".to_owned() },
        Refusal::FileExists,
        Refusal::NoFileDatabase,
        Refusal::SecretKeyMissing { file: "secret.key".to_owned() },
        Refusal::NotHeld,
        Refusal::UploadHeld { batch: "B".to_owned() },
        Refusal::StillSubmitting,
    ]
}

#[test]
fn every_refusal_has_a_sentence_of_its_own() {
    let sentences: Vec<String> = of_pages()
        .iter()
        .chain(&of_the_command_line())
        .map(ToString::to_string)
        .chain([FAILED.to_owned(), UNCERTAIN.to_owned()])
        .collect();
    let distinct: HashSet<&String> = sentences.iter().collect();
    assert_eq!(distinct.len(), sentences.len());
    for sentence in &sentences {
        assert!(sentence.ends_with('.'), "{sentence}");
        assert!(sentence.starts_with(|c: char| c.is_ascii_uppercase()), "{sentence}");
        assert!(!sentence.contains("  "), "{sentence}");
    }
}

#[test]
fn sentences_say_what_they_are_about() {
    let conflict = Refusal::StatusConflict {
        status: ApplicationStatus::Active,
        action: StatusAction::Reinstate,
        decided: None,
    };
    assert_eq!(conflict.to_string(), "An application that is Active can't be reinstated.");
    let decided = Refusal::SenderDecided {
        status: SenderStatus::Accepted,
        decided: Some(Decided {
            by: "staff@example.org".to_owned(),
            at: Timestamp::from_unix_ms(1_767_225_600_000),
            what: Some("accepted a sender name".into()),
        }),
    };
    assert_eq!(
        decided.to_string(),
        "This request was decided before: it is accepted. staff@example.org accepted a sender name \
         at 2026-01-01 00:00:00 UTC."
    );
}

#[test]
fn a_wait_is_told_in_minutes_rounded_up() {
    for (retry_after_s, wait) in
        [(0, "a minute"), (1, "a minute"), (60, "a minute"), (61, "2 minutes"), (900, "15 minutes")]
    {
        assert_eq!(
            Refusal::Throttled { retry_after_s }.to_string(),
            format!("Too many attempts. Try again in {wait}.")
        );
    }
}

#[test]
fn refusals_of_pages_cross_the_network_and_others_do_not() {
    for refusal in of_pages() {
        let json = serde_json::to_string(&refusal).unwrap();
        assert_eq!(serde_json::from_str::<Refusal>(&json).unwrap(), refusal);
    }
    for refusal in of_the_command_line() {
        assert!(serde_json::to_string(&refusal).is_err(), "{refusal:?}");
    }
    // A text in a URL must not become a sentence on a page.
    let text = r#"{"BankIdConflict":{"bank_id":"Call +1 555 0100 now"}}"#;
    assert!(serde_json::from_str::<Refusal>(text).is_err());
}
