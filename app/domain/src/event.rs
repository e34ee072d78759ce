//! Events, which inform customers' programs about changes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::words::words;
use crate::{ApplicationId, MessageStatus, Reference, ids};

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum EventType [
        /// The code in the database. The code of a message's event is the code of the status.
        pub code: i64,
    ] {
        Submitted = "message.submitted", MessageStatus::Submitted.code();
        Delivered = "message.delivered", MessageStatus::Delivered.code();
        Failed = "message.failed", MessageStatus::Failed.code();
        Expired = "message.expired", MessageStatus::Expired.code();
        Rejected = "message.rejected", MessageStatus::Rejected.code();
        Cancelled = "message.cancelled", MessageStatus::Cancelled.code();
        /// A handset sent a message.
        Received = "message.received", 111;
        BatchDone = "batch.done", 101;
        BalanceLow = "balance.low", 102;
        DepositReceived = "deposit.received", 103;
        Activated = "application.activated", 104;
        Suspended = "application.suspended", 105;
        Reinstated = "application.reinstated", 106;
        SenderAccepted = "sender_name.accepted", 107;
        SenderRejected = "sender_name.rejected", 108;
        KeyReplaced = "key.replaced", 109;
        OptOutAdded = "optout.added", 112;
        OptOutRemoved = "optout.removed", 113;
        /// An application is used in a suspicious way, or has nearly reached a limit.
        LimitAlarm = "limit.alarm", 114;
        /// Goes to one endpoint, whose owner asked for it.
        Test = "webhook.test", 110;
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
