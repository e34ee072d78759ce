//! The actions of the audit log, as codes and as sentences, and the texts of its entries.

use crate::limits::LimitField;
use crate::{Money, Timestamp};

/// The action whose texts have limits by their codes.
const LIMITS: &str = "application.limits";
/// The characters that may follow an amount or a time.
const MARKS: [char; 3] = [',', ':', ';'];

/// The codes of actions, and what was done to the subject. The filter lists them in this order.
pub const ACTIONS: &[(&str, &str)] = &[
    ("account.add", "Created the account"),
    ("account.add_staff", "Created the account of a member of staff"),
    ("account.confirm", "Confirmed the email"),
    ("account.password", "Changed the password"),
    ("account.reset", "Made a reset link"),
    ("account.ask_email", "Requested a new email"),
    ("account.confirm_email", "Confirmed the new email"),
    ("account.cancel_email", "Cancelled the change of the email"),
    ("account.email", "Changed the email"),
    ("account.second_factor", "Set up a second factor"),
    ("account.remove_factor", "Removed the second factor"),
    ("account.reset_factor", "Reset the second factor"),
    ("account.recovery_code", "Used a recovery code"),
    ("account.recovery_codes", "Made new recovery codes"),
    ("account.add_passkey", "Added a passkey"),
    ("account.remove_passkey", "Removed a passkey"),
    ("account.sign_out", "Signed the account out"),
    ("account.sign_out_device", "Signed a device out"),
    ("account.sign_out_others", "Signed all other devices out"),
    ("account.mails", "Changed which mails the account gets"),
    ("account.billing", "Changed the details on receipts"),
    ("account.note", "Added a note"),
    ("account.promote", "Made the account staff"),
    ("account.demote", "Made the account a customer"),
    ("account.disable", "Disabled the account"),
    ("account.enable", "Enabled the account"),
    ("account.close", "Closed the account"),
    ("number.export", "Exported the data of a phone number"),
    ("number.erase", "Erased a phone number"),
    ("application.create", "Created the application"),
    ("application.request", "Requested activation"),
    ("application.approve", "Approved the application"),
    ("application.suspend", "Suspended the application"),
    ("application.reinstate", "Reinstated the application"),
    ("application.name", "Changed the application's name"),
    ("application.delete", "Deleted the application"),
    ("application.visit", "Viewed the application"),
    ("application.limits", "Changed the limits"),
    ("application.notices", "Changed the mails of the application"),
    ("application.codes", "Changed the settings of codes"),
    ("application.lost_answer", "Changed what happens without an answer"),
    ("application.cancel_scheduled", "Cancelled scheduled messages"),
    ("key.replace_live", "Replaced the API key"),
    ("key.replace_test", "Replaced the test key"),
    ("sender.request", "Requested a sender name"),
    ("sender.withdraw", "Withdrew a sender name"),
    ("sender.accept", "Accepted a sender name"),
    ("sender.reject", "Rejected a sender name"),
    ("deposit.add", "Recorded a deposit"),
    ("deposit.assign", "Assigned a deposit"),
    ("deposit.return", "Returned a deposit to the bank"),
    ("statement.columns", "Chose the columns of bank statements"),
    ("statement.confirm", "Confirmed a bank statement"),
    ("statement.line", "Marked a line of a bank statement as done"),
    ("price.set", "Changed a price"),
    ("approval.ask", "Asked for an approval"),
    ("approval.approve", "Approved a request"),
    ("approval.decline", "Declined a request"),
    ("message.text", "Read the text of a message"),
    ("message.cancel", "Cancelled a message"),
    ("message.settle", "Settled a message"),
    ("message.requeue", "Submitted a message once more"),
    ("batch.cancel", "Cancelled a batch"),
    ("batch.pause", "Paused a batch"),
    ("batch.resume", "Resumed a batch"),
    ("messages.hold", "Held all messages"),
    ("messages.unknown", "Made held messages unknown"),
    ("messages.discard", "Cancelled held messages"),
    ("messages.release", "Ended the hold of messages"),
    ("opt_out.add", "Added numbers to the opt-outs"),
    ("opt_out.import", "Added a file of numbers to the opt-outs"),
    ("opt_out.remove", "Removed a number from the opt-outs"),
    ("carrier.drain", "Drained a carrier"),
    ("carrier.resume", "Resumed a carrier"),
    ("carrier.rebind", "Bound a carrier again"),
    ("carrier.reload", "Reloaded the carriers"),
    ("carrier.test", "Sent a test message over a carrier"),
    ("carrier.trace", "Traced a carrier"),
    ("incident.open", "Opened a note about an incident"),
    ("incident.end", "Ended a note about an incident"),
    ("number.add", "Assigned an inbound number"),
    ("number.remove", "Removed an inbound number"),
    ("inbound.assign", "Assigned inbound messages"),
    ("mail.retry", "Queued a mail again"),
    ("staff_list.set", "Changed a list of staff"),
    ("webhook.create", "Created an endpoint"),
    ("webhook.move", "Changed an endpoint's URL"),
    ("webhook.events", "Changed an endpoint's events"),
    ("webhook.enable", "Enabled an endpoint"),
    ("webhook.disable", "Disabled an endpoint"),
    ("webhook.rotate", "Made a new secret for an endpoint"),
    ("webhook.remove", "Removed an endpoint"),
];

