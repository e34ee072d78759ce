//! The statuses of messages: their codes, ranks, sentences and chart patterns. SQL takes the codes
//! from here.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// The status of a message, in the order of the codes in the database. The statuses that aren't
    /// final come first, and `Delivered` is the first final one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MessageStatus [
        /// The status of a message changes only to one with a higher rank. All final statuses have
        /// the same rank.
        pub rank: u8,
        pub mark: Mark,
        pub bar: Bar,
        /// The meaning of the status, for the API reference.
        pub meaning: &'static str,
        /// The sentence for a step of a message's timeline.
        pub step: &'static str,
        /// What the customer can do. `None` unless the delivery failed or is uncertain.
        pub advice: Option<&'static str>,
    ] {
        Scheduled = "scheduled", 0, Mark::Waiting, bar(3, Mark::Waiting, 45, 1),
            "Accepted, stored and charged; waits for its time.",
            "Accepted and charged. The message waits for its time, or until your quiet hours \
         end.", None;
        Queued = "queued", 1, Mark::Waiting, bar(4, Mark::Waiting, 0, 1),
            "Accepted, stored and charged; waits for a carrier.",
            "Accepted and charged. The message waits for a carrier.", None;
        Sending = "sending", 2, Mark::Moving, bar(2, Mark::Moving, 45, 2),
            "On its way to a carrier.",
            "We are submitting it to a carrier.", None;
        Unknown = "unknown", 3, Mark::Unclear, bar(5, Mark::Waiting, 0, 4),
            "Submitted to a carrier that didn't answer.",
            "We submitted it to a carrier, but the carrier's answer was lost. The message may have \
             arrived. A receipt may still confirm it.",
            Some("Wait. The message gets a final status within 48 hours.");
        Submitted = "submitted", 4, Mark::Moving, bar(1, Mark::Moving, 45, 4),
            "A carrier accepted it. From now on, the charge stays.",
            "A carrier accepted it.", None;
        Delivered = "delivered", FINAL_RANK, Mark::Good, bar(0, Mark::Good, 0, 6),
            "The phone received it.",
            "It arrived on the phone.", None;
        Failed = "failed", FINAL_RANK, Mark::Bad, bar(6, Mark::Bad, -45, 4),
            "The network couldn't deliver it.",
            "The carrier couldn't deliver it.", Some(SEND_AGAIN_LATER);
        Expired = "expired", FINAL_RANK, Mark::Bad, bar(7, Mark::Bad, -45, 2),
            "Its time ran out, after 48 hours at most.",
            "It wasn't delivered in time.", Some(SEND_AGAIN_LATER);
        Rejected = "rejected", FINAL_RANK, Mark::Bad, bar(8, Mark::Bad, 90, 3),
            "No carrier accepted it; the charge is released.",
            "The carrier refused the message.", Some(ASK_SUPPORT);
        Cancelled = "cancelled", FINAL_RANK, Mark::Waiting, bar(9, Mark::Waiting, 90, 2),
            "Cancelled before a carrier had it; the charge is released.",
            "It was cancelled.", None;
    }
}

/// The shape and colour of a status on pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    Good,
    Waiting,
    Moving,
    Bad,
    Unclear,
}

/// The part of a chart's bar that stands for a status.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// The position in the bar, counted from the bottom. The positions don't change, so that people
    /// can tell statuses apart without colours.
    pub position: u8,
    pub mark: Mark,
    /// The rotation of the stripes, in degrees.
    pub turn: i16,
    /// The width of the stripes. 6 fills the bar.
    pub stripe: u8,
}

const fn bar(position: u8, mark: Mark, turn: i16, stripe: u8) -> Bar {
    Bar { position, mark, turn, stripe }
}

/// The rank of all final statuses.
const FINAL_RANK: u8 = 5;
pub const SEND_AGAIN_LATER: &str =
    "Send the message again later. If it fails again, reach the person another way.";
pub const ASK_SUPPORT: &str =
    "If this happens to other messages too, contact support and quote the transaction ID.";

impl MessageStatus {
    /// Returns the status's code in the database: its index in [`Self::ALL`].
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// Returns the status that has this code in the database.
    pub fn from_code(code: i64) -> Option<Self> {
        let index = usize::try_from(code).ok()?;
        Self::ALL.get(index).copied()
    }

    /// Returns whether the status is final. A final status never changes.
    pub const fn is_final(self) -> bool {
        self.rank() == FINAL_RANK
    }

    /// Returns whether few messages have the status, so that an index on it is cheap.
    pub const fn is_rare(self) -> bool {
        !matches!(self, Self::Delivered) && (self.is_final() || matches!(self, Self::Unknown))
    }

    /// Returns whether a message with this status may get the status `next`, which must have a
    /// higher rank.
    pub const fn may_become(self, next: Self) -> bool {
        self.rank() < next.rank()
    }
}

/// The number of messages with each status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StatusCounts([i64; MessageStatus::ALL.len()]);

impl StatusCounts {
    pub const fn get(&self, status: MessageStatus) -> i64 {
        self.0[status as usize]
    }

    pub const fn get_mut(&mut self, status: MessageStatus) -> &mut i64 {
        &mut self.0[status as usize]
    }

    /// Returns the counts with `n` as the count of a status.
    pub const fn with(mut self, status: MessageStatus, n: i64) -> Self {
        self.0[status as usize] = n;
        self
    }

    /// Returns the sum of the counts.
    pub fn total(&self) -> i64 {
        self.0.iter().sum()
    }

    /// Returns the number of messages with a final status.
    pub fn completed(&self) -> i64 {
        let finals = MessageStatus::ALL.into_iter().filter(|status| status.is_final());
        finals.map(|status| self.get(status)).sum()
    }

    /// Returns the number of messages that count in a delivery rate: those with a final status,
    /// except cancelled ones.
    pub fn rated(&self) -> i64 {
        self.completed() - self.get(MessageStatus::Cancelled)
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: &Self) {
        for status in MessageStatus::ALL {
            *self.get_mut(status) += other.get(status);
        }
    }
}

impl Serialize for StatusCounts {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(MessageStatus::ALL.map(|status| (status.as_str(), self.get(status))))
    }
}

impl<'de> Deserialize<'de> for StatusCounts {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let given = std::collections::BTreeMap::<MessageStatus, i64>::deserialize(from)?;
        Ok(given.into_iter().fold(Self::default(), |counts, (status, n)| counts.with(status, n)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn final_statuses_come_last() {
        assert!(MessageStatus::ALL.is_sorted_by_key(|status| status.is_final()));
        assert!(MessageStatus::ALL.is_sorted_by_key(|status| status.rank()));
    }

    #[test]
    fn counts_are_an_object_of_all_statuses() {
        let counts = StatusCounts::default().with(MessageStatus::Failed, 3);
        let json = serde_json::to_value(counts).unwrap();
        assert_eq!(json["failed"], 3);
        assert_eq!(json.as_object().unwrap().len(), MessageStatus::ALL.len());
        assert_eq!(serde_json::from_value::<StatusCounts>(json).unwrap(), counts);
    }
}
