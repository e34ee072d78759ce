//! Records that the server reads for pages and the API, and that the browser renders.

use serde::{Deserialize, Serialize};

use crate::api_key::KeyKind;
use crate::carrier_figures::{CountedRefusal, RecentCounts};
use crate::decision::Work;
use crate::ledger::TransferKind;
use crate::security_event::SecurityEventKind;
pub use crate::status::StatusCounts;
use crate::support_hours::UsualTime;
use crate::words::words;
use crate::{
    AlarmKind, ApplicationStatus, BatchId, Category, InboundId, Keyword, Kind, LostAnswer,
    MailKind, MailState, MessageStatus, Money, Month, PriceChange, PriceRecord, Prices,
    PricesInForce, Reason, Reference, SenderState, SenderStatus, Theme, Timestamp, Transid,
    UnitPrice,
};

/// The installation's base prices.
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
    /// Prices in force: base prices first, then prices by prefix.
    pub in_force: Vec<PriceRecord>,
    /// Future prices, in the same order.
    pub coming: Vec<PriceRecord>,
}

impl PriceTable {
    /// Returns the prices in force for calculations, or `None` without base prices.
    pub fn prices(&self) -> Option<PricesInForce> {
        let priced = || self.in_force.iter().filter_map(|price| Some((price, price.per_page?)));
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

/// A price change, as staff see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PriceChangeRecord {
    pub id: i64,
    pub change: PriceChange,
    /// When the change comes into force.
    pub from: Timestamp,
    pub set_at: Timestamp,
    /// The author of the change: an email, or `command line (USER)`. `settings` if the service
    /// took the price from its settings when it started.
    pub set_by: String,
}

/// The price of a page to a number, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NumberPrice {
    pub price: UnitPrice,
    /// A stable code for the rule that sets the price.
    pub rule: String,
    /// ISO 4217 code.
    pub currency: String,
    /// The explanation, in one sentence.
    pub why: String,
}

/// Margin figures of live messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginFigures {
    pub messages: i64,
    /// Pages that were charged and not released.
    pub pages: i64,
    /// Segments that carriers accepted.
    pub segments: i64,
    /// The part of `segments` whose route has no cost in the settings.
    pub unpriced: i64,
    /// The amount that customers were charged, minus released amounts.
    pub charged: Money,
    /// The amount that carriers charge for the segments.
    pub cost: Money,
}

impl MarginFigures {
    /// Returns the sum, or `None` on overflow.
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

    /// Returns the margin: `charged` minus `cost`. It is negative if carriers charge more than
    /// customers pay.
    pub fn margin(&self) -> Money {
        Money::from_micros(self.charged.micros().saturating_sub(self.cost.micros()))
    }

    /// Returns the number of segments per page with two decimals, like `1.00`. Returns `-` if there
    /// are no pages.
    pub fn ratio(&self) -> String {
        if self.pages <= 0 {
            return "-".to_owned();
        }
        let hundredths = i128::from(self.segments) * 100 / i128::from(self.pages);
        format!("{}.{:02}", hundredths / 100, hundredths % 100)
    }
}

/// The margin of a day, a rule or an application, which `name` identifies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginRow {
    pub name: String,
    pub figures: MarginFigures,
}

/// The margin of one application on one day under one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginLine {
    /// The day, counted since 1970-01-01 UTC.
    pub day: i64,
    /// The rule that set the price: `local`, `international`, or the digits of a prefix.
    pub rule: String,
    pub reference: Reference,
    pub figures: MarginFigures,
}

