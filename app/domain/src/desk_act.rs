//! The actions of staff: their buttons, their notices, and which action undoes which.

use serde::{Deserialize, Serialize};

use crate::PriceChange;
use crate::words::words;

words! {
    /// An action of staff on one subject. Addresses and forms use the code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DeskAct [
        /// The text of the action's button.
        pub label: &'static str,
        /// What was done, after the subject's name. See [`Self::done`].
        predicate: &'static str,
    ] {
        // On an application, identified by its reference.
        Approve = "approve", "Approve", "is approved.";
        Suspend = "suspend", "Suspend", "is suspended.";
        Reinstate = "reinstate", "Reinstate", "is reinstated.";
        // On a request for a sender name, identified by its ID.
        Accept = "accept", "Accept", "is accepted.";
        Reject = "reject", "Reject", "is rejected.";
        // On an account, identified by its ID.
        Disable = "disable", "Disable", "is disabled.";
        Enable = "enable", "Enable", "is enabled.";
        SignOut = "sign-out", "Sign out", "is signed out on all devices.";
        Promote = "promote", "Promote", "is staff now.";
        Demote = "demote", "Demote", "is a customer now.";
        ResetFactor = "reset-factor", "Reset the second factor",
            "has no second factor any more.";
        MakeResetLink = "make-reset-link", "Make a reset link",
            "has a new reset link. Earlier links no longer work.";
        // On a number for inbound messages, identified by the number, its keyword if it has one,
        // and the reference of its application, with spaces between them.
        AddNumber = "add-number", "Add", "is assigned.";
        RemoveNumber = "remove-number", "Remove", "is removed.";
        // On a batch, identified by the reference of its application and its ID, with a space
        // between them.
        PauseBatch = "pause-batch", "Pause batch", "is paused.";
        ResumeBatch = "resume-batch", "Resume batch", "is resumed.";
        // On a carrier, identified by its name.
        Drain = "drain", "Drain", "is drained.";
        Resume = "resume", "Resume", "is resumed.";
        Rebind = "rebind", "Bind again", "closes its connections and opens them again.";
        /// The subject is the name of the carrier, which may be empty, a space, and the text.
        OpenIncident = "open-incident", "Open note", "is open. Customers see it.";
        /// On a note about an incident, identified by its ID.
        EndIncident = "end-incident", "End", "has ended. Customers no longer see it.";
        /// On all carriers and routes. The subject is empty.
        Reload = "reload-carriers", "Reload carriers",
            "Every process reloads carriers and routes. If the settings have an error, this page \
             shows it.";
        // On prices. The subject is the text of a `PriceRequest`.
        SetBasePrices = "set-base-prices", "Set base prices", "is saved.";
        SetPrice = "set-price", "Set price", "is saved.";
        RemovePrice = "remove-price", "Remove price", "is saved.";
        /// On a price change that isn't in force yet, identified by its ID.
        CancelPrice = "cancel-price", "Cancel the change", "is cancelled.";
        /// On a line of a bank statement that couldn't be credited, identified by the ID of the
        /// statement and the number of the line, with a space between them.
        MarkLine = "mark-line", "Mark as done", "is marked as done.";
    }
}

impl DeskAct {
    /// Returns the sentence that says that the action was done. `name` is the subject's name, as in
    /// "the sender name acme". Empty for actions on no particular subject.
    pub fn done(self, name: &str) -> String {
        let mut first = name.chars();
        let name = match first.next() {
            Some(letter) => format!("{}{}", letter.to_ascii_uppercase(), first.as_str()),
            None if self == Self::Reload => String::new(),
            None => return format!("Done: {}.", self.label()),
        };
        format!("{name} {}", self.predicate()).trim_start().to_owned()
    }

    /// Returns the action that makes a price change.
    pub const fn of_price(change: &PriceChange) -> Self {
        match change {
            PriceChange::Base(_) => Self::SetBasePrices,
            PriceChange::Prefix(_, Some(_)) => Self::SetPrice,
            PriceChange::Prefix(_, None) => Self::RemovePrice,
            PriceChange::Cancel(_) => Self::CancelPrice,
        }
    }

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
