//! How far a message's submission to its carrier has come, and whether to resend it.

use serde::{Deserialize, Serialize};

use crate::application::LostAnswer;

/// How much of a queued or claimed message a carrier has. The value never decreases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum Submission {
    /// The carrier has nothing. Any carrier may get the message.
    None,
    /// The carrier has, or may have, some of the segments. The same carrier must get the others.
    Begun,
    /// The carrier's answer was lost, and the message is submitted once more, for the last time.
    Repeated,
}

/// No submission has this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} isn't a submission code")]
pub struct InvalidSubmission(i64);

impl Submission {
    pub const ALL: [Self; 3] = [Self::None, Self::Begun, Self::Repeated];

    /// Returns the code in the database.
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Whether to submit a message once more after its answer was lost. This happens at most once,
    /// and only if the application's policy for lost answers says so.
    pub const fn may_resend(self, policy: LostAnswer) -> bool {
        matches!((policy, self), (LostAnswer::Resend, Self::None | Self::Begun))
    }

    /// Returns the value after a submit. `begun` is true if the carrier has, or may have, any
    /// segment.
    pub fn after_submit(self, begun: bool) -> Self {
        if begun { self.max(Self::Begun) } else { self }
    }

    /// Whether to submit a segment again. This happens if the message is submitted once more,
    /// unless the carrier already accepted the segment or the segment was submitted twice.
    /// `submits` is the number of its submits so far.
    pub fn repeats_segment(self, taken: bool, submits: i64) -> bool {
        self == Self::Repeated && !taken && submits < 2
    }
}

impl TryFrom<i64> for Submission {
    type Error = InvalidSubmission;

    fn try_from(code: i64) -> Result<Self, InvalidSubmission> {
        let mut all = Self::ALL.into_iter();
        all.find(|submission| submission.code() == code).ok_or(InvalidSubmission(code))
    }
}

impl From<Submission> for i64 {
    fn from(submission: Submission) -> Self {
        submission.code()
    }
}
