//! What pages and the API show: records as the server reads them and the browser renders them.

use serde::{Deserialize, Serialize};

use crate::{
    ApplicationStatus, BatchId, Category, Kind, LostAnswer, MessageStatus, Money, Prices,
    Reference, SenderStatus, Timestamp, Transid,
};

/// What the installation charges, for pages and answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceList {
    /// ISO 4217 code.
    pub currency: String,
    pub prices: Prices,
}

/// A signed-in person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    pub id: i64,
    pub email: String,
    pub staff: bool,
    /// A sign-in counts while this is what it was.
    pub password_changed_at: Timestamp,
}

/// A browser in which an account is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Names the device in forms; opens nothing.
    pub id: i64,
    /// `User-Agent` at sign-in, cut to a length that can be shown.
    pub user_agent: String,
    /// Address at sign-in.
    pub address: String,
    pub signed_in_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// The browser that asks.
    pub current: bool,
}

/// An application as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationRecord {
    pub reference: Reference,
    pub category: Category,
    pub status: ApplicationStatus,
    /// The accepted name, which sends use.
    pub sender_name: Option<String>,
    /// The newest request that isn't `sender_name` itself: pending, or rejected with a reason.
    pub requested_sender: Option<SenderRequestRecord>,
    pub balance: Money,
    /// Play money of the test key.
    pub test_balance: Money,
    pub created_at: Timestamp,
    pub activation_requested_at: Option<Timestamp>,
    /// What becomes of its messages when a carrier's answer is lost.
    pub lost_answer: LostAnswer,
    /// Why it is suspended, when it is.
    pub suspend_reason: Option<String>,
    /// E-mail of its account.
    pub email: String,
}

/// A request for a sender name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRequestRecord {
    pub id: i64,
    pub reference: Reference,
    pub name: String,
    pub status: SenderStatus,
    /// Why it was rejected.
    pub reason: Option<String>,
    pub requested_at: Timestamp,
    pub decided_at: Option<Timestamp>,
}

/// What a transfer was for, seen from the application.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferKind {
    /// Money that came from the bank with the reference.
    Deposit,
    /// The price of an accepted message or batch.
    Charge,
    /// The price of a message that no carrier took, given back.
    Release,
}

impl TransferKind {
    pub const ALL: [Self; 3] = [Self::Deposit, Self::Charge, Self::Release];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Deposit => "deposit",
            Self::Charge => "charge",
            Self::Release => "release",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// A line of an application's statement, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    pub id: i64,
    pub at: Timestamp,
    pub kind: TransferKind,
    /// Positive: what moved. The kind says in which direction.
    pub amount: Money,
    pub balance_after: Money,
    /// What it is for: a transid, a batchid, or the bank's id of a deposit.
    pub subject: String,
}

/// A message as reports show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageRecord {
    pub transid: Transid,
    pub requestid: Option<String>,
    pub batchid: Option<BatchId>,
    pub number: String,
    pub kind: Kind,
    /// `None` where the carrier was given the default sender.
    pub sender: Option<String>,
    pub message: String,
    pub status: MessageStatus,
    /// Billing units.
    pub pages: i64,
    /// Radio units.
    pub segments: i64,
    pub cost: Money,
    /// What was given back of the cost.
    pub released: Money,
    /// Why it isn't delivered, in a stable word.
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub submitted_at: Option<Timestamp>,
    pub final_at: Option<Timestamp>,
    /// Sent with the test key.
    pub test: bool,
}

/// A step in a message's life.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    pub status: MessageStatus,
    pub at: Timestamp,
    pub detail: Option<String>,
}

/// How a message's price came about and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeRecord {
    /// Which rule made the number local or international.
    pub rule: String,
    pub pages: i64,
    pub unit_price: Money,
    pub charged: Money,
    pub released: Money,
    /// One sentence for a person.
    pub why: String,
}

/// How many messages stand where.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatusCounts {
    pub queued: i64,
    pub sending: i64,
    pub unknown: i64,
    pub submitted: i64,
    pub delivered: i64,
    pub failed: i64,
    pub expired: i64,
    pub rejected: i64,
}

impl StatusCounts {
    #[must_use]
    pub const fn get(&self, status: MessageStatus) -> i64 {
        match status {
            MessageStatus::Queued => self.queued,
            MessageStatus::Sending => self.sending,
            MessageStatus::Unknown => self.unknown,
            MessageStatus::Submitted => self.submitted,
            MessageStatus::Delivered => self.delivered,
            MessageStatus::Failed => self.failed,
            MessageStatus::Expired => self.expired,
            MessageStatus::Rejected => self.rejected,
        }
    }

