//! Counts the submits that a carrier refuses.

use std::collections::BTreeMap;

use tokio::time::Instant;

/// The maximum number of reasons with a count of their own. A reason can contain a carrier's own
/// error number, and there are many such numbers.
const REASONS_MAX: usize = 30;
/// Stands for all further reasons.
const OTHER: &str = "other";

/// Submits that a carrier refused, permanently or for now. Submits that came too fast don't count.
#[derive(Clone, Debug, Default)]
pub struct Refused {
    counts: BTreeMap<String, u64>,
    /// How many of them it refused for now.
    deferred: u64,
    last: Option<(String, Instant)>,
}

impl Refused {
    /// Counts a refusal. The reason is a stable code that contains no part of the message.
    pub fn count(&mut self, reason: &str) {
        self.add_to(reason, 1);
        self.last = Some((reason.to_owned(), Instant::now()));
    }

    /// Counts a refusal for now. The message is submitted again.
    pub fn count_deferred(&mut self, reason: &str) {
        self.count(reason);
        self.deferred += 1;
    }

    /// Adds the counts of another connection.
    pub fn add(&mut self, other: &Self) {
        self.deferred += other.deferred;
        for (reason, count) in &other.counts {
            self.add_to(reason, *count);
        }
        let at = |last: &Option<(String, Instant)>| last.as_ref().map(|(_, at)| *at);
        if at(&other.last) > at(&self.last) {
            self.last.clone_from(&other.last);
        }
    }

    fn add_to(&mut self, reason: &str, count: u64) {
        let known = self.counts.contains_key(reason) || self.counts.len() < REASONS_MAX;
        let reason = if known { reason } else { OTHER };
        *self.counts.entry(reason.to_owned()).or_default() += count;
    }

    pub fn counts(&self) -> &BTreeMap<String, u64> {
        &self.counts
    }

    /// Returns how many submits were refused permanently, and how many for now.
    pub fn totals(&self) -> (u64, u64) {
        (self.counts.values().sum::<u64>() - self.deferred, self.deferred)
    }

    /// Returns the last reason, and the time of that refusal.
    pub fn last(&self) -> Option<(&str, Instant)> {
        self.last.as_ref().map(|(reason, at)| (reason.as_str(), *at))
    }
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
        assert_eq!(both.last().unwrap().0, "refused_0x000000ff");
    }
}
