//! Requests by one member of staff that a second one must approve.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::ids::Reference;
use crate::price_history::PriceChange;

/// The number of days that a request waits for a second member of staff.
pub const APPROVAL_DAYS: i64 = 7;

/// An action that needs two members of staff if the settings say so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum StaffAct {
    AssignDeposit {
        bank_id: String,
        reference: Reference,
    },
    /// Marks an unmatched deposit as returned to the bank.
    ReturnDeposit {
        bank_id: String,
        note: String,
    },
    /// Credits the lines of a bank statement.
    ConfirmStatement {
        id: i64,
    },
    SetPrice {
        change: PriceChange,
        /// When the price begins. `None` for the time of the approval.
        from: Option<Timestamp>,
    },
    ResetFactor {
        email: String,
    },
    Promote {
        email: String,
    },
}

impl fmt::Display for StaffAct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AssignDeposit { bank_id, reference } => {
                write!(f, "Assign the deposit {bank_id} to the application {reference}")
            }
            Self::ReturnDeposit { bank_id, note } => {
                write!(f, "Return the deposit {bank_id} to the bank: {note}")
            }
            Self::ConfirmStatement { id } => write!(f, "Credit the bank statement {id}"),
            Self::SetPrice { change, from } => {
                match change {
                    PriceChange::Base(prices) => write!(
                        f,
                        "Set the base prices to {} and {}",
                        prices.local.shown(),
                        prices.international.shown()
                    ),
                    PriceChange::Prefix(prefix, Some(price)) => {
                        write!(f, "Set the price of the prefix {prefix} to {}", price.shown())
                    }
                    PriceChange::Prefix(prefix, None) => {
                        write!(f, "Remove the price of the prefix {prefix}")
                    }
                    PriceChange::Cancel(id) => write!(f, "Cancel the price change {id}"),
                }?;
                from.map_or(Ok(()), |from| write!(f, " from {} UTC", from.to_table()))
            }
            Self::ResetFactor { email } => write!(f, "Remove the second factor of {email}"),
            Self::Promote { email } => write!(f, "Make {email} a member of staff"),
        }
    }
}

/// A request that waits for a second member of staff.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRecord {
    pub id: i64,
    pub act: StaffAct,
    /// The account of the person who made the request.
    pub asked_by: i64,
    /// The email of the person who made the request.
    pub email: String,
    pub asked_at: Timestamp,
}
