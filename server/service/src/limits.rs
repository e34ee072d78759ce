//! The limits that an operator may change, and their defaults.

use std::time::Duration;

use serde::{Deserialize, Deserializer};

use store::history::MessageTables;

/// The settings file with the default of every setting.
pub const DEFAULT_SETTINGS: &str = include_str!("../../../heliograph.default.toml");

/// Limits that an operator can change.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Limits {
    pub message_pages_max: usize,
    pub bulk_rows_max: u64,
    /// The most bytes per upload.
    pub bulk_bytes_max: u64,
    /// The most requests per second per key. `None` means no limit.
    #[serde(deserialize_with = "none_if_zero")]
    pub requests_per_second: Option<u32>,
    /// The most failed sign-ins per email and client address in 15 minutes.
    pub sign_in_failures_max: i64,
    /// The most registrations per client address in an hour.
    pub registrations_max: i64,
    /// The size of the bucket that limits an account's changes in the portal.
    pub changes_at_once: u32,
    /// The most messages per day that a test key may send if its account has never had a deposit.
    pub unpaid_test_messages: i64,
    /// How many messages an application may have withdrawn on a day, for each of its keys: cancelled,
    /// or rejected because of its limits or opt-outs. After that, uploads and cancellations are
    /// refused until the next day.
    pub withdrawn_messages_max: i64,
    /// The most bytes that test messages of accounts without a deposit may take, all accounts
    /// together. Above this, the operator and staff are warned.
    pub unpaid_bytes_max: i64,
    /// Whether staff may approve, reinstate and credit their own applications, accept sender names
    /// for them, and set prices for them.
    pub own_applications: bool,
    /// Whether money, second factors and new members of staff need the approval of a second member
    /// of staff at the support desk.
    pub four_eyes: bool,
    /// The accounts that must have a second factor.
    pub require_second_factor: FactorRule,
    /// The number of days that messages are kept. Messages that aren't final are kept longer.
    pub history_days: i64,
    /// The number of days after which the texts of final messages and of inbound messages are
    /// erased. 0 means never.
    pub text_days: i64,
    /// The number of days after which the numbers of final messages and of inbound messages are
    /// masked. 0 means never.
    pub mask_numbers_days: i64,
    /// The number of days that events and attempts to deliver them are kept.
    pub event_days: i64,
    /// The number of days that receipts are kept as carriers sent them. 0 means that none are kept.
    pub raw_receipts_days: i64,
    /// The number of days that mails are kept.
    pub mail_days: i64,
    /// The number of days that security events are kept.
    pub security_event_days: i64,
    /// The number of days that the calls of the API are kept. 0 means no limit by age.
    pub call_log_days: i64,
    /// The period of a message table with PostgreSQL, a day or a week.
    pub message_tables: MessageTables,
    /// The length of a claim's lease, in milliseconds. A submit takes far less. After a crash,
    /// other processes wait this long before they claim the messages.
    #[serde(rename = "lease_seconds", deserialize_with = "milliseconds")]
    pub lease_ms: i64,
    /// The longest time to search for the messages of one page of a report. After that, the page
    /// has the messages found so far, and its cursor continues from there.
    #[serde(skip, default = "report_time")]
    pub report_time: Duration,
}

impl Limits {
    /// Returns how many days something is kept that may quote a text: no longer than texts.
    pub(crate) fn days_with_text(&self, days: i64) -> i64 {
        if self.text_days == 0 { days } else { days.min(self.text_days) }
    }
}

/// Which accounts must have a second factor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FactorRule {
    Staff,
    All,
}

impl Default for Limits {
    #[expect(clippy::expect_used, reason = "the file is compiled in, and tests read it")]
    fn default() -> Self {
        toml::from_str(DEFAULT_SETTINGS).expect("heliograph.default.toml has every limit")
    }
}

fn none_if_zero<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    Ok(Some(u32::deserialize(from)?).filter(|number| *number > 0))
}

fn milliseconds<'de, D: Deserializer<'de>>(from: D) -> Result<i64, D::Error> {
    Ok(i64::deserialize(from)? * 1000)
}

const fn report_time() -> Duration {
    Duration::from_secs(1)
}
