//! Refusals by the rules. Each has one sentence, which pages and the command line share. The
//! sentence says what happened and what to do.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::account::DEVICE_NAME_CHARS_MAX;
use crate::application::{ApplicationStatus, StatusAction};
use crate::billing::{ADDRESS_CHARS_MAX, NAME_CHARS_MAX, TAX_NUMBER_CHARS_MAX};
use crate::decision::{Decided, InvalidList, InvalidReason, LIST_LINES_MAX, REASON_CHARS_MAX};
use crate::incident::{INCIDENT_CHARS_MAX, INCIDENTS_MAX, InvalidIncident};
use crate::keyword::InvalidKeyword;
use crate::money::Money;
use crate::note::{InvalidNote, NOTE_CHARS_MAX};
use crate::number::{DIGITS_MAX, DIGITS_MIN};
use crate::passkey::{PASSKEY_NAME_CHARS_MAX, PASSKEYS_MAX};
use crate::password::InvalidPassword;
use crate::prefix::{InvalidPrefix, Prefix};
use crate::pricing::InvalidPrices;
use crate::sender_name::{SENDER_REQUESTS_PER_DAY, SenderStatus};
use crate::timestamp::Timestamp;
use crate::webhook::WEBHOOKS_MAX;

pub const FAILED: &str =
    "Something went wrong on our side and nothing was changed. Try again in a few seconds.";
/// The sentence for an internal error that may have changed something.
pub const UNCERTAIN: &str = "Something went wrong on our side, and it isn't known whether this was \
    done. Before you try again, reload the page and check whether it shows the change. If the old \
    password or key is refused, it was changed.";

