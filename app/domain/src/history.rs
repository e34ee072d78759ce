//! The history of an application, as its owner sees it.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;
use crate::words::words;

words! {
    /// An action in an application's history, with its code in the audit log. Only staff see the
    /// other audit log entries about an application.
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
        Renamed = "application.name",
        MailsChanged = "application.notices",
        LostAnswerChanged = "application.lost_answer",
        LimitsChanged = "application.limits",
        CodesChanged = "application.codes",
        EndpointAdded = "webhook.create",
        EndpointMoved = "webhook.move",
        EndpointEventsChanged = "webhook.events",
        EndpointDisabled = "webhook.disable",
        EndpointEnabled = "webhook.enable",
        EndpointRemoved = "webhook.remove",
        EndpointSecretRotated = "webhook.rotate",
        OptOutAdded = "opt_out.add",
        OptOutRemoved = "opt_out.remove",
        OptOutsImported = "opt_out.import",
    }
}

/// Who performed an action. The owner doesn't see the names of staff.
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
    /// A reason or an amount.
    pub detail: Option<String>,
}
