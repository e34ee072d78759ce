//! Records: what the server reads for pages and API, and the browser renders.

use serde::{Deserialize, Serialize};

use crate::api_key::KeyKind;
use crate::decision::Work;
use crate::security_event::SecurityEventKind;
use crate::words::words;
use crate::{
    ApplicationStatus, BatchId, Category, Kind, LostAnswer, MailKind, MailState, MessageStatus,
    Money, Month, PriceChange, PriceRecord, Prices, PricesInForce, Reason, Reference, SenderState,
    SenderStatus, Theme, Timestamp, Transid, UnitPrice,
};

/// The base prices that the installation charges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceList {
    /// ISO 4217 code.
    pub currency: String,
    pub prices: Prices,
}

/// All prices of the installation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceTable {
    /// ISO 4217 code.
    pub currency: String,
    /// Base prices first, then by prefix.
    pub in_force: Vec<PriceRecord>,
    /// Changes that are set and not in force yet, in the same order.
    pub coming: Vec<PriceRecord>,
}

impl PriceTable {
    /// The prices in force, to reckon with; `None` without base prices.
    pub fn prices(&self) -> Option<PricesInForce> {
        let priced = || {
            self.in_force
                .iter()
                .filter_map(|price| Some((price, price.per_page?)))
        };
        let base = |kind| {
            let found = priced().find(|(price, _)| price.prefix.is_none() && price.kind == kind);
            found.map(|(_, per_page)| per_page)
        };
        let base = Prices::new(base(Kind::Local)?, base(Kind::International)?).ok()?;
        let by_prefix =
            priced().filter_map(|(price, per_page)| Some((price.prefix.clone()?, per_page)));
        Some(PricesInForce::new(base, by_prefix))
    }
}

/// A change of prices, as staff see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceChangeRecord {
    pub change: PriceChange,
    /// The time from which it is in force.
    pub from: Timestamp,
    pub set_at: Timestamp,
    /// The author of the change, as the audit log names authors; `settings` for a price that a
    /// start of the service took from its settings.
    pub set_by: String,
}

/// What a page to a number costs, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberPrice {
    pub price: UnitPrice,
    /// The rule by which the number has this price, as a stable word.
    pub rule: String,
    /// ISO 4217 code.
    pub currency: String,
    /// One sentence for a person.
    pub why: String,
}

/// Figures of live messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginFigures {
    pub messages: i64,
    /// Pages that were billed and not released.
    pub pages: i64,
    /// Segments that carriers took.
    pub segments: i64,
    /// Segments among them whose route has no cost in the settings.
    pub unpriced: i64,
    /// What customers paid, without what was released.
    pub charged: Money,
    /// What carriers charge for the segments.
    pub cost: Money,
}

impl MarginFigures {
    /// The sum; `None` when it is more than can be held.
    pub fn checked_add(&self, other: &Self) -> Option<Self> {
        Some(Self {
            messages: self.messages.checked_add(other.messages)?,
            pages: self.pages.checked_add(other.pages)?,
            segments: self.segments.checked_add(other.segments)?,
            unpriced: self.unpriced.checked_add(other.unpriced)?,
            charged: self.charged.checked_add(other.charged)?,
            cost: self.cost.checked_add(other.cost)?,
        })
    }

    /// The margin: what customers paid less what carriers charge; negative where carriers charge
    /// more.
    pub fn margin(&self) -> Money {
        Money::from_micros(self.charged.micros().saturating_sub(self.cost.micros()))
    }

    /// Segments for each page, with two decimals: `1.00` where a page is a segment. `-` without
    /// pages.
    pub fn ratio(&self) -> String {
        if self.pages <= 0 {
            return "-".to_owned();
        }
        let hundredths = i128::from(self.segments) * 100 / i128::from(self.pages);
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// The margin of what has this name: a day, a rule or an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginRow {
    pub name: String,
    pub figures: MarginFigures,
}

/// The margin of a day, a rule and an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginLine {
    /// Since 1970-01-01 UTC.
    pub day: i64,
    /// What the price was by: `local`, `international`, or the digits of a prefix.
    pub rule: String,
    pub reference: Reference,
    pub figures: MarginFigures,
}