    /// The place of a status.
    pub const fn get_mut(&mut self, status: MessageStatus) -> &mut i64 {
        match status {
            MessageStatus::Queued => &mut self.queued,
            MessageStatus::Sending => &mut self.sending,
            MessageStatus::Unknown => &mut self.unknown,
            MessageStatus::Submitted => &mut self.submitted,
            MessageStatus::Delivered => &mut self.delivered,
            MessageStatus::Failed => &mut self.failed,
            MessageStatus::Expired => &mut self.expired,
            MessageStatus::Rejected => &mut self.rejected,
        }
    }
}

/// How far an upload has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BatchStatus {
    /// Its rows are still becoming messages.
    Expanding,
    /// Every row is a message.
    Sending,
    /// Every message is final.
    Done,
}

impl BatchStatus {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Expanding => "expanding",
            Self::Sending => "sending",
            Self::Done => "done",
        }
    }
}

/// A bulk upload as reports show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRecord {
    pub batchid: BatchId,
    pub requestid: Option<String>,
    pub rows: i64,
    /// Billing units of all rows.
    pub pages: i64,
    /// The sum of the rows' prices.
    pub cost: Money,
    pub status: BatchStatus,
    /// They add up to `rows`.
    pub counts: StatusCounts,
    pub created_at: Timestamp,
    pub done_at: Option<Timestamp>,
    /// Uploaded with the test key.
    pub test: bool,
}

/// How a connection to a carrier is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionState {
    /// On the way to being bound.
    Connecting,
    /// Messages can be handed over.
    Bound,
    /// It is up as far as can be seen, and what it was handed last wasn't answered: it gets one
    /// message at a time, until one is.
    Probing,
    /// It couldn't be bound, or was lost: it is tried again in a moment.
    Waiting,
    Closed,
}

impl ConnectionState {
    pub const ALL: [Self; 5] = [
        Self::Connecting,
        Self::Bound,
        Self::Probing,
        Self::Waiting,
        Self::Closed,
    ];

    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Connecting => "connecting",
            Self::Bound => "bound",
            Self::Probing => "probing",
            Self::Waiting => "waiting",
            Self::Closed => "closed",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.as_str() == text)
    }
}

/// A connection to a carrier, as it was a few seconds ago.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    pub carrier: String,
    /// The process that has it, from 0.
    pub node: i64,
    /// From 1.
    pub number: i64,
    pub state: ConnectionState,
    /// When it came into this state.
    pub since: Timestamp,
    /// Submits that wait for an answer.
    pub in_flight: i64,
    /// The most of them at a time.
    pub window: i64,
    /// Answers in the last second.
    pub rate: i64,
    /// Answers since the start that asked for a slower pace.
    pub throttled: i64,
    pub last_error: Option<String>,
    /// When all this was so.
    pub updated_at: Timestamp,
}

/// Whether a carrier takes messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CarrierState {
    /// A connection is bound.
    Up,
    /// No connection is bound and answers what it is handed, or nobody dispatches.
    Down,
    /// Somebody drained it: nothing is handed to it until it is resumed.
    Drained,
}

impl CarrierState {
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::Drained => "drained",
        }
    }
}

/// A carrier as operators see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierRecord {
    pub name: String,
    pub state: CarrierState,
    pub drained_at: Option<Timestamp>,
    /// Messages that wait for it.
    pub waiting: i64,
    /// When the oldest of them was accepted.
    pub oldest_waiting_at: Option<Timestamp>,
    /// Receipts so far that named nothing we knew.
    pub receipts_parked: i64,
    /// Those of them that were matched later.
    pub receipts_matched: i64,
    pub connections: Vec<ConnectionRecord>,
}

/// Messages accepted on one day (UTC), by what became of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayCounts {
    /// Days since 1970-01-01.
    pub day: i64,
    pub counts: StatusCounts,
}

/// One message in full.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageDetail {
    pub record: MessageRecord,
    pub timeline: Vec<TimelineEntry>,
    pub charge: ChargeRecord,
}

/// One screen or answer of a longer list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paged<T> {
    pub items: Vec<T>,
    /// Opaque; gives the following items.
    pub next: Option<String>,
}
