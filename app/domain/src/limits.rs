//! The limits that an application's owner sets. They protect the owner's money and the recipients
//! if a program fails or a key is stolen.

use core::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::address_range::AddressRange;
use crate::message::MessageText;
use crate::money::Money;
use crate::number::{Kind, Number};
use crate::prefix::Prefix;
use crate::quiet_hours::QuietHours;
use crate::reason::Reason;
use crate::timestamp::{DAY_MS, Timestamp};
use crate::words::words;

/// The maximum number of prefixes, and of address ranges.
pub const LISTED_MAX: usize = 100;
/// The maximum for a limit that is a number of messages.
const MESSAGES_MAX: u32 = 1_000_000;
/// The default of [`SendLimits::traffic_pumping_messages`].
const PUMPING_MESSAGES: u32 = 50;

const HOUR_MS: i64 = 60 * 60 * 1000;

words! {
    /// The reaction to a suspicious use of an application.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Guard {
        /// Nothing.
        Off = "off",
        /// The owner gets a mail.
        Alarm = "alarm",
        /// The owner gets a mail, and the request is refused.
        Block = "block",
    }
}

words! {
    /// The limit that an alarm is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum AlarmKind [
        /// A heading for pages and mails.
        pub heading: &'static str,
        /// What the owner can do.
        pub advice: &'static str,
    ] {
        TrafficPumping = "traffic_pumping", "Possible traffic pumping",
            "Find out who asks for these messages. The application's settings can refuse them.";
        LeakedKey = "leaked_key", "Leaked API key",
            "Replace the key, and use the new one only on a server and over HTTPS.";
        /// Most of the limit on the day's spend is used up.
        SpendPerDay = "spend_per_day", "Spend of the day",
            "If your program sends what you expect, raise the limit in the application's settings. \
             Otherwise replace the key.";
        /// The first message to an international number in a long time.
        FirstInternational = "first_international", "First international message",
            "If your program doesn't send abroad, replace the key. The application's settings can \
             refuse international numbers.";
    }
}

words! {
    /// A limit, by the name of its field in the API.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
    pub enum LimitField [
        /// The limit's name on pages.
        pub label: &'static str,
        /// The valid values, for error messages: "prefixes must be …".
        pub allowed: &'static str,
    ] {
        International = "international", "International numbers", "allowed or off";
        Prefixes = "prefixes", "Allowed international prefixes",
            "at most 100 prefixes of 1 to 15 digits, separated by commas, or empty for none";
        PerRecipientHour = "per_recipient_hour", "Messages to a recipient per hour",
            "a whole number from 1 to 1000000, or empty for no limit";
        PerRecipientDay = "per_recipient_day", "Messages to a recipient per day",
            "a whole number from 1 to 1000000, or empty for no limit";
        SpendPerDay = "spend_per_day", "Spend per day",
            "an amount above 0 like 1000.50, without commas and with at most 6 decimals, or empty \
             for no limit";
        Addresses = "addresses", "Addresses that may use the keys",
            "at most 100 addresses or networks like 192.0.2.0/24, separated by commas, or empty \
             for all";
        RefuseDoubtful = "refuse_doubtful", "Doubtful numbers", "1, true, 0 or false";
        QuietHours = "quiet_hours", "Quiet hours",
            "two different times of day like 21:00-08:00, or empty for no quiet hours";
        TrafficPumping = "traffic_pumping", "Traffic pumping", "off, alarm or block";
        TrafficPumpingMessages = "traffic_pumping_messages",
            "Messages that count as traffic pumping", "a whole number from 1 to 1000000";
        LeakedKey = "leaked_key", "Leaked key", "off, alarm or block";
    }
}

/// The text isn't a valid value of the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field} must be {}.", field.allowed())]
pub struct InvalidLimit {
    pub field: LimitField,
}

