//! Reserved test numbers: local numbers that determine the outcome of a message.

use crate::{Kind, Number, Reason};

/// The outcome of a message to a reserved test number. It applies with a test key and at the
/// sandbox carrier, where messages to all other numbers are delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TestNumber {
    Delivered,
    /// The message fails: the handset is unavailable.
    HandsetUnavailable,
    Expired,
    /// The carrier refuses the message.
    Refused,
    /// The message is delivered [`SLOW_DELIVERY_MS`] after its submit.
    DeliveredSlowly,
    /// The carrier asks to try again later, and accepts the second attempt.
    SecondAttempt,
    /// The receipt comes before the carrier's answer to the submit.
    ReceiptFirst,
    /// The message is delivered, and the recipient answers [`ANSWER`] to [`answered_number`].
    Answering,
    /// The API refuses the send, or the whole upload, with the reason. This applies only with a
    /// test key. With any other key, the number is like all others.
    Answers(Reason),
}

/// The time from submit to delivery for [`TestNumber::DeliveredSlowly`], in milliseconds.
pub const SLOW_DELIVERY_MS: i64 = 30_000;

/// The answer of [`TestNumber::Answering`].
pub const ANSWER: &str = "This is a test answer.";

/// Returns the number that answers of [`TestNumber::Answering`] are addressed to. An application
/// needn't have it.
pub fn answered_number() -> Number {
    Number::local("00000000".to_owned())
}

impl TestNumber {
    /// Every reserved number, in ascending order.
    pub const ALL: [Self; 13] = [
        Self::Delivered,
        Self::HandsetUnavailable,
        Self::Expired,
        Self::Refused,
        Self::DeliveredSlowly,
        Self::SecondAttempt,
        Self::ReceiptFirst,
        Self::Answering,
        Self::Answers(Reason::InsufficientFunds),
        Self::Answers(Reason::ApiPending),
        Self::Answers(Reason::ApiSuspended),
        Self::Answers(Reason::ApiInvalid),
        Self::Answers(Reason::ApiNotApplicable),
    ];

    /// Returns the last three digits, which follow `00000`. For [`TestNumber::Answers`], they are
    /// the reason's code.
    const fn value(self) -> u16 {
        match self {
            Self::Delivered => 1,
            Self::HandsetUnavailable => 2,
            Self::Expired => 3,
            Self::Refused => 4,
            Self::DeliveredSlowly => 5,
            Self::SecondAttempt => 6,
            Self::ReceiptFirst => 7,
            Self::Answering => 8,
            Self::Answers(reason) => reason.code(),
        }
    }

    /// Returns the number's 8 digits.
    pub fn digits(self) -> String {
        format!("{:08}", self.value())
    }

    pub fn number(self) -> Number {
        Number::local(self.digits())
    }

    /// Returns the outcome for a number, or `None` if it isn't reserved. Only local numbers are
    /// reserved.
    pub fn of(number: &Number) -> Option<Self> {
        if number.kind() != Kind::Local {
            return None;
        }
        let value: u16 = number.digits().strip_prefix("00000")?.parse().ok()?;
        Self::ALL.into_iter().find(|reserved| reserved.value() == value)
    }
}
