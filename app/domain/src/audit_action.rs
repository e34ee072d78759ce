//! The actions of the audit log, as codes and as sentences.

/// The codes of actions, and what was done to the subject. The filter lists them in this order.
pub const ACTIONS: &[(&str, &str)] = &[
    ("account.add", "Created the account"),
    ("account.add_staff", "Created the account of a member of staff"),
    ("account.confirm", "Confirmed the email"),
    ("account.password", "Changed the password"),
    ("account.reset", "Made a reset link"),
    ("account.ask_email", "Asked to change the email"),
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
    ("carrier.rebind", "Bound a carrier anew"),
    ("carrier.reload", "Loaded the carriers' settings"),
    ("carrier.test", "Sent a test message over a carrier"),
    ("carrier.trace", "Traced a carrier"),
    ("incident.open", "Opened an incident"),
    ("incident.end", "Ended an incident"),
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

/// Returns what was done. `None` if no action has this code.
pub fn sentence(action: &str) -> Option<&'static str> {
    ACTIONS.iter().find(|(code, _)| *code == action).map(|(_, sentence)| *sentence)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::ACTIONS;

    #[test]
    fn every_action_has_one_sentence_of_its_own() {
        let codes: BTreeSet<_> = ACTIONS.iter().map(|(code, _)| code).collect();
        let sentences: BTreeSet<_> = ACTIONS.iter().map(|(_, sentence)| sentence).collect();
        assert_eq!((codes.len(), sentences.len()), (ACTIONS.len(), ACTIONS.len()));
    }
}
