//! The one-time code that a send brings.

use domain::{MessageText, Reason, Timestamp, VerifyId};
use serde::{Deserialize, Serialize};

use store::verifications::CodeRow;

/// A verification whose code was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentCode {
    pub id: VerifyId,
    /// By the clock of the key.
    pub expires_at: Timestamp,
}

/// The code that a send brings.
pub(crate) struct PreparedCode {
    pub(crate) row: CodeRow,
    /// The text with the code. Only carriers get it.
    pub(crate) text: MessageText,
    pub(crate) digest: String,
    /// Why it may not be sent, unless the request repeats an earlier one.
    pub(crate) refused: Option<Reason>,
}

impl PreparedCode {
    /// Returns the answer, with the time of a clock that is ahead by some milliseconds.
    pub(crate) const fn sent(&self, clock_ms: i64) -> SentCode {
        SentCode { id: self.row.id, expires_at: self.row.expires_at.plus_ms(clock_ms) }
    }
}
