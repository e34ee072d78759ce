//! Traffic pumping: a fraud in which somebody makes a service send many messages to numbers whose
//! network shares the price with the fraudster. Such numbers are usually adjacent.

use crate::timestamp::Timestamp;

/// Numbers that differ only in this many last digits are similar.
pub const VARIED_DIGITS: usize = 3;
/// The length of a slot. Messages are counted by slot.
const SLOT_MS: i64 = 2 * 60 * 1000;
/// The slots of 10 minutes, and the slot that the window begins in.
const SLOTS: usize = 6;

/// The number of messages to a country that must be final before the share of delivered ones is
/// judged.
const FINAL_MIN: i64 = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountryOutcomes {
    /// The messages within the last 10 minutes.
    pub recent: i64,
    /// The messages within the last hour that are final.
    pub ended: i64,
    /// The number of these final messages that were delivered.
    pub delivered: i64,
}

impl CountryOutcomes {
    /// Whether this is suspicious: more than `max` recent messages, and fewer than 1 in 5
    /// delivered. Fraudsters ask for messages to numbers that nobody reads.
    pub const fn is_suspicious(self, max: u32) -> bool {
        self.recent > max as i64 && self.ended >= FINAL_MIN && self.delivered * 5 < self.ended
    }
}

/// Returns the block of a number, as carriers get it: the digits that similar numbers share.
pub fn block_of(number: &str) -> &str {
    &number[..number.len().saturating_sub(VARIED_DIGITS)]
}

/// Returns the digits of [`block_of`] but the last one. Ten times as many numbers share them.
pub fn neighbourhood_of(number: &str) -> &str {
    &number[..number.len().saturating_sub(VARIED_DIGITS + 1)]
}

/// The number of messages within the last 10 to 12 minutes.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecentCount {
    /// The newest slot with a message, counted since 1970.
    newest: i64,
    /// The messages of the newest slot and of those before it.
    counts: [u32; SLOTS],
}

impl RecentCount {
    /// Returns the number of messages at a time.
    pub fn at(mut self, now: Timestamp) -> u32 {
        self.pass(now);
        self.counts.iter().sum()
    }

    /// Adds a message.
    pub fn add(&mut self, now: Timestamp) {
        self.pass(now);
        self.counts[0] = self.counts[0].saturating_add(1);
    }

    /// Drops the slots that are over. A clock that was set back drops none.
    fn pass(&mut self, now: Timestamp) {
        let slot = now.unix_ms().div_euclid(SLOT_MS);
        let passed = usize::try_from(slot - self.newest).unwrap_or(0).min(SLOTS);
        self.counts.rotate_right(passed % SLOTS);
        self.counts[..passed].fill(0);
        self.newest = self.newest.max(slot);
    }
}
