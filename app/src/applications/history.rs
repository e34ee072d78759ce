//! An application's history: who did what, when and why.

use domain::audit_action::with_amounts;
use domain::history::{HistoryAction, HistoryAuthor, HistoryEntry};
use domain::{LostAnswer, Money};
use leptos::prelude::*;

use crate::ui::{Table, in_zone};

/// Renders the history, newest first.
pub fn history(entries: &[HistoryEntry], currency: &str) -> AnyView {
    Table::wide(entries)
        .time(in_zone("Time (UTC)"), |entry| entry.at)
        .column("Who", |entry| match entry.author {
            HistoryAuthor::Owner => "You",
            HistoryAuthor::Support => "Support",
            HistoryAuthor::System => "Heliograph",
        })
        .column("What was done", |entry| sentence(entry, currency))
        .in_region_or("History", "Nothing was done yet.")
}

fn sentence(entry: &HistoryEntry, currency: &str) -> String {
    let before = entry.before.as_deref().unwrap_or("none");
    let after = entry.after.as_deref().unwrap_or("none");
    let detail = entry.detail.as_deref().unwrap_or("none given");
    let shown = |action, text: &str| with_amounts(action, text, currency);
    match entry.action {
        HistoryAction::Created => "The application was created.".to_owned(),
        HistoryAction::ActivationRequested => "Activation was requested.".to_owned(),
        HistoryAction::Approved => "The application was activated.".to_owned(),
        HistoryAction::Suspended => format!("The application was suspended. Reason: {detail}"),
        HistoryAction::Reinstated => format!("The suspension ended. The status is {after} again."),
        HistoryAction::SenderNameRequested => format!("The sender name {after} was requested."),
        HistoryAction::SenderNameWithdrawn => {
            format!("The request for the sender name {before} was withdrawn.")
        }
        HistoryAction::SenderNameAccepted => format!("The sender name {after} was accepted."),
        HistoryAction::SenderNameRejected => format!("A sender name was rejected. {detail}"),
        HistoryAction::LiveKeyReplaced => "The API key was replaced.".to_owned(),
        HistoryAction::TestKeyReplaced => "The test key was replaced.".to_owned(),
        HistoryAction::DepositCredited | HistoryAction::DepositAssigned => {
            deposit(before, after, currency)
        }
        HistoryAction::Renamed => format!("The name changed to {after}. Before: {before}."),
        HistoryAction::MailsChanged => {
            let [after, before] = [after, before].map(|text| shown("application.notices", text));
            format!("Mails changed to: {after}. Before: {before}.")
        }
        HistoryAction::LostAnswerChanged => format!(
            "Unconfirmed messages changed to: {}. Before: {}.",
            policy(after),
            policy(before)
        ),
        HistoryAction::LimitsChanged => {
            let by = if entry.detail.is_some() { " by API" } else { "" };
            let [after, before] = [after, before].map(|text| shown("application.limits", text));
            format!("Limits changed{by} to: {after}. Before: {before}.")
        }
        HistoryAction::CodesChanged => {
            format!("Settings of one-time codes changed to: {after}. Before: {before}.")
        }
        HistoryAction::EndpointAdded => endpoint("was added", detail),
        HistoryAction::EndpointMoved => endpoint("got another URL", detail),
        HistoryAction::EndpointEventsChanged => endpoint("gets other types of events", detail),
        HistoryAction::EndpointDisabled => endpoint("was disabled", detail),
        HistoryAction::EndpointEnabled => endpoint("was enabled", detail),
        HistoryAction::EndpointRemoved => endpoint("was removed", detail),
        HistoryAction::EndpointSecretRotated => endpoint("got a new secret", detail),
        HistoryAction::OptOutAdded => format!("The opt-out of {detail} was added."),
        HistoryAction::OptOutRemoved => format!("The opt-out of {detail} was removed."),
        HistoryAction::OptOutsImported => format!("A file of opt-outs was imported: {detail}."),
    }
}

/// Describes a change of an endpoint. The detail is its ID, in some cases followed by its URL or
/// a reason.
fn endpoint(change: &str, detail: &str) -> String {
    match detail.split_once(' ') {
        Some((id, more)) => format!("The webhook endpoint {id} {change}: {more}"),
        None => format!("The webhook endpoint {detail} {change}."),
    }
}

/// Describes a deposit from the balances before and after it.
fn deposit(before: &str, after: &str, currency: &str) -> String {
    let balances = Money::parse(before).ok().zip(Money::parse(after).ok());
    let amount = balances.and_then(|(before, after)| Some((after.checked_sub(before)?, after)));
    match amount {
        Some((amount, balance)) => format!(
            "A deposit of {} {currency} was added; the balance was {} {currency} then.",
            amount.shown(),
            balance.shown()
        ),
        None => "A deposit was added.".to_owned(),
    }
}

fn policy(word: &str) -> &'static str {
    LostAnswer::parse(word).map_or("unknown", LostAnswer::label)
}
