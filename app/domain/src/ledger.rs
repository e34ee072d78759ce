//! The ledger: its accounts, and the kinds of its transfers.

use serde::{Deserialize, Serialize};

use super::ApplicationId;
use super::words::words;

/// A ledger account, which money moves from or to. An application's account has the application's
/// ID. The service's own accounts have negative numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LedgerAccount(pub i64);

impl LedgerAccount {
    /// The account that deposits come from.
    pub const BANK: Self = Self(-1);
    /// The account of deposits whose reference belongs to no application.
    pub const UNMATCHED: Self = Self(-2);
    pub const REVENUE: Self = Self(-3);
    /// The account of reservations: the prices of uploads whose rows aren't messages yet.
    pub const RESERVED: Self = Self(-4);
    /// The service's own accounts, by the names that SQL uses.
    pub const OWN: [(&'static str, Self); 4] = [
        ("BANK", Self::BANK),
        ("UNMATCHED", Self::UNMATCHED),
        ("REVENUE", Self::REVENUE),
        ("RESERVED", Self::RESERVED),
    ];
}

impl From<ApplicationId> for LedgerAccount {
    fn from(application: ApplicationId) -> Self {
        Self(application.0)
    }
}

words! {
    /// Why money moves from one account of the ledger to another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum TransferKind {
        /// From the bank, or from the unmatched deposits, to an application.
        Deposit = "deposit",
        /// From the bank to the unmatched deposits, because no application has the reference.
        Unmatched = "unmatched",
        /// The price of an accepted message or batch, from the application.
        Charge = "charge",
        /// From the amount reserved for a batch to revenue, as the batch's rows become messages.
        Settle = "settle",
        /// The price of a message that no carrier accepted, back to the application.
        Release = "release",
        /// From the unmatched deposits back to the bank, because no application gets the money.
        Return = "return",
    }
}

impl TransferKind {
    /// Returns the kind's code in the database: its index in [`Self::ALL`].
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Returns the kind with a code in the database.
    pub fn from_code(code: i64) -> Option<Self> {
        let place = usize::try_from(code).ok()?;
        Self::ALL.get(place).copied()
    }
}