/// Why the rules refuse a request.
///
/// Only refusals that a page shows cross the network. The others are for the command line alone, or
/// carry a text that a page must not show. No refusal is ever parsed from a URL.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
pub enum Refusal {
    #[error(
        "An account with this email exists already. Sign in, or reset the password. If the account \
         was closed, use another email."
    )]
    EmailTaken,
    #[error("This account was closed by its owner, and can't be used any more.")]
    AccountClosed,
    #[error("Type the reference of each of your applications, and nothing else.")]
    ReferencesDiffer,
    #[error(
        "The account of a member of staff can't be closed. Ask another member of staff to make it \
         the account of a customer first."
    )]
    StaffCannotClose,
    #[error("This is the email of your account already.")]
    EmailUnchanged,
    #[error("There is no time zone with this name. Choose one from the list.")]
    TimeZoneUnknown,
    #[error("This service sends no mail, so you can't confirm a new email. Ask support for help.")]
    NoMailSent,
    #[error(
        "The domain must be a host name such as example.com, without https:// and without a path."
    )]
    WebOtpDomainInvalid,
    #[error("This verification's code has {0} digits; the attempt isn't counted.")]
    WrongCodeLength(usize),
    #[error("Email or password is wrong.")]
    WrongCredentials,
    #[error("The password is wrong.")]
    WrongPassword,
    #[error("{0}")]
    InvalidPassword(InvalidPassword),
    #[error("This account is disabled. Ask support why.")]
    AccountDisabled,
    #[error("The code is wrong, too old or used already. Enter the one that your app shows now.")]
    WrongCode,
    #[error("The recovery code is wrong or used already. Each works once.")]
    WrongRecoveryCode,
    #[error("The sign-in took longer than 10 minutes. Sign in again.")]
    SignInOver,
    #[error(
        "Enter a code from your authenticator app to continue. You signed in too long ago to do \
         this without a code."
    )]
    CodeNeeded,
    #[error(
        "Use a passkey, or enter a code from your authenticator app, to continue. You signed in \
         too long ago to do this without one."
    )]
    CodeOrPasskeyNeeded,
    #[error("Enter your password to continue. You signed in too long ago to do this without it.")]
    PasswordNeeded,
    #[error("This code is wrong, too old or used already. Enter the one that your app shows now.")]
    StepUpCodeWrong,
    #[error("This isn't your account's password. Enter your password to continue.")]
    StepUpPasswordWrong,
    #[error("This account must have a second factor.")]
    SecondFactorRequired,
    #[error("The account has no second factor.")]
    NoSecondFactor,
    #[error(
        "The passkey wasn't accepted. Use it once more, or enter the code that your authenticator \
         app shows."
    )]
    PasskeyRefused,
    #[error(
        "The passkey wasn't accepted: its sign-in counter went backwards, so it may have been \
         copied. Enter a code from your authenticator app, and remove the passkey."
    )]
    PasskeyCopied,
    #[error("The passkey request has expired: it lasts 5 minutes and works once. Try again.")]
    PasskeyOver,
    #[error("The passkey wasn't accepted, and none was added. Add it once more.")]
    PasskeyNotAdded,
    #[error("The name of a passkey has 1 to {PASSKEY_NAME_CHARS_MAX} characters.")]
    PasskeyNameInvalid,
    #[error("An account has {PASSKEYS_MAX} passkeys at most. Remove one first.")]
    TooManyPasskeys,
    #[error("There is no such passkey; it may be removed already.")]
    NoSuchPasskey,
    #[error("Passkeys can't be used here: browsers require a site with a domain name and HTTPS.")]
    PasskeysUnavailable,
    #[error("The account is disabled already.")]
    AccountDisabledAlready,
    #[error("The account isn't disabled.")]
    AccountNotDisabled,
    #[error("The account is staff already.")]
    StaffAlready,
    #[error("The account isn't staff.")]
    NotStaff,
    #[error(
        "This person has no second factor, and staff must have one. Ask them to set one up on the \
         page Two-factor, then promote them."
    )]
    FactorBeforeStaff,
    #[error("This application is yours. Another member of staff must do this.")]
    OwnApplication,
    #[error("This is your own account. Another member of staff must do this.")]
    OwnAccount,
    #[error(
        "You have an application that pays these prices. Another member of staff must do this."
    )]
    OwnPrices,
    #[error("You asked for this yourself: another member of staff has to approve it.")]
    OwnRequest,
    #[error("There is no such request. It was decided already, or it expired.")]
    NoSuchApproval,
    #[error("This is the last member of staff who can sign in. Promote somebody else first.")]
    LastStaff,
    #[error("Too many attempts. Try again in {}.", Minutes(*.retry_after_s))]
    Throttled { retry_after_s: i64 },
    #[error(
        "You changed a lot within a short time, and this wasn't done. Try again in {}.",
        Seconds(*.retry_after_s)
    )]
    TooManyChanges { retry_after_s: i64 },
    #[error("The service is busy and nothing was changed. Try again in a few seconds.")]
    Busy,
    #[error("You already have an application of this category; an account has one of each.")]
    CategoryTaken,
    #[error(
        "You already have an application without a sender name. Request a sender name for it, or \
         give this one a name."
    )]
    SenderlessTaken,
    #[error("This sender name belongs to another customer; choose another one.")]
    SenderNameTaken,
    #[error("The application uses this sender name already.")]
    SenderNameUnchanged,
    #[error(
        "An application can request {SENDER_REQUESTS_PER_DAY} sender names within 24 hours, and \
         this one has reached that limit. Try again tomorrow."
    )]
    TooManySenderRequests,
    #[error(
        "This key was replaced before, and nothing was changed now. Reload the page, and check \
         when the current key was created before you replace it too."
    )]
    KeyReplacedBefore,
    #[error("There is no such application.")]
    NoSuchApplication,
    #[error("There is no such request for a sender name.")]
    NoSuchSenderRequest,
    #[error("There is no account with this email.")]
    NoSuchAccount,
    #[error("There is no message with this transaction ID any more.")]
    NoSuchMessage,
    #[error("There is no batch with this ID.")]
    NoSuchBatch,
    #[error(
        "Nothing is left to cancel: a carrier has it or may have it, or it's final already. Reload \
         the page."
    )]
    NotCancellable,
    #[error(
        "The application has cancelled or refused too many messages today. Try again tomorrow (UTC)."
    )]
    TooManyWithdrawn,
    #[error(
        "The batch is done or was cancelled, so it can't be paused or resumed. Reload the page."
    )]
    BatchEnded,
    #[error("The outcome of this message is known, so there is nothing to decide.")]
    OutcomeKnown,
    #[error(
        "This message isn't unknown: it still has to be submitted, or its carrier accepted it and \
         its receipt is awaited."
    )]
    StillOpen,
    #[error("The carrier accepted a part of this message, so it was sent.")]
    TakenByCarrier,
    #[error("This message is being submitted now. Try again in a minute.")]
    BeingSubmitted,
    #[error("This message was submitted twice. It isn't submitted a third time.")]
    SubmittedTwice,
    #[error("There is no carrier with this name in the settings.")]
    NoSuchCarrier,
    #[error(
        "No other carrier takes messages now. Messages that wait for this one: {waiting}. They and \
         all new messages will wait until a carrier is resumed, and expire after 48 hours. Confirm \
         to drain it all the same."
    )]
    LastCarrier {
        /// The number of messages that wait for the carrier.
        waiting: i64,
    },
    #[error("There is no such note. It may have ended already.")]
    NoSuchIncident,
    #[error("A note has 1 to {INCIDENT_CHARS_MAX} characters, and no control characters.")]
    IncidentInvalid,
    #[error("There are {INCIDENTS_MAX} open notes already. End one of them first.")]
    TooManyIncidents,
    #[error("There is no such device; it may be signed out already.")]
    NoSuchDevice,
    #[error("A device's name has at most {DEVICE_NAME_CHARS_MAX} characters, on one line.")]
    DeviceNameInvalid,
    #[error(
        "An application that is {status} can't be {}.{}",
        .action.participle(),
        By(.decided)
    )]
    StatusConflict {
        status: ApplicationStatus,
        action: StatusAction,
        /// The last decision about the application, if any.
        decided: Option<Decided>,
    },
    #[error("Activation can be requested for a Pending application; this one is {status}.")]
    ActivationNotPossible { status: ApplicationStatus },
    #[error("This request was decided before: it is {}.{}", .status.as_str(), By(.decided))]
    SenderDecided {
        status: SenderStatus,
        /// The decision. `None` if the customer replaced the request.
        decided: Option<Decided>,
    },
    #[error(
        "This changed after you opened the page, and nothing was done now.{} Check what the page \
         shows, and confirm again if you still want this.",
        By(.decided)
    )]
    ChangedMeanwhile {
        /// The last change, if any.
        decided: Option<Decided>,
    },
    #[error("This is done already, so nothing was changed.{}", By(.decided))]
    NothingToDo {
        /// The last change, if any.
        decided: Option<Decided>,
    },
    #[error("Write a reason.")]
    ReasonMissing,
    #[error(
        "A reason has at most {REASON_CHARS_MAX} characters, and no control characters. Shorten it."
    )]
    ReasonInvalid,
    #[error(
        "A list has at most {LIST_LINES_MAX} lines, each of at most {REASON_CHARS_MAX} characters."
    )]
    ListInvalid,
    #[error(
        "Choose a first day and a last day that isn't before it, at most 92 days in all. Choose \
         fewer days if a file would have more than 100,000 lines."
    )]
    DaysInvalid,
    #[error(
        "A price is an amount like 0.05: digits with a point and at most 6 decimals, without \
         commas, spaces, an exponent or a currency sign."
    )]
    PriceInvalid,
    #[error(
        "This isn't the new price that is shown above. If that one is wrong, go back and correct \
         it."
    )]
    PriceRepeatDiffers,
    #[error(
        "This price change can't be cancelled: it is in force, begins within a minute, or was \
         cancelled before. Set another price instead."
    )]
    PriceNotCancellable,
    #[error("Local numbers must cost more than 0, and international numbers more than local ones.")]
    PricesInvalid,
    #[error("{InvalidPrefix}")]
    PrefixInvalid,
    #[error("A time is written like 2026-12-01 or 2026-12-01 08:30, in UTC.")]
    TimeInvalid,
    #[error("Prices can't begin in the past. Leave the time out to begin now.")]
    PriceInPast,
    #[error(
        "A price that begins at {} UTC is set already. Cancel that change first, or choose another \
         time for this one, for example a minute later.",
        .at.to_table()
    )]
    PriceSetTwice { at: Timestamp },
    #[error("The prefix has no price of its own at that time, so there is nothing to remove.")]
    NoSuchPrefix,
    #[error(
        "At {} UTC the prefix {prefix} would cost {} and a local number {}: prefixes must cost \
         more. Change the prefix's price first, or choose another one.",
        .at.to_table(),
        .price.shown(),
        .local.shown()
    )]
    PriceNotDearer { prefix: Prefix, at: Timestamp, price: Money, local: Money },
    #[error(
        "A note has 1 to {NOTE_CHARS_MAX} characters, and no control characters but line ends."
    )]
    NoteInvalid,
    #[serde(skip)]
    #[error("The amount must be greater than 0.")]
    InvalidAmount,
    #[serde(skip)]
    #[error("The bank ID must have 1 to 255 characters, none of them a control character.")]
    InvalidBankId,
    #[serde(skip)]
    #[error(
        "The bank ID {bank_id} is known with another reference or amount; nothing was credited."
    )]
    BankIdConflict { bank_id: String },
    #[error("An application has this number with this keyword already. Remove it there first.")]
    InboundNumberTaken,
    #[error("No application has this number with this keyword.")]
    NoSuchInboundNumber,
    #[error("A number has {DIGITS_MIN} to {DIGITS_MAX} digits, with at most a leading +.")]
    InboundNumberInvalid,
    #[error("{InvalidKeyword}")]
    KeywordInvalid,
    #[error("This word is a command for opt-outs, such as STOP. Choose another keyword.")]
    KeywordIsCommand,
    #[error("There is no deposit with this bank ID.")]
    NoSuchDeposit,
    #[error("This deposit was credited before.")]
    DepositAssigned,
    #[error("This deposit was returned to the bank before.")]
    DepositReturned,
    #[error(
        "The file is no longer stored: its columns were already chosen, or it was sent more than \
         an hour ago. Send it again."
    )]
    BankFileGone,
    #[error("A column can be used only once: choose a different column for each.")]
    ColumnRepeated,
    #[error("There is no such bank statement, or it was confirmed before.")]
    StatementConfirmed,
    #[error("The balance would become too large.")]
    BalanceTooLarge,
    #[error(
        "A name has at most {NAME_CHARS_MAX} characters, an address {ADDRESS_CHARS_MAX} and a tax \
         number {TAX_NUMBER_CHARS_MAX}, and no control characters."
    )]
    BillingDetailsInvalid,
    #[error("This link is used or too old. Ask for a new one.")]
    ResetLinkInvalid,
    #[error("This link is no longer valid. Sign in and request another mail.")]
    ConfirmationInvalid,
    #[error("Confirm your email first: open the link in the mail that we sent you.")]
    EmailNotConfirmed,
    #[error(
        "This application has sent messages or has a balance, so it can't be deleted. Nothing was \
         changed."
    )]
    ApplicationInUse,
    #[error("The email is confirmed already.")]
    EmailConfirmed,
    #[error("There is no such mail; sent mails are deleted after a while.")]
    NoSuchMail,
    #[error("This mail was already sent, or is being sent now.")]
    MailSent,
    #[serde(skip)]
    #[error("The file exists already; choose another name.")]
    FileExists,
    #[serde(skip)]
    #[error("The database is a server: copy it with its own tools, like pg_dump.")]
    NoFileDatabase,
    #[serde(skip)]
    #[error(
        "The file {file} is missing, and the database has secrets that are sealed with it. Put your copy of \
         it there. If it is lost, write a new one with `openssl rand -hex 32`, and remove second \
         factors with `heliograph account reset-factor`. Owners of endpoints must rotate their \
         secrets. Opt-outs of erased numbers no longer apply: sends to these numbers work again."
    )]
    SecretKeyMissing {
        /// The path of the key file.
        file: String,
    },
    #[serde(skip)]
    #[error("Messages aren't held. There is nothing to reconcile.")]
    NotHeld,
    #[serde(skip)]
    #[error(
        "The rows of the upload {batch} aren't all messages yet, so nobody knows which of them were \
         sent. The server expands uploads while messages are held: start it and wait. If the upload \
         is paused, resume it."
    )]
    UploadHeld {
        /// The ID of the upload's batch.
        batch: String,
    },
    #[serde(skip)]
    #[error(
        "Some messages are still being submitted, so nobody knows yet whether they were sent. Try \
         again in a minute."
    )]
    StillSubmitting,
    #[error("This page of the list no longer exists. Start again from the first page.")]
    InvalidCursor,
    #[error(
        "The events after this cursor are too old: some were deleted. Start again without a cursor."
    )]
    CursorTooOld,
    #[error("There is no such endpoint; it may have been removed.")]
    NoSuchWebhook,
    #[error("There is no such event; old events are deleted.")]
    NoSuchEvent,
    #[error(
        "An application has {WEBHOOKS_MAX} endpoints for each of its keys at most. Remove one first."
    )]
    TooManyWebhooks,
    #[error("{why}")]
    WebhookUrl { why: String },
    #[serde(skip)]
    #[error("Another request had this idempotency key. Give each request its own key.")]
    IdempotencyMismatch,
    #[serde(skip)]
    #[error("The owner of the application allows changes of its limits in the portal only.")]
    LimitsLocked,
}