/// The margins in a range of days. Days are counted since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginReport {
    /// ISO 4217 code.
    pub currency: String,
    pub first: i64,
    pub last: i64,
    /// The last day that has been counted.
    pub counted: Option<i64>,
    /// The last day with final figures. Days up to this one aren't counted again, because all of
    /// their messages are final.
    pub final_until: Option<i64>,
    /// Margins by day. `name` is the number of the day.
    pub days: Vec<MarginRow>,
    pub rules: Vec<MarginRow>,
    /// Margins by application, highest charge first. `name` is the reference.
    pub applications: Vec<MarginRow>,
    pub total: MarginFigures,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRecord {
    pub id: i64,
    pub email: String,
    pub staff: bool,
    /// When the password was set. A sign-in is valid only while this is unchanged.
    pub password_changed_at: Timestamp,
    /// When the owner confirmed the email. `None` if they haven't.
    pub confirmed_at: Option<Timestamp>,
    /// Whether an authenticator app is set up.
    pub second_factor: bool,
    /// The portal's colour theme.
    pub theme: Theme,
    /// The IANA name of the time zone in which the portal shows times. `None` for the browser's
    /// zone.
    pub time_zone: Option<String>,
    /// Whether the owner closed the account for good. A closed account is also disabled.
    pub closed: bool,
}

/// The parts of an account that only its owner sees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountSettings {
    pub account: AccountRecord,
    pub new_email: Option<String>,
    /// When the requested email takes effect. `None` until it is confirmed.
    pub new_email_at: Option<Timestamp>,
    /// The optional mails that the account has switched off.
    pub unwanted_mails: Vec<MailKind>,
}

/// A browser in which an account is signed in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceRecord {
    /// Identifies the device in forms. The ID gives no access.
    pub id: i64,
    /// The `User-Agent` at sign-in, shortened for display.
    pub user_agent: String,
    /// The network address at sign-in.
    pub address: String,
    /// The owner's name for this browser in this network.
    pub name: Option<String>,
    pub signed_in_at: Timestamp,
    pub last_seen_at: Timestamp,
    /// Whether the request came from this device.
    pub current: bool,
}

/// When a session ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEnd {
    pub in_ms: i64,
    /// True if the session ends because it is idle. Activity then defers the end.
    pub idle: bool,
}

/// A mail as staff see it, without its secret link.
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
    /// The number of attempts to submit the mail to the mail server.
    pub attempts: i64,
    /// When the next attempt is due, while the mail is queued.
    pub next_attempt_at: Timestamp,
    /// Why the last attempt failed.
    pub last_error: Option<String>,
}

/// A passkey, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PasskeyRecord {
    /// Identifies the passkey in forms.
    pub id: i64,
    /// The name that the owner gave the passkey.
    pub name: String,
    pub created_at: Timestamp,
    /// When the passkey was last used. `None` if never.
    pub used_at: Option<Timestamp>,
}

/// A security event of an account, as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityEventRecord {
    pub at: Timestamp,
    pub kind: SecurityEventKind,
    pub address: String,
    /// The `User-Agent`, shortened for display.
    pub user_agent: String,
    /// The subject of the event, such as an application's reference.
    pub detail: Option<String>,
}

/// An application as lists show it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApplicationRecord {
    pub reference: Reference,
    /// The display name that the owner gave it, if any.
    pub name: Option<String>,
    pub category: Category,
    pub status: ApplicationStatus,
    /// The accepted sender name, which messages carry.
    pub sender_name: Option<String>,
    pub sender_state: SenderState,
    /// The newest request for a name other than `sender_name`: pending, or rejected with a reason.
    pub requested_sender: Option<SenderRequestRecord>,
    pub balance: Money,
    /// The balance that the test key can still spend. It isn't real money.
    pub test_balance: Money,
    pub created_at: Timestamp,
    pub activation_requested_at: Option<Timestamp>,
    /// The policy for a message whose carrier didn't answer the submit.
    pub lost_answer: LostAnswer,
    /// Why staff suspended the application. `None` if it isn't suspended.
    pub suspend_reason: Option<String>,
    /// The owner gets a mail if the balance falls below this amount.
    pub low_balance: Option<Money>,
    /// The owner gets a mail for each batch that finishes after this time.
    pub batch_mails_since: Option<Timestamp>,
    /// The email of the application's account.
    pub email: String,
    /// Whether the owner closed the account for good.
    pub account_closed: bool,
    /// Whether the account is disabled. Closed accounts are disabled, too.
    pub account_disabled: bool,
}

