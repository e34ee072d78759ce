//! Prices of messages.

use std::collections::{BTreeMap, HashMap};

use serde::{Deserialize, Serialize};

use crate::money::Money;
use crate::number::{DIGITS_MAX, Kind, Number};
use crate::prefix::Prefix;

/// The base prices per page. They apply to numbers that match no prefix with its own price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prices {
    pub local: Money,
    pub international: Money,
}

/// The prices aren't valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("prices must satisfy international > local > 0")]
pub struct InvalidPrices;

impl Prices {
    /// Creates base prices per page.
    ///
    /// # Errors
    /// Returns an error unless international > local > 0.
    pub fn new(local: Money, international: Money) -> Result<Self, InvalidPrices> {
        if international > local && local > Money::ZERO {
            Ok(Self { local, international })
        } else {
            Err(InvalidPrices)
        }
    }

    /// Returns the price of one page to a number of this kind.
    pub const fn per_page(&self, kind: Kind) -> Money {
        match kind {
            Kind::Local => self.local,
            Kind::International => self.international,
        }
    }

    /// Returns the price of a message, or `None` on overflow.
    pub fn cost(&self, kind: Kind, pages: usize) -> Option<Money> {
        cost_at(self.per_page(kind), pages)
    }

    /// Returns the total price of messages that together have these pages, or `None` on overflow.
    pub fn cost_of_all(&self, pages: PageCount) -> Option<Money> {
        let local = self.cost(Kind::Local, usize::try_from(pages.local).ok()?)?;
        let international = usize::try_from(pages.international).ok()?;
        local.checked_add(self.cost(Kind::International, international)?)
    }
}

/// Returns the price of a message, or `None` on overflow. All pages of a message cost the same.
/// [`PricesInForce::per_page`] returns the price of a page to a number.
///
/// Uploads rely on this rule: they add up the pages of all rows and multiply the sum by the price.
/// An SQL statement in `store::check` repeats the rule.
pub fn cost_at(per_page: Money, pages: usize) -> Option<Money> {
    per_page.checked_times(pages)
}

/// The pages of several messages, by kind of number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCount {
    pub local: u64,
    pub international: u64,
}

impl PageCount {
    /// Counts the pages of a message. `kind` is the kind of the recipient's number.
    pub const fn add(&mut self, kind: Kind, pages: u64) {
        match kind {
            Kind::Local => self.local += pages,
            Kind::International => self.international += pages,
        }
    }

    /// Returns the pages multiplied by `times`, or `None` on overflow.
    pub fn checked_times(self, times: u64) -> Option<Self> {
        Some(Self {
            local: self.local.checked_mul(times)?,
            international: self.international.checked_mul(times)?,
        })
    }

    /// Returns the total number of pages, or `None` on overflow.
    pub const fn total(self) -> Option<u64> {
        self.local.checked_add(self.international)
    }
}

/// All prices in force at a time: the base prices and the prices of prefixes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricesInForce {
    base: Prices,
    by_prefix: HashMap<Prefix, Money>,
    /// Bit `n` is set if some prefix has `n` digits. Lookups skip all other lengths.
    lengths: u16,
}

/// The price of a page to a number, and where it comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitPrice {
    pub per_page: Money,
    /// The prefix whose price this is. `None` for a base price.
    pub prefix: Option<Prefix>,
}

impl PricesInForce {
    pub fn new(base: Prices, by_prefix: impl IntoIterator<Item = (Prefix, Money)>) -> Self {
        let by_prefix: HashMap<_, _> = by_prefix.into_iter().collect();
        let bits = by_prefix.keys().map(|prefix| 1 << prefix.digits().len());
        Self { base, lengths: bits.fold(0, |lengths, bit: u16| lengths | bit), by_prefix }
    }

    pub const fn base(&self) -> Prices {
        self.base
    }

    /// Returns the prices of prefixes, in no particular order.
    pub fn by_prefix(&self) -> impl Iterator<Item = (&Prefix, Money)> {
        self.by_prefix.iter().map(|(prefix, price)| (prefix, *price))
    }

    pub const fn has_prefixes(&self) -> bool {
        self.lengths != 0
    }

    /// Returns whether the same prefixes have prices in both. The prices may differ.
    pub fn has_prefixes_of(&self, other: &Self) -> bool {
        self.by_prefix.len() == other.by_prefix.len()
            && (self.by_prefix.keys()).all(|prefix| other.by_prefix.contains_key(prefix))
    }

    /// Returns the longest prefix of a number that has a price of its own, and this price. Returns
    /// `None` if there is no such prefix, and for local numbers.
    pub fn longest(&self, kind: Kind, digits: &str) -> Option<(&Prefix, Money)> {
        if kind == Kind::Local || self.lengths == 0 {
            return None;
        }
        // A masked number has more bytes than digits. Without this limit, the shift would overflow.
        let lengths = (1..=digits.len().min(DIGITS_MAX)).rev();
        let mut known = lengths.filter(|length| self.lengths & (1 << length) != 0);
        known.find_map(|length| {
            let (prefix, price) = self.by_prefix.get_key_value(digits.get(..length)?)?;
            Some((prefix, *price))
        })
    }

    /// Returns the price of one page to a number.
    pub fn per_page(&self, kind: Kind, digits: &str) -> Money {
        let longest = self.longest(kind, digits);
        longest.map_or_else(|| self.base.per_page(kind), |(_, price)| price)
    }

    /// Returns the price of one page to a number, and where it comes from.
    pub fn unit_price(&self, number: &Number) -> UnitPrice {
        let (kind, digits) = (number.kind(), number.digits());
        UnitPrice {
            per_page: self.per_page(kind, digits),
            prefix: self.longest(kind, digits).map(|(prefix, _)| prefix.clone()),
        }
    }

    /// Returns the price of a message, or `None` on overflow.
    pub fn cost(&self, number: &Number, pages: usize) -> Option<Money> {
        cost_at(self.per_page(number.kind(), number.digits()), pages)
    }

    /// Returns the total price of messages that together have these pages. Returns `None` on
    /// overflow, or if a prefix in `pages` has no price.
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
    /// Returns a stable code for the rule that this price follows from.
    pub fn rule(&self, number: &Number) -> String {
        match &self.prefix {
            Some(prefix) => format!("prefix_{prefix}"),
            None => number.rule().to_owned(),
        }
    }
}

/// The pages of several messages, counted separately for each price.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PagesByPrice {
    base: PageCount,
    /// Pages at the prices of prefixes, by prefix.
    by_prefix: BTreeMap<Prefix, u64>,
}

impl PagesByPrice {
    /// Adds the pages of a message to the count for the price of the recipient's number.
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

    /// Returns the pages multiplied by `times`, or `None` on overflow.
    pub fn checked_times(&self, times: u64) -> Option<Self> {
        let by_prefix = self.by_prefix.iter();
        let times_each = by_prefix.map(|(prefix, n)| Some((prefix.clone(), n.checked_mul(times)?)));
        Some(Self {
            base: self.base.checked_times(times)?,
            by_prefix: times_each.collect::<Option<_>>()?,
        })
    }

    /// Returns the total number of pages, or `None` on overflow.
    pub fn total(&self) -> Option<u64> {
        let mut counts = self.by_prefix.values();
        counts.try_fold(self.base.total()?, |sum, count| sum.checked_add(*count))
    }
}
