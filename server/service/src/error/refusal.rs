//! What the rules refuse.

use domain::{ApplicationStatus, SenderStatus};

/// What the rules refuse, in words that say what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("An account with this e-mail exists already. Sign in, or reset the password.")]
    EmailTaken,
    #[error("E-mail or password is wrong.")]
    WrongCredentials,
    #[error("The password is wrong.")]
    WrongPassword,
    #[error("Too many attempts. Try again in {} minutes.", (.retry_after_s + 59) / 60)]
    Throttled { retry_after_s: i64 },
    #[error("You already have an application of this category; an account has one of each.")]
    CategoryTaken,
    #[error(
        "You already have an application without a sender name. Request a sender name for it, or give this one a name."
    )]
    SenderlessTaken,
    #[error("This sender name belongs to another customer; choose another one.")]
    SenderNameTaken,
    #[error("This sender name is already in use by the application.")]
    SenderNameUnchanged,
    #[error("There is no such application.")]
    NoSuchApplication,
    #[error("There is no such request for a sender name.")]
    NoSuchSenderRequest,
    #[error("There is no account with this e-mail.")]
    NoSuchAccount,
    #[error("There is no carrier with this name in the settings.")]
    NoSuchCarrier,
    #[error("There is no such device; it may be signed out already.")]
    NoSuchDevice,
    #[error("The application is {status}: it can't be {action}.")]
    StatusConflict {
        status: ApplicationStatus,
        action: &'static str,
    },
    #[error("Activation can be requested for a Pending application; this one is {status}.")]
    ActivationNotPossible { status: ApplicationStatus },
    #[error("This request was decided before: it is {}.", status.as_str())]
    SenderDecided { status: SenderStatus },
    #[error("Say why: the customer sees the reason.")]
    ReasonMissing,
    #[error("The amount must be greater than 0.")]
    InvalidAmount,
    #[error("The bank id must have 1 to 255 characters.")]
    InvalidBankId,
    #[error(
        "The bank id {bank_id} is known with another reference or amount; nothing was credited."
    )]
    BankIdConflict { bank_id: String },
    /// Which of many orders was refused, counted from 0; the others weren't done either.
    #[error("{refusal}")]
    Order { index: usize, refusal: Box<Refusal> },
    #[error("There is no deposit with this bank id.")]
    NoSuchDeposit,
    #[error("This deposit was credited before.")]
    DepositAssigned,
    #[error("The balance would become more than can be held.")]
    BalanceTooLarge,
    #[error("This link is used or too old. Ask for a new one.")]
    ResetLinkInvalid,
    #[error("The file exists already; choose another name.")]
    FileExists,
    #[error("The database is a server: copy it with its own tools, like pg_dump.")]
    NoFileDatabase,
    #[error("The cursor isn't one that was given out.")]
    InvalidCursor,
}
