//! Mails: their kinds and states.

use serde::{Deserialize, Serialize};

use crate::words::words;

words! {
    /// What a mail is about.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum MailKind {
        /// A link by which the owner of an address confirms it.
        Confirm = "confirm",
        /// A link by which the owner of an address makes it the email of an account.
        EmailChange = "email-change",
        /// To the address that the account has: another one is to take its place, which a link
        /// stops.
        EmailStop = "email-stop",
        /// The email of the account is to be changed, or was.
        EmailChanged = "email-changed",
        /// A link to set a new password.
        Reset = "reset",
        PasswordChanged = "password-changed",
        /// Somebody signed in from a browser or network that the account didn't use before.
        NewDevice = "new-device",
        SecondFactor = "second-factor",
        /// Somebody gave the right password and wrong codes.
        WrongCodes = "wrong-codes",
        KeyReplaced = "key-replaced",
        AccountClosed = "account-closed",
        /// An application was approved, suspended or reinstated.
        Application = "application",
        /// A sender name was accepted or rejected.
        SenderName = "sender-name",
        Deposit = "deposit",
        /// A balance fell below the application's threshold.
        LowBalance = "low-balance",
        BatchDone = "batch-done",
        /// To staff: something has waited for an hour.
        Waiting = "waiting",
    }
}

impl MailKind {
    /// The mails that an account can do without. The others are about its security, or asked for.
    pub const OPTIONAL: [Self; 6] = [
        Self::Application,
        Self::SenderName,
        Self::Deposit,
        Self::LowBalance,
        Self::BatchDone,
        Self::Waiting,
    ];

    /// Whether an address gets the mail before its owner said that it is theirs. Anybody can enter
    /// anybody's address, and nothing that they do then may reach it.
    pub const fn is_for_unconfirmed(self) -> bool {
        matches!(self, Self::Confirm | Self::EmailChange | Self::Reset)
    }

    /// Whether an account can do without these mails.
    pub fn is_optional(self) -> bool {
        Self::OPTIONAL.contains(&self)
    }

    /// The page that the mail's secret link leads to; `None` for a mail without such a link. The
    /// link's token is made when the mail is sent, and stands nowhere but in the mail.
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
    /// How far a mail has come.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum MailState {
        /// Waits for its next attempt.
        Queued = "queued",
        /// A process hands it to the mail server.
        Sending = "sending",
        /// The mail server has it.
        Sent = "sent",
        /// No mail server was set up: staff read it.
        Kept = "kept",
        /// Given up: refused for good, or tried for a day.
        Failed = "failed",
    }
}
