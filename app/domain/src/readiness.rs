//! What an application needs to send with its API key, and what of it is missing now.

use serde::{Deserialize, Serialize};

use crate::application::{ApplicationStatus, Category};
use crate::money::Money;
use crate::records::ApplicationRecord;
use crate::sender_name::SenderState;

/// What an application needs to send with its API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Activation,
    SenderName,
    /// Money for a page to a local number.
    Balance,
    /// An application has it from the beginning.
    Key,
    /// A carrier that takes messages.
    Carrier,
}

impl Need {
    /// In the order in which a customer meets them.
    pub const ALL: [Self; 5] = [
        Self::Activation,
        Self::SenderName,
        Self::Balance,
        Self::Key,
        Self::Carrier,
    ];
}

/// What keeps an application from sending, or what it sends from being submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blocker {
    /// Applications of its category send no messages at all.
    Category,
    /// It is Pending, and the customer didn't request activation yet.
    ActivationNotRequested,
    /// It is Pending, and staff decide about the request.
    ActivationWaits,
    Suspended,
    /// Staff check the sender name that it was created with.
    SenderNameWaits,
    /// The sender name that it was created with was rejected.
    SenderNameRejected,
    Balance,
    /// What is sent is accepted, and waits.
    NoCarrier,
}

impl Blocker {
    /// What is missing; `None` where nothing helps.
    pub const fn need(self) -> Option<Need> {
        match self {
            Self::Category => None,
            Self::ActivationNotRequested | Self::ActivationWaits | Self::Suspended => {
                Some(Need::Activation)
            }
            Self::SenderNameWaits | Self::SenderNameRejected => Some(Need::SenderName),
            Self::Balance => Some(Need::Balance),
            Self::NoCarrier => Some(Need::Carrier),
        }
    }

    /// Whether the customer can do something about it; otherwise staff or the operator act.
    pub const fn is_for_customer(self) -> bool {
        match self {
            Self::ActivationNotRequested | Self::SenderNameRejected | Self::Balance => true,
            Self::Category
            | Self::ActivationWaits
            | Self::Suspended
            | Self::SenderNameWaits
            | Self::NoCarrier => false,
        }
    }
}

/// Everything that keeps an application from sending now. `local_price` is what a page to a local
/// number costs, `has_carrier` whether a carrier takes messages.
pub fn blockers(
    application: &ApplicationRecord,
    local_price: Money,
    has_carrier: bool,
) -> Vec<Blocker> {
    let activation = match application.status {
        ApplicationStatus::Active => None,
        ApplicationStatus::Suspended => Some(Blocker::Suspended),
        ApplicationStatus::Pending if application.activation_requested_at.is_some() => {
            Some(Blocker::ActivationWaits)
        }
        ApplicationStatus::Pending => Some(Blocker::ActivationNotRequested),
    };
    if application.category != Category::Sms {
        return [Some(Blocker::Category), activation]
            .into_iter()
            .flatten()
            .collect();
    }
    let sender = match application.sender_state {
        SenderState::Pending => Some(Blocker::SenderNameWaits),
        SenderState::Rejected => Some(Blocker::SenderNameRejected),
        SenderState::None | SenderState::Requested | SenderState::Accepted => None,
    };
    let balance = (application.balance < local_price).then_some(Blocker::Balance);
    let carrier = (!has_carrier).then_some(Blocker::NoCarrier);
    [activation, sender, balance, carrier]
        .into_iter()
        .flatten()
        .collect()
}
