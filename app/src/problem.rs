//! Problems: why a page or a form can't be served. Where scripts run, a problem reaches the person
//! in the answer; where none run, in a cookie that the form's page shows.

use std::borrow::Cow;

use domain::Refusal;
use domain::account::InvalidEmail;
use domain::password::InvalidPassword;
use domain::refusal::{FAILED, UNCERTAIN};
use domain::sender_name::InvalidSenderName;
use leptos::prelude::StoredValue;
use leptos::server_fn::codec::JsonEncoding;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};

/// The page on which a second factor is set up. An account that must have one is led there until it
/// has it.
pub const TWO_FACTOR_PATH: &str = "/account/two-factor";

/// Why a page or a form can't be served.
///
/// It names a cause and never carries a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub cause: Cause,
    /// The texts that were typed, by field name, so that they needn't be typed again. Never a
    /// password.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub typed: Vec<(String, String)>,
    /// The id of the request, where the fault is ours: support finds it in the log.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A form that came back to its page with a problem: where no scripts run, or after signing in
/// again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedForm {
    /// The path of its server function.
    pub function: String,
    pub problem: Problem,
}

/// The id of the place where the problem of a server function's form is shown, by the function's
/// path. Where no scripts run, a form that comes back leads there.
pub fn problem_anchor(path: &str) -> String {
    format!("problem-{}", path.trim_start_matches("/fn/"))
}

/// The form that came back to the page that was loaded, until it is sent or the page is left.
pub type ComeBack = StoredValue<Option<ReturnedForm>>;

/// The causes of problems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Nobody is signed in, or not any more.
    SignedOut,
    /// Nobody was signed in any more when the form came; its page is shown after signing in again.
    SignedOutBefore,
    /// The account must set up a second factor before anything else.
    SecondFactorMissing,
    /// The address leads to nothing that this account may see.
    NotFound,
    /// The rules refuse it.
    Refused(Refusal),
    /// A fault of ours that changed nothing; the log has the details.
    Failed,
    /// A fault of ours that leaves open whether anything was changed; the log has the details.
    Uncertain,
    /// A request for data got no answer from the server.
    Unreachable,
    /// A form got no answer from the server, which may have received it.
    NoAnswer,
    /// The request isn't one that our forms make.
    Unreadable,
    /// The text isn't an email address.
    Email,
    /// The new password breaks the rules for passwords.
    Password(InvalidPassword),
    /// The sender name breaks the rules for sender names.
    SenderName,
    SenderNameMissing,
    /// The text isn't an amount of money greater than 0.
    Amount,
    /// There is no such category.
    Category,
    /// The browser, or whoever sits at it, made no passkey.
    NoPasskeyMade,
    /// The browser, or whoever sits at it, used no passkey.
    NoPasskeyUsed,
    /// A filter of the reports has an invalid value.
    Filter(Filter),
}

/// The filters of the reports whose values can be invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    Application,
    Status,
    Key,
    Number,
    Transid,
    Batch,
    From,
    To,
    Hour,
    /// The first day is after the last one.
    Order,
}

impl Cause {
    /// The sentence for a person: it says what happened and what to do.
    pub fn sentence(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::SignedOut => "You are signed out. Sign in again to go on.",
            Self::SignedOutBefore => {
                "You were signed out before this came, and nothing was changed. What you typed is \
                 here again, but for passwords and codes: look at it and send it once more."
            }
            Self::SecondFactorMissing => {
                "Set up two-factor first: your account can't be used without it."
            }
            Self::NotFound => "There is nothing here.",
            Self::Refused(refusal) => return Cow::Owned(refusal.to_string()),
            Self::Failed => FAILED,
            Self::Uncertain => UNCERTAIN,
            Self::Unreachable => {
                "The server can't be reached. Check your connection and try again."
            }
            Self::NoAnswer => {
                "The server didn't answer, and it isn't known whether this was done. Check your \
                 connection, reload the page and look whether it shows the change before you try \
                 again."
            }
            Self::Unreadable => {
                "The form didn't arrive as a whole and nothing was changed. Reload the page and \
                 try again."
            }
            Self::Email => return Cow::Owned(InvalidEmail.to_string()),
            Self::Password(invalid) => return Cow::Owned(invalid.to_string()),
            Self::SenderName => return Cow::Owned(InvalidSenderName.to_string()),
            Self::SenderNameMissing => "Enter the sender name that you would like to use.",
            Self::Amount => "Enter an amount like 10 or 9.50.",
            Self::Category => "Choose a category.",
            Self::NoPasskeyMade => {
                "Your browser made no passkey: it was told not to, it took too long, or the device \
                 has one for your account already. Try again."
            }
            Self::NoPasskeyUsed => {
                "Your browser used no passkey: it was told not to, or it took too long. Try again, \
                 or enter a code of your authenticator app."
            }
            Self::Filter(filter) => filter.field_and_sentence().1,
        })
    }

    /// The name of the form's field that has to be corrected, if it is one.
    pub const fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Email | Self::Refused(Refusal::EmailTaken | Refusal::EmailUnchanged) => "email",
            Self::Password(_) => "new_password",
            Self::Amount => "low_balance",
            Self::Refused(Refusal::WrongPassword) => "password",
            Self::Refused(Refusal::ReferencesDiffer) => "references",
            Self::Refused(Refusal::WrongCode) => "code",
            Self::Refused(
                Refusal::CodeNeeded
                | Refusal::CodeOrPasskeyNeeded
                | Refusal::PasswordNeeded
                | Refusal::StepUpCodeWrong
                | Refusal::StepUpPasswordWrong,
            ) => "credential",
            Self::Refused(Refusal::WrongRecoveryCode) => "recovery_code",
            Self::Refused(Refusal::TimeZoneUnknown) => "time_zone",
            Self::Refused(Refusal::IncidentInvalid) => "text",
            Self::Refused(Refusal::PasskeyNameInvalid | Refusal::DeviceNameInvalid) => "name",
            Self::SenderName
            | Self::SenderNameMissing
            | Self::Refused(
                Refusal::SenderNameTaken
                | Refusal::SenderNameUnchanged
                | Refusal::TooManySenderRequests
                | Refusal::SenderlessTaken,
            ) => "sender",
            Self::Category | Self::Refused(Refusal::CategoryTaken) => "category",
            Self::Refused(Refusal::PrefixInvalid | Refusal::NoSuchPrefix) => "prefix",
            Self::Filter(filter) => filter.field_and_sentence().0,
            _ => return None,
        })
    }
}