impl ApplicationRecord {
    /// Returns the name that pages and mails show: the owner's name for it, else its sender name,
    /// else its category.
    pub fn display_name(&self) -> String {
        match self.name.as_ref().or(self.sender_name.as_ref()) {
            Some(name) => name.clone(),
            None => format!("{} application", self.category),
        }
    }
}

/// A client that used a key in the last 30 days.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyClientRecord {
    /// Its address. `None` for all clients beyond the first 100 of a day.
    pub client: Option<String>,
    pub calls: i64,
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

/// One of an application's keys, as the owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyRecord {
    pub kind: KeyKind,
    /// The last four characters of the key.
    pub last_four: String,
    pub made_at: Timestamp,
    /// When it was last used, to the minute.
    pub used_at: Option<Timestamp>,
    /// The address of the client that last used it.
    pub used_from: Option<String>,
    /// The number of calls with this key in the last 24 hours, to the hour.
    pub calls: i64,
}

/// An alarm about the use of an application.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlarmRecord {
    pub id: i64,
    pub at: Timestamp,
    pub kind: AlarmKind,
    /// The number of messages or requests that caused it.
    pub count: i64,
    /// Some of the recipients' numbers, masked.
    pub example: Option<String>,
    /// A description in sentences.
    pub detail: Option<String>,
}

/// A call of the API, as the application's owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiCallRecord {
    /// When the server answered the call.
    pub at: Timestamp,
    /// Which of the application's keys the call used.
    pub kind: KeyKind,
    /// The method and the path template, like `POST /sms/send/{key}`.
    pub call: String,
    /// The client's address.
    pub from: Option<String>,
    /// The masked number that the message was for.
    pub recipient: Option<String>,
    /// Why the API refused the call. `None` for a success.
    pub reason: Option<Reason>,
    /// More details about the refusal.
    pub detail: Option<String>,
}

impl ApiCallRecord {
    /// Whether the call used a key that had been replaced. Calls with other unknown keys belong to
    /// no application.
    pub fn had_replaced_key(&self) -> bool {
        self.reason == Some(Reason::ApiInvalid)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderRequestRecord {
    pub id: i64,
    pub reference: Reference,
    pub name: String,
    pub status: SenderStatus,
    /// Why staff rejected the name.
    pub reason: Option<String>,
    pub requested_at: Timestamp,
    pub decided_at: Option<Timestamp>,
}

/// A request for a sender name, with the facts that staff need to decide.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderCase {
    pub request: SenderRequestRecord,
    pub category: Category,
    /// The email of the account that made the request.
    pub email: String,
    /// The reserved words that the name contains.
    pub reserved: Vec<String>,
    /// Similar names of other accounts.
    pub similar: Vec<SimilarName>,
    /// The account's earlier requests, newest first.
    pub earlier: Vec<SenderRequestRecord>,
}

impl SenderCase {
    /// Returns the reasons to doubt the name.
    pub fn warnings(&self) -> Vec<String> {
        let reserved = (self.reserved.iter()).map(|word| format!("Reserved word: {word}"));
        let similar = (self.similar.iter())
            .map(|similar| format!("Looks like {} of {}", similar.name, similar.email));
        reserved.chain(similar).collect()
    }
}

/// A sender name of another account that looks like the requested one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SimilarName {
    /// The name in lower case.
    pub name: String,
    /// The email of the account that has the name.
    pub email: String,
}

/// A deposit as stored.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepositRecord {
    /// The bank's ID for the payment.
    pub bank_id: String,
    /// The reference, as the payer wrote it.
    pub reference: String,
    pub amount: Money,
    pub received_at: Timestamp,
    /// The application whose balance was credited. `None` while the deposit is unmatched.
    pub assigned_to: Option<Reference>,
    /// The name of the payer and the purpose, if a bank statement had them.
    pub payer: Option<String>,
    pub purpose: Option<String>,
    /// The day of the payment like `2026-11-27`, if a bank statement had it.
    pub paid_on: Option<String>,
    /// When and why staff returned an unmatched deposit to the bank.
    pub returned: Option<(Timestamp, String)>,
}