/// The margins of a range of days; days are counted since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginReport {
    /// ISO 4217 code.
    pub currency: String,
    pub first: i64,
    pub last: i64,
    /// The last day that was counted at all.
    pub counted: Option<i64>,
    /// The last day that isn't counted again: all of its messages are final.
    pub final_until: Option<i64>,
    /// Named by their numbers.
    pub days: Vec<MarginRow>,
    pub rules: Vec<MarginRow>,
    /// Named by their references, those that pay most first.
    pub applications: Vec<MarginRow>,
    pub total: MarginFigures,
}

/// An account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    pub id: i64,
    pub email: String,
    pub staff: bool,
    /// A sign-in is valid only while this is unchanged.
    pub password_changed_at: Timestamp,
    /// When the owner confirmed the email; `None`: not yet.
    pub confirmed_at: Option<Timestamp>,
    /// Whether an authenticator app is set up.
    pub second_factor: bool,
    /// The colours in which the portal is shown.
    pub theme: Theme,
    /// The IANA name of the zone in which the portal shows times; `None`: that of the browser.
    pub time_zone: Option<String>,
    /// Whether its owner closed it for good; it is disabled too.
    pub closed: bool,
}

/// What the owner of an account sees of it alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSettings {
    pub account: AccountRecord,
    /// The email that was asked for and hasn't taken effect yet.
    pub new_email: Option<String>,
    /// When it takes effect; `None` until it is confirmed.
    pub new_email_at: Option<Timestamp>,
    /// The optional mails that it doesn't get.
    pub unwanted_mails: Vec<MailKind>,
}

/// A browser in which an account is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Identifies the device in forms; it gives no access.
    pub id: i64,
    /// `User-Agent` at sign-in, cut to a length that can be shown.
    pub user_agent: String,
    /// Address at sign-in.
    pub address: String,
    /// As the owner calls this browser in this network.
    pub name: Option<String>,
    pub signed_in_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// Whether it is the browser that asks.
    pub current: bool,
}

/// When a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    pub in_ms: i64,
    /// Whether it ends for want of use, so that using it puts the end off.
    pub idle: bool,
}

/// A mail as staff see it: never with a secret link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailRecord {
    pub id: i64,
    pub kind: MailKind,
    pub state: MailState,
    pub recipient: String,
    pub subject: String,
    /// Empty once the mail is sent.
    pub text: String,
    pub created_at: Timestamp,
    /// How often it was handed to the mail server, or was tried to be.
    pub attempts: i64,
    /// When it is tried next, while it is queued.
    pub next_attempt_at: Timestamp,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// A passkey, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyRecord {
    /// Names it in forms.
    pub id: i64,
    /// As its owner called it.
    pub name: String,
    pub created_at: Timestamp,
    /// `None` until it was used.
    pub used_at: Option<Timestamp>,
}

/// What happened to the security of an account, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityEventRecord {
    pub at: Timestamp,
    pub kind: SecurityEventKind,
    pub address: String,
    /// `User-Agent`, cut to a length that can be shown.
    pub user_agent: String,
    /// What it was about, such as an application's reference.
    pub detail: Option<String>,
}

/// An application as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationRecord {
    pub reference: Reference,
    pub category: Category,
    pub status: ApplicationStatus,
    /// The accepted name, which sends use.
    pub sender_name: Option<String>,
    pub sender_state: SenderState,
    /// The newest request for another name than `sender_name`: pending, or rejected with a reason.
    pub requested_sender: Option<SenderRequestRecord>,
    pub balance: Money,
    /// What the test key can still spend, in play money.
    pub test_balance: Money,
    pub created_at: Timestamp,
    pub activation_requested_at: Option<Timestamp>,
    /// What becomes of its messages when a carrier's answer is lost.
    pub lost_answer: LostAnswer,
    /// Why it is suspended, if it is.
    pub suspend_reason: Option<String>,
    /// Its owner is mailed when the balance falls below this.
    pub low_balance: Option<Money>,
    /// Since when its owner is mailed when a batch is done.
    pub batch_mails_since: Option<Timestamp>,
    /// Email of its account.
    pub email: String,
}

