//! Who may send: the order of the checks, for single sends, uploads and the look at a key before a
//! request's body is read.

use crate::api_key::KeyKind;
use crate::application::{ApplicationStatus, Category};
use crate::number::Number;
use crate::reason::Reason;
use crate::sender_name::SenderState;
use crate::test_number::TestNumber;

/// A request to send, as far as it decides whether its application may send.
#[derive(Clone, Copy, Debug)]
pub struct SendAttempt {
    /// The application whose key it has; `None` if the key opens none.
    pub application: Option<SendingApplication>,
    pub key: KeyKind,
    pub earlier: EarlierRequest,
    /// What a test key is answered for the number; see [`reserved_outcome`].
    pub reserved_outcome: Option<Reason>,
}

/// An application, as far as it decides whether it may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendingApplication {
    pub category: Category,
    pub status: ApplicationStatus,
    pub sender: SenderState,
}

/// The request that was accepted before under the same idempotency key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EarlierRequest {
    /// There was none, or the request has no idempotency key.
    None,
    /// It was the same request.
    Same,
    /// It was another request.
    Other,
}

/// What becomes of a request that no check refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Its rate and its money are looked at next.
    New,
    /// It was accepted before, and is given the same answer again.
    Repeated,
}

/// Checks a request in the order of the contract, §3: key (504), category (505), idempotency,
/// status (503, 502), sender name, reserved test numbers. The rate and the money (501) come after,
/// since they are counted.
pub fn admit(attempt: &SendAttempt) -> Result<Admission, Reason> {
    let application = attempt.application.ok_or(Reason::ApiInvalid)?;
    application.check_category()?;
    match attempt.earlier {
        EarlierRequest::Same => return Ok(Admission::Repeated),
        EarlierRequest::Other => return Err(Reason::IdempotencyMismatch),
        EarlierRequest::None => {}
    }
    application.check_status(attempt.key)?;
    match attempt.reserved_outcome {
        Some(reason) => Err(reason),
        None => Ok(Admission::New),
    }
}

impl SendingApplication {
    /// Whether it sends SMS at all: the only check for requests that read.
    ///
    /// # Errors
    /// `ApiNotApplicable`.
    pub const fn check_category(self) -> Result<(), Reason> {
        match self.category {
            Category::Sms => Ok(()),
            Category::Electricity => Err(Reason::ApiNotApplicable),
        }
    }

    /// A test key works while the application is Pending, and with any sender name.
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

/// What some local numbers are answered with a test key (contract §3, rule 8).
pub fn reserved_outcome(number: &Number, key: KeyKind) -> Option<Reason> {
    if key != KeyKind::Test {
        return None;
    }
    match TestNumber::of(number) {
        Some(TestNumber::Answers(reason)) => Some(reason),
        _ => None,
    }
}
