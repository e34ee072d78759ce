//! The status of a message.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// The status of a message.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MessageStatus {
        /// Accepted, stored, charged; waits for a carrier.
        Queued = "queued",
        /// A connection has claimed it.
        Sending = "sending",
        /// Submitted, and no answer came.
        Unknown = "unknown",
        /// A carrier took it.
        Submitted = "submitted",
        /// The handset has it.
        Delivered = "delivered",
        /// The network gave up.
        Failed = "failed",
        /// Its time ran out.
        Expired = "expired",
        /// No carrier took it.
        Rejected = "rejected",
    }
}

impl MessageStatus {
    /// The number that stands for it in the database: its place in [`Self::ALL`]. Final statuses
    /// come last, and no number is ever given to another status.
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// The status that a number stands for.
    pub fn from_code(code: i64) -> Option<Self> {
        let place = usize::try_from(code).ok()?;
        Self::ALL.get(place).copied()
    }

    /// The rank of the status; that of a stored status never goes down.
    pub const fn rank(self) -> u8 {
        match self {
            Self::Queued => 0,
            Self::Sending => 1,
            Self::Unknown => 2,
            Self::Submitted => 3,
            Self::Delivered | Self::Failed | Self::Expired | Self::Rejected => 4,
        }
    }

    /// A final status never changes.
    pub const fn is_final(self) -> bool {
        self.rank() == 4
    }

    /// Whether a stored status may become `next`: only a status of a higher rank.
    pub const fn may_become(self, next: Self) -> bool {
        self.rank() < next.rank()
    }
}