/// An application's limits. The database stores them as JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct SendLimits {
    /// Whether international numbers are refused.
    pub local_only: bool,
    /// International numbers must begin with one of these. Empty if all may be used.
    pub prefixes: Vec<Prefix>,
    /// The maximum number of messages to a recipient within 60 minutes.
    pub per_recipient_hour: Option<u32>,
    /// The maximum number of messages to a recipient within 24 hours.
    pub per_recipient_day: Option<u32>,
    /// The maximum cost of the messages that are accepted on a day of the account's time zone.
    pub spend_per_day: Option<Money>,
    /// The key works only from these addresses. Empty if it works from all.
    pub addresses: Vec<AddressRange>,
    /// Whether numbers with a warning are refused.
    pub refuse_doubtful: bool,
    /// Messages that are due in these hours of [`Self::zone`] wait until the hours end.
    pub quiet_hours: Option<QuietHours>,
    pub traffic_pumping: Guard,
    /// More messages than this within 10 minutes to similar numbers, or to a country where few are
    /// delivered, are suspicious.
    pub traffic_pumping_messages: u32,
    pub leaked_key: Guard,
    /// Whether a live key may change the limits.
    pub changed_by_api: bool,
    /// Whether texts are sent with replacements for characters outside GSM-7. This isn't a limit,
    /// but it affects sends in the same way.
    pub replace_characters: bool,
    /// The IANA name of the account's time zone, whose days and hours the limits use. `None` for
    /// UTC.
    pub zone: Option<String>,
}

/// A change of limits. Its texts are valid.
#[derive(Clone, Debug, Default)]
pub struct LimitsChange {
    fields: Vec<(LimitField, String)>,
    /// Whether a live key may change the limits from now on. `None` leaves it as it is.
    pub changed_by_api: Option<bool>,
    /// Whether characters are replaced from now on. `None` leaves it as it is.
    pub replace_characters: Option<bool>,
}

impl LimitsChange {
    /// Returns a change of whether a live key may change the limits.
    pub fn by_api(is_allowed: bool) -> Self {
        Self { changed_by_api: Some(is_allowed), ..Self::default() }
    }

    /// Returns a change of whether characters are replaced.
    pub fn of_characters(are_replaced: bool) -> Self {
        Self { replace_characters: Some(are_replaced), ..Self::default() }
    }

    pub fn add(&mut self, field: LimitField, text: &str) -> Result<(), InvalidLimit> {
        DEFAULT_LIMITS.clone().set(field, text)?;
        self.fields.push((field, text.to_owned()));
        Ok(())
    }

    pub fn fields(&self) -> &[(LimitField, String)] {
        &self.fields
    }

    /// Returns the limits after the change.
    pub fn applied_to(&self, limits: &SendLimits) -> SendLimits {
        let mut changed = limits.clone();
        for (field, text) in &self.fields {
            // Never fails, because the text is valid.
            let _ = changed.set(*field, text);
        }
        changed.changed_by_api = self.changed_by_api.unwrap_or(changed.changed_by_api);
        changed.replace_characters = self.replace_characters.unwrap_or(changed.replace_characters);
        changed
    }
}

/// How many rows of a file the limits refuse, by reason. Limits that depend on earlier messages
/// don't count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitedRows {
    international_disabled: u64,
    doubtful_number: u64,
}

impl LimitedRows {
    /// Counts a row that the limits refuse.
    pub const fn add(&mut self, reason: Reason) {
        match reason {
            Reason::InternationalDisabled => self.international_disabled += 1,
            Reason::DoubtfulNumber => self.doubtful_number += 1,
            _ => {}
        }
    }

    /// Returns each reason that at least one row has, with its count.
    pub fn present(self) -> impl Iterator<Item = (Reason, u64)> {
        let counts = [
            (Reason::InternationalDisabled, self.international_disabled),
            (Reason::DoubtfulNumber, self.doubtful_number),
        ];
        counts.into_iter().filter(|(_, count)| *count > 0)
    }
}

/// How many charged messages a recipient got recently.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RecentMessages {
    /// Within 60 minutes.
    pub hour: i64,
    /// Within 24 hours.
    pub day: i64,
}

/// The limits of an application whose owner has set none.
pub static DEFAULT_LIMITS: SendLimits = SendLimits {
    local_only: false,
    prefixes: Vec::new(),
    per_recipient_hour: None,
    per_recipient_day: None,
    spend_per_day: None,
    addresses: Vec::new(),
    refuse_doubtful: false,
    quiet_hours: None,
    traffic_pumping: Guard::Alarm,
    traffic_pumping_messages: PUMPING_MESSAGES,
    leaked_key: Guard::Alarm,
    changed_by_api: false,
    replace_characters: false,
    zone: None,
};

