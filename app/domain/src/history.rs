//! What was done with an application, as its owner reads it.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::words::words;

words! {
    /// What was done, in the words of the audit log. What else is logged about an application is
    /// for staff.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
    pub enum HistoryAction {
        Created = "application.create",
        ActivationRequested = "application.request",
        Approved = "application.approve",
        Suspended = "application.suspend",
        Reinstated = "application.reinstate",
        SenderNameRequested = "sender.request",
        SenderNameWithdrawn = "sender.withdraw",
        SenderNameAccepted = "sender.accept",
        SenderNameRejected = "sender.reject",
        LiveKeyReplaced = "key.replace_live",
        TestKeyReplaced = "key.replace_test",
        DepositCredited = "deposit.add",
        DepositAssigned = "deposit.assign",
        MailsChanged = "application.notices",
        LostAnswerChanged = "application.lost_answer",
    }
}

/// Who did it. Staff have no names here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum HistoryAuthor {
    Owner,
    Support,
    /// The service itself.
    System,
}

/// An entry of an application's history.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub at: Timestamp,
    pub author: HistoryAuthor,
    pub action: HistoryAction,
    pub before: Option<String>,
    pub after: Option<String>,
    /// A reason, an amount.
    pub detail: Option<String>,
}
