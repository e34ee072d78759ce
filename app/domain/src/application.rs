//! Categories and statuses of applications, and their setting for lost answers.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// The category of an application. The SMS API serves only `SMS`. It answers 505 for the other
    /// categories.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum Category {
        #[serde(rename = "SMS")]
        Sms = "SMS",
        Electricity = "Electricity",
    }
}

words! {
    /// The status of an application, which decides whether it may send.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum ApplicationStatus {
        Pending = "Pending",
        Active = "Active",
        Suspended = "Suspended",
    }
}

words! {
    /// The policy for a message whose carrier didn't answer the submit.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum LostAnswer [
        /// The label in the portal.
        pub label: &'static str,
    ] {
        /// Wait for a receipt. The message never arrives twice, but may never arrive.
        Hold = "hold", "Don't resend";
        /// Submit the message once more after a short time. The message may arrive twice.
        Resend = "resend", "Resend once";
    }
}

/// An action by which staff change an application's status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum StatusAction {
    Approve,
    Suspend,
    Reinstate,
}

impl StatusAction {
    /// Returns the participle for a sentence like "The application is approved".
    pub const fn participle(self) -> &'static str {
        match self {
            Self::Approve => "approved",
            Self::Suspend => "suspended",
            Self::Reinstate => "reinstated",
        }
    }
}

impl ApplicationStatus {
    /// Returns the status after an action, or `None` if the action isn't possible in this status.
    /// `before` is the status before the suspension, which reinstating restores.
    pub const fn after(self, action: StatusAction, before: Self) -> Option<Self> {
        match (self, action) {
            (Self::Pending, StatusAction::Approve) => Some(Self::Active),
            (Self::Pending | Self::Active, StatusAction::Suspend) => Some(Self::Suspended),
            (Self::Suspended, StatusAction::Reinstate) => Some(before),
            _ => None,
        }
    }
}
