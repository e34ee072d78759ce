//! The one-time code in a send's message.

use domain::{MessageText, Reason, Timestamp, VerifyId};
use serde::{Deserialize, Serialize};

use store::verifications::CodeRow;

/// A verification whose code was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SentCode {
    pub id: VerifyId,
    /// The time is by the key's clock.
    pub expires_at: Timestamp,
}

/// The code to put into a send's message.
pub(crate) struct PreparedCode {
    pub(crate) row: CodeRow,
    /// The text with the code. Only carriers get it.
    pub(crate) text: MessageText,
    pub(crate) digest: String,
    /// Why the code must not be sent. Doesn't count if the request repeats an earlier one.
    pub(crate) refused: Option<Reason>,
}

impl PreparedCode {
    /// Returns the answer for a key whose clock is ahead by this many milliseconds.
    pub(crate) const fn sent(&self, clock_ms: i64) -> SentCode {
        SentCode { id: self.row.id, expires_at: self.row.expires_at.plus_ms(clock_ms) }
    }
}
