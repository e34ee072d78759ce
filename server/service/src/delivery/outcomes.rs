//! What a carrier's answers mean for a message. The functions here are pure, so that money and
//! duplicates are decided in one place.

use domain::Submission;

use crate::delivery::receipts::is_storable_name;
use crate::store::claims::Held;
use crate::store::segments::Segment;

/// How long a message whose answer was lost waits for a receipt before it is sent once more.
pub(crate) const RESEND_AFTER_MS: i64 = 30_000;
/// How long a message waits after a throttled carrier didn't take it.
const THROTTLED_MS: i64 = 1000;
/// The first wait after a temporary refusal; the wait doubles with each refusal.
const RETRY_FIRST_MS: i64 = 5000;
const RETRY_MAX_MS: i64 = 10 * 60 * 1000;

/// What a carrier answered to the submit of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// The carrier took the segment: the charge stays from now on.
    Accepted {
        /// The name that the carrier's receipts will have for the segment; `None` when the carrier
        /// gave none.
        carrier_message_id: Option<String>,
    },
    /// The carrier refused the segment for good.
    Refused { error: String },
    /// The carrier asks for a slower pace: the segment is tried again, and no attempt is counted.
    Throttled { error: String },
    /// The carrier can't take the segment now: it is tried again, later each time.
    Temporary { error: String },
    /// The segment certainly didn't reach the carrier.
    NotSent,
    /// The segment was submitted, and the answer is lost.
    Unknown { error: String },
}

impl SubmitOutcome {
    /// Removes what a carrier's words can have and the database can't: NUL characters, and a name
    /// that is too long for a receipt to be found by.
    pub(crate) fn make_storable(&mut self) {
        if let Self::Accepted { carrier_message_id } = self {
            carrier_message_id.take_if(|name| !is_storable_name(name));
        }
        let text = match self {
            Self::Accepted { carrier_message_id } => carrier_message_id.as_mut(),
            Self::Refused { error }
            | Self::Throttled { error }
            | Self::Temporary { error }
            | Self::Unknown { error } => Some(error),
            Self::NotSent => None,
        };
        if let Some(text) = text {
            text.retain(|c| c != '\0');
        }
    }
}

/// What becomes of a message after a submit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    /// The whole message is taken.
    Submitted,
    /// Some of the message was taken, and the rest is refused: it can't arrive whole, and the
    /// charge stays.
    Failed { error: String },
    /// Nothing of the message was taken, and nothing will be, by this carrier.
    Refused { error: String },
    /// The whole message was submitted, some of it without an answer: only a receipt can tell.
    /// The error is what happened at this submit, if anything did.
    Unknown { error: Option<String> },
    /// The message goes back into the queue.
    Again(Again),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Again {
    pub(crate) after_ms: i64,
    /// Whether the submit counts as an attempt.
    pub(crate) attempted: bool,
    pub(crate) submission: Submission,
    /// The error for the timeline.
    pub(crate) error: Option<String>,
}

/// Counts of a message's segments after its submit.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) taken: usize,
    pub(crate) unknown: usize,
    lost: Option<String>,
    refused: Option<String>,
    again: Option<(i64, bool, Option<String>)>,
}

impl Count {
    /// Counts the answers, and the segments that earlier submits left.
    pub(crate) fn new(
        outcomes: &[(u16, SubmitOutcome)],
        stored: &[Segment],
        attempts: i64,
    ) -> Self {
        let mut count = Self::default();
        for segment in stored {
            // A segment that was taken before stays taken, whatever became of it now.
            let told = outcomes.iter().any(|(number, outcome)| {
                *number == segment.segment
                    && matches!(
                        outcome,
                        SubmitOutcome::Accepted { .. } | SubmitOutcome::Unknown { .. }
                    )
            });
            if segment.is_taken() {
                count.taken += 1;
            } else if !told {
                count.unknown += 1;
            }
        }
        let taken_before = |number: u16| stored.iter().any(|s| s.segment == number && s.is_taken());
        for (number, outcome) in outcomes {
            match outcome {
                _ if taken_before(*number) => {}
                SubmitOutcome::Accepted { .. } => count.taken += 1,
                SubmitOutcome::Unknown { error } => {
                    count.unknown += 1;
                    count.lost.get_or_insert_with(|| error.clone());
                }
                SubmitOutcome::Refused { error } => {
                    count.refused.get_or_insert_with(|| error.clone());
                }
                SubmitOutcome::Throttled { .. } => count.wait(THROTTLED_MS, false, None),
                SubmitOutcome::Temporary { error } => {
                    count.wait(retry_after(attempts), true, Some(error.clone()));
                }
                SubmitOutcome::NotSent => count.wait(0, false, None),
            }
        }
        count
    }

    /// Puts the message off; of several waits the longest one counts.
    fn wait(&mut self, ms: i64, attempted: bool, error: Option<String>) {
        if self.again.as_ref().is_none_or(|(known, ..)| *known < ms) {
            self.again = Some((ms, attempted, error));
        }
    }

    pub(crate) fn outcome(self, held: &Held) -> MessageOutcome {
        let begun = self.taken + self.unknown > 0;
        let resend = self.lost.is_some() && held.submission.may_resend(held.lost_answer);
        match (self.refused, self.again) {
            (Some(error), _) if !begun => MessageOutcome::Refused { error },
            (Some(error), _) if self.taken > 0 => MessageOutcome::Failed { error },
            // Other segments may have been taken: nothing is released, and nothing is sent again.
            (error @ Some(_), _) => MessageOutcome::Unknown { error },
            (None, _) if resend => MessageOutcome::Again(Again {
                after_ms: RESEND_AFTER_MS,
                attempted: false,
                submission: Submission::Repeated,
                error: self.lost,
            }),
            (None, Some((after_ms, attempted, error))) => MessageOutcome::Again(Again {
                after_ms,
                attempted,
                submission: held.submission.after_submit(begun),
                error,
            }),
            (None, None) if self.unknown > 0 => MessageOutcome::Unknown { error: self.lost },
            (None, None) => MessageOutcome::Submitted,
        }
    }
}

fn retry_after(attempts: i64) -> i64 {
    let doubled = u32::try_from(attempts.clamp(0, 16)).unwrap_or(16);
    (RETRY_FIRST_MS << doubled).min(RETRY_MAX_MS)
}
