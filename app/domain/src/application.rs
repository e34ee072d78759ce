//! Applications: their categories, their statuses, and what becomes of a lost answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What an application is for. Only `SMS` is served by the SMS API; the others are answered 505.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Category {
    #[serde(rename = "SMS")]
    Sms,
    Electricity,
}

impl Category {
    /// Every category, in the order in which forms list them.
    pub const ALL: [Self; 2] = [Self::Sms, Self::Electricity];

    /// Its word, the same everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Sms => "SMS",
            Self::Electricity => "Electricity",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|category| category.as_str() == text)
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Whether an application may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum ApplicationStatus {
    Pending,
    Active,
    Suspended,
}

/// What becomes of a message when a carrier's answer to its submit is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LostAnswer {
    /// The message waits for a receipt: it never arrives twice, and may never arrive.
    Hold,
    /// After a moment the message is sent once more: it may arrive twice.
    Resend,
}

impl LostAnswer {
    pub const ALL: [Self; 2] = [Self::Hold, Self::Resend];

    /// Its word in forms and in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Hold => "hold",
            Self::Resend => "resend",
        }
    }

    /// What the portal calls it.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Self::Hold => "Wait",
            Self::Resend => "Send once more",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// What staff can do to an application's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StatusAction {
    Approve,
    Suspend,
    Reinstate,
}

impl StatusAction {
    /// What an application is after the action, in a sentence about it.
    #[must_use]
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Suspend => "suspended",
            Self::Reinstate => "reinstated",
        }
    }
}

impl ApplicationStatus {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Active, Self::Suspended];

    /// Its word, the same everywhere.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "Pending",
            Self::Active => "Active",
            Self::Suspended => "Suspended",
        }
    }

    /// Reads the word.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// The status after an action; `None` when the action is refused in this status. `before` is
    /// the status that the application had before it was suspended, which reinstating brings back.
    #[must_use]
    pub const fn after(self, action: StatusAction, before: Self) -> Option<Self> {
        match (self, action) {
            (Self::Pending, StatusAction::Approve) => Some(Self::Active),
            (Self::Pending | Self::Active, StatusAction::Suspend) => Some(Self::Suspended),
            (Self::Suspended, StatusAction::Reinstate) => Some(before),
            _ => None,
        }
    }
}

impl fmt::Display for ApplicationStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