/// Returns a text of an entry as the desk shows it: like [`with_amounts`], and with times as in
/// tables. The log stores texts as programs write them, and never changes.
pub fn readable(action: &str, text: &str, currency: &str) -> String {
    let shown = with_amounts(action, text, currency);
    let words = shown.split(' ').map(|word| {
        let value = word.trim_end_matches(MARKS);
        match Timestamp::parse(value).filter(|_| value.ends_with('Z')) {
            Some(at) => format!("{} UTC{}", at.to_table(), &word[value.len()..]),
            None => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns a text of an entry with at least two decimals and the currency in each amount, and with
/// the names of limits.
pub fn with_amounts(action: &str, text: &str, currency: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let (mut shown, mut before) = (Vec::new(), "");
    for (place, word) in words.iter().copied().enumerate() {
        let value = word.trim_end_matches(MARKS);
        let next = words.get(place + 1).copied();
        let amount = Money::parse(&value.replace(',', "")).ok();
        let limit = LimitField::parse(word).filter(|_| action == LIMITS);
        shown.push(match (amount, limit) {
            (Some(amount), _) if is_amount(action, place, before, next) => {
                format!("{} {currency}{}", amount.shown(), &word[value.len()..])
            }
            (_, Some(limit)) => limit.label().to_owned(),
            _ => word.to_owned(),
        });
        before = word;
    }
    shown.join(" ")
}

/// Returns whether a number in an entry of this action is an amount. `place` is its position among
/// the words of its text, and `before` and `next` are the words around it.
fn is_amount(action: &str, place: usize, before: &str, next: Option<&str>) -> bool {
    match action {
        // The reference may look like an amount, but the amount comes first.
        "deposit.add" | "deposit.assign" | "deposit.return" => place == 0,
        "price.set" => before != "change",
        LIMITS => before == LimitField::SpendPerDay.as_str(),
        "application.notices" => before == "balance:",
        "messages.discard" => next == Some("released"),
        _ => false,
    }
}

/// Returns what an entry says, for the middle of a sentence: "approved the application (Pending →
/// Active)". `None` if no action has this code.
pub fn clause(action: &str, before: Option<&str>, after: Option<&str>) -> Option<String> {
    let sentence = sentence(action)?;
    let (first, rest) = sentence.split_at_checked(1)?;
    let values = before.zip(after).map(|(before, after)| format!(" ({before} → {after})"));
    Some(format!("{}{rest}{}", first.to_lowercase(), values.unwrap_or_default()))
}

/// Returns what was done. `None` if no action has this code.
pub fn sentence(action: &str) -> Option<&'static str> {
    ACTIONS.iter().find(|(code, _)| *code == action).map(|(_, sentence)| *sentence)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{ACTIONS, clause, readable};

    #[test]
    fn amounts_and_times_are_shown_as_on_other_pages() {
        for (action, text, shown) in [
            (
                "deposit.add",
                "1003.5 credited; the payer wrote 5",
                "1,003.50 USD credited; the payer wrote 5",
            ),
            ("deposit.return", "2: wrong account 12", "2.00 USD: wrong account 12"),
            (
                "deposit.assign",
                "1 to 650761; the payer wrote 5",
                "1.00 USD to 650761; the payer wrote 5",
            ),
            (
                "price.set",
                "local 0.05, international 0.25 from 2026-11-21T08:30:00.000Z",
                "local 0.05 USD, international 0.25 USD from 2026-11-21 08:30:00 UTC",
            ),
            ("price.set", "change 5 cancelled", "change 5 cancelled"),
            ("price.set", "none", "none"),
            (
                "application.limits",
                "spend_per_day 20, per_recipient_day 3",
                "Spend per day 20.00 USD, Messages to a recipient per day 3",
            ),
            (
                "application.notices",
                "low balance: 5.00, batches: yes",
                "low balance: 5.00 USD, batches: yes",
            ),
            ("messages.discard", "4 messages, 0.2 released", "4 messages, 0.20 USD released"),
            ("account.note", "1 2026", "1 2026"),
            ("account.note", "", ""),
        ] {
            assert_eq!(readable(action, text, "USD"), shown);
        }
    }

    #[test]
    fn a_clause_says_what_was_done_and_what_changed() {
        let changed = clause("application.approve", Some("Pending"), Some("Active"));
        assert_eq!(changed.as_deref(), Some("approved the application (Pending → Active)"));
        let done = clause("sender.accept", None, Some("acme"));
        assert_eq!(done.as_deref(), Some("accepted a sender name"));
        assert_eq!(clause("nothing", None, None), None);
    }

    #[test]
    fn every_action_has_one_sentence_of_its_own() {
        let codes: BTreeSet<_> = ACTIONS.iter().map(|(code, _)| code).collect();
        let sentences: BTreeSet<_> = ACTIONS.iter().map(|(_, sentence)| sentence).collect();
        assert_eq!((codes.len(), sentences.len()), (ACTIONS.len(), ACTIONS.len()));
    }
}
