//! The actions of staff: their buttons, their notices, and which action undoes which.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// An action of staff on one subject. Addresses and forms use the code.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum DeskAct {
        // On an application, identified by its reference.
        Approve = "approve",
        Suspend = "suspend",
        Reinstate = "reinstate",
        // On a request for a sender name, identified by its ID.
        Accept = "accept",
        Reject = "reject",
        // On an account, identified by its ID.
        Disable = "disable",
        Enable = "enable",
        SignOut = "sign-out",
        Promote = "promote",
        Demote = "demote",
        ResetFactor = "reset-factor",
        // On a carrier, identified by its name.
        Drain = "drain",
        Resume = "resume",
        // On prices. The subject is the text of a `PriceRequest`.
        SetBasePrices = "set-base-prices",
        SetPrice = "set-price",
        RemovePrice = "remove-price",
        /// On a price change that isn't in force yet, identified by its ID.
        CancelPrice = "cancel-price",
    }
}

impl DeskAct {
    /// Returns the text of the action's button.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Approve => "Approve",
            Self::Suspend => "Suspend",
            Self::Reinstate => "Reinstate",
            Self::Accept => "Accept",
            Self::Reject => "Reject",
            Self::Disable => "Disable",
            Self::Enable => "Enable",
            Self::SignOut => "Sign out",
            Self::Promote => "Promote",
            Self::Demote => "Demote",
            Self::ResetFactor => "Reset the factor",
            Self::Drain => "Drain",
            Self::Resume => "Resume",
            Self::SetBasePrices => "Set base prices",
            Self::SetPrice => "Set price",
            Self::RemovePrice => "Remove price",
            Self::CancelPrice => "Cancel the change",
        }
    }

    /// Returns the sentence that says that the action was done.
    pub const fn done(self) -> &'static str {
        match self {
            Self::Approve => "The application is approved.",
            Self::Suspend => "The application is suspended.",
            Self::Reinstate => "The application is reinstated.",
            Self::Accept => "The sender name is accepted.",
            Self::Reject => "The sender name is rejected.",
            Self::Disable => "The account is disabled.",
            Self::Enable => "The account is enabled.",
            Self::SignOut => "The account's devices are signed out.",
            Self::Promote => "The account is staff now.",
            Self::Demote => "The account is a customer now.",
            Self::ResetFactor => "The account has no second factor any more.",
            Self::Drain => "The carrier is drained.",
            Self::Resume => "The carrier is resumed.",
            Self::SetBasePrices => "The base prices are set.",
            Self::SetPrice => "The price is set.",
            Self::RemovePrice => "The price is removed.",
            Self::CancelPrice => "The price change is cancelled.",
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
            Self::Drain => Self::Resume,
            Self::Resume => Self::Drain,
            Self::SetBasePrices | Self::SetPrice | Self::RemovePrice => Self::CancelPrice,
            Self::Approve
            | Self::Accept
            | Self::Reject
            | Self::SignOut
            | Self::ResetFactor
            | Self::CancelPrice => return None,
        })
    }

    /// Whether the action needs a confirmation. The two others help a customer, and one click does
    /// them.
    pub const fn is_confirmed(self) -> bool {
        !matches!(self, Self::Approve | Self::Accept)
    }

    /// Whether staff have to give a reason.
    pub const fn needs_reason(self) -> bool {
        matches!(self, Self::Suspend | Self::Reject | Self::Disable)
    }

    /// Whether the action takes something away. Its button is red.
    pub const fn takes_away(self) -> bool {
        matches!(
            self,
            Self::Suspend
                | Self::Reject
                | Self::Disable
                | Self::SignOut
                | Self::Demote
                | Self::ResetFactor
                | Self::Drain
                | Self::RemovePrice
        )
    }
}