impl Filter {
    /// The name of its field, and what the field takes.
    const fn field_and_sentence(self) -> (&'static str, &'static str) {
        const DAY: &str = "A day is written like 2026-11-21.";
        match self {
            Self::Application => (
                "application",
                "An application is named by its reference, 6 digits.",
            ),
            Self::Status => ("status", "There is no such message status."),
            Self::Key => ("key", "A key is live or test."),
            Self::Number => (
                "number",
                "A number has 4 to 15 digits, with spaces and hyphens as you like.",
            ),
            Self::Transid => (
                "transid",
                "A transaction ID is m_ and 13 letters and digits: the answer to a send has it.",
            ),
            Self::Batch => (
                "batchid",
                "A batch ID is b_ and 13 letters and digits: the answer to an upload has it.",
            ),
            Self::From => ("from", DAY),
            Self::To => ("to", DAY),
            Self::Hour => (
                "from",
                "An hour is a number from 0 to 23. Remove the filter Hour to see the whole day.",
            ),
            Self::Order => (
                "to",
                "To is a day before From. Choose the same day or a later one.",
            ),
        }
    }
}

impl Problem {
    /// The problem of a fault of ours.
    #[cfg(feature = "ssr")]
    fn of_fault(cause: Cause) -> Self {
        Self {
            request_id: crate::request_id::request_id(),
            ..cause.into()
        }
    }

    /// The sentence for a person, with the request's id where support is needed.
    pub fn sentence(&self) -> Cow<'static, str> {
        let sentence = self.cause.sentence();
        match &self.request_id {
            Some(id) => Cow::Owned(format!("{sentence} Request ID: {id}.")),
            None => sentence,
        }
    }

    /// Keeps what was typed into a field.
    pub fn typed(mut self, field: &str, text: &str) -> Self {
        self.typed.push((field.to_owned(), text.to_owned()));
        self
    }

    /// The problem of a step that follows a change, such as signing in after registering: here it
    /// would be false that nothing was changed.
    pub fn after_change(mut self) -> Self {
        if matches!(self.cause, Cause::Failed | Cause::Refused(Refusal::Busy)) {
            self.cause = Cause::Uncertain;
        }
        self
    }

    /// The text that was typed into a field, or nothing.
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
            request_id: None,
        }
    }
}

impl FromServerFnError for Problem {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            ServerFnErrorErr::Args(_)
            | ServerFnErrorErr::MissingArg(_)
            | ServerFnErrorErr::Deserialization(_) => Cause::Unreadable,
            // The function may have run by then.
            _ => Cause::Uncertain,
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
    InvalidEmail => Cause::Email,
    InvalidSenderName => Cause::SenderName,
    // A reference is a part of an address: where its text isn't one, there is no page.
    domain::ids::InvalidReference => Cause::NotFound,
}

impl From<InvalidPassword> for Problem {
    fn from(invalid: InvalidPassword) -> Self {
        Cause::Password(invalid).into()
    }
}

#[cfg(feature = "ssr")]
impl From<service::Error> for Problem {
    fn from(error: service::Error) -> Self {
        let is_busy = error.is_busy();
        match error {
            service::Error::Refused(refusal) => {
                if refusal == Refusal::Busy {
                    crate::overload::Overload::note();
                }
                Cause::from(refusal).into()
            }
            service::Error::Failed(fault) => {
                tracing::error!(error = %fault, "a page or a form can't be served");
                Self::of_fault(if is_busy {
                    Cause::Refused(Refusal::Busy)
                } else {
                    Cause::Failed
                })
            }
            service::Error::Uncertain(uncertain) => {
                tracing::error!(error = %uncertain, "whether a form's work was done isn't known");
                Self::of_fault(Cause::Uncertain)
            }
        }
    }
}

