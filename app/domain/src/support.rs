//! Records for the staff pages: the audit log, accounts, messages without their texts, and search
//! results.

use serde::{Deserialize, Serialize};

use crate::records::{
    AccountRecord, ApplicationRecord, BatchRecord, ChargeRecord, DepositRecord, MessageRecord,
    TimelineEntry,
};
use crate::webhook::WebhookRecord;
use crate::words::words;
use crate::{KeyKind, MessageIdForm, MessageStatus, Money, Reference, Timestamp, Transid};

/// An entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    pub id: i64,
    pub at: Timestamp,
    /// The author of the change: the email of an account, the command line with the operating
    /// system's user, or the service itself.
    pub who: String,
    /// The client's network address. `None` for an action on the server itself.
    pub address: Option<String>,
    /// A stable code for the action.
    pub action: String,
    /// The object of the action.
    pub subject: String,
    pub before: Option<String>,
    pub after: Option<String>,
    /// A reason or an amount.
    pub detail: Option<String>,
}

/// A note that staff wrote about an account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteRecord {
    pub id: i64,
    pub at: Timestamp,
    /// The author, in the form of [`AuditRecord::who`].
    pub author: String,
    pub text: String,
}

/// All details of an account, as staff see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountFile {
    pub account: AccountRecord,
    pub created_at: Timestamp,
    pub disabled_at: Option<Timestamp>,
    pub disabled_reason: Option<String>,
    /// When its authenticator app was set up. `None` if it has none.
    pub factor_since: Option<Timestamp>,
    /// The number of signed-in devices.
    pub devices: usize,
    pub applications: Vec<ApplicationRecord>,
    /// The endpoints of its applications, with the key whose events they get.
    pub endpoints: Vec<(Reference, KeyKind, WebhookRecord)>,
    /// Newest first.
    pub notes: Vec<NoteRecord>,
    /// The newest entries of the audit log about the account.
    pub audit: Vec<AuditRecord>,
}

/// A row in the list of accounts.
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
    /// Whether it was sent with the test key.
    pub test: bool,
    /// The number of characters in the text.
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

/// The owner of a message, a batch or a deposit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    pub account_id: i64,
    pub email: String,
    pub reference: Reference,
}

/// A segment that was submitted to a carrier, and the carrier's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SegmentRecord {
    /// The number of the segment, from 1.
    pub segment: i64,
    pub carrier: String,
    /// The carrier message ID. `None` if unknown.
    pub carrier_id: Option<String>,
    pub status: MessageStatus,
    pub error: Option<String>,
    /// How many times it was, or may have been, submitted.
    pub submits: i64,
    /// When it was last submitted.
    pub submitted_at: Timestamp,
}

words! {
    /// The meaning of a receipt, or of an answer to a submit. The statements in
    /// `server/store/src/raw_receipts.rs` list the kinds of receipts.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum ReceiptKind {
        /// A receipt with a final status.
        Final = "final",
        /// A receipt. The message is still on its way.
        Intermediate = "intermediate",
        /// A receipt whose state isn't known.
        UnknownState = "unknown_state",
        /// An answer. The carrier accepted the message, but gave it no ID.
        AcceptedWithoutId = "accepted_without_id",
        /// An answer. The carrier refused the message permanently.
        Refused = "refused",
        /// An answer. The message is submitted again later.
        Deferred = "deferred",
        /// An answer. The carrier asked us to slow down.
        Throttled = "throttled",
        /// An answer. The carrier refuses every message.
        Held = "held",
        /// An answer that doesn't say whether the carrier accepted the message.
        UnknownOutcome = "unknown_outcome",
    }
}

words! {
    /// The outcome of a receipt or of an answer.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    pub enum ReceiptOutcome {
        /// The receipt counts for a message.
        Matched = "matched",
        /// The receipt matches no message yet.
        Unmatched = "unmatched",
        /// The message is still on its way.
        Intermediate = "intermediate",
        /// The receipt's state isn't known.
        UnknownState = "unknown_state",
        /// The outcomes from here on are those of answers, see [`ReceiptKind`].
        AcceptedWithoutId = "accepted_without_id",
        Refused = "refused",
        Deferred = "deferred",
        Throttled = "throttled",
        Held = "held",
        UnknownOutcome = "unknown_outcome",
    }
}