/// What an application's owner is shown of one of its keys.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub kind: KeyKind,
    /// The key's last characters.
    pub last_four: String,
    pub made_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
    /// The address of the client that used it last.
    pub used_from: Option<String>,
    /// How many calls had it in the last 24 hours, to the hour.
    pub calls: i64,
}

/// A call of the API, as its application's owner is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiCallRecord {
    /// When it was answered.
    pub at: Timestamp,
    /// Which of the application's keys it had.
    pub kind: KeyKind,
    /// Its method and the template of its path: `POST /sms/send/{key}`.
    pub call: String,
    /// The client's address.
    pub from: Option<String>,
    /// The number that its message is for, masked.
    pub recipient: Option<String>,
    /// Why it was refused; `None` for a success.
    pub reason: Option<Reason>,
    /// What was wrong, more exactly than the reason says.
    pub detail: Option<String>,
}

impl ApiCallRecord {
    /// Whether the call's key had been replaced: calls with other unknown keys are nobody's.
    pub fn had_replaced_key(&self) -> bool {
        self.reason == Some(Reason::ApiInvalid)
    }
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

/// A request for a sender name with what staff decide it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderCase {
    pub request: SenderRequestRecord,
    pub category: Category,
    /// Email of the account that asks.
    pub email: String,
    /// The reserved words that the name contains.
    pub reserved: Vec<String>,
    /// Names of other accounts that look like it.
    pub similar: Vec<SimilarName>,
    /// The account's earlier requests, newest first.
    pub earlier: Vec<SenderRequestRecord>,
}

/// A sender name of another account that looks like one that is asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimilarName {
    /// In lower case.
    pub name: String,
    /// Email of the account that it belongs to.
    pub email: String,
}

/// A deposit as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepositRecord {
    /// The bank's id of the payment.
    pub bank_id: String,
    /// As the payer wrote it.
    pub reference: String,
    pub amount: Money,
    pub received_at: Timestamp,
    /// Whose balance it went to; `None` while it is unmatched.
    pub assigned_to: Option<Reference>,
}

/// A deposit with what staff assign it by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepositCase {
    pub deposit: DepositRecord,
    /// The applications that the payer may have meant; none for a deposit that is assigned.
    pub suggestions: Vec<Reference>,
}

/// How much of a kind of work waits for staff.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingWork {
    pub work: Work,
    pub count: i64,
    /// Since when the oldest waits.
    pub oldest: Option<Timestamp>,
    /// How long such work usually waits: the median of the last 30 days; `None` where there was
    /// none, or where it isn't known.
    pub usual_ms: Option<i64>,
}

words! {
    /// Why money moves from one account of the ledger to another.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum TransferKind {
        /// From the bank, or from the unmatched deposits, to an application.
        Deposit = "deposit",
        /// From the bank to the unmatched deposits: no application has the reference.
        Unmatched = "unmatched",
        /// The price of an accepted message or batch, from the application.
        Charge = "charge",
        /// From what is reserved for a batch to revenue, as its rows become messages.
        Settle = "settle",
        /// The price of a message that no carrier took, back to the application.
        Release = "release",
    }
}

impl TransferKind {
    /// The number that stands for it in the database: its place in [`Self::ALL`].
    pub const fn code(self) -> i64 {
        self as i64
    }

    /// The kind that a number stands for.
    pub fn from_code(code: i64) -> Option<Self> {
        let place = usize::try_from(code).ok()?;
        Self::ALL.get(place).copied()
    }
}

/// A line of an application's statement, newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    pub id: i64,
    pub at: Timestamp,
    pub kind: TransferKind,
    /// The amount that moved, always positive; the kind says in which direction.
    pub amount: Money,
    pub balance_after: Money,
    /// What it is for: a transid, a batchid, or the bank's id of a deposit.
    pub subject: String,
}

/// What an application's transfers of a period moved. `opening` and `deposits` and `releases` less
/// `charges` is `closing`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementTotals {
    /// The balance before the first transfer of the period.
    pub opening: Money,
    pub deposits: Money,
    pub charges: Money,
    pub releases: Money,
    /// The balance after the last transfer of the period.
    pub closing: Money,
}