impl DepositRecord {
    /// Whether the money still waits for staff.
    pub const fn is_unmatched(&self) -> bool {
        self.assigned_to.is_none() && self.returned.is_none()
    }
}

/// A deposit, with the facts that staff need to assign it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DepositCase {
    pub deposit: DepositRecord,
    /// The applications that the payer may have meant. Empty unless the deposit is unmatched.
    pub suggestions: Vec<Reference>,
    /// Whether the deposit is unmatched because the account of the payer's reference is closed.
    pub account_closed: bool,
}

/// The amount of pending work of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingWork {
    pub work: Work,
    pub count: i64,
    /// Since when the oldest item has waited.
    pub oldest: Option<Timestamp>,
    /// The median waiting time of the last 30 days. `None` if it isn't known, or if there was no
    /// such work.
    pub usual: Option<UsualTime>,
}

/// A line of an application's statement. Statements start with the newest line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementLine {
    pub id: i64,
    pub at: Timestamp,
    pub kind: TransferKind,
    /// The amount that moved. It is always positive; the kind determines the direction.
    pub amount: Money,
    pub balance_after: Money,
    /// The transid, the batchid, or the bank's ID of the deposit.
    pub subject: String,
}

/// The totals of an application's transfers in a period. `opening` + `deposits` + `releases` −
/// `charges` = `closing`.
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
    /// Returns the totals of a period without transfers.
    pub const fn of_nothing(balance: Money) -> Self {
        Self {
            opening: balance,
            deposits: Money::ZERO,
            charges: Money::ZERO,
            releases: Money::ZERO,
            closing: balance,
        }
    }

    /// Adds the totals of the period that follows.
    pub fn add(&mut self, next: &Self) {
        let sum = |a: Money, b: Money| Money::from_micros(a.micros().saturating_add(b.micros()));
        self.deposits = sum(self.deposits, next.deposits);
        self.charges = sum(self.charges, next.charges);
        self.releases = sum(self.releases, next.releases);
        self.closing = next.closing;
    }
}

/// A day with transfers in a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementDay {
    /// The start of the day, UTC.
    pub day: Timestamp,
    pub totals: StatementTotals,
}

/// A month of an application's statement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementMonth {
    pub month: Month,
    pub totals: StatementTotals,
    /// The days with transfers, newest first.
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
    /// The sender name. `None` if the carrier got the default sender.
    pub sender: Option<String>,
    pub message: String,
    pub status: MessageStatus,
    /// Billing units.
    pub pages: i64,
    /// Radio units.
    pub segments: i64,
    pub cost: Money,
    /// The part of the cost that was released.
    pub released: Money,
    /// Why the message wasn't delivered: the code of a [`DeliveryError`](crate::DeliveryError), in
    /// some cases with a suffix such as the carrier's error.
    pub error: Option<String>,
    pub created_at: Timestamp,
    /// When it was scheduled for. `None` if it was due at once.
    pub send_at: Option<Timestamp>,
    pub submitted_at: Option<Timestamp>,
    pub final_at: Option<Timestamp>,
    /// Whether it was sent with the test key.
    pub test: bool,
}

/// Reports show this kind for a reply to STOP, START or HELP. Nobody pays for such a reply.
pub const SYSTEM_KIND: &str = "system";

impl MessageRecord {
    /// Whether it is a reply to STOP, START or HELP. Only such a message has the price 0.
    pub const fn is_reply(&self) -> bool {
        self.cost.micros() == 0
    }

    /// Returns the kind that reports show: that of the number, or [`SYSTEM_KIND`].
    pub const fn shown_kind(&self) -> &'static str {
        if self.is_reply() { SYSTEM_KIND } else { self.kind.as_str() }
    }

    /// Returns the amount paid: the cost minus the released part.
    pub const fn paid(&self) -> Money {
        paid(self.cost, self.released)
    }
}

/// Returns a cost minus its released part, which is never greater.
const fn paid(cost: Money, released: Money) -> Money {
    Money::from_micros(cost.micros().saturating_sub(released.micros()))
}

/// A step in the timeline of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimelineEntry {
    pub status: MessageStatus,
    pub at: Timestamp,
    pub detail: Option<String>,
}

