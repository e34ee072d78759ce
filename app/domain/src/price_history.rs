//! The history of all prices, and the rules for changing them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use rust_decimal::Decimal;
use serde::{Deserialize, Serialize};

use crate::money::Money;
use crate::number::{Kind, Number};
use crate::prefix::Prefix;
use crate::pricing::{Prices, PricesInForce, UnitPrice};
use crate::refusal::Refusal;
use crate::timestamp::Timestamp;

/// A change that comes into force within this time can't be cancelled any more. Another process,
/// whose clock is ahead, may charge the new price already.
const CANCEL_BEFORE_MS: i64 = 60_000;
/// A new price that is more than this many times the old one, or less than one part in this many,
/// is probably a mistake.
pub const LARGE_FACTOR: i64 = 3;

/// The content of a price change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PriceChange {
    Base(Prices),
    /// The price per page of international numbers that start with the prefix. `None` removes the
    /// prefix's own price.
    Prefix(Prefix, Option<Money>),
    /// Cancels the change with this ID, which isn't in force yet.
    Cancel(i64),
}

impl PriceChange {
    /// Returns the prefix whose price changes, or `None` for the base prices.
    pub const fn prefix(&self) -> Option<&Prefix> {
        match self {
            Self::Base(_) | Self::Cancel(_) => None,
            Self::Prefix(prefix, _) => Some(prefix),
        }
    }
}

/// A requested price change. As a text it has 3 or 4 words: `base 0.06 0.3 now`, `27 0.31
/// 2026-12-01T00:00:00.000Z`, `27 none now`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceRequest {
    pub change: PriceChange,
    /// When the change comes into force. `None` for at once.
    pub from: Option<Timestamp>,
}

impl PriceRequest {
    /// Parses the text of a request.
    pub fn parse(text: &str) -> Option<Self> {
        let words: Vec<_> = text.split(' ').collect();
        let price = |text: &str| Money::parse(text).ok();
        let (change, from) = match *words.as_slice() {
            ["base", local, international, from] => {
                let prices = Prices::new(price(local)?, price(international)?).ok()?;
                (PriceChange::Base(prices), from)
            }
            [prefix, "none", from] => {
                (PriceChange::Prefix(Prefix::parse(prefix).ok()?, None), from)
            }
            [prefix, amount, from] => {
                (PriceChange::Prefix(Prefix::parse(prefix).ok()?, Some(price(amount)?)), from)
            }
            _ => return None,
        };
        let from = match from {
            "now" => None,
            time => Some(Timestamp::parse(time)?),
        };
        Some(Self { change, from })
    }
}

impl fmt::Display for PriceRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.change {
            PriceChange::Base(prices) => {
                write!(f, "base {} {}", prices.local, prices.international)
            }
            PriceChange::Prefix(prefix, Some(price)) => write!(f, "{prefix} {price}"),
            PriceChange::Prefix(prefix, None) => write!(f, "{prefix} none"),
            PriceChange::Cancel(id) => write!(f, "cancel {id}"),
        }?;
        match self.from {
            Some(from) => write!(f, " {from}"),
            None => f.write_str(" now"),
        }
    }
}

/// The effect of a change on the price of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceStep {
    pub kind: Kind,
    pub old: Money,
    pub new: Money,
}

impl PriceStep {
    /// Whether the price changes by a factor so large that it is probably a mistake.
    pub const fn is_large(&self) -> bool {
        let (old, new) = (self.old.micros(), self.new.micros());
        new > old.saturating_mul(LARGE_FACTOR) || old > new.saturating_mul(LARGE_FACTOR)
    }

    /// Returns the new price divided by the old one, with at most two decimals.
    pub fn factor(&self) -> String {
        let [old, new] = [self.old, self.new].map(|price| Decimal::from(price.micros()));
        new.checked_div(old).unwrap_or_default().round_dp(2).normalize().to_string()
    }
}

/// A price change as stored. Stored changes are never modified or deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PriceRow {
    /// Increases with each change.
    pub id: i64,
    pub change: PriceChange,
    /// When the change comes into force. It stays in force until the next change of the same price.
    pub from: Timestamp,
    pub set_at: Timestamp,
}

/// A price per page, as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceRecord {
    /// The prefix of the numbers that the price applies to. `None` for a base price.
    pub prefix: Option<Prefix>,
    pub kind: Kind,
    /// The price. `None` if the change removes the prefix's own price.
    pub per_page: Option<Money>,
    /// When the price comes into force.
    pub from: Timestamp,
}

/// All price changes stored so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PriceHistory {
    /// The changes that aren't cancelled, in the order in which they come into force.
    rows: Vec<PriceRow>,
    /// All changes, including cancelled ones and the cancellations.
    all: Vec<PriceRow>,
    version: i64,
    last_set: Option<Timestamp>,
}

