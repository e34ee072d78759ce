//! Statuses of messages.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// The status of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MessageStatus {
        /// Accepted, stored and charged. The message waits for a carrier.
        Queued = "queued",
        /// A connection has claimed the message.
        Sending = "sending",
        /// Submitted, but the carrier didn't answer.
        Unknown = "unknown",
        /// A carrier accepted the message.
        Submitted = "submitted",
        /// The handset received the message.
        Delivered = "delivered",
        /// The network gave up.
        Failed = "failed",
        /// The message wasn't delivered in time.
        Expired = "expired",
        /// No carrier accepted the message.
        Rejected = "rejected",
    }
}

impl MessageStatus {
    /// Returns the status's code in the database: its index in [`Self::ALL`]. Final statuses come
    /// last. A code is never reused for another status.
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Returns the status with a code in the database.
    pub fn from_code(code: i64) -> Option<Self> {
        let index = usize::try_from(code).ok()?;
        Self::ALL.get(index).copied()
    }

    /// Returns the rank of the status. The rank of a stored status never decreases.
    pub const fn rank(self) -> u8 {
        match self {
            Self::Queued => 0,
            Self::Sending => 1,
            Self::Unknown => 2,
            Self::Submitted => 3,
            Self::Delivered | Self::Failed | Self::Expired | Self::Rejected => 4,
        }
    }

    /// Whether the status is final. A final status never changes.
    pub const fn is_final(self) -> bool {
        self.rank() == 4
    }

    /// Whether a stored status may become `next`, which requires a higher rank.
    pub const fn may_become(self, next: Self) -> bool {
        self.rank() < next.rank()
    }
}