#[cfg(feature = "ssr")]
impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::EmailTaken
            | Refusal::EmailUnchanged
            | Refusal::TimeZoneUnknown
            | Refusal::AccountClosed
            | Refusal::ReferencesDiffer
            | Refusal::StaffCannotClose
            | Refusal::NoMailSent
            | Refusal::DeviceNameInvalid
            | Refusal::WrongCredentials
            | Refusal::WrongPassword
            | Refusal::AccountDisabled
            | Refusal::WrongCode
            | Refusal::WrongRecoveryCode
            | Refusal::SignInOver
            | Refusal::CodeNeeded
            | Refusal::CodeOrPasskeyNeeded
            | Refusal::PasswordNeeded
            | Refusal::StepUpCodeWrong
            | Refusal::StepUpPasswordWrong
            | Refusal::SecondFactorRequired
            | Refusal::NoSecondFactor
            | Refusal::PasskeyRefused
            | Refusal::PasskeyCopied
            | Refusal::PasskeyOver
            | Refusal::PasskeyNotAdded
            | Refusal::PasskeyNameInvalid
            | Refusal::TooManyPasskeys
            | Refusal::NoSuchPasskey
            | Refusal::PasskeysUnavailable
            | Refusal::Throttled { .. }
            | Refusal::TooManyChanges { .. }
            | Refusal::Busy
            | Refusal::CategoryTaken
            | Refusal::SenderlessTaken
            | Refusal::SenderNameTaken
            | Refusal::SenderNameUnchanged
            | Refusal::TooManySenderRequests
            | Refusal::KeyReplacedBefore
            | Refusal::ActivationNotPossible { .. }
            | Refusal::NoSuchDevice
            | Refusal::NoSuchCarrier
            | Refusal::LastCarrier { .. }
            | Refusal::NoSuchIncident
            | Refusal::IncidentInvalid
            | Refusal::TooManyIncidents
            | Refusal::ResetLinkInvalid
            | Refusal::ConfirmationInvalid
            | Refusal::EmailNotConfirmed
            | Refusal::EmailConfirmed
            | Refusal::NoSuchMail
            | Refusal::MailSent
            | Refusal::NoSuchSenderRequest
            | Refusal::StatusConflict { .. }
            | Refusal::SenderDecided { .. }
            | Refusal::ReasonMissing
            | Refusal::ReasonInvalid
            | Refusal::ListInvalid
            | Refusal::DaysInvalid
            | Refusal::PriceInvalid
            | Refusal::PricesInvalid
            | Refusal::PrefixInvalid
            | Refusal::TimeInvalid
            | Refusal::PriceInPast
            | Refusal::PriceSetTwice { .. }
            | Refusal::NoSuchPrefix
            | Refusal::PriceNotDearer { .. }
            | Refusal::NoSuchAccount
            | Refusal::NoSuchMessage
            | Refusal::AccountDisabledAlready
            | Refusal::AccountNotDisabled
            | Refusal::StaffAlready
            | Refusal::NotStaff
            | Refusal::FactorBeforeStaff
            | Refusal::OwnApplication
            | Refusal::OwnPrices
            | Refusal::OwnRequest
            | Refusal::NoSuchApproval
            | Refusal::LastStaff
            | Refusal::NoteInvalid
            | Refusal::NoSuchDeposit
            | Refusal::DepositAssigned
            | Refusal::ColumnRepeated
            | Refusal::StatementConfirmed
            | Refusal::BalanceTooLarge
            | Refusal::InvalidCursor => Self::Refused(refusal),
            Refusal::InvalidPassword(invalid) => Self::Password(invalid),
            Refusal::NoSuchApplication => Self::NotFound,
            other => {
                tracing::error!(refusal = %other, "a refusal that only the command line expects");
                Self::Failed
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::Refusal;

    use super::{Cause, Problem};

    #[test]
    fn only_a_failure_after_a_change_becomes_uncertain() {
        for (cause, after) in [
            (Cause::Failed, Cause::Uncertain),
            (Cause::Refused(Refusal::Busy), Cause::Uncertain),
            (Cause::Uncertain, Cause::Uncertain),
            (
                Cause::Refused(Refusal::WrongPassword),
                Cause::Refused(Refusal::WrongPassword),
            ),
        ] {
            assert_eq!(Problem::from(cause).after_change().cause, after);
        }
    }

    #[test]
    fn only_a_refused_or_failed_form_says_that_nothing_was_changed() {
        for (cause, says) in [
            (Cause::Failed, true),
            (Cause::Unreadable, true),
            (Cause::SignedOutBefore, true),
            (Cause::Uncertain, false),
            (Cause::NoAnswer, false),
        ] {
            let sentence = cause.sentence();
            assert_eq!(sentence.contains("nothing was changed"), says, "{sentence}");
            assert_eq!(sentence.contains("isn't known"), !says, "{sentence}");
        }
    }
}
