//! The actions of staff: their buttons, their notices, and which action undoes which.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// An action of staff on one subject. Addresses and forms use the code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DeskAct [
        /// The text of the action's button.
        pub label: &'static str,
        /// The sentence that says that the action was done.
        pub done: &'static str,
    ] {
        // On an application, identified by its reference.
        Approve = "approve", "Approve", "The application is approved.";
        Suspend = "suspend", "Suspend", "The application is suspended.";
        Reinstate = "reinstate", "Reinstate", "The application is reinstated.";
        // On a request for a sender name, identified by its ID.
        Accept = "accept", "Accept", "The sender name is accepted.";
        Reject = "reject", "Reject", "The sender name is rejected.";
        // On an account, identified by its ID.
        Disable = "disable", "Disable", "The account is disabled.";
        Enable = "enable", "Enable", "The account is enabled.";
        SignOut = "sign-out", "Sign out", "The account's devices are signed out.";
        Promote = "promote", "Promote", "The account is staff now.";
        Demote = "demote", "Demote", "The account is a customer now.";
        ResetFactor = "reset-factor", "Reset the factor",
            "The account has no second factor any more.";
        MakeResetLink = "make-reset-link", "Make a reset link",
            "The reset link is made. Earlier links no longer work.";
        // On a number for inbound messages, identified by the number, its keyword if it has one,
        // and the reference of its application, with spaces between them.
        AddNumber = "add-number", "Add", "The application has the number.";
        RemoveNumber = "remove-number", "Remove", "The number is removed.";
        // On a batch, identified by the reference of its application and its ID, with a space
        // between them.
        PauseBatch = "pause-batch", "Pause batch", "The batch is paused.";
        ResumeBatch = "resume-batch", "Resume batch", "The batch is resumed.";
        // On a carrier, identified by its name.
        Drain = "drain", "Drain", "The carrier is drained.";
        Resume = "resume", "Resume", "The carrier is resumed.";
        Rebind = "rebind", "Bind again", "The carrier's connections are closed, and opened again.";
        /// The subject is the name of the carrier, which may be empty, a space, and the text.
        OpenIncident = "open-incident", "Open note", "The note is open. Customers see it.";
        /// On a note about an incident, identified by its ID.
        EndIncident = "end-incident", "End", "The note has ended. Customers no longer see it.";
        /// On all carriers and routes. The subject is empty.
        Reload = "reload-carriers", "Reload carriers",
            "Every process reads carriers and routes again. An error is shown here.";
        // On prices. The subject is the text of a `PriceRequest`.
        SetBasePrices = "set-base-prices", "Set base prices",
            "The change of the base prices is saved.";
        SetPrice = "set-price", "Set price", "The price change is saved.";
        RemovePrice = "remove-price", "Remove price", "The removal of the price is saved.";
        /// On a price change that isn't in force yet, identified by its ID.
        CancelPrice = "cancel-price", "Cancel the change", "The price change is cancelled.";
        /// On a line of a bank statement that couldn't be credited, identified by the ID of the
        /// statement and the number of the line, with a space between them.
        MarkLine = "mark-line", "Mark as done", "The line is marked as done.";
    }
}

impl DeskAct {
    /// Returns the action that undoes this one, if there is one.
    pub const fn reverse(self) -> Option<Self> {
        Some(match self {
            Self::Suspend => Self::Reinstate,
            Self::Reinstate => Self::Suspend,
            Self::Disable => Self::Enable,
            Self::Enable => Self::Disable,
            Self::Promote => Self::Demote,
            Self::Demote => Self::Promote,
            Self::AddNumber => Self::RemoveNumber,
            Self::RemoveNumber => Self::AddNumber,
            Self::PauseBatch => Self::ResumeBatch,
            Self::ResumeBatch => Self::PauseBatch,
            Self::Drain => Self::Resume,
            Self::Resume => Self::Drain,
            Self::OpenIncident => Self::EndIncident,
            Self::SetBasePrices | Self::SetPrice | Self::RemovePrice => Self::CancelPrice,
            Self::Approve
            | Self::Accept
            | Self::Reject
            | Self::SignOut
            | Self::ResetFactor
            | Self::MakeResetLink
            | Self::Rebind
            | Self::EndIncident
            | Self::Reload
            | Self::CancelPrice
            | Self::MarkLine => return None,
        })
    }

    /// Whether the action always needs a confirmation. The two others help a customer, and take one
    /// click unless there is a warning about a sender name.
    pub const fn is_confirmed(self) -> bool {
        !matches!(self, Self::Approve | Self::Accept)
    }

    /// Whether staff have to give a reason.
    pub const fn needs_reason(self) -> bool {
        matches!(self, Self::Suspend | Self::Reject | Self::Disable | Self::PauseBatch)
    }

    /// Whether the action is on an account. Staff can't do it on their own.
    pub const fn is_on_account(self) -> bool {
        matches!(
            self,
            Self::Disable
                | Self::Enable
                | Self::SignOut
                | Self::Promote
                | Self::Demote
                | Self::ResetFactor
                | Self::MakeResetLink
        )
    }

    /// Whether the action takes something away. Its button is red. Signing out isn't such an
    /// action: the account can sign in again.
    pub const fn takes_away(self) -> bool {
        matches!(
            self,
            Self::Suspend
                | Self::Reject
                | Self::Disable
                | Self::Demote
                | Self::ResetFactor
                | Self::RemoveNumber
                | Self::PauseBatch
                | Self::Drain
                | Self::RemovePrice
        )
    }
}
