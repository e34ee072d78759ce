//! What went wrong, in a form that reaches the person: in the answer to a form with JavaScript, in
//! the address of the page without.

use std::borrow::Cow;

use domain::ApplicationStatus;
use domain::account::{PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN};
use domain::sender_name::SENDER_NAME_CHARS_MAX;
use leptos::server_fn::codec::JsonEncoding;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};

/// Why a page or a form can't be served.
///
/// It crosses the address bar when there is no JavaScript, where anybody could write it: so it
/// names a cause and never carries a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub cause: Cause,
    /// What was typed, by field name, so that it needn't be typed again. Never a password.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub typed: Vec<(String, String)>,
}

/// The causes, each with its sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Nobody is signed in, or not any more.
    SignedOut,
    NotFound,
    /// A fault of ours; the log has the details.
    Broken,
    /// A fault of ours at a commit: whether anything was changed isn't known.
    Uncertain,
    /// The server can't be reached.
    Unreachable,
    /// The request wasn't one that our forms make.
    Unreadable,
    Email,
    Password,
    SenderName,
    SenderNameMissing,
    Category,
    EmailTaken,
    WrongCredentials,
    WrongPassword,
    Throttled {
        retry_after_s: i64,
    },
    CategoryTaken,
    SenderlessTaken,
    SenderNameTaken,
    SenderNameUnchanged,
    ActivationNotPossible {
        status: ApplicationStatus,
    },
    NoSuchDevice,
    NoSuchCarrier,
    ResetLinkInvalid,
    /// A filter of the reports holds what it can't hold.
    Filter(Filter),
    Cursor,
}

/// The filters of the reports that can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    Application,
    Status,
    Number,
    Transid,
    Batch,
    From,
    To,
}

impl Cause {
    /// What happened and what to do, for a person.
    #[must_use]
    pub fn sentence(&self) -> Cow<'static, str> {
        let fixed = match self {
            Self::SignedOut => "You are signed out. Sign in again to go on.",
            Self::NotFound => "There is nothing here.",
            Self::Broken => {
                "Something went wrong on our side and nothing was changed. Try again in a moment."
            }
            Self::Uncertain => {
                "Something went wrong on our side, and whether anything was changed isn't known. Look before you try again."
            }
            Self::Unreachable => {
                "The server can't be reached. Check your connection and try again."
            }
            Self::Unreadable => "The form didn't arrive whole. Reload the page and try again.",
            Self::Email => "Enter an e-mail address like name@example.org.",
            Self::Password => {
                return Cow::Owned(format!(
                    "A password has {PASSWORD_CHARS_MIN} to {PASSWORD_CHARS_MAX} characters."
                ));
            }
            Self::SenderName => {
                return Cow::Owned(format!(
                    "A sender name has 1 to {SENDER_NAME_CHARS_MAX} letters and digits, without spaces."
                ));
            }
            Self::SenderNameMissing => "Enter the sender name that you would like to use.",
            Self::Category => "Choose a category.",
            Self::EmailTaken => {
                "An account with this e-mail exists already. Sign in, or reset the password."
            }
            Self::WrongCredentials => "E-mail or password is wrong.",
            Self::WrongPassword => "The password is wrong.",
            Self::Throttled { retry_after_s } => {
                let minutes = retry_after_s.saturating_add(59) / 60;
                return Cow::Owned(match minutes {
                    ..=1 => "Too many attempts. Try again in a minute.".to_owned(),
                    minutes => format!("Too many attempts. Try again in {minutes} minutes."),
                });
            }
            Self::CategoryTaken => {
                "You already have an application of this category; an account has one of each."
            }
            Self::SenderlessTaken => {
                "You already have an application without a sender name. Request a sender name for it, or give this one a name."
            }
            Self::SenderNameTaken => {
                "This sender name belongs to another customer; choose another one."
            }
            Self::SenderNameUnchanged => "The application uses this sender name already.",
            Self::ActivationNotPossible { status } => {
                return Cow::Owned(format!(
                    "Activation can be requested for a Pending application; this one is {status}."
                ));
            }
            Self::NoSuchDevice => "There is no such device; it may be signed out already.",
            Self::NoSuchCarrier => "There is no such carrier in the settings any more.",
            Self::ResetLinkInvalid => "This link is used or too old. Ask for a new one.",
            Self::Filter(Filter::Application) => {
                "An application is named by its reference, 6 digits."
            }
            Self::Filter(Filter::Status) => "There is no such message status.",
            Self::Filter(Filter::Number) => "A number has 4 to 15 digits.",
            Self::Filter(Filter::Transid) => {
                "A transid is m_ and 13 letters and digits, as a send answers it."
            }
            Self::Filter(Filter::Batch) => {
                "A batchid is b_ and 13 letters and digits, as an upload answers it."
            }
            Self::Filter(Filter::From | Filter::To) => "A day is written like 2026-11-21.",
            Self::Cursor => "This page of the list isn't there any more. Start from the first one.",
        };
        Cow::Borrowed(fixed)
    }

    /// The name of the field that is to blame, when one is.
    #[must_use]
    pub const fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Email | Self::EmailTaken => "email",
            Self::Password => "new_password",
            Self::WrongPassword => "password",
            Self::SenderName
            | Self::SenderNameMissing
            | Self::SenderNameTaken
            | Self::SenderNameUnchanged
            | Self::SenderlessTaken => "sender",
            Self::Category | Self::CategoryTaken => "category",
            Self::Filter(Filter::Application) => "application",
            Self::Filter(Filter::Status) => "status",
            Self::Filter(Filter::Number) => "number",
            Self::Filter(Filter::Transid) => "transid",
            Self::Filter(Filter::Batch) => "batchid",
            Self::Filter(Filter::From) => "from",
            Self::Filter(Filter::To) => "to",
            _ => return None,
        })
    }
}

