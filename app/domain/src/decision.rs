//! What staff decide by: reasons that customers read, and lists that staff keep.

use serde::{Deserialize, Serialize};

use crate::Timestamp;
use crate::words::words;

/// The most characters of a reason.
pub const REASON_CHARS_MAX: usize = 500;
/// The most lines of a list.
pub const LIST_LINES_MAX: usize = 100;

/// The text can't be a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InvalidReason {
    Missing,
    /// Too long, or with control characters.
    Unreadable,
}

/// The text can't be a list: it has too many entries, or one that can't be a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidList;

/// The reason of a decision, as it is stored: without space around it, and on lines that pages and
/// mails can show.
///
/// # Errors
/// When there is none, it is too long, or it has control characters.
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

/// A decision that was made about a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The email of a member of staff, or `command line (USER)`.
    pub by: String,
    pub at: Timestamp,
}

words! {
    /// A kind of case that staff decide.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum CaseKind {
        /// An application, named by its reference.
        Application = "application",
        /// A request for a sender name, named by its id.
        Sender = "sender",
    }
}

/// A member of staff who views a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Viewer {
    /// The name of the case, as its [`CaseKind`] says.
    pub case: String,
    pub email: String,
}

words! {
    /// A list that staff keep, a line for each entry.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum StaffList {
        /// Reasons that are offered when an application is suspended.
        SuspendReasons = "suspend-reasons",
        /// Reasons that are offered when a sender name is rejected.
        RejectReasons = "reject-reasons",
        /// Words that sender names shouldn't contain.
        ReservedWords = "reserved-words",
    }
}

impl StaffList {
    /// The list before staff change it.
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

    /// The entries of a list as staff typed it.
    ///
    /// # Errors
    /// For too many entries, or one that can't be a reason.
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
    /// A kind of work that waits for staff.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "kebab-case")]
    pub enum Work {
        Activations = "activations",
        SenderNames = "sender names",
        Deposits = "deposits",
        Mails = "mails",
    }
}

words! {
    /// Which applications staff list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum ApplicationList {
        /// Those whose activation is asked for, the longest waiting first.
        #[default]
        Waiting = "waiting",
        Pending = "pending",
        Active = "active",
        Suspended = "suspended",
        All = "all",
    }
}

words! {
    /// Which deposits staff list.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum DepositList {
        /// Those whose reference is nobody's, the oldest first.
        #[default]
        Unmatched = "unmatched",
        /// All, the newest first.
        All = "all",
    }
}