impl ReceiptKind {
    /// Whether it is the kind of a receipt, not of an answer.
    pub const fn is_of_receipt(self) -> bool {
        matches!(self, Self::Final | Self::Intermediate | Self::UnknownState)
    }
}

impl ReceiptOutcome {
    /// Whether it is the outcome of an answer to a submit.
    pub const fn is_of_answer(self) -> bool {
        !matches!(self, Self::Matched | Self::Unmatched | Self::Intermediate | Self::UnknownState)
    }
}

/// A carrier's receipt, or its answer to a submit, as staff see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptRecord {
    pub received_at: Timestamp,
    pub written_id: Option<String>,
    /// The message ID in the parameter, as the carrier wrote it.
    pub parameter_id: Option<String>,
    /// The recipient, in the carrier's format.
    pub number: String,
    /// The state in the receipt, as the carrier wrote it, or the status of the answer.
    pub state: String,
    /// Why the message wasn't delivered, or wasn't accepted, as a stable code.
    pub error: Option<String>,
    pub outcome: ReceiptOutcome,
    /// The message that the receipt was matched to, or that the answer is for.
    pub transid: Option<Transid>,
    /// Why it matches no message, as a sentence.
    pub reason: Option<String>,
    /// Messages that it may be for.
    pub candidates: Vec<ReceiptCandidate>,
    /// The receipt or answer as the carrier sent it, without the message's text.
    pub raw: Option<String>,
}

/// A message that an unmatched receipt may be for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReceiptCandidate {
    pub transid: Transid,
    /// The number of the segment, from 1.
    pub segment: u16,
    /// The carrier message ID, as it is stored. `None` if the carrier's answer had none.
    pub carrier_id: Option<String>,
    pub submitted_at: Timestamp,
    /// Whether the message went to the receipt's number.
    pub is_to_number: bool,
}

/// A format of message IDs, and how many unmatched receipts would match with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedForm {
    pub form: MessageIdForm,
    pub receipts: usize,
}

/// The receipts of a carrier and its answers to submits, as staff see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierReceipts {
    pub carrier: String,
    /// Receipts and answers, newest first.
    pub receipts: Vec<ReceiptRecord>,
    /// The number of unmatched receipts of the last day, at most 100. 0 if the list is of one
    /// message ID or number.
    pub unmatched: usize,
    /// The formats with which some of them would match, the best one first.
    pub suggestions: Vec<SuggestedForm>,
}

impl CarrierReceipts {
    /// Returns a sentence about the effect of a suggested format.
    pub fn advice(&self, suggested: SuggestedForm) -> String {
        let SuggestedForm { form, receipts } = suggested;
        let unmatched = self.unmatched;
        format!(
            "{receipts} of {unmatched} unmatched receipts would match with message_id = \"{form}\"."
        )
    }
}

/// All details of a message except its text, as staff see them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageFile {
    pub owner: Owner,
    /// The message with an empty text.
    pub record: MessageRecord,
    /// The number of characters in the text.
    pub chars: usize,
    /// The carrier that accepted the message.
    pub carrier: Option<String>,
    /// Why the message is still in the queue: the carrier that it waits for, and what is wrong with
    /// it. For staff only.
    pub waits_for: Option<String>,
    pub timeline: Vec<TimelineEntry>,
    pub charge: ChargeRecord,
    pub segments: Vec<SegmentRecord>,
}

/// The results of a search.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Found {
    /// Accounts whose email contains the search text.
    pub accounts: Vec<AccountLine>,
    pub applications: Vec<(Owner, ApplicationRecord)>,
    pub batches: Vec<(Owner, BatchRecord)>,
    pub deposits: Vec<DepositRecord>,
    /// Newest first.
    pub messages: Vec<(Owner, MaskedMessage)>,
    /// True if time ran out before the search had read the messages of every application.
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

/// The stored test messages of all accounts that never had a deposit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnpaidUse {
    pub messages: i64,
    /// The approximate space that the messages take up in the database.
    pub bytes: i64,
    /// The limit for `bytes`.
    pub bytes_max: i64,
}

impl UnpaidUse {
    pub const fn is_too_much(&self) -> bool {
        self.bytes > self.bytes_max
    }
}
