//! Problems: why a page or a form can't be handled. If scripts run, the response carries the
//! problem. Without scripts, a cookie carries it to the form's page.

use std::borrow::Cow;

use domain::account::InvalidEmail;
use domain::application_name::InvalidApplicationName;
use domain::password::InvalidPassword;
use domain::refusal::{FAILED, UNCERTAIN};
use domain::sender_name::InvalidSenderName;
use domain::{LimitField, Refusal};
use leptos::prelude::StoredValue;
use leptos::server_fn::codec::JsonEncoding;
use leptos::server_fn::error::{FromServerFnError, ServerFnErrorErr};
use serde::{Deserialize, Serialize};

/// The page on which a second factor is set up. An account that must have one but doesn't have it
/// yet is redirected here.
pub const TWO_FACTOR_PATH: &str = "/account/two-factor";

/// Why a page or a form can't be handled.
///
/// Names a cause and never carries a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Problem {
    pub cause: Cause,
    /// The text typed into each field, by field name, so that the form can be filled in again.
    /// Never contains a password.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub typed: Vec<(String, String)>,
    /// The request ID, if the fault is ours. Support finds the request in the log by this ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Box<str>>,
    /// The field that must be corrected, if the cause alone doesn't tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
}

/// A form that came back to its page with a problem, either without scripts or after signing in
/// again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReturnedForm {
    /// The path of the form's server function.
    pub function: String,
    pub problem: Problem,
}

/// Returns the ID of the element that shows the problem of a server function's form. `path` is the
/// function's path. Without scripts, the browser jumps to this element when the form comes back.
pub fn problem_anchor(path: &str) -> String {
    format!("problem-{}", path.trim_start_matches("/fn/"))
}

/// The form that came back to the loaded page. Cleared when a form is sent or another page is
/// opened.
pub type ComeBack = StoredValue<Option<ReturnedForm>>;

/// The causes of problems.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Cause {
    /// Nobody is signed in, or the session has ended.
    SignedOut,
    /// The session had ended when the form arrived. The form is shown again after signing in.
    SignedOutBefore,
    /// The account must set up a second factor first.
    SecondFactorMissing,
    /// Nothing at this address is visible to this account.
    NotFound,
    /// The rules refuse the request.
    Refused(Refusal),
    /// Our fault. Nothing was changed; the log has the details.
    Failed,
    /// Our fault. It isn't known whether anything was changed; the log has the details.
    Uncertain,
    /// A request for data got no response.
    Unreachable,
    /// A form got no response. The server may have received it.
    NoAnswer,
    /// The request doesn't match any of our forms.
    Unreadable,
    /// The text isn't an email address.
    Email,
    /// The new password breaks the rules for passwords.
    Password(InvalidPassword),
    /// The sender name breaks the rules for sender names.
    SenderName,
    SenderNameMissing,
    /// The text isn't a display name.
    ApplicationName,
    /// The text isn't an amount greater than 0.
    Amount,
    /// The text isn't a time.
    Time,
    /// The category doesn't exist.
    Category,
    /// The browser or its user didn't create a passkey.
    NoPasskeyMade,
    /// The browser or its user didn't use a passkey.
    NoPasskeyUsed,
    /// A report filter has an invalid value.
    Filter(Filter),
    /// These limits have an invalid value.
    Limits(Vec<LimitField>),
    /// Staff typed a reference that no application has.
    ReferenceUnknown,
}

/// The report filters that can have an invalid value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Filter {
    Application,
    Status,
    Key,
    Number,
    /// The number that inbound messages were sent to.
    Recipient,
    Transid,
    Batch,
    From,
    To,
    Hour,
    /// The first day is after the last day.
    Order,
}