impl StatementTotals {
    /// Those of a period without transfers.
    pub const fn of_nothing(balance: Money) -> Self {
        Self {
            opening: balance,
            deposits: Money::ZERO,
            charges: Money::ZERO,
            releases: Money::ZERO,
            closing: balance,
        }
    }

    /// Adds those of the period that follows.
    pub fn add(&mut self, next: &Self) {
        let sum = |a: Money, b: Money| Money::from_micros(a.micros() + b.micros());
        self.deposits = sum(self.deposits, next.deposits);
        self.charges = sum(self.charges, next.charges);
        self.releases = sum(self.releases, next.releases);
        self.closing = next.closing;
    }
}

/// A day of a statement that has transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementDay {
    /// The beginning of the day, UTC.
    pub day: Timestamp,
    pub totals: StatementTotals,
}

/// A month of an application's statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementMonth {
    pub month: Month,
    pub totals: StatementTotals,
    /// Those with transfers, newest first.
    pub days: Vec<StatementDay>,
    /// Whether there are transfers before the month.
    pub has_older: bool,
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
    /// What was released of the cost.
    pub released: Money,
    /// Why it isn't delivered: the word of a [`DeliveryError`](crate::DeliveryError), or the
    /// carrier's own words.
    pub error: Option<String>,
    pub created_at: Timestamp,
    pub submitted_at: Option<Timestamp>,
    pub final_at: Option<Timestamp>,
    /// Sent with the test key.
    pub test: bool,
}

impl MessageRecord {
    /// What was really paid: the cost without what was released.
    pub const fn paid(&self) -> Money {
        paid(self.cost, self.released)
    }
}

/// A cost without what was released of it, which is never more.
const fn paid(cost: Money, released: Money) -> Money {
    Money::from_micros(cost.micros().saturating_sub(released.micros()))
}

/// A step in the life of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    pub status: MessageStatus,
    pub at: Timestamp,
    pub detail: Option<String>,
}

/// How a message's price came about and what became of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeRecord {
    /// The rule by which the number is local or international.
    pub rule: String,
    pub pages: i64,
    pub unit_price: Money,
    pub charged: Money,
    pub released: Money,
    /// One sentence for a person.
    pub why: String,
}

/// How many messages have which status.
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
    pub const fn get(mut self, status: MessageStatus) -> i64 {
        *self.get_mut(status)
    }

    /// How many messages there are.
    pub fn total(&self) -> i64 {
        let statuses = MessageStatus::ALL.into_iter();
        statuses.map(|status| self.get(status)).sum()
    }

    /// How many of them have a final status.
    pub fn completed(&self) -> i64 {
        let finals = MessageStatus::ALL
            .into_iter()
            .filter(|status| status.is_final());
        finals.map(|status| self.get(status)).sum()
    }

    /// Adds other counts to these.
    pub fn add(&mut self, other: &Self) {
        for status in MessageStatus::ALL {
            *self.get_mut(status) += other.get(status);
        }
    }

    /// How many of a thousand completed messages were delivered, rounded down; `None` before any
    /// is completed.
    pub fn delivered_per_mille(&self) -> Option<i64> {
        let completed = self.completed();
        (completed > 0).then(|| self.delivered.saturating_mul(1000) / completed)
    }

    /// The count of a status, to be changed.
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

words! {
    /// How far a batch is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum BatchStatus {
        /// Its rows are still becoming messages.
        Expanding = "expanding",
        /// Every row is a message.
        Sending = "sending",
        /// Every message is final.
        Done = "done",
    }
}

/// A batch as reports show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BatchRecord {
    pub batchid: BatchId,
    pub requestid: Option<String>,
    pub rows: i64,
    /// Billing units of all rows.
    pub pages: i64,
    /// The sum of the rows' prices.
    pub cost: Money,
    /// What was released of the cost.
    pub released: Money,
    pub status: BatchStatus,
    /// They add up to `rows`.
    pub counts: StatusCounts,
    pub created_at: Timestamp,
    pub done_at: Option<Timestamp>,
    /// Uploaded with the test key.
    pub test: bool,
}

