//! What the desk of staff shows: the audit log, accounts, messages with masked texts, and what a
//! search finds.

use serde::{Deserialize, Serialize};

use crate::records::{
    AccountRecord, ApplicationRecord, BatchRecord, ChargeRecord, MessageRecord, TimelineEntry,
};
use crate::{MessageStatus, Money, Reference, Timestamp, Transid};

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub id: i64,
    pub at: Timestamp,
    /// The author of the change: an account, by its email; the command line, with the operating
    /// system's user; or the service itself.
    pub who: String,
    /// The network address of the client; `None` on the machine itself.
    pub address: Option<String>,
    /// What was done, in a stable word.
    pub action: String,
    /// What it was done to.
    pub subject: String,
    pub before: Option<String>,
    pub after: Option<String>,
    /// A reason, an amount.
    pub detail: Option<String>,
}

/// What staff wrote down about an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteRecord {
    pub id: i64,
    pub at: Timestamp,
    /// The author, as the audit log names authors.
    pub author: String,
    pub text: String,
}

/// An account in full, as staff see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountFile {
    pub account: AccountRecord,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    pub disabled_reason: Option<String>,
    /// When its authenticator app was set up, if it has one.
    pub factor_since: Option<Timestamp>,
    /// How many devices are signed in.
    pub devices: usize,
    pub applications: Vec<ApplicationRecord>,
    /// Newest first.
    pub notes: Vec<NoteRecord>,
    /// The newest entries of the audit log about the account.
    pub audit: Vec<AuditRecord>,
}

/// A line of the list of accounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountLine {
    pub account: AccountRecord,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
}

/// A message without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaskedMessage {
    pub transid: Transid,
    pub requestid: Option<String>,
    pub number: String,
    pub status: MessageStatus,
    pub error: Option<String>,
    pub pages: i64,
    pub segments: i64,
    pub cost: Money,
    pub created_at: Timestamp,
    /// Sent with the test key.
    pub test: bool,
    /// How many characters the text has.
    pub chars: usize,
}

impl From<MessageRecord> for MaskedMessage {
    fn from(record: MessageRecord) -> Self {
        Self {
            transid: record.transid,
            requestid: record.requestid,
            number: record.number,
            status: record.status,
            error: record.error,
            pages: record.pages,
            segments: record.segments,
            cost: record.cost,
            created_at: record.created_at,
            test: record.test,
            chars: record.message.chars().count(),
        }
    }
}

/// Whose a message, a batch or a deposit is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub account_id: i64,
    pub email: String,
    pub reference: Reference,
}

/// A segment that was handed to a carrier, and what the carrier said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRecord {
    /// Its number, from 1.
    pub segment: i64,
    pub carrier: String,
    /// The carrier's name for it; `None`: not known.
    pub carrier_id: Option<String>,
    pub status: MessageStatus,
    pub error: Option<String>,
    /// How often it was, or may have been, submitted.
    pub submits: i64,
    /// When it was last submitted.
    pub submitted_at: Timestamp,
}

/// A message as staff see it: without its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageFile {
    pub owner: Owner,
    /// Its text is empty.
    pub record: MessageRecord,
    /// How many characters the text has.
    pub chars: usize,
    /// The carrier that took it.
    pub carrier: Option<String>,
    pub timeline: Vec<TimelineEntry>,
    pub charge: ChargeRecord,
    pub segments: Vec<SegmentRecord>,
}

/// A payment that a search found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundDeposit {
    pub bank_id: String,
    /// The reference that the payer wrote.
    pub reference: String,
    pub amount: Money,
    pub received_at: Timestamp,
    /// Whose balance it went to; `None` while unmatched.
    pub owner: Option<Owner>,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Accounts whose email is the text or begins with it.
    pub accounts: Vec<AccountLine>,
    pub applications: Vec<(Owner, ApplicationRecord)>,
    pub batches: Vec<(Owner, BatchRecord)>,
    pub deposits: Vec<FoundDeposit>,
    /// Newest first.
    pub messages: Vec<(Owner, MaskedMessage)>,
    /// Whether there wasn't time to look through the messages of every application.
    pub incomplete: bool,
}

impl Found {
    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
            && self.applications.is_empty()
            && self.batches.is_empty()
            && self.deposits.is_empty()
            && self.messages.is_empty()
    }
}

/// What is kept of test messages of all accounts together that never had a deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpaidUse {
    pub messages: i64,
    /// About how much of the database they take.
    pub bytes: i64,
    /// From how many bytes on it is too much.
    pub bytes_max: i64,
}

impl UnpaidUse {
    pub const fn is_too_much(&self) -> bool {
        self.bytes > self.bytes_max
    }
}
