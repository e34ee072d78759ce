//! Events, which tell an integrator's program what happened.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{ApplicationId, MessageStatus, Reference, ids};

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum EventType {
        Submitted = "message.submitted",
        Delivered = "message.delivered",
        Failed = "message.failed",
        Expired = "message.expired",
        Rejected = "message.rejected",
        Cancelled = "message.cancelled",
        /// A handset sent a message.
        Received = "message.received",
        BatchDone = "batch.done",
        BalanceLow = "balance.low",
        DepositReceived = "deposit.received",
        Activated = "application.activated",
        Suspended = "application.suspended",
        Reinstated = "application.reinstated",
        SenderAccepted = "sender_name.accepted",
        SenderRejected = "sender_name.rejected",
        KeyReplaced = "key.replaced",
        OptOutAdded = "optout.added",
        OptOutRemoved = "optout.removed",
        /// An application is used in a suspicious way, or has nearly reached a limit.
        LimitAlarm = "limit.alarm",
        /// Goes to one endpoint, whose owner asked for it.
        Test = "webhook.test",
    }
}

impl EventType {
    /// The types that an endpoint or a filter can name: all but the last one, [`Self::Test`].
    pub const NAMED: [Self; Self::ALL.len() - 1] = {
        let mut named = [Self::Submitted; Self::ALL.len() - 1];
        let mut place = 0;
        while place < named.len() {
            named[place] = Self::ALL[place];
            place += 1;
        }
        named
    };

    /// Returns the code in the database. The code of a message's event is the code of the status.
    pub const fn code(self) -> i64 {
        match self {
            Self::Submitted => MessageStatus::Submitted.code(),
            Self::Delivered => MessageStatus::Delivered.code(),
            Self::Failed => MessageStatus::Failed.code(),
            Self::Expired => MessageStatus::Expired.code(),
            Self::Rejected => MessageStatus::Rejected.code(),
            Self::Cancelled => MessageStatus::Cancelled.code(),
            Self::BatchDone => 101,
            Self::BalanceLow => 102,
            Self::DepositReceived => 103,
            Self::Activated => 104,
            Self::Suspended => 105,
            Self::Reinstated => 106,
            Self::SenderAccepted => 107,
            Self::SenderRejected => 108,
            Self::KeyReplaced => 109,
            Self::Test => 110,
            Self::Received => 111,
            Self::OptOutAdded => 112,
            Self::OptOutRemoved => 113,
            Self::LimitAlarm => 114,
        }
    }

    /// Returns the type with a code.
    pub fn from_code(code: i64) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.code() == code)
    }

    /// Returns the event of a message that gets a status. `None` if there is none.
    pub fn of_status(status: MessageStatus) -> Option<Self> {
        Self::from_code(status.code())
    }

    /// Returns the status of a message whose event has this type. `None` for other events.
    pub fn status(self) -> Option<MessageStatus> {
        MessageStatus::ALL.into_iter().find(|status| status.code() == self.code())
    }

    /// Whether an endpoint gets these events although it doesn't name any types. It must name
    /// `message.submitted`, because a final event follows. Test events have their own delivery.
    pub fn is_sent_unasked(self) -> bool {
        !matches!(self, Self::Submitted | Self::Test)
    }
}

/// The events of one application and one kind of key. Their IDs grow in the order of the commits
/// that stored them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventStream {
    pub application_id: ApplicationId,
    /// Whether these are the events of the test key.
    pub test: bool,
}

/// An event's ID: `e_`, 13 base-32 characters, the application's reference, and `l` or `t` for the
/// live or the test key. The number alone is unique only among the events of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    pub number: i64,
    pub reference: Reference,
    pub test: bool,
}

impl EventId {
    /// Parses the text form. Returns `None` if the text isn't a valid ID.
    pub fn parse(text: &str) -> Option<Self> {
        let (both, is_test) = match text.strip_suffix('t') {
            Some(both) => (both, true),
            None => (text.strip_suffix('l')?, false),
        };
        let digits = both.len().checked_sub(ids::REFERENCE_DIGITS)?;
        let (number, reference) = both.split_at_checked(digits)?;
        let reference = Reference::parse(reference).ok()?;
        Some(Self { number: ids::decode_id("e_", number)?, reference, test: is_test })
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.test { 't' } else { 'l' };
        write!(f, "{}{}{kind}", ids::encode_id("e_", self.number), self.reference)
    }
}
