//! The statuses of messages: their codes, ranks, sentences and chart patterns. SQL takes the codes
//! from here.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// The status of a message, in the order of the codes in the database. The statuses that aren't
    /// final come first, and `Delivered` is the first final one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MessageStatus {
        Scheduled = "scheduled",
        Queued = "queued",
        Sending = "sending",
        Unknown = "unknown",
        Submitted = "submitted",
        Delivered = "delivered",
        Failed = "failed",
        Expired = "expired",
        Rejected = "rejected",
        Cancelled = "cancelled",
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Description {
    /// The status of a message changes only to one with a higher rank. All final statuses have the
    /// same rank.
    pub rank: u8,
    /// The meaning of the status, for the API reference.
    pub meaning: &'static str,
    /// The sentence for a step of a message's timeline. Unused if `trouble` is set.
    pub step: &'static str,
    /// The reason why the message isn't delivered, and the advice to the customer. `None` unless
    /// the delivery failed or is uncertain.
    pub trouble: Option<(&'static str, &'static str)>,
    pub mark: Mark,
    pub bar: Bar,
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

const SEND_AGAIN_LATER: &str =
    "Send the message again later. If it fails again, reach the person another way.";

impl MessageStatus {
    /// Returns everything about the status except its code.
    pub const fn describe(self) -> Description {
        match self {
            Self::Scheduled => Description {
                rank: 0,
                meaning: "Accepted, stored and charged; waits for its time.",
                step: "Accepted and charged. The message waits for its time, or until your quiet hours end.",
                trouble: None,
                mark: Mark::Waiting,
                bar: bar(3, Mark::Waiting, 45, 1),
            },
            Self::Queued => Description {
                rank: 1,
                meaning: "Accepted, stored and charged; waits for a carrier.",
                step: "Accepted and charged. The message waits for a carrier.",
                trouble: None,
                mark: Mark::Waiting,
                bar: bar(4, Mark::Waiting, 0, 1),
            },
            Self::Sending => Description {
                rank: 2,
                meaning: "On its way to a carrier.",
                step: "We are submitting it to a carrier.",
                trouble: None,
                mark: Mark::Moving,
                bar: bar(2, Mark::Moving, 45, 2),
            },
            Self::Unknown => Description {
                rank: 3,
                meaning: "Submitted to a carrier that didn't answer.",
                step: "We submitted it to a carrier, but the carrier's answer was lost. The \
                       message may have arrived. A receipt may still confirm it.",
                trouble: Some((
                    "We submitted it to a carrier, but the carrier's answer was lost. The message \
                     may have arrived. A receipt may still confirm it.",
                    "Wait. The message gets a final status within 48 hours.",
                )),
                mark: Mark::Unclear,
                bar: bar(5, Mark::Waiting, 0, 4),
            },
            Self::Submitted => Description {
                rank: 4,
                meaning: "A carrier accepted it. From now on, the charge stays.",
                step: "A carrier accepted it.",
                trouble: None,
                mark: Mark::Moving,
                bar: bar(1, Mark::Moving, 45, 4),
            },
            Self::Delivered => Description {
                rank: Self::FINAL_RANK,
                meaning: "The phone received it.",
                step: "It arrived on the phone.",
                trouble: None,
                mark: Mark::Good,
                bar: bar(0, Mark::Good, 0, 6),
            },
            Self::Failed => Description {
                rank: Self::FINAL_RANK,
                meaning: "The network couldn't deliver it.",
                step: "The carrier couldn't deliver it.",
                trouble: Some(("The carrier couldn't deliver it.", SEND_AGAIN_LATER)),
                mark: Mark::Bad,
                bar: bar(6, Mark::Bad, -45, 4),
            },
            Self::Expired => Description {
                rank: Self::FINAL_RANK,
                meaning: "Its time ran out, after 48 hours at most.",
                step: "It wasn't delivered in time.",
                trouble: Some(("It wasn't delivered in time.", SEND_AGAIN_LATER)),
                mark: Mark::Bad,
                bar: bar(7, Mark::Bad, -45, 2),
            },
            Self::Rejected => Description {
                rank: Self::FINAL_RANK,
                meaning: "No carrier accepted it; the charge is released.",
                step: "The carrier refused the message.",
                trouble: Some((
                    "The carrier refused the message.",
                    "If this happens to other messages too, contact support and quote the \
                     transaction ID.",
                )),
                mark: Mark::Bad,
                bar: bar(8, Mark::Bad, 90, 3),
            },
            Self::Cancelled => Description {
                rank: Self::FINAL_RANK,
                meaning: "Cancelled before a carrier had it; the charge is released.",
                step: "It was cancelled.",
                trouble: None,
                mark: Mark::Waiting,
                bar: bar(9, Mark::Waiting, 90, 2),
            },
        }
    }

    /// The rank of all final statuses.
    const FINAL_RANK: u8 = 5;

    pub const fn rank(self) -> u8 {
        self.describe().rank
    }

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
        self.rank() == Self::FINAL_RANK
    }

    /// Returns whether few messages have the status. For such a status, an index is worth its
    /// writes.
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

    /// Returns the number of messages that a delivery rate is about: those with a final status,
    /// without cancelled ones.
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
        assert!(MessageStatus::ALL.is_sorted_by_key(|status| status.describe().rank));
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
