//! The consequences of a carrier's responses for a message. All decisions about money and
//! duplicates are made here, by pure functions.

use domain::Submission;

use crate::delivery::receipts::is_storable_id;
use store::claims::Held;
use store::segments::Segment;

/// How long a message whose response was lost waits for a receipt before it is submitted once more.
pub(crate) const RESEND_AFTER_MS: i64 = 30_000;
/// How long a message waits after a carrier throttled it.
const THROTTLED_MS: i64 = 1000;
/// How long a message waits if the carrier refuses every message. The connection pauses at least as
/// long.
const HELD_MS: i64 = 5000;
/// The wait after the first temporary refusal. It doubles with each refusal.
const RETRY_FIRST_MS: i64 = 5000;
const RETRY_MAX_MS: i64 = 10 * 60 * 1000;

/// A carrier's response to the submit of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SubmitOutcome {
    /// The carrier accepted the segment. From now on the charge stays.
    Accepted {
        /// The ID that the carrier's receipts for the segment have. `None` if the carrier returned
        /// none.
        carrier_message_id: Option<String>,
    },
    /// The carrier refused the segment permanently. Another carrier may accept it.
    Refused { error: String },
    /// The carrier refused the segment permanently, and every other carrier would refuse it too.
    Rejected { error: String },
    /// The carrier refuses everything now, whatever the message. The segment is retried, and the
    /// attempt doesn't count.
    Held { error: String },
    /// The carrier throttles us. The segment is retried, and the attempt doesn't count.
    Throttled { error: String },
    /// The carrier can't accept the segment now. It is retried, with a longer wait each time.
    Temporary { error: String },
    /// The segment certainly didn't reach the carrier.
    NotSent,
    /// The segment wasn't submitted, because its sender has used up its rate. It waits.
    Later { after_ms: i64 },
    /// The segment was submitted, but its response was lost.
    Unknown { error: String },
}

impl SubmitOutcome {
    /// Removes text from carriers that the database can't store: NUL characters, and carrier
    /// message IDs that are too long.
    pub(crate) fn make_storable(&mut self) {
        if let Self::Accepted { carrier_message_id } = self {
            carrier_message_id.take_if(|id| !is_storable_id(id));
        }
        let text = match self {
            Self::Accepted { carrier_message_id } => carrier_message_id.as_mut(),
            Self::Refused { error }
            | Self::Rejected { error }
            | Self::Held { error }
            | Self::Throttled { error }
            | Self::Temporary { error }
            | Self::Unknown { error } => Some(error),
            Self::NotSent | Self::Later { .. } => None,
        };
        if let Some(text) = text {
            text.retain(|c| c != '\0');
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MessageOutcome {
    /// The carrier accepted the whole message.
    Submitted,
    /// The carrier accepted some segments and refused others. The message can't arrive complete,
    /// and the charge stays.
    Failed { error: String },
    /// The carrier accepted nothing of the message and never will.
    Refused { error: String },
    /// Like `Refused`, but the message takes no other route.
    Rejected { error: String },
    /// Some segments were submitted without a response, and nothing more may be submitted. Only a
    /// receipt can resolve this. The error is the one of this submit, if there was one.
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
    /// Whether the carrier throttled a segment.
    pub(crate) throttled: bool,
}

/// The number of a message's segments in each state after a submit.
#[derive(Default)]
pub(crate) struct Count {
    pub(crate) taken: usize,
    pub(crate) unknown: usize,
    lost: Option<String>,
    refused: Option<String>,
    rejected: bool,
    again: Option<(i64, bool, Option<String>)>,
    throttled: bool,
}

impl Count {
    /// Counts the responses of this submit, and the segments of earlier submits.
    pub(crate) fn new(
        outcomes: &[(u16, SubmitOutcome)],
        stored: &[Segment],
        attempts: i64,
    ) -> Self {
        let mut count = Self::default();
        for segment in stored {
            // A segment that was accepted before stays accepted, whatever the response is now.
            let noted = outcomes.iter().any(|(number, outcome)| {
                *number == segment.segment
                    && matches!(
                        outcome,
                        SubmitOutcome::Accepted { .. } | SubmitOutcome::Unknown { .. }
                    )
            });
            if segment.is_taken() {
                count.taken += 1;
            } else if !noted {
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
                SubmitOutcome::Refused { error } | SubmitOutcome::Rejected { error } => {
                    count.rejected |= matches!(outcome, SubmitOutcome::Rejected { .. });
                    count.refused.get_or_insert_with(|| error.clone());
                }
                SubmitOutcome::Held { .. } => count.wait(HELD_MS, false, None),
                SubmitOutcome::Throttled { .. } => {
                    count.throttled = true;
                    count.wait(THROTTLED_MS, false, None);
                }
                SubmitOutcome::Temporary { error } => {
                    count.wait(retry_after(attempts), true, Some(error.clone()));
                }
                SubmitOutcome::NotSent => count.wait(0, false, None),
                SubmitOutcome::Later { after_ms } => count.wait(*after_ms, false, None),
            }
        }
        count
    }

    /// Delays the message. The longest delay counts.
    fn wait(&mut self, ms: i64, attempted: bool, error: Option<String>) {
        if self.again.as_ref().is_none_or(|(known, ..)| *known < ms) {
            self.again = Some((ms, attempted, error));
        }
    }

    pub(crate) fn outcome(self, held: &Held) -> MessageOutcome {
        let begun = self.taken + self.unknown > 0;
        let resend = self.lost.is_some() && held.submission.may_resend(held.lost_answer);
        match (self.refused, self.again) {
            (Some(error), _) if !begun && self.rejected => MessageOutcome::Rejected { error },
            (Some(error), _) if !begun => MessageOutcome::Refused { error },
            (Some(error), _) if self.taken > 0 => MessageOutcome::Failed { error },
            // Other segments may have been accepted: nothing is released, and nothing is submitted
            // again.
            (error @ Some(_), _) => MessageOutcome::Unknown { error },
            (None, _) if resend => MessageOutcome::Again(Again {
                after_ms: RESEND_AFTER_MS,
                attempted: false,
                submission: Submission::Repeated,
                error: self.lost,
                throttled: self.throttled,
            }),
            (None, Some((after_ms, attempted, error))) => MessageOutcome::Again(Again {
                after_ms,
                attempted,
                submission: held.submission.after_submit(begun),
                error,
                throttled: self.throttled,
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
