//! Decides who may send. Single sends, uploads, and the early check of a key before the server
//! reads a request's body all use the same order of checks.

use crate::api_key::KeyKind;
use crate::application::{ApplicationStatus, Category};
use crate::number::Number;
use crate::reason::Reason;
use crate::sender_name::SenderState;
use crate::test_number::TestNumber;

/// The facts about a request that decide whether its application may send.
#[derive(Clone, Copy, Debug)]
pub struct SendAttempt {
    /// The application that the key belongs to. `None` if the key is unknown.
    pub application: Option<SendingApplication>,
    pub key: KeyKind,
    /// Why the application's limits don't allow the request to use the key.
    pub refused_origin: Option<Reason>,
    pub earlier: EarlierRequest,
    /// The refusal that the recipient's number causes with a test key; see [`reserved_outcome`].
    pub reserved_outcome: Option<Reason>,
    /// Whether the recipient has opted out. False for an upload, whose rows are checked one by one.
    pub is_opted_out: bool,
    /// Why the application's limits refuse the recipient. `None` for an upload, whose rows are
    /// checked one by one.
    pub limited: Option<Reason>,
}

/// The facts about an application that decide whether it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendingApplication {
    pub category: Category,
    pub status: ApplicationStatus,
    pub sender: SenderState,
}

/// The request that was accepted earlier under the same idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierRequest {
    /// There is no such request, or this request has no idempotency key.
    None,
    /// The earlier request was the same.
    Same,
    /// The earlier request was different.
    Other,
}

/// The result for a request that passes all checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// The request is new. The rate and the balance are checked next.
    New,
    /// The request was accepted before. It gets the same answer again.
    Repeated,
}

/// Checks a request in the order of the contract, §3: key (504), category (505), the request's
/// origin, idempotency, status (503, 502), sender name, reserved test numbers, opt-outs, limits.
/// The rate, the spend of the day and the balance (501) are checked later, because those checks
/// count the request. The origin comes before idempotency, because an earlier answer shows the
/// balance.
pub fn admit(attempt: &SendAttempt) -> Result<Admission, Reason> {
    let application = attempt.application.ok_or(Reason::ApiInvalid)?;
    application.check_category()?;
    attempt.refused_origin.map_or(Ok(()), Err)?;
    match attempt.earlier {
        EarlierRequest::Same => return Ok(Admission::Repeated),
        EarlierRequest::Other => return Err(Reason::IdempotencyMismatch),
        EarlierRequest::None => {}
    }
    application.check_status(attempt.key)?;
    match attempt.reserved_outcome {
        Some(reason) => Err(reason),
        None if attempt.is_opted_out => Err(Reason::OptedOut),
        None => attempt.limited.map_or(Ok(Admission::New), Err),
    }
}

impl SendingApplication {
    /// Checks that the application is for SMS. Requests that only read need no other check of the
    /// application.
    ///
    /// # Errors
    /// Returns `ApiNotApplicable` for other categories.
    pub const fn check_category(self) -> Result<(), Reason> {
        match self.category {
            Category::Sms => Ok(()),
            Category::Electricity => Err(Reason::ApiNotApplicable),
        }
    }

    /// A test key also works while the application is Pending, whatever the state of the sender
    /// name.
    const fn check_status(self, key: KeyKind) -> Result<(), Reason> {
        match (self.status, key) {
            (ApplicationStatus::Suspended, _) => Err(Reason::ApiSuspended),
            (ApplicationStatus::Pending | ApplicationStatus::Active, KeyKind::Test) => Ok(()),
            (ApplicationStatus::Pending, KeyKind::Live) => Err(Reason::ApiPending),
            (ApplicationStatus::Active, KeyKind::Live) => self.check_sender(),
        }
    }

    const fn check_sender(self) -> Result<(), Reason> {
        match self.sender {
            SenderState::None | SenderState::Requested | SenderState::Accepted => Ok(()),
            SenderState::Pending => Err(Reason::SenderPending),
            SenderState::Rejected => Err(Reason::SenderRejected),
        }
    }
}

/// Returns the refusal for a reserved local number. Only test keys get it (contract §3, rule 8).
pub fn reserved_outcome(number: &Number, key: KeyKind) -> Option<Reason> {
    if key != KeyKind::Test {
        return None;
    }
    match TestNumber::of(number) {
        Some(TestNumber::Answers(reason)) => Some(reason),
        _ => None,
    }
}
