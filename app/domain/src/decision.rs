//! Staff decisions: the reasons that customers read, and the lists that staff edit.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::words::words;

/// The maximum number of characters in a reason.
pub const REASON_CHARS_MAX: usize = 500;
/// The maximum number of lines in a list, not counting blank lines.
pub const LIST_LINES_MAX: usize = 100;

/// Why a text isn't a valid reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidReason {
    Missing,
    /// The text is too long, or has control characters.
    Unreadable,
}

/// The text isn't a valid list: it has too many entries, or an entry isn't a valid reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidList;

/// Returns the reason of a decision as it is stored: trimmed, with LF line ends.
///
/// # Errors
/// Returns an error if the text is empty, too long, or has control characters other than line ends.
pub fn parse_reason(text: &str) -> Result<String, InvalidReason> {
    let text = text.trim().replace("\r\n", "\n");
    if text.is_empty() {
        return Err(InvalidReason::Missing);
    }
    let readable = text.chars().all(|c| c == '\n' || !c.is_control());
    if !readable || text.chars().count() > REASON_CHARS_MAX {
        return Err(InvalidReason::Unreadable);
    }
    Ok(text)
}

/// A decision about a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The email of a member of staff, or `command line (USER)`.
    pub by: String,
    pub at: Timestamp,
    /// What was done, as in "approved the application". `None` if it isn't known.
    pub what: Option<Box<str>>,
}

words! {
    /// A kind of case that staff decide.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CaseKind {
        /// An application, identified by its reference.
        Application = "application",
        /// A request for a sender name, identified by its ID.
        Sender = "sender",
    }
}

/// A member of staff who is viewing a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewer {
    /// The identifier of the case. Its form depends on the [`CaseKind`].
    pub case: String,
    pub email: String,
}

words! {
    /// A list that staff edit, with one entry per line.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum StaffList {
        /// Reasons that are offered when staff suspend an application.
        SuspendReasons = "suspend-reasons",
        /// Reasons that are offered when staff reject a sender name.
        RejectReasons = "reject-reasons",
        /// Words that sender names shouldn't contain.
        ReservedWords = "reserved-words",
    }
}

impl StaffList {
    /// Returns the default list, which applies until staff edit it.
    pub const fn at_first(self) -> &'static str {
        match self {
            Self::SuspendReasons => {
                "Recipients report messages that they didn't ask for.\n\
                 A payment was disputed.\n\
                 The account's owner asked for it."
            }
            Self::RejectReasons => {
                "The name isn't that of your company, product or brand.\n\
                 The name belongs to somebody else.\n\
                 The name is too general: it doesn't say who sends."
            }
            Self::ReservedWords => "admin\nbank\npolice\nsupport",
        }
    }

    /// Splits a list, as staff typed it, into its entries. Skips blank lines.
    ///
    /// # Errors
    /// Returns an error if there are too many entries, or if an entry isn't a valid reason.
    pub fn entries(text: &str) -> Result<Vec<String>, InvalidList> {
        let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
        let entries: Result<Vec<_>, _> = lines.map(parse_reason).collect();
        let entries = entries.map_err(|_| InvalidList)?;
        if entries.len() > LIST_LINES_MAX {
            return Err(InvalidList);
        }
        Ok(entries)
    }
}

words! {
    /// A kind of pending work for staff.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Work {
        Activations = "activations",
        SenderNames = "sender names",
        Deposits = "deposits",
        Mails = "mails",
        /// Messages from handsets to numbers that no application has.
        Inbound = "inbound messages",
        /// Requests for reset links that no mail server can deliver.
        Resets = "reset links",
        /// Lines of bank statements that couldn't be credited.
        BankLines = "bank lines",
    }
}

words! {
    /// A filter for the applications that staff list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ApplicationList {
        /// Applications with an open activation request, oldest request first.
        #[default]
        Waiting = "waiting",
        Pending = "pending",
        Active = "active",
        Suspended = "suspended",
        All = "all",
    }
}

words! {
    /// A filter for the deposits that staff list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DepositList {
        /// Deposits whose reference matches no application, oldest first.
        #[default]
        Unmatched = "unmatched",
        /// All deposits, newest first.
        All = "all",
    }
}
