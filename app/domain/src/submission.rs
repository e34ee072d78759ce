//! How far a message's submission to its carrier has come, and whether it is sent once more.

use serde::{Deserialize, Serialize};

use crate::application::LostAnswer;

/// What a carrier has of a message that waits in the queue or is claimed. It only goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "i64", into = "i64")]
pub enum Submission {
    /// Nothing: any carrier may be handed the message.
    None,
    /// It has, or may have, some of the segments: the others are handed to the same carrier.
    Begun,
    /// Its answer was lost, and the message is sent once more, for the last time.
    Repeated,
}

/// No submission has this code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} is no code of a submission")]
pub struct InvalidSubmission(i64);

impl Submission {
    pub const ALL: [Self; 3] = [Self::None, Self::Begun, Self::Repeated];

    /// The number that stands for it in the database.
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Whether a message whose answer was lost is sent once more: at most once, and only where the
    /// application's settings say so.
    pub const fn may_resend(self, policy: LostAnswer) -> bool {
        matches!(
            (policy, self),
            (LostAnswer::Resend, Self::None | Self::Begun)
        )
    }

    /// The submission after a submit. `begun` says whether the carrier has, or may have, any
    /// segment.
    pub fn after_submit(self, begun: bool) -> Self {
        if begun { self.max(Self::Begun) } else { self }
    }

    /// Whether a segment that was submitted is submitted again: when the message is sent once
    /// more, unless the carrier took the segment or it was submitted twice. `submits` counts how
    /// often it was.
    pub fn repeats_segment(self, taken: bool, submits: i64) -> bool {
        self == Self::Repeated && !taken && submits < 2
    }
}

impl TryFrom<i64> for Submission {
    type Error = InvalidSubmission;

    fn try_from(code: i64) -> Result<Self, InvalidSubmission> {
        let mut all = Self::ALL.into_iter();
        all.find(|submission| submission.code() == code)
            .ok_or(InvalidSubmission(code))
    }
}

impl From<Submission> for i64 {
    fn from(submission: Submission) -> Self {
        submission.code()
    }
}