/// Displays a waiting time in seconds as minutes, rounded up.
struct Minutes(i64);

impl fmt::Display for Minutes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.saturating_add(59) / 60 {
            ..=1 => f.write_str("a minute"),
            minutes => write!(f, "{minutes} minutes"),
        }
    }
}

/// Displays a waiting time in seconds.
struct Seconds(i64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ..=1 => f.write_str("a second"),
            seconds => write!(f, "{seconds} seconds"),
        }
    }
}

/// Displays a space and a sentence that says who decided and when. Displays nothing without a
/// decision.
struct By<'a>(&'a Option<Decided>);

impl fmt::Display for By<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(Decided { by, at, what }) => {
                let what = what.as_deref().unwrap_or("decided that");
                write!(f, " {by} {what} at {} UTC.", at.to_table())
            }
            None => Ok(()),
        }
    }
}

impl From<InvalidReason> for Refusal {
    fn from(invalid: InvalidReason) -> Self {
        match invalid {
            InvalidReason::Missing => Self::ReasonMissing,
            InvalidReason::Unreadable => Self::ReasonInvalid,
        }
    }
}

impl From<InvalidPrefix> for Refusal {
    fn from(_: InvalidPrefix) -> Self {
        Self::PrefixInvalid
    }
}

impl From<InvalidPrices> for Refusal {
    fn from(_: InvalidPrices) -> Self {
        Self::PricesInvalid
    }
}

impl From<InvalidIncident> for Refusal {
    fn from(_: InvalidIncident) -> Self {
        Self::IncidentInvalid
    }
}

impl From<InvalidList> for Refusal {
    fn from(_: InvalidList) -> Self {
        Self::ListInvalid
    }
}

impl From<InvalidNote> for Refusal {
    fn from(_: InvalidNote) -> Self {
        Self::NoteInvalid
    }
}