impl BatchRecord {
    /// What was really paid, or will have been when nothing more is released.
    pub const fn paid(&self) -> Money {
        paid(self.cost, self.released)
    }
}

words! {
    /// The state of a connection to a carrier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ConnectionState {
        /// It is being bound.
        Connecting = "connecting",
        /// It is bound, and messages can be submitted.
        Bound = "bound",
        /// It is bound, and its last submits weren't answered: it gets one submit at a time until
        /// one is answered.
        Probing = "probing",
        /// It couldn't be bound, or was lost; it is tried again in a few seconds.
        Waiting = "waiting",
        Closed = "closed",
    }
}

/// A connection to a carrier, as it was a few seconds ago.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    pub carrier: String,
    /// The slot of the node that has it, from 0.
    pub node: i64,
    /// Its number among the node's connections to the carrier, from 1.
    pub number: i64,
    pub state: ConnectionState,
    /// When it came into this state.
    pub since: Timestamp,
    /// Submits that wait for an answer.
    pub in_flight: i64,
    /// How many submits may wait for an answer at a time.
    pub window: i64,
    /// Answers in the last second.
    pub rate: i64,
    /// Answers since the start that asked for a slower pace.
    pub throttled: i64,
    pub last_error: Option<String>,
    /// When this was written down.
    pub updated_at: Timestamp,
}

words! {
    /// Whether a carrier takes messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CarrierState {
        /// A connection is bound.
        Up = "up",
        /// No connection is bound and answers its submits, or no worker runs.
        Down = "down",
        /// Staff drained it: it is handed nothing until it is resumed.
        Drained = "drained",
    }
}

/// A carrier as staff see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierRecord {
    pub name: String,
    pub state: CarrierState,
    pub drained_at: Option<Timestamp>,
    /// Messages that wait for it.
    pub waiting: i64,
    /// When the oldest of them was accepted.
    pub oldest_waiting_at: Option<Timestamp>,
    /// How many receipts so far were kept as unmatched, since they named no message that was known
    /// then.
    pub receipts_unmatched: i64,
    /// How many of the unmatched receipts were matched to a message later.
    pub receipts_matched: i64,
    pub connections: Vec<ConnectionRecord>,
}

/// The messages accepted on one day (UTC), by status.
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

/// One page of a longer list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paged<T> {
    pub items: Vec<T>,
    /// The cursor that gives the following items; `None` at the end.
    pub next: Option<String>,
}

impl<T> Paged<T> {
    /// The page of what was found: at most `limit` items. One more was found when there are more.
    pub fn of(mut items: Vec<T>, limit: i64, cursor: impl Fn(&T) -> String) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(cursor);
        Self { items, next }
    }
}

words! {
    /// What becomes of a line of a bank statement.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum LineOutcome {
        /// The amount goes to the application with the reference.
        Credited = "credited",
        /// The reference is nobody's: the money waits until staff assign it.
        Unmatched = "unmatched",
        /// The payment was stored before, with the same reference and amount.
        Known = "known",
        /// A payment with the same bank id was stored before, with other data.
        Conflict = "conflict",
        /// The balance would be too large.
        Refused = "refused",
        /// Money that went out.
        Debit = "debit",
        OtherCurrency = "other-currency",
    }
}

/// A bank statement that staff imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankStatement {
    pub id: i64,
    pub created_at: Timestamp,
    /// `None`: staff haven't confirmed it, and nothing is credited.
    pub confirmed_at: Option<Timestamp>,
    /// When the last line was credited.
    pub done_at: Option<Timestamp>,
}

/// A line of a bank statement, with what became of it or would become of it now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankStatementLine {
    /// Its number in the file, from 1.
    pub line: i64,
    pub bank_id: String,
    pub reference: String,
    /// Zero where the line is skipped.
    pub amount: Money,
    pub outcome: LineOutcome,
}

/// What became of a bank statement's lines, or would become of them now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementReport {
    pub statement: BankStatement,
    /// How many lines have each outcome, for the outcomes that there are.
    pub counts: Vec<(LineOutcome, i64)>,
    /// The first lines of each outcome.
    pub first: Vec<BankStatementLine>,
}
