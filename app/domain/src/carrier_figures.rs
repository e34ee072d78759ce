//! Counts of a carrier's answers and receipts.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::words::words;

words! {
    /// The outcome of a submit, or of an accepted segment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum CarrierEvent {
        Accepted = "accepted",
        /// Refused permanently.
        Refused = "refused",
        /// Refused for now.
        Deferred = "deferred",
        /// Refused, because messages came too fast.
        Throttled = "throttled",
        /// No answer came.
        Unanswered = "unanswered",
        /// A receipt says that the message was delivered.
        Delivered = "delivered",
        Failed = "failed",
        Expired = "expired",
        /// A receipt that matched no message when it came.
        Unmatched = "unmatched",
        /// A receipt whose state isn't known.
        UnknownState = "unknown_state",
    }
}

/// The upper bounds of the times to a receipt, in seconds. Longer times are in one more count, the
/// last.
pub const RECEIPT_TIMES_S: [u32; 14] =
    [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 21_600, 86_400];

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierCounts {
    events: [u64; CarrierEvent::ALL.len()],
    /// The receipts by the time since the answer, in the order of [`RECEIPT_TIMES_S`].
    receipt_times: [u64; RECEIPT_TIMES_S.len() + 1],
    /// The sum of these times in seconds.
    receipt_seconds: u64,
}

/// The counts of a carrier over several recent periods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecentCounts {
    pub five_minutes: CarrierCounts,
    pub hour: CarrierCounts,
    pub day: CarrierCounts,
}

/// How often a carrier refused submits for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountedRefusal {
    /// The carrier's code, with its meaning if we know it.
    pub reason: String,
    pub count: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HourCounts {
    pub began_at: Timestamp,
    pub counts: CarrierCounts,
}

impl CarrierCounts {
    pub fn get(&self, event: CarrierEvent) -> u64 {
        self.events[event as usize]
    }

    pub fn add(&mut self, event: CarrierEvent, count: u64) {
        self.events[event as usize] += count;
    }

    /// Adds other counts to these.
    pub fn add_all(&mut self, other: &Self) {
        for (count, more) in self.each_mut().zip(other.each()) {
            *count += more;
        }
    }

    /// Counts a receipt that came this long after the carrier accepted the segment.
    pub fn add_receipt_time(&mut self, seconds: u64) {
        let bound = RECEIPT_TIMES_S.iter().position(|bound| seconds < u64::from(*bound));
        self.receipt_times[bound.unwrap_or(RECEIPT_TIMES_S.len())] += 1;
        self.receipt_seconds += seconds;
    }

    /// Returns the numbers of receipts by the time since the answer, in the order of
    /// [`RECEIPT_TIMES_S`].
    pub const fn receipt_times(&self) -> &[u64] {
        &self.receipt_times
    }

    /// Returns the sum of the receipts' times in seconds.
    pub const fn receipt_seconds(&self) -> u64 {
        self.receipt_seconds
    }

    /// Returns the number of answers that didn't accept the segment.
    pub fn not_accepted(&self) -> u64 {
        let events = [CarrierEvent::Refused, CarrierEvent::Deferred, CarrierEvent::Throttled];
        events.into_iter().map(|event| self.get(event)).sum()
    }

    /// Returns the number of final receipts that report no delivery.
    pub fn undelivered(&self) -> u64 {
        self.get(CarrierEvent::Failed) + self.get(CarrierEvent::Expired)
    }

    /// Returns the number of final receipts for our messages.
    pub fn receipts(&self) -> u64 {
        self.get(CarrierEvent::Delivered) + self.undelivered()
    }

    /// Returns the number of final receipts, including those that matched no message.
    pub fn all_receipts(&self) -> u64 {
        self.receipts() + self.get(CarrierEvent::Unmatched)
    }

    /// Returns the delivered share of the final receipts, in percent. `None` without receipts.
    pub fn delivered_percent(&self) -> Option<u64> {
        (self.get(CarrierEvent::Delivered) * 100).checked_div(self.receipts())
    }

    /// Returns the time within which this share of the receipts came, in seconds, as one of
    /// [`RECEIPT_TIMES_S`]. Returns `None` if there are no receipts, or if the time exceeds all of
    /// these.
    pub fn receipt_within_s(&self, percent: u64) -> Option<u32> {
        let all: u64 = self.receipt_times.iter().sum();
        let wanted = (all * percent).div_ceil(100).max(1);
        let mut reached = 0;
        RECEIPT_TIMES_S.into_iter().zip(self.receipt_times).find_map(|(bound, count)| {
            reached += count;
            (reached >= wanted).then_some(bound)
        })
    }

    /// Returns the counts since an earlier time.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let mut counts = *self;
        for (count, before) in counts.each_mut().zip(earlier.each()) {
            *count = count.saturating_sub(before);
        }
        counts
    }

    /// Returns each count that isn't 0, with its name in the database.
    pub fn named(&self) -> impl Iterator<Item = (String, u64)> {
        names().zip(self.each()).filter(|(_, count)| *count > 0)
    }

    /// Adds a count by its name in the database.
    pub fn add_named(&mut self, name: &str, count: u64) {
        if let Some(found) = names().position(|known| known == name)
            && let Some(counter) = self.each_mut().nth(found)
        {
            *counter += count;
        }
    }

    fn each(&self) -> impl Iterator<Item = u64> {
        self.events.into_iter().chain(self.receipt_times).chain([self.receipt_seconds])
    }

    fn each_mut(&mut self) -> impl Iterator<Item = &mut u64> {
        let times = self.receipt_times.iter_mut().chain([&mut self.receipt_seconds]);
        self.events.iter_mut().chain(times)
    }
}

fn names() -> impl Iterator<Item = String> {
    let times = RECEIPT_TIMES_S.iter().map(|bound| format!("receipt_{bound}"));
    let events = CarrierEvent::ALL.iter().map(|event| event.as_str().to_owned());
    events.chain(times).chain(["receipt_later", "receipt_seconds"].map(str::to_owned))
}
