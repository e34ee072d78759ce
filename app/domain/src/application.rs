//! What an application is for, and the states it goes through.

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

    /// The word for it, the same everywhere.
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
    /// It waits for a receipt: it never arrives twice, and perhaps not at all.
    Hold,
    /// After a moment it is sent once more: it may arrive twice.
    Resend,
}

impl LostAnswer {
    pub const ALL: [Self; 2] = [Self::Hold, Self::Resend];

    /// The word for it in settings and rows.
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

impl ApplicationStatus {
    pub const ALL: [Self; 3] = [Self::Pending, Self::Active, Self::Suspended];

    /// The word for it, the same everywhere.
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

    /// The status after an action, or `None` when the action is refused in this one. `before` is
    /// what the application was when it was suspended; reinstating brings that back.
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
