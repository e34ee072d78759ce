//! What a message costs.

use serde::{Deserialize, Serialize};

use crate::money::Money;
use crate::number::Kind;

/// Prices per page in force at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    pub local: Money,
    pub international: Money,
}

/// The prices can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("prices must satisfy international > local > 0")]
pub struct InvalidPrices;

impl Prices {
    /// Prices per page.
    ///
    /// # Errors
    /// Unless international > local > 0.
    pub fn new(local: Money, international: Money) -> Result<Self, InvalidPrices> {
        if international > local && local > Money::ZERO {
            Ok(Self {
                local,
                international,
            })
        } else {
            Err(InvalidPrices)
        }
    }

    /// The price of one page to a number of this kind.
    #[must_use]
    pub const fn per_page(&self, kind: Kind) -> Money {
        match kind {
            Kind::Local => self.local,
            Kind::International => self.international,
        }
    }

    /// The price of a message; `None` when it is more than can be held.
    #[must_use]
    pub fn cost(&self, kind: Kind, pages: usize) -> Option<Money> {
        cost_at(self.per_page(kind), pages)
    }

    /// The price of all messages that have these pages together: the sum of their prices. `None`
    /// when it is more than can be held.
    #[must_use]
    pub fn cost_of_all(&self, pages: PageCount) -> Option<Money> {
        let local = self.cost(Kind::Local, usize::try_from(pages.local).ok()?)?;
        let international = usize::try_from(pages.international).ok()?;
        local.checked_add(self.cost(Kind::International, international)?)
    }
}

/// The rule that all prices follow: each page of a message costs the same. Uploads rely on it,
/// since they are priced by their pages in all, and two statements of the database repeat it.
/// `None` when the price is more than can be held.
#[must_use]
pub fn cost_at(per_page: Money, pages: usize) -> Option<Money> {
    per_page.checked_times(pages)
}

/// Pages of several messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCount {
    pub local: u64,
    pub international: u64,
}

impl PageCount {
    /// Adds the pages of a message to a number of this kind.
    pub const fn add(&mut self, kind: Kind, pages: u64) {
        match kind {
            Kind::Local => self.local += pages,
            Kind::International => self.international += pages,
        }
    }

    /// These pages, multiplied; `None` when the product is more than can be held.
    #[must_use]
    pub fn checked_times(self, times: u64) -> Option<Self> {
        Some(Self {
            local: self.local.checked_mul(times)?,
            international: self.international.checked_mul(times)?,
        })
    }

    /// The pages of both kinds together; `None` when the sum is more than can be held.
    #[must_use]
    pub const fn total(self) -> Option<u64> {
        self.local.checked_add(self.international)
    }
}
