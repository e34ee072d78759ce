//! The requirements for sending with the API key, and which of them an application lacks.

use serde::{Deserialize, Serialize};

use crate::application::{ApplicationStatus, Category};
use crate::money::Money;
use crate::records::ApplicationRecord;
use crate::sender_name::SenderState;
use crate::timestamp::Timestamp;

/// A requirement for sending with the API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    Activation,
    SenderName,
    /// Enough money for a page to a local number, within the limit on the day's spend.
    Balance,
    /// Every application has a key from the start.
    Key,
    /// A carrier that accepts messages.
    Carrier,
}

impl Need {
    /// All requirements, in the order in which customers meet them.
    pub const ALL: [Self; 5] =
        [Self::Activation, Self::SenderName, Self::Balance, Self::Key, Self::Carrier];
}

/// The limit on the day's spend, if it leaves too little.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpendCap {
    pub max: Money,
    /// When the account's next day begins, on which the spend starts at 0.
    pub until: Timestamp,
}

/// Something that keeps an application from sending, or its messages from being submitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Blocker {
    /// Staff disabled the account, or its owner closed it.
    AccountDisabled,
    /// Applications of this category can't send messages.
    Category,
    /// The application is Pending, and the customer hasn't requested activation yet.
    ActivationNotRequested,
    /// The application is Pending, and staff haven't decided on the activation request yet.
    ActivationWaits,
    Suspended,
    /// Staff haven't decided yet on the sender name that the application was created with.
    SenderNameWaits,
    /// Staff rejected the sender name that the application was created with.
    SenderNameRejected,
    Balance,
    SpendCap(SpendCap),
    /// Messages are accepted but wait for a carrier.
    NoCarrier,
}

impl Blocker {
    /// Returns the missing requirement, or `None` if the application can never send.
    pub const fn need(self) -> Option<Need> {
        match self {
            Self::Category => None,
            Self::AccountDisabled
            | Self::ActivationNotRequested
            | Self::ActivationWaits
            | Self::Suspended => Some(Need::Activation),
            Self::SenderNameWaits | Self::SenderNameRejected => Some(Need::SenderName),
            Self::Balance | Self::SpendCap(_) => Some(Need::Balance),
            Self::NoCarrier => Some(Need::Carrier),
        }
    }

    /// Whether the customer can do something about it. Otherwise, staff or the operator must act.
    pub const fn is_for_customer(self) -> bool {
        match self {
            Self::ActivationNotRequested
            | Self::SenderNameRejected
            | Self::Balance
            | Self::SpendCap(_) => true,
            Self::AccountDisabled
            | Self::Category
            | Self::ActivationWaits
            | Self::Suspended
            | Self::SenderNameWaits
            | Self::NoCarrier => false,
        }
    }
}

/// Returns everything that keeps an application from sending now. `local_price` is the price of a
/// page to a local number. `has_carrier` is true if a carrier accepts messages. `spend_cap` is the
/// limit on the day's spend if it is used up.
pub fn blockers(
    application: &ApplicationRecord,
    local_price: Money,
    has_carrier: bool,
    spend_cap: Option<SpendCap>,
) -> Vec<Blocker> {
    let account = application.account_disabled.then_some(Blocker::AccountDisabled);
    let activation = match application.status {
        ApplicationStatus::Active => None,
        ApplicationStatus::Suspended => Some(Blocker::Suspended),
        ApplicationStatus::Pending if application.activation_requested_at.is_some() => {
            Some(Blocker::ActivationWaits)
        }
        ApplicationStatus::Pending => Some(Blocker::ActivationNotRequested),
    };
    if application.category != Category::Sms {
        return [Some(Blocker::Category), account, activation].into_iter().flatten().collect();
    }
    let sender = match application.sender_state {
        SenderState::Pending => Some(Blocker::SenderNameWaits),
        SenderState::Rejected => Some(Blocker::SenderNameRejected),
        SenderState::None | SenderState::Requested | SenderState::Accepted => None,
    };
    let balance = (application.balance < local_price).then_some(Blocker::Balance);
    let carrier = (!has_carrier).then_some(Blocker::NoCarrier);
    let spend_cap = spend_cap.map(Blocker::SpendCap);
    [account, activation, sender, balance, spend_cap, carrier].into_iter().flatten().collect()
}