impl Default for SendLimits {
    fn default() -> Self {
        DEFAULT_LIMITS.clone()
    }
}

impl SendLimits {
    /// The reasons with which limits refuse requests.
    pub const REASONS: [Reason; 7] = [
        Reason::InternationalDisabled,
        Reason::DoubtfulNumber,
        Reason::RecipientFlooded,
        Reason::TrafficPumping,
        Reason::SpendCapReached,
        Reason::AddressNotAllowed,
        Reason::LeakedKey,
    ];

    /// Returns why the limits refuse a number as it was written.
    pub fn refuse_number(&self, number: &Number, country_code: &str) -> Option<Reason> {
        let is_listed = |prefix: &Prefix| number.digits().starts_with(prefix.digits());
        if number.kind() == Kind::International
            && (self.local_only
                || !self.prefixes.is_empty() && !self.prefixes.iter().any(is_listed))
        {
            return Some(Reason::InternationalDisabled);
        }
        let is_doubtful = self.refuse_doubtful && number.warnings(country_code).next().is_some();
        is_doubtful.then_some(Reason::DoubtfulNumber)
    }

    /// Returns a text with the replacements for characters outside GSM-7, if the application wants
    /// them.
    pub fn written(&self, text: MessageText) -> MessageText {
        if !self.replace_characters {
            return text;
        }
        text.replaced().unwrap_or(text)
    }

    /// Whether some numbers are refused regardless of earlier messages.
    pub const fn refuses_numbers(&self) -> bool {
        self.local_only || self.refuse_doubtful || !self.prefixes.is_empty()
    }

    /// Whether the number of messages to a recipient is limited.
    pub const fn limits_recipients(&self) -> bool {
        self.per_recipient_hour.is_some() || self.per_recipient_day.is_some()
    }

    /// Returns how many messages a recipient may get at most. A window without a limit has no
    /// practical maximum.
    pub fn recipient_max(&self) -> RecentMessages {
        let max = |limit: Option<u32>| limit.map_or(i64::from(u32::MAX), i64::from);
        RecentMessages { hour: max(self.per_recipient_hour), day: max(self.per_recipient_day) }
    }

    /// Whether a recipient that got these messages may get another one.
    pub fn admits_recipient(&self, recent: RecentMessages) -> bool {
        let max = self.recipient_max();
        recent.hour < max.hour && recent.day < max.day
    }

    /// Whether an application that has spent `spent` on this day may spend `cost` too.
    pub fn admits_spend(&self, spent: Money, cost: Money) -> bool {
        let total = spent.checked_add(cost);
        self.spend_per_day.is_none_or(|max| total.is_some_and(|total| total <= max))
    }

    /// Whether at least 80 % of the limit on the day's spend is used up.
    pub fn is_nearly_spent(&self, spent: Money) -> bool {
        let parts = |amount: Money, count| i128::from(amount.micros()) * count;
        self.spend_per_day.is_some_and(|max| parts(spent, 10) >= parts(max, 8))
    }

    /// Whether the key may be used from an address.
    pub fn admits_address(&self, address: Option<IpAddr>) -> bool {
        let is_in = |address| self.addresses.iter().any(|range| range.contains(address));
        self.addresses.is_empty() || address.is_some_and(is_in)
    }

    /// Sets a limit from the text that a form or the API has for it. An empty text clears it.
    pub fn set(&mut self, field: LimitField, text: &str) -> Result<(), InvalidLimit> {
        let text = text.trim();
        self.read(field, text).ok_or(InvalidLimit { field })
    }

    fn read(&mut self, field: LimitField, text: &str) -> Option<()> {
        match field {
            LimitField::International => {
                self.local_only = match text {
                    "allowed" | "" => false,
                    "off" => true,
                    _ => return None,
                }
            }
            LimitField::Prefixes => {
                let digits = |part: &str| Prefix::parse(part.trim_start_matches('+')).ok();
                self.prefixes = list(text, digits)?;
            }
            LimitField::PerRecipientHour => optional(text, messages, &mut self.per_recipient_hour)?,
            LimitField::PerRecipientDay => optional(text, messages, &mut self.per_recipient_day)?,
            LimitField::SpendPerDay => optional(text, amount, &mut self.spend_per_day)?,
            LimitField::Addresses => {
                self.addresses = list(text, |part| AddressRange::from_str(part).ok())?;
            }
            LimitField::RefuseDoubtful => {
                self.refuse_doubtful = match text {
                    "1" | "true" => true,
                    "0" | "false" | "" => false,
                    _ => return None,
                }
            }
            LimitField::QuietHours => optional(text, QuietHours::parse, &mut self.quiet_hours)?,
            LimitField::TrafficPumping => self.traffic_pumping = Guard::parse(text)?,
            LimitField::TrafficPumpingMessages => {
                let mut max = None;
                optional(text, messages, &mut max)?;
                self.traffic_pumping_messages = max.unwrap_or(PUMPING_MESSAGES);
            }
            LimitField::LeakedKey => self.leaked_key = Guard::parse(text)?,
        }
        Some(())
    }