/// The charge for a message, with an explanation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChargeRecord {
    /// A stable code for the rule that set the price.
    pub rule: String,
    pub pages: i64,
    pub unit_price: Money,
    pub charged: Money,
    pub released: Money,
    /// The explanation, in one sentence.
    pub why: String,
}

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum BatchStatus {
        /// Some rows haven't become messages yet.
        Expanding = "expanding",
        /// Every row has become a message.
        Sending = "sending",
        /// Every message has a final status.
        Done = "done",
        /// Its time hasn't come yet.
        Scheduled = "scheduled",
        /// No rows are submitted until everyone who paused it has resumed it: its owner, support,
        /// or both.
        Paused = "paused",
        /// It was cancelled. Messages that were being submitted then, and messages of which a
        /// carrier had or may have had a segment, are still sent.
        Cancelled = "cancelled",
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
    /// The part of the cost that was released.
    pub released: Money,
    pub status: BatchStatus,
    /// The number of rows by status, including rows that aren't messages yet. The counts add up to
    /// `rows`.
    pub counts: StatusCounts,
    pub created_at: Timestamp,
    /// When it was scheduled for. `None` if it was due at once.
    pub send_at: Option<Timestamp>,
    pub done_at: Option<Timestamp>,
    /// Why support paused it. `None` if support hasn't.
    pub pause_reason: Option<String>,
    /// Whether it was uploaded with the test key.
    pub test: bool,
}

impl BatchRecord {
    /// Returns the amount paid: the cost minus the part released so far.
    pub const fn paid(&self) -> Money {
        paid(self.cost, self.released)
    }
}

/// The rows of an application's scheduled batches.
///
/// A scheduled message counts from its acceptance on, like any other message. A row of a scheduled
/// batch counts as a message only from the day on which its batch begins. Until then, the row has
/// no transaction ID. The statement of account, however, has the cost of the whole batch on the day
/// of its acceptance. So pages show such rows and their reserved cost separately, and never among
/// the messages of a day.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledRows {
    pub rows: i64,
    /// Their cost, which is already subtracted from the balance.
    pub reserved: Money,
}

/// The messages of an application's key that wait for their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduledCount {
    /// Their number, including the rows of scheduled batches.
    pub messages: i64,
    /// The part of them that are rows of scheduled batches.
    pub of_batches: ScheduledRows,
    /// Those that are due before the day ends in the account's time zone.
    pub today: i64,
    /// The time at which the next of them is due.
    pub next: Option<Timestamp>,
}

words! {
    /// The state of a connection to a carrier.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ConnectionState {
        /// The connection is being bound.
        Connecting = "connecting",
        /// The connection is bound and accepts submits.
        Bound = "bound",
        /// The connection is bound, but the carrier didn't answer the last submits. The connection
        /// submits one message at a time until the carrier answers one.
        Probing = "probing",
        /// The connection is bound, but was lost too often, or the carrier leaves submits
        /// unanswered, throttles or refuses them, delivers too few messages or sends no receipts.
        Degraded = "degraded",
        /// The connection couldn't be bound or was lost. The next attempt follows after a backoff.
        Waiting = "waiting",
        Closed = "closed",
    }
}

impl ConnectionState {
    /// Whether the connection is bound, even if it is degraded.
    pub const fn is_bound(self) -> bool {
        matches!(self, Self::Bound) || self.is_degraded()
    }

    /// Whether the connection is bound but has a failure that [`Self::Probing`] or
    /// [`Self::Degraded`] describes.
    pub const fn is_degraded(self) -> bool {
        matches!(self, Self::Probing | Self::Degraded)
    }
}

/// A node that still uses its earlier settings, because the new ones have an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedReload {
    /// The slot of the node, from 0.
    pub node: i64,
    /// When the node refused the new settings.
    pub at: Timestamp,
    /// The error, in one line.
    pub error: String,
}