impl Problem {
    /// Keeps what was typed into a field.
    #[must_use]
    pub fn typed(mut self, field: &str, text: &str) -> Self {
        self.typed.push((field.to_owned(), text.to_owned()));
        self
    }

    /// What was typed into a field, or nothing.
    #[must_use]
    pub fn text_of(&self, field: &str) -> Option<String> {
        self.typed
            .iter()
            .find(|(name, _)| name == field)
            .map(|(_, text)| text.clone())
    }
}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Self {
        Self {
            cause,
            typed: Vec::new(),
        }
    }
}

impl FromServerFnError for Problem {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            ServerFnErrorErr::Request(_) => Cause::Unreachable,
            ServerFnErrorErr::Args(_)
            | ServerFnErrorErr::MissingArg(_)
            | ServerFnErrorErr::Deserialization(_) => Cause::Unreadable,
            _ => Cause::Broken,
        }
        .into()
    }
}

macro_rules! from_invalid {
    ($($invalid:path => $cause:expr,)*) => {
        $(impl From<$invalid> for Problem {
            fn from(_: $invalid) -> Self {
                $cause.into()
            }
        })*
    };
}

from_invalid! {
    domain::account::InvalidEmail => Cause::Email,
    domain::account::InvalidPassword => Cause::Password,
    domain::sender_name::InvalidSenderName => Cause::SenderName,
    // A reference stands in an address: one that can't be is a page that isn't there.
    domain::ids::InvalidReference => Cause::NotFound,
}

#[cfg(feature = "ssr")]
impl From<service::Error> for Problem {
    fn from(error: service::Error) -> Self {
        match error {
            service::Error::Refused(refusal) => Cause::from(refusal).into(),
            service::Error::Failed(fault) => {
                tracing::error!(error = %fault, "a page can't be served");
                Cause::Broken.into()
            }
            service::Error::Uncertain(uncertain) => {
                tracing::error!(error = %uncertain, "whether a form's work was done isn't known");
                Cause::Uncertain.into()
            }
        }
    }
}

#[cfg(feature = "ssr")]
impl From<service::Refusal> for Cause {
    fn from(refusal: service::Refusal) -> Self {
        use service::Refusal;
        match refusal {
            Refusal::EmailTaken => Self::EmailTaken,
            Refusal::WrongCredentials => Self::WrongCredentials,
            Refusal::WrongPassword => Self::WrongPassword,
            Refusal::Throttled { retry_after_s } => Self::Throttled { retry_after_s },
            Refusal::CategoryTaken => Self::CategoryTaken,
            Refusal::SenderlessTaken => Self::SenderlessTaken,
            Refusal::SenderNameTaken => Self::SenderNameTaken,
            Refusal::SenderNameUnchanged => Self::SenderNameUnchanged,
            Refusal::ActivationNotPossible { status } => Self::ActivationNotPossible { status },
            Refusal::NoSuchApplication => Self::NotFound,
            Refusal::NoSuchDevice => Self::NoSuchDevice,
            Refusal::NoSuchCarrier => Self::NoSuchCarrier,
            Refusal::NoSuchAccount => Self::SignedOut,
            Refusal::ResetLinkInvalid => Self::ResetLinkInvalid,
            Refusal::InvalidCursor => Self::Cursor,
            // The rest is refused to the command line alone.
            other => {
                tracing::error!(refusal = %other, "a refusal that no page expects");
                Self::Broken
            }
        }
    }
}