impl PriceHistory {
    pub fn new(all: Vec<PriceRow>) -> Self {
        let cancelled: BTreeSet<_> = all.iter().filter_map(cancelled_by).collect();
        let holds = |row: &&PriceRow| cancelled_by(row).is_none() && !cancelled.contains(&row.id);
        let mut rows: Vec<_> = all.iter().filter(holds).cloned().collect();
        rows.sort_by_key(|row| (row.from, row.id));
        Self {
            version: all.iter().map(|row| row.id).max().unwrap_or(0),
            last_set: all.iter().map(|row| row.set_at).max(),
            rows,
            all,
        }
    }

    /// Returns the ID of the newest change, or 0 if there is none.
    pub const fn version(&self) -> i64 {
        self.version
    }

    /// Returns the changes that aren't cancelled, in the order in which they come into force.
    pub fn rows(&self) -> &[PriceRow] {
        &self.rows
    }

    /// Returns the history as it was when the change with this ID was the newest.
    pub fn as_of(&self, version: i64) -> Self {
        let known = self.all.iter().filter(|row| row.id <= version);
        Self::new(known.cloned().collect())
    }

    /// Returns the effects of a change on the prices at the time `from`. Both base prices have a
    /// step, and so has the price of a prefix. A cancelled change has its steps from the time at
    /// which it would have come into force.
    pub fn steps(&self, change: &PriceChange, from: Timestamp) -> Vec<PriceStep> {
        let (subject, from) = match change {
            PriceChange::Cancel(id) => match self.rows.iter().find(|row| row.id == *id) {
                Some(row) => (&row.change, row.from),
                None => return Vec::new(),
            },
            change => (change, from),
        };
        let prices = self.at(from).zip(self.with(change, from, from).at(from));
        let Some((old, new)) = prices else {
            return Vec::new();
        };
        let step = |kind, digits: &str| PriceStep {
            kind,
            old: old.per_page(kind, digits),
            new: new.per_page(kind, digits),
        };
        match subject.prefix() {
            Some(prefix) => vec![step(Kind::International, prefix.digits())],
            None => [Kind::Local, Kind::International].map(|kind| step(kind, "")).to_vec(),
        }
    }

    /// Returns the history with one more change.
    fn with(&self, change: &PriceChange, from: Timestamp, now: Timestamp) -> Self {
        let id = self.version.saturating_add(1);
        let row = PriceRow { id, change: change.clone(), from, set_at: now };
        Self::new(self.all.iter().cloned().chain([row]).collect())
    }

    /// Returns the time whose prices apply when the clock shows `now`. The clocks of processes
    /// differ slightly, so the result is never earlier than the time at which a known change was
    /// set.
    pub fn time(&self, now: Timestamp) -> Timestamp {
        self.last_set.map_or(now, |set| set.max(now))
    }

    /// Returns the prices in force at a time, or `None` before the first ones.
    pub fn at(&self, time: Timestamp) -> Option<PricesInForce> {
        in_force(self.rows.iter().filter(|row| row.from <= time))
    }

    /// Returns the time of the next price change after `time`.
    pub fn next_change(&self, time: Timestamp) -> Option<Timestamp> {
        let next = self.rows.iter().find(|row| row.from > time)?;
        Some(next.from)
    }

    /// Returns the prices in force at a time, and the later ones. Base prices come first, then
    /// prices by prefix and time.
    pub fn listed(&self, time: Timestamp) -> (Vec<PriceRecord>, Vec<PriceRecord>) {
        let mut newest = BTreeMap::new();
        for row in self.rows.iter().filter(|row| row.from <= time) {
            newest.insert(row.change.prefix(), row);
        }
        let in_force = newest.into_values().flat_map(records);
        let in_force = in_force.filter(|record| record.per_page.is_some());
        let mut later: Vec<_> = self.rows.iter().filter(|row| row.from > time).collect();
        later.sort_by_key(|row| (row.change.prefix(), row.from));
        (in_force.collect(), later.into_iter().flat_map(records).collect())
    }