/// A connection to a carrier, as of a few seconds ago.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConnectionRecord {
    pub carrier: String,
    /// The slot of the node that holds the connection, from 0.
    pub node: i64,
    /// The number of the connection, from 1. Each node numbers its connections to a carrier.
    pub number: i64,
    pub state: ConnectionState,
    /// When the connection entered this state.
    pub since: Timestamp,
    pub in_flight: i64,
    /// The maximum number of submits in flight.
    pub window: i64,
    /// The number of answers in the last second.
    pub rate: i64,
    /// The number of answers since the connection's start that asked us to slow down.
    pub throttled: i64,
    pub last_error: Option<String>,
    /// When the last error was last seen.
    pub last_error_at: Option<Timestamp>,
    /// When this record was written.
    pub updated_at: Timestamp,
}

words! {
    /// Whether a carrier accepts messages.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CarrierState {
        /// A bound connection answers its submits.
        Up = "up",
        /// A connection is bound, but has a failure that [`ConnectionState::Probing`] or
        /// [`ConnectionState::Degraded`] describes. While there is another route, the carrier gets
        /// one message at a time.
        Degraded = "degraded",
        /// No connection is bound, or no worker is running.
        Down = "down",
        /// Staff drained the carrier. It gets no messages until staff resume it.
        Drained = "drained",
    }
}

/// A carrier as staff see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CarrierRecord {
    pub name: String,
    pub state: CarrierState,
    /// When the carrier entered this state, as far as running processes know.
    pub since: Option<Timestamp>,
    /// Why the carrier is degraded or down.
    pub reason: Option<String>,
    pub drained_at: Option<Timestamp>,
    /// Since when the messages for all carriers are held, because a backup was restored.
    pub held_since: Option<Timestamp>,
    /// The number of messages that wait for the carrier.
    pub waiting: i64,
    /// When the oldest of the waiting messages was accepted.
    pub oldest_waiting_at: Option<Timestamp>,
    /// The number of receipts stored as unmatched so far, because they matched no message when they
    /// arrived.
    pub receipts_unmatched: i64,
    /// The number of unmatched receipts that were matched to a message later.
    pub receipts_matched: i64,
    /// The number of receipts whose state we don't know.
    pub receipts_unknown_state: i64,
    pub recent: RecentCounts,
    /// The most frequent reasons with which the carrier refused submits in the last hour.
    pub refusals: Vec<CountedRefusal>,
    /// Whether the carrier's connections bind (SMPP). `None` if the settings can't be read.
    pub binds: Option<bool>,
    pub connections: Vec<ConnectionRecord>,
}

words! {
    /// Why staff get no mail about carriers that fail.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum MailGap {
        /// No mail server is set up.
        NoServer = "no-server",
        /// No member of staff has a confirmed email and wants these mails.
        NoRecipient = "no-recipient",
    }
}

/// The messages accepted on one day (UTC), by status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DayCounts {
    /// The day, counted since 1970-01-01.
    pub day: i64,
    pub counts: StatusCounts,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageDetail {
    pub record: MessageRecord,
    pub timeline: Vec<TimelineEntry>,
    pub charge: ChargeRecord,
}

/// A page of a longer list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Paged<T> {
    pub items: Vec<T>,
    /// The cursor of the next page. `None` at the end.
    pub next: Option<String>,
}

impl<T> Paged<T> {
    /// Creates a page of at most `limit` items. The caller must query one item more than `limit`.
    /// If `items` has that item, there is a next page.
    pub fn of(mut items: Vec<T>, limit: i64, cursor: impl Fn(&T) -> String) -> Self {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let more = items.len() > limit;
        items.truncate(limit);
        let next = items.last().filter(|_| more).map(cursor);
        Self { items, next }
    }
}

/// A number that handsets send messages to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InboundNumberRecord {
    /// As carriers write it.
    pub number: String,
    /// `None` for messages that start with no keyword of the number.
    pub keyword: Option<Keyword>,
    /// The application that gets the messages.
    pub reference: Reference,
    pub created_at: Timestamp,
}

/// A message to a number that no application had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnassignedRecord {
    pub inboundid: InboundId,
    /// The carrier that delivered it.
    pub carrier: String,
    /// The handset's number.
    pub number: String,
    /// Our number.
    pub recipient: String,
    pub message: String,
    /// Radio units.
    pub segments: i64,
    pub received_at: Timestamp,
}