impl Cause {
    /// Returns the sentence for the user. It says what happened and what to do.
    pub fn sentence(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::SignedOut => "You are signed out. Sign in again to go on.",
            Self::SignedOutBefore => {
                "You were signed out before this form arrived, and nothing was changed. The form \
                 has your text again, except passwords and codes. Check it and send it again."
            }
            Self::SecondFactorMissing => {
                "Set up two-factor first: your account can't be used without it."
            }
            Self::NotFound => "There is nothing here.",
            Self::ReferenceUnknown => "No application has this reference.",
            Self::Refused(refusal) => return Cow::Owned(refusal.to_string()),
            Self::Failed => FAILED,
            Self::Uncertain => UNCERTAIN,
            Self::Unreachable => {
                "The server can't be reached. Check your connection and try again."
            }
            Self::NoAnswer => {
                "The server didn't answer, and it isn't known whether this was done. Check your \
                 connection. Before you try again, reload the page and check whether it shows the \
                 change."
            }
            Self::Unreadable => {
                "The form arrived incomplete, and nothing was changed. Reload the page and try \
                 again."
            }
            Self::Email => return Cow::Owned(InvalidEmail.to_string()),
            Self::Password(invalid) => return Cow::Owned(invalid.to_string()),
            Self::SenderName => return Cow::Owned(InvalidSenderName.to_string()),
            Self::ApplicationName => return Cow::Owned(InvalidApplicationName.to_string()),
            Self::SenderNameMissing => "Enter the sender name that you would like to use.",
            Self::Amount => "Enter an amount like 10 or 9.50, without a currency or a comma.",
            Self::Time => "Enter a day and a time, like 2026-11-21 08:30.",
            Self::Category => "Choose a category.",
            Self::NoPasskeyMade => {
                "Your browser didn't create a passkey. You may have canceled, it may have taken \
                 too long, or the device may already have one for your account. Try again."
            }
            Self::NoPasskeyUsed => {
                "Your browser didn't use a passkey. You may have canceled, or it may have taken \
                 too long. Try again, or enter a code from your authenticator app."
            }
            Self::Filter(filter) => filter.field_and_sentence().1,
            Self::Limits(limits) => return of_limits(limits),
        })
    }

    /// Returns the name of the form field to correct, if there is exactly one. Limits have their own
    /// sentences, in [`Self::sentence_beside`].
    pub const fn field(&self) -> Option<&'static str> {
        Some(match self {
            Self::Email | Self::Refused(Refusal::EmailTaken | Refusal::EmailUnchanged) => "email",
            Self::Password(_) => "new_password",
            Self::Amount => "low_balance",
            Self::Time => "since",
            Self::Refused(Refusal::WebhookUrl { .. }) => "url",
            Self::Refused(Refusal::ReasonMissing | Refusal::ReasonInvalid) => "reason",
            Self::Refused(Refusal::PriceRepeatDiffers) => "repeated",
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
            Self::ApplicationName
            | Self::Refused(Refusal::PasskeyNameInvalid | Refusal::DeviceNameInvalid) => "name",
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
            Self::ReferenceUnknown => "reference",
            _ => return None,
        })
    }

    /// Like [`Problem::sentence_beside`], as far as the cause tells the field.
    fn sentence_beside(&self, field: &str) -> Option<Cow<'static, str>> {
        let Self::Limits(limits) = self else {
            return self.field().filter(|wrong| *wrong == field).map(|_| self.sentence());
        };
        let wrong = limits.iter().find(|limit| limit.as_str() == field)?;
        Some(of_limits(&[*wrong]))
    }
}

/// Returns the sentence about limits with an invalid value.
fn of_limits(limits: &[LimitField]) -> Cow<'static, str> {
    if let [limit] = limits {
        return Cow::Owned(format!("This must be {}.", limit.allowed()));
    }
    let labels: Vec<_> = limits.iter().map(|limit| limit.label()).collect();
    Cow::Owned(format!("Nothing was saved. Correct these fields: {}.", labels.join(", ")))
}

/// The form of a number, as a sentence for the user.
const NUMBER: &str = "A number has 4 to 15 digits. You can use spaces and hyphens.";