    /// Checks a change that would come into force at `from`. `now` is the current time.
    ///
    /// # Errors
    /// - `PricesInvalid` unless international > local > 0.
    /// - `PriceInPast` if `from` is in the past.
    /// - `PriceSetTwice` if another change of the same price begins at `from`.
    /// - `NoSuchPrefix` if the change removes a price that doesn't exist at that time.
    /// - `PriceNotCancellable` if the change to cancel doesn't exist, is in force, or comes into
    ///   force within a minute.
    /// - `PriceNotDearer` if a prefix wouldn't cost more than a local number, with the first time
    ///   at which that happens.
    pub fn judge(
        &self,
        change: &PriceChange,
        from: Timestamp,
        now: Timestamp,
    ) -> Result<(), Refusal> {
        if let PriceChange::Base(Prices { local, international }) = *change {
            Prices::new(local, international)?;
        }
        if from < now {
            return Err(Refusal::PriceInPast);
        }
        let prefix = change.prefix();
        let is_taken = |row: &PriceRow| row.from == from && row.change.prefix() == prefix;
        if let PriceChange::Cancel(id) = change {
            let mut rows = self.rows.iter().filter(|row| row.id == *id);
            if !rows.any(|row| row.from > now.plus_ms(CANCEL_BEFORE_MS)) {
                return Err(Refusal::PriceNotCancellable);
            }
        } else if self.rows.iter().any(is_taken) {
            return Err(Refusal::PriceSetTwice { at: from });
        }
        if let PriceChange::Prefix(prefix, None) = change {
            let in_force = self.at(from);
            let known = in_force.is_some_and(|prices| prices.by_prefix().any(|(p, _)| p == prefix));
            if !known {
                return Err(Refusal::NoSuchPrefix);
            }
        }
        let after = self.with(change, from, now);
        let later = after.rows.iter().map(|row| row.from);
        let times: BTreeSet<_> = later.filter(|time| *time >= from).collect();
        times.into_iter().try_for_each(|time| after.must_be_dearer(time))
    }

    /// Returns a refusal with the first time at which a prefix doesn't cost more than a local
    /// number. Returns `None` if every change has passed [`Self::judge`].
    pub fn fault(&self) -> Option<Refusal> {
        let mut times = self.rows.iter().map(|row| row.from);
        times.find_map(|time| self.must_be_dearer(time).err())
    }

    /// Checks that every prefix costs more than a local number at a time.
    fn must_be_dearer(&self, time: Timestamp) -> Result<(), Refusal> {
        let Some(prices) = self.at(time) else {
            return Ok(());
        };
        let local = prices.base().local;
        let cheap = prices.by_prefix().filter(|(_, price)| *price <= local);
        let first = cheap.min_by_key(|(prefix, _)| *prefix);
        first.map_or(Ok(()), |(prefix, price)| {
            Err(Refusal::PriceNotDearer { prefix: prefix.clone(), at: time, price, local })
        })
    }

    /// Explains the price `per_page` of a message that was accepted at the time `accepted`. Returns
    /// the price with the prefix that set it, if any.
    pub fn explain(&self, number: &Number, accepted: Timestamp, per_page: Money) -> UnitPrice {
        let then = self.at(accepted).map(|prices| prices.unit_price(number));
        if let Some(then) = then.filter(|then| then.per_page == per_page) {
            return then;
        }
        // The prices changed between the time at which the message was priced and its timestamp.
        // Find the newest change that set this price.
        let prefix = self.rows.iter().rev().find_map(|row| match &row.change {
            PriceChange::Prefix(prefix, Some(price)) => {
                let is_it = *price == per_page && number.digits().starts_with(prefix.digits());
                is_it.then(|| prefix.clone())
            }
            _ => None,
        });
        UnitPrice { per_page, prefix: prefix.filter(|_| number.kind() == Kind::International) }
    }
}

/// Converts a change for lists. A change of the base prices becomes two records.
fn records(row: &PriceRow) -> Vec<PriceRecord> {
    let record = |kind, per_page| PriceRecord {
        prefix: row.change.prefix().cloned(),
        kind,
        per_page,
        from: row.from,
    };
    match &row.change {
        PriceChange::Base(prices) => [Kind::Local, Kind::International]
            .map(|kind| record(kind, Some(prices.per_page(kind))))
            .to_vec(),
        PriceChange::Prefix(_, per_page) => vec![record(Kind::International, *per_page)],
        PriceChange::Cancel(_) => Vec::new(),
    }
}

const fn cancelled_by(row: &PriceRow) -> Option<i64> {
    match row.change {
        PriceChange::Cancel(id) => Some(id),
        _ => None,
    }
}

/// Returns the prices after the changes, which must be in the order in which they come into force.
fn in_force<'r>(changes: impl Iterator<Item = &'r PriceRow>) -> Option<PricesInForce> {
    let (mut base, mut by_prefix) = (None, BTreeMap::new());
    for row in changes {
        match &row.change {
            PriceChange::Base(prices) => base = Some(*prices),
            PriceChange::Prefix(prefix, price) => {
                by_prefix.insert(prefix, *price);
            }
            // `PriceHistory::new` leaves cancellations out.
            PriceChange::Cancel(_) => {}
        }
    }
    let known = by_prefix.into_iter();
    let known = known.filter_map(|(prefix, price)| Some((prefix.clone(), price?)));
    Some(PricesInForce::new(base?, known))
}
