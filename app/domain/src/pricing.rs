//! What a page costs.

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
        self.per_page(kind).checked_times(pages)
    }
}
