//! The reserved test numbers: local numbers that decide what becomes of a message.

use crate::{Kind, Number, Reason};

/// What a message to a reserved test number meets. With a test key and at the sandbox carrier it is
/// decided by the number; every other number is delivered there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TestNumber {
    /// The message is delivered.
    Delivered,
    /// The message fails: the handset is unavailable.
    HandsetUnavailable,
    /// The message expires.
    Expired,
    /// The carrier refuses the message.
    Refused,
    /// The message is delivered [`SLOW_DELIVERY_MS`] after its submit.
    DeliveredSlowly,
    /// The send, or the whole upload, is refused with the reason. With a test key alone: to any
    /// other key the number is like all others.
    Answers(Reason),
}

/// Milliseconds from the submit of a message to [`TestNumber::DeliveredSlowly`] to its delivery.
pub const SLOW_DELIVERY_MS: i64 = 30_000;

impl TestNumber {
    /// Every reserved number, in the order of their digits.
    pub const ALL: [Self; 10] = [
        Self::Delivered,
        Self::HandsetUnavailable,
        Self::Expired,
        Self::Refused,
        Self::DeliveredSlowly,
        Self::Answers(Reason::InsufficientFunds),
        Self::Answers(Reason::ApiPending),
        Self::Answers(Reason::ApiSuspended),
        Self::Answers(Reason::ApiInvalid),
        Self::Answers(Reason::ApiNotApplicable),
    ];

    /// The number's value: its last three digits, after `00000`. For [`TestNumber::Answers`] they
    /// are the reason's code.
    const fn value(self) -> u16 {
        match self {
            Self::Delivered => 1,
            Self::HandsetUnavailable => 2,
            Self::Expired => 3,
            Self::Refused => 4,
            Self::DeliveredSlowly => 5,
            Self::Answers(reason) => reason.code(),
        }
    }

    /// The number's 8 digits.
    pub fn digits(self) -> String {
        format!("{:08}", self.value())
    }

    /// Which reserved number this is; `None` for any other one. Only local numbers are reserved.
    pub fn of(number: &Number) -> Option<Self> {
        if number.kind() != Kind::Local {
            return None;
        }
        let value = number.digits().strip_prefix("00000")?.parse().ok()?;
        Self::ALL
            .into_iter()
            .find(|reserved| reserved.value() == value)
    }
}
