//! Trials of limits: how many of the messages that an application has sent they would have refused.

use std::collections::{HashMap, VecDeque};

use crate::limits::{DEFAULT_LIMITS, LimitField, SendLimits};
use crate::money::Money;
use crate::number::Number;
use crate::pumping::{RecentCount, block_of};
use crate::timestamp::{DAY_MS, Timestamp};

const HOUR_MS: i64 = 60 * 60 * 1000;

#[derive(Clone, Debug)]
pub struct SentMessage {
    /// When it was accepted.
    pub at: Timestamp,
    /// The day of the account's time zone.
    pub day: i64,
    /// Whether it was due within the quiet hours of the trial.
    pub is_quiet: bool,
    pub number: Number,
    /// The number as carriers get it.
    pub recipient: String,
    pub cost: Money,
}

/// Returns how many of these messages one of the limits would have refused if it had been the only
/// limit. For quiet hours, returns how many would have waited. The oldest message must come first.
pub fn refused_by(
    limits: &SendLimits,
    field: LimitField,
    messages: &[SentMessage],
    country_code: &str,
) -> usize {
    let count = |is_refused: &mut dyn FnMut(&SentMessage) -> bool| {
        messages.iter().filter(|message| is_refused(message)).count()
    };
    match field {
        LimitField::International | LimitField::Prefixes | LimitField::RefuseDoubtful => {
            let mut only = DEFAULT_LIMITS.clone();
            // Never fails, because a limit's own text is valid.
            let _ = only.set(field, &limits.text(field));
            count(&mut |message| only.refuse_number(&message.number, country_code).is_some())
        }
        LimitField::PerRecipientHour => count(&mut windows(limits.per_recipient_hour, HOUR_MS)),
        LimitField::PerRecipientDay => count(&mut windows(limits.per_recipient_day, DAY_MS)),
        LimitField::SpendPerDay => {
            let mut spent = HashMap::<i64, Money>::new();
            count(&mut |message| {
                let spent = spent.entry(message.day).or_default();
                if !limits.admits_spend(*spent, message.cost) {
                    return true;
                }
                *spent = spent.checked_add(message.cost).unwrap_or(*spent);
                false
            })
        }
        LimitField::QuietHours => count(&mut |message| message.is_quiet),
        LimitField::TrafficPumping | LimitField::TrafficPumpingMessages => {
            let mut blocks = HashMap::<&str, RecentCount>::new();
            let mut refused = 0;
            for message in messages {
                let block = blocks.entry(block_of(&message.recipient)).or_default();
                if block.at(message.at) < limits.traffic_pumping_messages {
                    block.add(message.at);
                } else {
                    refused += 1;
                }
            }
            refused
        }
        // Messages don't record where requests came from.
        LimitField::Addresses | LimitField::LeakedKey => 0,
    }
}

/// Returns the highest sum of the messages' prices on a day. `None` if there are no messages.
pub fn highest_spend(messages: &[SentMessage]) -> Option<Money> {
    let mut days = HashMap::<i64, Money>::new();
    for message in messages {
        let spent = days.entry(message.day).or_default();
        *spent = spent.checked_add(message.cost).unwrap_or(*spent);
    }
    days.into_values().max()
}

/// Returns a function that refuses a message if its recipient got `max` messages within a window
/// that ends with it.
fn windows(max: Option<u32>, window_ms: i64) -> impl FnMut(&SentMessage) -> bool {
    let mut recipients = HashMap::<String, VecDeque<Timestamp>>::new();
    move |message| {
        let Some(max) = max else { return false };
        let recent = recipients.entry(message.recipient.clone()).or_default();
        let since = message.at.plus_ms(-window_ms);
        while recent.front().is_some_and(|at| *at < since) {
            recent.pop_front();
        }
        let is_refused = recent.len() as u64 >= u64::from(max);
        if !is_refused {
            recent.push_back(message.at);
        }
        is_refused
    }
}
