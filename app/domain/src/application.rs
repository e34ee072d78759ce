//! Applications: their categories, their statuses, and what becomes of a lost answer.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What an application is for. Only `SMS` is served by the SMS API; the others are answered
    /// 505.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Category {
        #[serde(rename = "SMS")]
        Sms = "SMS",
        Electricity = "Electricity",
    }
}

words! {
    /// Whether an application may send.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum ApplicationStatus {
        Pending = "Pending",
        Active = "Active",
        Suspended = "Suspended",
    }
}

words! {
    /// What becomes of a message when a carrier's answer to its submit is lost.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum LostAnswer {
        /// The message waits for a receipt: it never arrives twice, and may never arrive.
        Hold = "hold",
        /// Shortly after, the message is sent once more: it may arrive twice.
        Resend = "resend",
    }
}

impl LostAnswer {
    /// What the portal calls it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hold => "Don't resend",
            Self::Resend => "Resend once",
        }
    }
}

/// What staff can do to an application's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StatusAction {
    Approve,
    Suspend,
    Reinstate,
}

impl StatusAction {
    /// What an application is after the action, in a sentence about it.
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Suspend => "suspended",
            Self::Reinstate => "reinstated",
        }
    }
}

impl ApplicationStatus {
    /// The status after an action; `None` when the action is refused in this status. `before` is
    /// the status that the application had before it was suspended, which reinstating brings back.
    pub const fn after(self, action: StatusAction, before: Self) -> Option<Self> {
        match (self, action) {
            (Self::Pending, StatusAction::Approve) => Some(Self::Active),
            (Self::Pending | Self::Active, StatusAction::Suspend) => Some(Self::Suspended),
            (Self::Suspended, StatusAction::Reinstate) => Some(before),
            _ => None,
        }
    }
}
