//! What a message costs.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::money::Money;
use crate::number::{Kind, Number};
use crate::prefix::Prefix;

/// The base prices per page: those of all numbers without a prefix that has its own price.
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
    pub const fn per_page(&self, kind: Kind) -> Money {
        match kind {
            Kind::Local => self.local,
            Kind::International => self.international,
        }
    }

    /// The price of a message; `None` when it is more than can be held.
    pub fn cost(&self, kind: Kind, pages: usize) -> Option<Money> {
        cost_at(self.per_page(kind), pages)
    }

    /// The price of all messages that have these pages together: the sum of their prices. `None`
    /// when it is more than can be held.
    pub fn cost_of_all(&self, pages: PageCount) -> Option<Money> {
        let local = self.cost(Kind::Local, usize::try_from(pages.local).ok()?)?;
        let international = usize::try_from(pages.international).ok()?;
        local.checked_add(self.cost(Kind::International, international)?)
    }
}

/// The rule that all prices follow: each page of a message costs the same. Uploads rely on it,
/// since they are priced by their pages in all, and two statements of the database repeat it.
/// `None` when the price is more than can be held.
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
    pub fn checked_times(self, times: u64) -> Option<Self> {
        Some(Self {
            local: self.local.checked_mul(times)?,
            international: self.international.checked_mul(times)?,
        })
    }

    /// The pages of both kinds together; `None` when the sum is more than can be held.
    pub const fn total(self) -> Option<u64> {
        self.local.checked_add(self.international)
    }
}

/// All prices in force at a time: the base prices, and those of prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricesInForce {
    base: Prices,
    by_prefix: HashMap<Prefix, Money>,
    /// Bit `n` is set if some prefix has `n` digits: no other length is looked up.
    lengths: u16,
}

/// Why a page to a number costs what it costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPrice {
    pub per_page: Money,
    /// The prefix whose price it is; `None` for a base price.
    pub prefix: Option<Prefix>,
}

impl PricesInForce {
    pub fn new(base: Prices, by_prefix: impl IntoIterator<Item = (Prefix, Money)>) -> Self {
        let by_prefix: HashMap<_, _> = by_prefix.into_iter().collect();
        let bits = by_prefix.keys().map(|prefix| 1 << prefix.digits().len());
        Self {
            base,
            lengths: bits.fold(0, |lengths, bit: u16| lengths | bit),
            by_prefix,
        }
    }

    pub const fn base(&self) -> Prices {
        self.base
    }

    /// The prices of prefixes, in no order.
    pub fn by_prefix(&self) -> impl Iterator<Item = (&Prefix, Money)> {
        self.by_prefix
            .iter()
            .map(|(prefix, price)| (prefix, *price))
    }

    pub const fn has_prefixes(&self) -> bool {
        self.lengths != 0
    }

    /// Whether the same prefixes have prices here as there, be they other prices.
    pub fn has_prefixes_of(&self, other: &Self) -> bool {
        self.by_prefix.len() == other.by_prefix.len()
            && (self.by_prefix.keys()).all(|prefix| other.by_prefix.contains_key(prefix))
    }

    /// The longest prefix of a number that has a price, and the price. Local numbers have none.
    pub fn longest(&self, kind: Kind, digits: &str) -> Option<(&Prefix, Money)> {
        if kind == Kind::Local || self.lengths == 0 {
            return None;
        }
        let lengths = (1..=digits.len()).rev();
        let mut known = lengths.filter(|length| self.lengths & (1 << length) != 0);
        known.find_map(|length| {
            let (prefix, price) = self.by_prefix.get_key_value(digits.get(..length)?)?;
            Some((prefix, *price))
        })
    }

    /// The price of one page to a number.
    pub fn per_page(&self, kind: Kind, digits: &str) -> Money {
        let longest = self.longest(kind, digits);
        longest.map_or_else(|| self.base.per_page(kind), |(_, price)| price)
    }

    /// The price of one page to a number, and why.
    pub fn unit_price(&self, number: &Number) -> UnitPrice {
        let (kind, digits) = (number.kind(), number.digits());
        UnitPrice {
            per_page: self.per_page(kind, digits),
            prefix: self.longest(kind, digits).map(|(prefix, _)| prefix.clone()),
        }
    }

    /// The price of a message; `None` when it is more than can be held.
    pub fn cost(&self, number: &Number, pages: usize) -> Option<Money> {
        cost_at(self.per_page(number.kind(), number.digits()), pages)
    }

    /// The price of all messages that have these pages together: the sum of their prices. `None`
    /// when it is more than can be held, or pages of a prefix without a price are among them.
    pub fn cost_of_all(&self, pages: &PagesByPrice) -> Option<Money> {
        let mut sum = self.base.cost_of_all(pages.base)?;
        for (prefix, count) in &pages.by_prefix {
            let per_page = *self.by_prefix.get(prefix)?;
            let cost = cost_at(per_page, usize::try_from(*count).ok()?)?;
            sum = sum.checked_add(cost)?;
        }
        Some(sum)
    }
}

impl UnitPrice {
    /// The rule by which a number has this price, as a stable word.
    pub fn rule(&self, number: &Number) -> String {
        match &self.prefix {
            Some(prefix) => format!("prefix_{prefix}"),
            None => number.rule().to_owned(),
        }
    }
}

/// Pages of several messages, by the prices that they have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagesByPrice {
    /// Pages at base prices.
    base: PageCount,
    /// Pages to numbers whose longest prefix with a price is this.
    by_prefix: BTreeMap<Prefix, u64>,
}

impl PagesByPrice {
    /// Adds the pages of a message to a number.
    pub fn add(&mut self, prices: &PricesInForce, (kind, digits): (Kind, &str), pages: u64) {
        let Some((prefix, _)) = prices.longest(kind, digits) else {
            return self.base.add(kind, pages);
        };
        match self.by_prefix.get_mut(prefix) {
            Some(count) => *count += pages,
            None => {
                self.by_prefix.insert(prefix.clone(), pages);
            }
        }
    }

    /// Adds pages at base prices.
    pub const fn add_at_base(&mut self, pages: PageCount) {
        self.base.add(Kind::Local, pages.local);
        self.base.add(Kind::International, pages.international);
    }

    /// These pages, multiplied; `None` when the product is more than can be held.
    pub fn checked_times(&self, times: u64) -> Option<Self> {
        let by_prefix = self.by_prefix.iter();
        let times_each = by_prefix.map(|(prefix, n)| Some((prefix.clone(), n.checked_mul(times)?)));
        Some(Self {
            base: self.base.checked_times(times)?,
            by_prefix: times_each.collect::<Option<_>>()?,
        })
    }

    /// All pages together; `None` when the sum is more than can be held.
    pub fn total(&self) -> Option<u64> {
        let mut counts = self.by_prefix.values();
        counts.try_fold(self.base.total()?, |sum, count| sum.checked_add(*count))
    }
}