    /// Returns a limit as text that [`Self::set`] accepts. Empty if it is off.
    pub fn text(&self, field: LimitField) -> String {
        let optional = |limit: Option<u32>| limit.map(|max| max.to_string()).unwrap_or_default();
        match field {
            LimitField::International => if self.local_only { "off" } else { "allowed" }.to_owned(),
            LimitField::Prefixes => joined(&self.prefixes),
            LimitField::PerRecipientHour => optional(self.per_recipient_hour),
            LimitField::PerRecipientDay => optional(self.per_recipient_day),
            LimitField::SpendPerDay => self.spend_per_day.map(Money::shown).unwrap_or_default(),
            LimitField::Addresses => joined(&self.addresses),
            LimitField::RefuseDoubtful => self.refuse_doubtful.to_string(),
            LimitField::QuietHours => {
                self.quiet_hours.map(|hours| hours.to_string()).unwrap_or_default()
            }
            LimitField::TrafficPumping => self.traffic_pumping.to_string(),
            LimitField::TrafficPumpingMessages => self.traffic_pumping_messages.to_string(),
            LimitField::LeakedKey => self.leaked_key.to_string(),
        }
    }

    /// Describes the limits that differ from those in `other`, for the audit log: `international
    /// off, spend_per_day none`. Empty if none differ.
    pub fn differences(&self, other: &Self) -> String {
        let differ =
            LimitField::ALL.into_iter().filter(|field| self.text(*field) != other.text(*field));
        let mut shown: Vec<String> = differ
            .map(|field| {
                let text = self.text(field);
                format!("{field} {}", if text.is_empty() { "none" } else { &text })
            })
            .collect();
        if self.changed_by_api != other.changed_by_api {
            let by_api = if self.changed_by_api { "allowed" } else { "locked" };
            shown.push(format!("changes by API {by_api}"));
        }
        if self.replace_characters != other.replace_characters {
            let characters = if self.replace_characters { "replaced" } else { "unchanged" };
            shown.push(format!("characters outside GSM-7 {characters}"));
        }
        shown.join(", ")
    }
}

impl RecentMessages {
    /// The beginnings of the windows that end at a time.
    pub const fn since(now: Timestamp) -> (Timestamp, Timestamp) {
        (now.plus_ms(-HOUR_MS), now.plus_ms(-DAY_MS))
    }

    #[must_use]
    pub const fn and(self, more: i64) -> Self {
        Self { hour: self.hour + more, day: self.day + more }
    }
}

/// Parses a list with commas between its parts. Returns `None` if a part is invalid.
fn list<T: PartialEq>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let mut found = Vec::new();
    for part in text.split([',', '\n']).map(str::trim).filter(|part| !part.is_empty()) {
        let part = parse(part)?;
        if !found.contains(&part) {
            found.push(part);
        }
    }
    (found.len() <= LISTED_MAX).then_some(found)
}

/// Sets a limit that is off if the text is empty. Returns `None` if the text is invalid.
fn optional<T>(text: &str, parse: impl Fn(&str) -> Option<T>, limit: &mut Option<T>) -> Option<()> {
    *limit = if text.is_empty() { None } else { Some(parse(text)?) };
    Some(())
}

fn messages(text: &str) -> Option<u32> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|count| is_plain && (1..=MESSAGES_MAX).contains(count))
}

fn amount(text: &str) -> Option<Money> {
    Money::parse(text).ok().filter(|amount| *amount > Money::ZERO)
}

fn joined<T: ToString>(parts: &[T]) -> String {
    parts.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}
