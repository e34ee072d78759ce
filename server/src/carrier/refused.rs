//! Counts the submits that a carrier refuses.

use std::collections::BTreeMap;

/// The maximum number of reasons with a count of their own. A reason can contain a carrier's own
/// error number, and there are many such numbers.
const REASONS_MAX: usize = 30;
/// Stands for all further reasons.
const OTHER: &str = "other";

/// Submits that a carrier refused, permanently or for now. Those that came too fast have counts of
/// their own.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    counts: BTreeMap<String, u64>,
    /// How many of them it refused for now.
    deferred: u64,
    throttled: BTreeMap<String, u64>,
}

impl Refused {
    /// Counts a refusal. The reason is a stable code that contains no part of the message.
    pub fn count(&mut self, reason: &str) {
        add_to(&mut self.counts, reason, 1);
    }

    /// Counts a refusal for now. The message is submitted again.
    pub fn count_deferred(&mut self, reason: &str) {
        self.count(reason);
        self.deferred += 1;
    }

    /// Counts a refusal because messages came too fast.
    pub fn count_throttled(&mut self, reason: &str) {
        add_to(&mut self.throttled, reason, 1);
    }

    /// Adds the counts of another connection.
    pub fn add(&mut self, other: &Self) {
        self.deferred += other.deferred;
        for (reason, count) in &other.counts {
            add_to(&mut self.counts, reason, *count);
        }
        for (reason, count) in &other.throttled {
            add_to(&mut self.throttled, reason, *count);
        }
    }

    /// Returns the counts of all refusals, also of those because messages came too fast.
    pub fn with_throttled(&self) -> BTreeMap<String, u64> {
        let mut all = self.counts.clone();
        for (reason, count) in &self.throttled {
            *all.entry(reason.clone()).or_default() += count;
        }
        all
    }

    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// Returns how many submits were refused permanently, and how many for now.
    pub fn totals(&self) -> (u64, u64) {
        (self.counts.values().sum::<u64>() - self.deferred, self.deferred)
    }
}

fn add_to(counts: &mut BTreeMap<String, u64>, reason: &str, count: u64) {
    let known = counts.contains_key(reason) || counts.len() < REASONS_MAX;
    let reason = if known { reason } else { OTHER };
    *counts.entry(reason.to_owned()).or_default() += count;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_above_the_limit_are_counted_as_one() {
        let mut one = Refused::default();
        for status in 0..1000 {
            one.count(&format!("refused_{status}"));
            one.count("refused_0");
        }
        assert_eq!(one.counts().len(), REASONS_MAX + 1);
        assert_eq!(one.counts()["refused_0"], 1001);
        assert_eq!(one.totals(), (2000, 0));

        let mut both = Refused::default();
        both.add(&one);
        let mut later = Refused::default();
        later.count_deferred("refused_0x000000ff");
        both.add(&later);
        both.add(&one);
        assert_eq!(both.totals(), (4000, 1));
        both.count_throttled("refused_0x00000058");
        assert_eq!(both.totals(), (4000, 1));
        assert_eq!(both.with_throttled().values().sum::<u64>(), 4002);
    }
}
