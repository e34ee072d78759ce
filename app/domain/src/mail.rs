//! Kinds and states of mails.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum MailKind {
        /// Contains a link that confirms the recipient's address.
        Confirm = "confirm",
        /// Contains a link that makes the recipient's address the email of an account.
        EmailChange = "email-change",
        /// Goes to the account's current address when someone requests another email for the
        /// account. Contains a link that stops the change.
        EmailStop = "email-stop",
        /// Says that the email of the account will change or has changed.
        EmailChanged = "email-changed",
        /// Contains a link to set a new password.
        Reset = "reset",
        PasswordChanged = "password-changed",
        /// Someone signed in from a browser or network that is new to the account.
        NewDevice = "new-device",
        SecondFactor = "second-factor",
        /// Someone entered the right password and wrong codes.
        WrongCodes = "wrong-codes",
        KeyReplaced = "key-replaced",
        AccountClosed = "account-closed",
        /// Staff made the account staff, or a customer again.
        Role = "role",
        /// Staff approved, suspended or reinstated an application, or paused or resumed a batch.
        Application = "application",
        /// Staff accepted or rejected a sender name.
        SenderName = "sender-name",
        Deposit = "deposit",
        /// The balance fell below the application's threshold.
        LowBalance = "low-balance",
        BatchDone = "batch-done",
        /// An application is used in a suspicious way, or has nearly reached a limit.
        LimitAlarm = "limit-alarm",
        /// An endpoint was created, moved or disabled.
        Webhook = "webhook",
        /// Tells staff that pending work has waited for more than an hour.
        Waiting = "waiting",
        /// Tells staff that a carrier is down, degraded or back.
        Carrier = "carrier",
    }
}

impl MailKind {
    /// The mails that an account can switch off. The others concern its security, or the owner
    /// requested them.
    pub const OPTIONAL: [Self; 7] = [
        Self::Application,
        Self::SenderName,
        Self::Deposit,
        Self::LowBalance,
        Self::BatchDone,
        Self::Waiting,
        Self::Carrier,
    ];

    /// Whether the mail may go to an address that its owner hasn't confirmed yet. Anyone can enter
    /// someone else's address, so no other mail may reach an unconfirmed address.
    pub const fn is_for_unconfirmed(self) -> bool {
        matches!(self, Self::Confirm | Self::EmailChange | Self::Reset)
    }

    /// Whether an account can switch these mails off.
    pub fn is_optional(self) -> bool {
        Self::OPTIONAL.contains(&self)
    }

    /// Returns the path of the page that the mail's secret link opens. Returns `None` for mails
    /// without such a link. The link's token is created when the mail is sent, and only the mail
    /// contains it.
    pub const fn secret_page(self) -> Option<&'static str> {
        match self {
            Self::Confirm => Some("/confirm/"),
            Self::EmailChange => Some("/account/email/"),
            Self::EmailStop => Some("/account/email/stop/"),
            Self::Reset => Some("/reset/"),
            _ => None,
        }
    }
}

words! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MailState {
        /// The mail waits for its next attempt.
        Queued = "queued",
        /// A process is submitting the mail to the mail server.
        Sending = "sending",
        /// The mail server accepted the mail.
        Sent = "sent",
        /// No mail server is configured. Staff can read the mail and contact the recipient.
        Kept = "kept",
        /// The mail server refused the mail permanently, or attempts failed for a day.
        Failed = "failed",
    }
}