words! {
    /// The outcome for a line of a bank statement.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum LineOutcome [
        /// The outcome as pages show it.
        pub label: &'static str,
    ] {
        /// The amount goes to the application with the reference.
        Credited = "credited", "Credited";
        /// No application has the reference. The money waits until staff assign it.
        Unmatched = "unmatched", "Unmatched";
        /// The payment is already stored with the same reference and amount.
        Known = "known", "Known already";
        /// A payment with the same bank ID is already stored with other data.
        Conflict = "conflict", "Conflict: the bank ID is known with other data";
        /// The balance would become too large.
        Refused = "refused", "Refused: the balance would be too large";
        /// An outgoing payment.
        Debit = "debit", "Skipped: no money came in";
        OtherCurrency = "other-currency", "Not credited: another currency";
    }
}

/// A bank statement that staff imported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankStatement {
    pub id: i64,
    pub created_at: Timestamp,
    /// When staff confirmed the statement. `None` if they haven't, so nothing is credited.
    pub confirmed_at: Option<Timestamp>,
    /// When the last line was credited.
    pub done_at: Option<Timestamp>,
}

/// A line of a bank statement. Until the line is credited, its outcome is the one that it would
/// have if it were credited now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankStatementLine {
    /// The number of the line in the file, from 1.
    pub line: i64,
    pub bank_id: String,
    pub reference: String,
    /// As in the file: negative if money went out.
    pub amount: Money,
    pub outcome: LineOutcome,
    /// The name of the payer and the purpose, if the file has them.
    pub payer: Option<String>,
    pub purpose: Option<String>,
    /// The day of the payment like `2026-11-27`, if the file has it.
    pub paid_on: Option<String>,
    /// The currency of the amount, if it isn't the installation's.
    pub currency: Option<String>,
}

/// A line of a bank statement, with the facts that staff need to judge it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BankLineCase {
    pub line: BankStatementLine,
    /// The applications that the payer may have meant. Empty unless the line is unmatched.
    pub suggestions: Vec<Reference>,
    /// Whether the line is unmatched because the account of the payer's reference is closed.
    pub account_closed: bool,
}

/// A line of a bank statement that couldn't be credited, until staff mark it as done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenBankLine {
    pub statement_id: i64,
    pub line: BankStatementLine,
    /// The reference and the amount of the deposit with the same bank ID, if there is one.
    pub stored: Option<(String, Money)>,
}

impl OpenBankLine {
    /// Returns the stored deposit as pages show it.
    pub fn stored_deposit(&self) -> Option<String> {
        let (reference, amount) = self.stored.as_ref()?;
        Some(format!("{} for {reference}", amount.shown()))
    }
}

/// A file that is kept until staff have chosen its columns.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeptBankFile {
    pub id: i64,
    pub names: Vec<String>,
    /// The first rows below the header.
    pub rows: Vec<Vec<String>>,
    pub suggested: SuggestedColumns,
}

/// The positions of a bank statement's columns, from 0, as their names and data suggest. `None` if
/// no column seems to fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SuggestedColumns {
    pub bank_id: Option<usize>,
    pub reference: Option<usize>,
    /// The amount, or the money that came in if `debit` is set.
    pub amount: Option<usize>,
    /// The money that went out, if it has a column of its own.
    pub debit: Option<usize>,
    pub currency: Option<usize>,
    pub payer: Option<usize>,
    pub purpose: Option<usize>,
    /// The day of the payment.
    pub paid_on: Option<usize>,
}

/// The outcomes of a bank statement's lines. Until a line is credited, its outcome is the one that
/// it would have if it were credited now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementReport {
    pub statement: BankStatement,
    /// The number of lines with each outcome. Outcomes without lines are left out.
    pub counts: Vec<(LineOutcome, i64)>,
    /// The sum of the lines that are credited, or would be now. `None` if it is too large.
    pub credits: Option<Money>,
    /// The number of lines that are still to be credited.
    pub waiting: i64,
}