impl Filter {
    /// Returns the name of the filter's field, and the sentence about what it accepts.
    const fn field_and_sentence(self) -> (&'static str, &'static str) {
        const DAY: &str = "A day is written like 2026-11-21.";
        match self {
            Self::Application => {
                ("application", "Enter the application's reference, which has 6 digits.")
            }
            Self::Status => ("status", "There is no such message status."),
            Self::Key => ("key", "A key is live or test."),
            Self::Number => ("number", NUMBER),
            Self::Recipient => ("recipient", NUMBER),
            Self::Transid => (
                "transid",
                "A transaction ID is m_ and 13 letters and digits. The API returns it for each \
                 message.",
            ),
            Self::Batch => (
                "batchid",
                "A batch ID is b_ and 13 letters and digits. The API returns it for each upload.",
            ),
            Self::From => ("from", DAY),
            Self::To => ("to", DAY),
            Self::Hour => (
                "from",
                "An hour is a number from 0 to 23. Remove the filter Hour to see the whole day.",
            ),
            Self::Order => ("to", "To is a day before From. Choose the same day or a later one."),
        }
    }
}

impl Problem {
    /// Creates the problem for a fault of ours.
    #[cfg(feature = "ssr")]
    fn of_fault(cause: Cause) -> Self {
        let request_id = crate::request_id::request_id().map(String::into_boxed_str);
        Self { request_id, ..cause.into() }
    }

    /// Returns the sentence for the user, followed by the request ID if support needs it.
    pub fn sentence(&self) -> Cow<'static, str> {
        let sentence = self.cause.sentence();
        match &self.request_id {
            Some(id) => Cow::Owned(format!("{sentence} Request ID: {id}.")),
            None => sentence,
        }
    }

    /// Says which field must be corrected.
    pub fn about(mut self, field: &str) -> Self {
        self.field = Some(field.to_owned());
        self
    }

    /// Returns the sentence to show beside a form field, if the field must be corrected.
    pub fn sentence_beside(&self, field: &str) -> Option<Cow<'static, str>> {
        match &self.field {
            Some(wrong) => (wrong == field).then(|| self.cause.sentence()),
            None => self.cause.sentence_beside(field),
        }
    }

    /// Keeps the text typed into a field.
    pub fn typed(mut self, field: &str, text: &str) -> Self {
        self.typed.push((field.to_owned(), text.to_owned()));
        self
    }

    /// Converts the problem of a step that follows a change, such as signing in after registering.
    /// It would be wrong to say that nothing was changed.
    pub fn after_change(mut self) -> Self {
        if matches!(self.cause, Cause::Failed | Cause::Refused(Refusal::Busy)) {
            self.cause = Cause::Uncertain;
        }
        self
    }

    /// Returns the text typed into a field, if any.
    pub fn text_of(&self, field: &str) -> Option<String> {
        self.typed.iter().find(|(name, _)| name == field).map(|(_, text)| text.clone())
    }
}

impl From<Cause> for Problem {
    fn from(cause: Cause) -> Self {
        Self { cause, typed: Vec::new(), request_id: None, field: None }
    }
}

impl FromServerFnError for Problem {
    type Encoder = JsonEncoding;

    fn from_server_fn_error(error: ServerFnErrorErr) -> Self {
        match error {
            ServerFnErrorErr::Args(_)
            | ServerFnErrorErr::MissingArg(_)
            | ServerFnErrorErr::Deserialization(_) => Cause::Unreadable,
            // The function may already have run.
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
    InvalidApplicationName => Cause::ApplicationName,
    // A reference is part of an address. If it isn't valid, there is no such page.
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
                Self::of_fault(if is_busy { Cause::Refused(Refusal::Busy) } else { Cause::Failed })
            }
            service::Error::Uncertain(uncertain) => {
                tracing::error!(error = %uncertain, "it isn't known whether a form took effect");
                Self::of_fault(Cause::Uncertain)
            }
        }
    }
}

#[cfg(feature = "ssr")]
impl From<Refusal> for Cause {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::InvalidPassword(invalid) => Self::Password(invalid),
            Refusal::NoSuchApplication => Self::NotFound,
            refusal => Self::Refused(refusal),
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
            (Cause::Refused(Refusal::WrongPassword), Cause::Refused(Refusal::WrongPassword)),
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
